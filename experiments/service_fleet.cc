#include "experiments/service_fleet.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <condition_variable>
#include <deque>
#include <map>
#include <mutex>
#include <thread>
#include <utility>

#include "base/clock.h"
#include "base/error.h"
#include "collectors/environment.h"
#include "collectors/shipper.h"
#include "collectors/store/fleet_store.h"

namespace headrace::experiments {
namespace {

namespace service = reader::service;
using collectors::FleetStore;
using collectors::JobEvent;
using collectors::JobInterval;

constexpr int64_t kLeastIntervalNs = 1'000'000'000, kMostIntervalNs = 10'000'000'000;
constexpr int64_t kGrowth = 10;           // as of Shipper
constexpr int64_t kLateNs = 500'000'000;  // between two looks: the dispatcher did not run
constexpr int64_t kMostRealtimeNs = int64_t{1} << 61;  // as in a shipment
// Beyond that what comes is not kept: the disk is much slower than the job's members.
constexpr size_t kMostQueuedBytes = 64 << 20;

class MemberMeasures final : public service::MeasuredSource {
 public:
  explicit MemberMeasures(collectors::ShipperOptions options) : shipper_(std::move(options)) {}

  void Connected(uint64_t instance) override {
    instance_ = instance;
    shipper_.Connected();
  }
  std::optional<service::Measured> Next(bool last) override {
    auto due = shipper_.Next(last);
    if (!due) return std::nullopt;
    return service::Measured{instance_, due->number, RealtimeNs(), std::move(due->bytes)};
  }
  void Handle(const service::Kept& kept) override {
    if (kept.instance == instance_) shipper_.Kept(kept.number);
  }

 private:
  collectors::Shipper shipper_;
  uint64_t instance_ = 0;
};

std::string InstanceName(uint64_t instance) { return fmt::format("{:016x}", instance); }

collectors::JobRow JobRowOf(const std::string& name, const std::string& mode,
                            const service::DispatcherOptions& options) {
  collectors::JobRow row;
  row.job = name;
  const reader::Fingerprint& print = options.job.fingerprint;
  row.fingerprint = fmt::format("{:016x}{:016x}{:016x}{:016x}", print.table, print.projection,
                                print.transforms, print.seed);
  row.mode = mode;
  row.ranks = options.job.ranks;
  row.epochs = static_cast<int64_t>(options.job.epochs);
  row.splits = static_cast<int64_t>(options.job.splits.size());
  for (const reader::RowRange& split : options.job.splits) {
    row.rows += static_cast<int64_t>(split.count);
    row.largest_split_rows = std::max(row.largest_split_rows, static_cast<int64_t>(split.count));
  }
  row.rows *= row.epochs;
  row.unit_rows = static_cast<int64_t>(options.board.unit_rows);
  row.batch_rows = static_cast<int64_t>(options.batch_rows);
  return row;
}

int64_t Grown(uint64_t now, uint64_t before) { return static_cast<int64_t>(now - before); }

}  // namespace

std::shared_ptr<service::MeasuredSource> MeasureMember(const std::string& role,
                                                       std::optional<uint32_t> rank) {
  collectors::ShipperOptions options;
  options.role = role;
  if (rank) options.rank = *rank;
  options.program = role == "rank" ? "consume" : "worker";
  return std::make_shared<MemberMeasures>(std::move(options));
}

struct ServiceFleet::State {
  struct Arrived {
    service::Measured measured;
    int64_t realtime_ns = 0;
  };

  void Store();
  void StoreOne(const Arrived& one);
  void Failed(const Error& error);
  void Recovered();
  // Runs `work` with the store, unless that failed a moment ago. `is_last`: then also.
  template <typename Work>
  void With(Work work, bool is_last = false);

  std::string job, mode;
  std::function<void(const std::string&)> note;
  int64_t start_ns = 0;  // on the monotonic clock
  int64_t watched_ns = 0, looked_ns = 0, late_ns = 0;
  service::DispatcherCounts counts;  // at the end of the last interval
  int64_t num_decisions = 0;
  std::unique_ptr<FleetStore> store;  // the thread alone, while it runs
  int64_t again_ns = 0;               // after a failure
  int64_t failed_ns = 0;              // when it last failed; 0: it did not since it last worked
  uint64_t left_out = 0;              // since it failed
  std::thread thread;

