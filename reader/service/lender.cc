#include "reader/service/lender.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "base/clock.h"
#include "base/error.h"
#include "reader/service/local_workers.h"
#include "reader/service/process_name.h"

namespace headrace::reader::service {
namespace {

constexpr int kLenderLookMs = 100;
constexpr int64_t kLenderAliveNs = 1'000'000'000, kReconnectNs = 500'000'000;
constexpr int64_t kKillNs = 5'000'000'000;     // beyond the time to drain
constexpr int64_t kForgetNs = 60'000'000'000;  // a job that took no more workers may again
constexpr int64_t kNoForkNs = 2'000'000'000;   // after the system made no process

class LenderLoop {
 public:
  explicit LenderLoop(const LenderOptions& options) : options_(options) {}

  bool Run() {
    while (!is_leaving_ || NumRunning() > 0) {
      Leave();
      if (is_leaving_ && MonotonicNs() - left_ns_ > options_.drain_ns + kKillNs) break;
      if (!Meet()) usleep(kLenderLookMs * 1000);
      Work(MonotonicNs());
      Say(MonotonicNs());
    }
    return !was_interrupted_;
  }

 private:
  bool Interrupted() const { return options_.interrupted && options_.interrupted(); }
  // Says it, unless it was said last.
  void Note(const std::string& text) {
    if (options_.note && text != noted_) options_.note(text);
    noted_ = text;
  }
  uint32_t NumRunning() const {
    uint32_t all = 0;
    for (const auto& [place, workers] : workers_) all += workers->running();
    return all;
  }

  void BeginLeaving() {
    if (std::exchange(is_leaving_, true)) return;
    left_ns_ = MonotonicNs();
    assigned_.clear();
    const uint32_t running = NumRunning();
    if (running == 1) Note("1 worker finishes what it has");
    if (running > 1) Note(fmt::format("{} workers finish what they have", running));
  }

  void Leave() {
    if (is_leaving_ || !Interrupted()) return;
    was_interrupted_ = true;
    if (connection_) connection_->Send(Drain{});
    BeginLeaving();
  }

  // Once a pool has taken this machine, nothing that comes of the connection is a reason to end:
  // its workers go on, and another pool may come.
  bool Meet() {
    try {
      if (!connection_ && (is_leaving_ || !Connect())) return false;
      Hear();
      return true;
    } catch (const Error& error) {
      if (!was_taken_) throw;
      Note(fmt::format("the pool {} cannot be used, and is tried again: {}", options_.pool->text(),
                       error.what()));
      Disconnect();
      return false;
    }
  }

  void Disconnect() {
    connection_.reset();
    again_ns_ = MonotonicNs() + kReconnectNs;
  }

  bool Connect() {
    if (MonotonicNs() < again_ns_) return false;
    std::string why;
    connection_ = options_.pool->Connect([this] { return Interrupted(); }, &why).control;
    if (connection_) {
      offered_.reset();
      return true;
    }
    Disconnect();
    Note(fmt::format("waits for the pool {}{}{}", options_.pool->text(), why.empty() ? "" : ": ",
                     why));
    if (MonotonicNs() - met_ns_ > options_.wait_ns)
      throw Error(ExitCode::kFailure,
                  fmt::format("waited {} s for the pool", options_.wait_ns / 1'000'000'000),
                  options_.pool->text(), "start it: headrace service pool; or raise --wait");
    return false;
  }

  void Hear() {
    for (const Message& message : connection_->Receive(kLenderLookMs)) {
      if (const auto* assign = std::get_if<Assign>(&message)) {
        was_taken_ = true;
        met_ns_ = MonotonicNs();
        if (is_leaving_) continue;
        noted_.clear();
        assigned_.clear();
        for (const WorkersAt& some : assign->workers) assigned_[some.place] = some.workers;
      } else if (std::holds_alternative<Bye>(message)) {
        BeginLeaving();
      } else if (const auto* refused = std::get_if<Refused>(&message)) {
        throw Error(static_cast<ExitCode>(refused->code), refused->reason, options_.pool->text(),
                    refused->fix);
      }
    }
    if (!connection_->is_closed()) return;
    if (!is_leaving_) Note("the pool is gone: its workers go on, and wait for another one");
    Disconnect();
  }

  // Workers that are not wanted finish first, then others take their places.
  void Work(int64_t now) {
    for (const auto& [place, count] : assigned_)
      if (!workers_.contains(place))
        workers_[place] = std::make_unique<LocalWorkers>(options_.command(place));
    uint32_t running = NumRunning();
    for (auto& [place, workers] : workers_) {
      const auto found = assigned_.find(place);
      const uint32_t wanted = found == assigned_.end() ? 0 : found->second;
      const uint32_t before = workers->running();
      const uint32_t room = options_.workers - std::min(options_.workers, running);
      workers->DrainTo(wanted, now + options_.drain_ns + kKillNs);
      workers->ScaleTo(now < no_fork_until_ns_ ? 0 : std::min(wanted, workers->working() + room));
      Turn(workers.get(), now);
      ForgetMost(place, wanted, workers.get(), now);
      running = running + workers->running() - before;
    }
    std::erase_if(workers_, [&](const auto& one) {
      return one.second->running() == 0 && !assigned_.contains(one.first);
    });
  }

  void Turn(LocalWorkers* workers, int64_t now) {
    try {
      for (const std::string& line : workers->Turn(now)) Note(line);
    } catch (const Error& error) {
      Note(error.what());
      no_fork_until_ns_ = now + kNoForkNs;
    }
  }

  void ForgetMost(const std::string& place, uint32_t wanted, LocalWorkers* workers, int64_t now) {
    if (workers->most() >= wanted) {
      bounded_ns_.erase(place);
    } else if (now - bounded_ns_.try_emplace(place, now).first->second > kForgetNs) {
      workers->ForgetMost();
    }
  }

  void Say(int64_t now) {
    if (!connection_) return;
    if (now - alive_ns_ >= kLenderAliveNs && offered_) {
      alive_ns_ = now;
      connection_->Send(Alive{});
    }
    Offer offer{instance_, HostName(), options_.workers, {}};
    for (const auto& [place, workers] : workers_)
      if (workers->running() > 0) offer.running.push_back({place, workers->running()});
    if (offered_ && offered_->running == offer.running) return;
    connection_->Send(offer);
    if (!offered_ && was_interrupted_) connection_->Send(Drain{});
    offered_ = std::move(offer);
  }

  const LenderOptions options_;
  const uint64_t instance_ = RandomInstance();
  std::unique_ptr<ControlConnection> connection_;
  std::optional<Offer> offered_;  // what was said last, on this connection
  std::map<std::string, uint32_t> assigned_;
  std::map<std::string, std::unique_ptr<LocalWorkers>> workers_;  // by the job's place
  std::map<std::string, int64_t> bounded_ns_;  // since when a job takes fewer than it is given
  std::string noted_;
  int64_t met_ns_ = MonotonicNs(), left_ns_ = 0, again_ns_ = 0, alive_ns_ = 0;
  int64_t no_fork_until_ns_ = 0;
  bool is_leaving_ = false, was_interrupted_ = false, was_taken_ = false;
};

}  // namespace

bool RunLender(const LenderOptions& options) { return LenderLoop(options).Run(); }

}  // namespace headrace::reader::service
