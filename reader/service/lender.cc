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

class LenderLoop {
 public:
  explicit LenderLoop(const LenderOptions& options) : options_(options) {}

  bool Run() {
    while (!is_leaving_ || NumRunning() > 0) {
      Leave();
      if (is_leaving_ && MonotonicNs() - left_ns_ > options_.drain_ns) break;
      if (connection_ || (!is_leaving_ && Connect())) {
        Hear();
      } else {
        usleep(kLenderLookMs * 1000);
      }
      Work();
      Say();
    }
    return !was_interrupted_;
  }

 private:
  bool Interrupted() const { return options_.interrupted && options_.interrupted(); }
  void Note(const std::string& text) const {
    if (options_.note) options_.note(text);
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
    if (const uint32_t running = NumRunning(); running > 0)
      Note(fmt::format("{} worker{} finish{} what they have", running, running == 1 ? "" : "s",
                       running == 1 ? "es" : ""));
  }

  void Leave() {
    if (is_leaving_ || !Interrupted()) return;
    was_interrupted_ = true;
    if (connection_) connection_->Send(Drain{});
    BeginLeaving();
  }

  bool Connect() {
    std::string why;
    connection_ = options_.pool->Connect([this] { return Interrupted(); }, &why).control;
    if (connection_) {
      has_noted_ = false;
      offered_.reset();
      return true;
    }
    if (!std::exchange(has_noted_, true))
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
        if (is_leaving_) continue;
        assigned_.clear();
        for (const WorkersAt& some : assign->workers) assigned_[some.place] = some.workers;
      } else if (std::holds_alternative<Bye>(message)) {
        BeginLeaving();
      } else if (const auto* refused = std::get_if<Refused>(&message)) {
        throw Error(static_cast<ExitCode>(refused->code), refused->reason, options_.pool->text(),
                    refused->fix);
      }
    }
    met_ns_ = MonotonicNs();
    if (!connection_->is_closed()) return;
    // A pool that ended, or another one will come.
    if (!is_leaving_) Note("the pool is gone: its workers go on, and wait for another one");
    connection_.reset();
  }

  // Workers that are not wanted finish first, then others take their places.
  void Work() {
    const int64_t now = MonotonicNs();
    for (const auto& [place, count] : assigned_)
      if (!workers_.contains(place))
        workers_[place] = std::make_unique<LocalWorkers>(options_.command(place));
    uint32_t running = NumRunning();
    for (auto& [place, workers] : workers_) {
      const auto found = assigned_.find(place);
      const uint32_t wanted = found == assigned_.end() ? 0 : found->second;
      workers->DrainTo(wanted);
      const uint32_t room = options_.workers - std::min(options_.workers, running);
      const uint32_t before = workers->running();
      workers->ScaleTo(std::min(wanted, workers->working() + room));
      for (const std::string& line : workers->Turn(now)) Note(line);
      running = running + workers->running() - before;
    }
    std::erase_if(workers_, [&](const auto& one) {
      return one.second->running() == 0 && !assigned_.contains(one.first);
    });
  }

  void Say() {
    if (!connection_) return;
    Offer offer{instance_, HostName(), is_leaving_ ? 0 : options_.workers, {}};
    for (const auto& [place, workers] : workers_)
      if (workers->running() > 0) offer.running.push_back({place, workers->running()});
    if (offered_ && offered_->workers == offer.workers && offered_->running == offer.running)
      return;
    connection_->Send(offer);
    offered_ = std::move(offer);
  }

  const LenderOptions options_;
  const uint64_t instance_ = RandomInstance();
  std::unique_ptr<ControlConnection> connection_;
  std::optional<Offer> offered_;  // what was said last, on this connection
  std::map<std::string, uint32_t> assigned_;
  std::map<std::string, std::unique_ptr<LocalWorkers>> workers_;  // by the job's place
  int64_t met_ns_ = MonotonicNs(), left_ns_ = 0;
  bool is_leaving_ = false, was_interrupted_ = false, has_noted_ = false;
};

}  // namespace

bool RunLender(const LenderOptions& options) { return LenderLoop(options).Run(); }

}  // namespace headrace::reader::service
