#include "collectors/shipper.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "base/clock.h"
#include "base/error.h"
#include "collectors/account_tree.h"
#include "collectors/environment.h"
#include "probes/account/account_segment.h"
#include "probes/process.h"

namespace headrace::collectors {
namespace {

constexpr int64_t kOwnProcess = 1;         // as a process of the run
constexpr int64_t kPauseNs = 500'000'000;  // between two calls: it did not run meanwhile
constexpr int64_t kGrowth =
    10;  // an interval is at most a tenth of the time before it, or the least
constexpr size_t kMostWaiting = 64;

// What is cheap to read, and says what a process uses of its machine and is denied.
constexpr const char* kShippedProbes[] = {"process", "cgroup"};

MeasurementSink::Names NamesOfOwn(int64_t pid) {
  return {[](int64_t) { return kOwnProcess; },
          [pid](int64_t of, uint32_t index) {
            return of == pid ? std::optional<int64_t>(index) : std::nullopt;
          }};
}

probes::Measurement ShippedFigure(std::string_view metric, double value) {
  probes::Measurement figure;
  figure.metric = metric;
  figure.value = value;
  return figure;
}

ProcessRow OwnProcess(int64_t pid, const RunInfo& info) {
  ProcessRow row;
  row.id = kOwnProcess;
  row.pid = pid;
  row.parent_pid = getppid();
  row.name = info.program;
  row.command = info.command;
  row.role = "root";
  row.has_accounts = true;
  return row;
}

// A counter grows by both, a gauge is as long as it was.
void ExtendCourse(const MeasurementInterval& next, bool is_counter, MeasurementInterval* one) {
  const double before = static_cast<double>(one->duration_ns);
  const double after = static_cast<double>(next.duration_ns);
  if (is_counter) {
    one->value += next.value;
  } else if (before + after > 0) {
    one->value = (one->value * before + next.value * after) / (before + after);
  }
  one->duration_ns = next.start_ns + next.duration_ns - one->start_ns;
}

void ExtendMeasured(const MeasurementBatch& next, MeasurementBatch* one) {
  std::map<std::string, bool> is_counter;
  for (const MetricRow& metric : next.metrics) is_counter[metric.metric] = metric.kind == "counter";
  std::map<int64_t, bool> counters;
  for (const MeasurementRow& row : next.definitions) counters[row.id] = is_counter[row.metric];
  std::map<int64_t, MeasurementTotal> totals;
  for (const MeasurementTotal& total : one->totals) totals[total.id] = total;
  for (const MeasurementTotal& total : next.totals) totals[total.id] = total;
  one->totals.clear();
  for (const auto& [id, total] : totals) one->totals.push_back(total);
  std::map<int64_t, size_t> courses;
  for (size_t i = 0; i < one->intervals.size(); ++i) courses[one->intervals[i].id] = i;
  for (const MeasurementInterval& interval : next.intervals) {
    const auto known = courses.find(interval.id);
    if (known == courses.end()) {
      courses[interval.id] = one->intervals.size();
      one->intervals.push_back(interval);
    } else {
      ExtendCourse(interval, counters[interval.id], &one->intervals[known->second]);
    }
  }
  one->metrics = next.metrics;
  one->processes = next.processes;
  one->definitions = next.definitions;
}

}  // namespace

Shipper::Shipper(ShipperOptions options)
    : options_(std::move(options)),
      pid_(getpid()),
      start_ns_(MonotonicNs()),
      info_(DescribeRun(pid_, "", "", options_.program)),
      sink_(NamesOfOwn(pid_)) {
  target_.root_pid = pid_;
  target_.pids = {pid_};
  called_ns_ = start_ns_;
  info_.accounting_level = 1;
  for (const char* name : kShippedProbes) {
    const auto* entry = Registry<probes::ProbeInfo>::Global().Find(name);
    if (entry == nullptr) continue;
    auto probe = entry->make();
    if (probe->Start(host_, target_).usable()) probes_.emplace_back(name, std::move(probe));
  }
  ReadProbes(0);
  sink_.MarkStart();
  TryAttach();  // what accounts that are there already have counted is not part of it
}

Shipper::~Shipper() {
  for (const auto& [name, probe] : probes_) probe->Stop();
}

// Before there are accounts the process opens its table, which is no absence.
void Shipper::NotePause() {
  const int64_t now = MonotonicNs();
  if (sampler_ && now - called_ns_ > kPauseNs) absent_ns_ += now - called_ns_;
  called_ns_ = now;
}

bool Shipper::TryAttach() {
  if (sampler_) return true;
  std::optional<account::AccountSegment> segment = account::AccountSegment::Attach(pid_);
  if (!segment) return false;
  info_.accounting_level = std::clamp(segment->level(), 1, 2);
  info_.accounting_note = "by the member itself, sent to the dispatcher";
  sampler_.emplace(pid_, start_ns_, std::move(*segment), true, true);
  return true;
}

void Shipper::ReadProbes(int64_t now_ns) {
  for (const auto& [name, probe] : probes_) {
    sink_.BeginRead(name, now_ns);
    probe->Read(sink_);
    sink_.EndRead();
  }
  sink_.BeginRead("recorder", now_ns);
  if (const auto stat = probes::ReadProcessStat(pid_))
    sink_.Add(ShippedFigure("process_cpu_ns", static_cast<double>(stat->cpu_ns)));
  sink_.Add(ShippedFigure("process_absent_ns", static_cast<double>(absent_ns_)));
  if (const auto host = probes::ReadHostCpu()) {
    if (host_busy_ns_ >= 0 && now_ns > host_busy_at_ns_)
      sink_.Add(
          ShippedFigure("host_busy_cores", static_cast<double>(host->busy_ns - host_busy_ns_) /
                                               static_cast<double>(now_ns - host_busy_at_ns_)));
    sink_.Add(ShippedFigure("host_cores", static_cast<double>(host->num_cpus)));
    host_busy_ns_ = host->busy_ns;
    host_busy_at_ns_ = now_ns;
  }
  sink_.EndRead();
}

// With all definitions so far: whoever gets it may know none.
MeasurementBatch Shipper::TakeMeasured(int64_t now_ns, bool last) {
  MeasurementBatch batch = sink_.Take(now_ns, false, last);
  batch.stacks.clear();
  const auto add = [](auto* all, const auto& news) {
    all->insert(all->end(), news.begin(), news.end());
  };
  add(&definitions_.metrics, batch.metrics);
  add(&definitions_.definitions, batch.definitions);
  batch.metrics = definitions_.metrics;
  batch.definitions = definitions_.definitions;
  batch.processes = {OwnProcess(pid_, info_)};
  return batch;
}

void Shipper::Measure(bool last) {
  if (!TryAttach()) return;
  const int64_t now = MonotonicNs() - start_ns_;
  ReadProbes(now);
  Shipment shipment;
  shipment.role = options_.role;
  shipment.rank = options_.rank;
  shipment.info = info_;
  shipment.interval = sampler_->Take(true, nullptr);
  shipment.interval.steps.records.clear();
  shipment.interval.start_ns = measured_ns_;
  shipment.interval.duration_ns = now - measured_ns_;
  shipment.measured = TakeMeasured(now, last);
  shipment.is_last = last;
  measured_ns_ = now;
  Add(std::move(shipment));
}

void Shipper::Add(Shipment&& shipment) {
  if (waiting_.size() < kMostWaiting || waiting_.back().number != 0) {
    waiting_.push_back({0, true, std::move(shipment)});
    return;
  }
  Shipment& one = waiting_.back().shipment;
  Extend(&one.interval, shipment.interval);
  // Single steps are for quantiles; of so long a time the first are enough.
  constexpr size_t kMostSteps = 10'000;
  if (one.interval.steps.durations_ns.size() > kMostSteps)
    one.interval.steps.durations_ns.resize(kMostSteps);
  ExtendMeasured(shipment.measured, &one.measured);
  one.info = shipment.info;
  one.is_last = shipment.is_last;
}

std::optional<Shipper::Due> Shipper::Next(bool last) {
  NotePause();
  if (!has_ended_) {
    const int64_t now = MonotonicNs() - start_ns_;
    const int64_t due =
        std::clamp(now / kGrowth, options_.least_interval_ns, options_.most_interval_ns);
    if (last || now - measured_ns_ >= due) Measure(last);
    has_ended_ = last;
  }
  size_t given = 0;
  for (Waiting& one : waiting_) {
    // Whoever keeps nothing is given no more: what follows grows instead.
    if (one.number == 0 && given >= kMostWaiting / 2) break;
    ++given;
    if (!one.is_due) continue;
    one.is_due = false;
    if (one.number == 0) one.number = ++last_number_;
    return Due{one.number, SerializeShipment(one.shipment)};
  }
  return std::nullopt;
}

void Shipper::Kept(uint64_t number) {
  while (!waiting_.empty() && waiting_.front().number != 0 && waiting_.front().number <= number)
    waiting_.pop_front();
}

void Shipper::Connected() {
  for (Waiting& one : waiting_) one.is_due = true;
  called_ns_ = MonotonicNs();
}

}  // namespace headrace::collectors