  std::mutex mutex;  // guards the following
  std::condition_variable changed;
  std::deque<Arrived> arrived;
  std::deque<JobInterval> intervals;
  std::deque<JobEvent> events;
  std::deque<collectors::DecisionRow> decisions;
  size_t queued_bytes = 0;
  std::vector<service::Kept> kept;
  std::vector<std::string> notes;
  bool is_ending = false;
};

template <typename Work>
void ServiceFleet::State::With(Work work, bool is_last) {
  if (failed_ns != 0 && !is_last && MonotonicNs() - failed_ns < again_ns) {
    ++left_out;
    return;
  }
  try {
    work();
    if (failed_ns != 0) Recovered();
  } catch (const Error& error) {
    if (error.code() != ExitCode::kBadData) return Failed(error);
    // What one member sent: the others' is good.
    std::lock_guard lock(mutex);
    if (notes.size() < 10)
      notes.push_back(fmt::format("left out of the fleet file: {}", error.what()));
  }
}

void ServiceFleet::State::Failed(const Error& error) {
  ++left_out;
  if (std::exchange(failed_ns, MonotonicNs()) != 0) return;  // it was said
  std::lock_guard lock(mutex);
  notes.push_back(fmt::format(
      "nothing is kept of what the job's processes measure, until it can be: {}", error.what()));
}

void ServiceFleet::State::Recovered() {
  failed_ns = 0;
  std::lock_guard lock(mutex);
  notes.push_back(fmt::format("the fleet file is written again; {} entries are missing in it",
                              std::exchange(left_out, 0)));
}

void ServiceFleet::State::StoreOne(const Arrived& one) {
  With([&] {
    const service::Measured& m = one.measured;
    if (m.sent_realtime_ns < 0 || m.sent_realtime_ns > kMostRealtimeNs)
      throw Error(ExitCode::kBadData, "measurements of a member were sent at no time of day");
    const collectors::Shipment shipment = collectors::ParseShipment(
        {reinterpret_cast<const uint8_t*>(m.bytes.data()), m.bytes.size()});
    store->Add(InstanceName(m.instance), shipment, one.realtime_ns - m.sent_realtime_ns);
  });
  std::lock_guard lock(mutex);
  kept.push_back({one.measured.instance, one.measured.number});
  queued_bytes -= one.measured.bytes.size();
}

// The thread: until Finish was called and all is stored.
void ServiceFleet::State::Store() {
  for (;;) {
    std::deque<Arrived> members;
    std::deque<JobInterval> course;
    std::deque<JobEvent> happened;
    std::deque<collectors::DecisionRow> decided;
    {
      std::unique_lock lock(mutex);
      const auto any = [&] {
        return !arrived.empty() || !intervals.empty() || !events.empty() || !decisions.empty();
      };
      changed.wait(lock, [&] { return any() || is_ending; });
      if (!any()) return;
      members.swap(arrived);
      course.swap(intervals);
      happened.swap(events);
      decided.swap(decisions);
    }
    for (const Arrived& one : members) StoreOne(one);
    for (const JobEvent& event : happened) With([&] { store->AddEvent(event); });
    for (const JobInterval& interval : course) With([&] { store->AddInterval(interval); });
    for (const auto& decision : decided)
      With([&] { store->runs().SetDecision(store->dispatcher_run(), decision); });
  }
}

ServiceFleet::ServiceFleet(std::string job, std::string mode) : state_(std::make_unique<State>()) {
  state_->job = std::move(job);
  state_->mode = std::move(mode);
}

ServiceFleet::~ServiceFleet() {
  if (state_->thread.joinable()) Finish(false);
}

void ServiceFleet::Open(const std::string& file, const service::DispatcherOptions& job,
                        std::function<void(const std::string&)> note, int64_t again_ns) {
  State& state = *state_;
  state.note = std::move(note);
  state.again_ns = again_ns;
  state.start_ns = state.watched_ns = state.looked_ns = MonotonicNs();
  state.store = std::make_unique<FleetStore>(
      file, JobRowOf(state.job, state.mode, job),
      collectors::DescribeRun(getpid(), "", job.session.path, "dispatcher"));
  state.thread = std::thread([&state] { state.Store(); });
}

void ServiceFleet::Take(service::Measured&& measured) {
  State& state = *state_;
  std::lock_guard lock(state.mutex);
  const size_t bytes = measured.bytes.size();
  if (!state.store || state.queued_bytes + bytes > kMostQueuedBytes) {
    if (state.store && state.notes.empty())
      state.notes.push_back("measurements are lost: the fleet file is written too slowly");
    state.kept.push_back({measured.instance, measured.number});
    return;
  }
  state.queued_bytes += bytes;
  state.arrived.push_back({std::move(measured), RealtimeNs()});
  state.changed.notify_all();
}

std::vector<service::Kept> ServiceFleet::TakeKept() {
  std::vector<std::string> notes;
  std::vector<service::Kept> kept;
  {
    std::lock_guard lock(state_->mutex);
    notes.swap(state_->notes);
    kept.swap(state_->kept);
  }
  for (const std::string& text : notes)
    if (state_->note) state_->note(text);
  return kept;
}

void ServiceFleet::Watch(service::Dispatcher* dispatcher, std::optional<uint32_t> wanted) {
  State& state = *state_;
  if (!state.store) return;
  const int64_t now = MonotonicNs();
  if (now - state.looked_ns > kLateNs) state.late_ns += now - state.looked_ns;
  state.looked_ns = now;
  std::vector<service::DispatcherEvent> events = dispatcher->TakeEvents();
  const int64_t least =
      std::clamp((now - state.start_ns) / kGrowth, kLeastIntervalNs, kMostIntervalNs);
  const bool is_due = now - state.watched_ns >= least || dispatcher->is_ending();
  if (events.empty() && !is_due) return;
  std::lock_guard lock(state.mutex);
  for (service::DispatcherEvent& event : events) {
    JobEvent row{now - state.start_ns, std::move(event.kind),
                 event.instance == 0 ? "" : InstanceName(event.instance), std::move(event.text),
                 std::nullopt};
    if (event.splits) row.splits = static_cast<int64_t>(*event.splits);
    state.events.push_back(std::move(row));
  }
  if (is_due) {
    const service::DispatcherCounts& counts = dispatcher->counts();
    const service::DispatcherStatus status = dispatcher->status();
    JobInterval row;
    row.start_ns = state.watched_ns - state.start_ns;
    row.duration_ns = now - state.watched_ns;
    row.running_ns = counts.running_ns - state.counts.running_ns;
    row.leases = Grown(counts.leases, state.counts.leases);
    row.again = Grown(counts.again, state.counts.again);
    row.again_rows = Grown(counts.again_rows, state.counts.again_rows);
    row.lost = Grown(counts.lost, state.counts.lost);
    row.serving_ns = counts.serving_ns - state.counts.serving_ns;
    row.no_split_ns = counts.no_split_ns - state.counts.no_split_ns;
    row.late_ns = std::exchange(state.late_ns, 0);
    if (wanted) row.wanted = *wanted;
    if (status.is_running) row.left_rows = static_cast<int64_t>(status.left_rows);
    state.counts = counts;
    state.watched_ns = now;
    state.intervals.push_back(row);
  }
  state.changed.notify_all();
}

void ServiceFleet::Decide(const std::string& limit, const std::string& reason, uint32_t from,
                          uint32_t to, std::optional<double> batches_per_second) {
  State& state = *state_;
  if (!state.store) return;
  collectors::DecisionRow row;
  row.index = state.num_decisions++;
  row.at_ns = MonotonicNs() - state.start_ns;
  row.applied_ns = row.at_ns;
  row.action = to > from ? "apply" : to < from ? "scale_down" : "hold";
  row.limited_by = row.limited_by_kind = limit;
  row.now_rate = batches_per_second;
  row.reason = reason;
  if (to != from)
    row.changes.push_back({"service.workers", std::to_string(from), std::to_string(to)});
  std::lock_guard lock(state.mutex);
  state.decisions.push_back(std::move(row));
  state.changed.notify_all();
}

void ServiceFleet::Finish(bool is_complete) {
  State& state = *state_;
  if (!state.thread.joinable()) return;
  {
    std::lock_guard lock(state.mutex);
    state.is_ending = true;
  }
  state.changed.notify_all();
  state.thread.join();
  state.With(
      [&] {
        state.store->Finish(is_complete ? FleetStore::End::kComplete : FleetStore::End::kEnded);
      },
      true);
  TakeKept();  // says what went wrong
}

}  // namespace headrace::experiments
