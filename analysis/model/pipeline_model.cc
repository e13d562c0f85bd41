#include "analysis/model/pipeline_model.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "analysis/run/counter_sums.h"
#include "analysis/run/memory_bandwidth.h"
#include "analysis/run/phases.h"
#include "analysis/run/plausibility.h"
#include "analysis/statistics/statistics.h"
#include "analysis/thresholds.h"
#include "base/error.h"

namespace headrace::analysis {
namespace {

constexpr int kUnknownQueue = 4;   // places of a queue that nobody told of
constexpr int kEndlessQueue = 64;  // of one without a bound: more make no difference

// The coefficient of variation of one element's cost, from the spread of windows: the time of n
// elements differs from n times the mean with n times the variance of one. Weighted by n, as
// windows in a burst and in a lull differ much in it. Neighbours are taken together until they hold
// some elements, as those at a window's edge are counted in one and worked on in the other. Empty
// below four windows.
std::optional<double> ElementCv(const std::vector<double>& times, const std::vector<double>& counts,
                                double at_least) {
  double all_time = 0, all_count = 0;
  for (size_t i = 0; i < times.size(); ++i) {
    all_time += times[i];
    all_count += counts[i];
  }
  if (all_count < 1) return std::nullopt;
  const double mean = all_time / all_count;
  constexpr double kFewest = 12;  // windows
  const double together = std::min(at_least, all_count / kFewest);
  double squares = 0, used = 0, time = 0, count = 0, groups = 0;
  for (size_t i = 0; i < times.size(); ++i) {
    time += times[i];
    count += counts[i];
    if (count < together || count < 1) continue;
    squares += (time - count * mean) * (time - count * mean);
    used += count;
    ++groups;
    time = count = 0;
  }
  if (groups < 4) return std::nullopt;
  if (mean <= 0) return 0.0;
  return std::clamp(std::sqrt(squares / used * groups / (groups - 1)) / mean, 0.0, 2.5);
}

// CPU time of the process between two instants, in between its recorded points by their neighbours;
// none where they do not reach that far.
std::optional<double> ProcessSeconds(const RunView& run, int64_t from_ns, int64_t to_ns) {
  const std::vector<HostPointRow>& points = run.process_cpu;
  if (points.size() < 3 || points.back().at_ns < to_ns) return std::nullopt;
  const auto at = [&](int64_t ns) {
    size_t i = 0;
    while (i + 1 < points.size() && points[i].at_ns < ns) ++i;
    if (i == 0 || points[i].at_ns <= points[i - 1].at_ns) return points[i].value;
    const double share = static_cast<double>(ns - points[i - 1].at_ns) /
                         static_cast<double>(points[i].at_ns - points[i - 1].at_ns);
    return points[i - 1].value +
           std::clamp(share, 0.0, 1.0) * (points[i].value - points[i - 1].value);
  };
  return std::max(0.0, at(to_ns) - at(from_ns)) * 1e-9;
}

// Weights become shares of 1, none above its most as long as others have room.
void ShareOut(const std::vector<double>& most, std::vector<std::pair<size_t, double>>* users) {
  std::vector<bool> full(users->size(), false);
  for (size_t round = 0; round <= users->size(); ++round) {
    double left = 1, weights = 0;
    for (size_t u = 0; u < users->size(); ++u) {
      if (full[u]) {
        left -= most[u];
      } else {
        weights += (*users)[u].second;
      }
    }
    bool changed = false;
    for (size_t u = 0; u < users->size(); ++u) {
      if (!full[u] && left > 0 && (*users)[u].second / weights * left > most[u]) {
        full[u] = changed = true;
      }
    }
    if (changed) continue;
    double sum = 0;
    for (size_t u = 0; u < users->size(); ++u) {
      double& share = (*users)[u].second;
      share = full[u] ? most[u] : std::max(0.0, left) * share / weights;
      sum += share;
    }
    // Where all are full there is more hold time than their own: each its part of what there is.
    for (auto& [index, share] : *users) share /= sum;
    return;
  }
}

// Seconds that the operators' threads worked in a window, on a CPU or waiting outside it; locks and
// waits for a CPU are no work.
double WorkingTime(const WindowRow& window, const std::vector<size_t>& operators) {
  double time = 0;
  for (const size_t i : operators) {
    const OperatorCounters& op = window.operators[i];
    const double off = Seconds(op.busy_ns - op.lock_wait_ns);
    if (op.on_cpu_ns && op.blocked_ns) {
      time += Seconds(*op.on_cpu_ns) + std::max(0.0, Seconds(*op.blocked_ns - op.lock_wait_ns));
      continue;
    }
    time += op.on_cpu_ns && 2 * Seconds(op.on_cpu_ns) > off ? Seconds(op.on_cpu_ns) : off;
  }
  return time;
}

// What shares of their life the stage's threads worked and waited.
void ReadRatios(const WindowRow& sum, StageModel* stage) {
  double busy = 0, wait_in = 0, wait_out = 0;
  for (const size_t i : stage->operators) {
    busy += Seconds(sum.operators[i].busy_ns);
    wait_in += Seconds(sum.operators[i].wait_in_ns);
    wait_out += Seconds(sum.operators[i].wait_out_ns);
  }
  const bool known = stage->row < sum.stages.size();
  double lifetime = known ? Seconds(sum.stages[stage->row].lifetime_ns) : 0;
  if (stage->on_consumer) lifetime = Seconds(sum.steps.wait_ns + sum.steps.compute_ns);
  if (lifetime <= 0) lifetime = busy + wait_in + wait_out;
  if (lifetime <= 0) return;
  stage->busy_ratio = std::min(1.0, busy / lifetime);
  stage->wait_in_ratio = std::min(1.0, wait_in / lifetime);
  stage->wait_out_ratio = std::min(1.0, wait_out / lifetime);
  if (known && sum.stages[stage->row].runnable_ns) {
    stage->runnable_ratio = std::min(1.0, Seconds(sum.stages[stage->row].runnable_ns) / lifetime);
  }
}

}  // namespace

PipelineModel::PipelineModel(const RunView& run) : run_(&run) {
  if (run.operators.empty()) {
    throw Error(ExitCode::kInconclusive, "this run has no instrumentation (profiled from outside)",
                "run " + run.run.name,
                "instrument it with the C header (docs/accounts.md), or run the pipeline with "
                "'headrace run'");
  }
  if (const Doubts doubts = FindDoubts(run); doubts.any()) {
    throw Error(ExitCode::kInconclusive, doubts.Summary(), "run " + run.run.name,
                "check the instrumentation (docs/accounts.md)");
  }
  if (run.steps.steps_count == 0) {
    throw Error(ExitCode::kInconclusive, "no step was recorded: the trainer took no batch",
                "run " + run.run.name, "record longer");
  }
  if (run.run.duration_ns < 2'000'000'000 && run.steps.steps_count < 20) {
    throw Error(
        ExitCode::kInconclusive,
        fmt::format("too short for a verdict (need >= 2 s or 20 steps; this run has {:.2f} s "
                    "and {} steps)",
                    Seconds(run.run.duration_ns), run.steps.steps_count),
        "run " + run.run.name, "record longer");
  }
  ReadShape();
  FindStagesOnConsumer();
  ReadTree();
  ReadOrder();
  ReadSplit();
  ChooseSteady();
  ReadAhead();
  ReadVisits();
  CountConsumers();
  ReadOtherThreads();
  LinkResources();
  AddStorage();
  AddCounted();
  demands_ = EstimateFrom(steady_sum_, {});
  ShareCounted();
  ReadCores();
  ReadSpread();
  ReadUneven();
  ReadIdlePool();
  ReadPauses();
}

void PipelineModel::ReadShape() {
  const auto of_consumer = [&](const std::string& stage) {
    for (const OperatorRow& op : run_->operators) {
      if (op.stage == stage && op.kind == "consumer") return true;
    }
    return false;
  };
  for (size_t r = 0; r < run_->stages.size(); ++r) {
    const StageRow& row = run_->stages[r];
    if (of_consumer(row.name)) {
      consumer_rows_.push_back(r);
      continue;
    }
    StageModel stage;
    stage.name = row.name;
    stage.row = r;
    stage.max_parallelism = static_cast<int>(row.max_parallelism_count);
    const double threads = row.last_parallelism_count > 0
                               ? static_cast<double>(row.last_parallelism_count)
                               : std::round(row.parallelism_count);
    stage.parallelism = std::max(1, static_cast<int>(threads));
    for (size_t q = 0; q < run_->queues.size(); ++q) {
      if (run_->queues[q].producer_stage == row.name) stage.queue = q;
    }
    stages_.push_back(std::move(stage));
  }
  for (size_t i = 0; i < run_->operators.size(); ++i) {
    const OperatorRow& row = run_->operators[i];
    operators_.push_back(OperatorModel{row.name, row.kind, kNoStage});
    if (of_consumer(row.stage)) continue;
    size_t stage = 0;
    while (stage < stages_.size() && stages_[stage].name != row.stage) ++stage;
    if (stage == stages_.size()) {
      stages_.emplace_back().name = row.stage;  // accounts need not declare their stages
    }
    stages_[stage].operators.push_back(i);
    operators_.back().stage = stage;
  }
  for (const StageModel& stage : stages_) {
    current_.parallelism.push_back(stage.parallelism);
    const int64_t capacity =
        stage.queue ? run_->queues[*stage.queue].capacity_count : kUnknownQueue;
    current_.queue_capacity.push_back(capacity > 0 ? static_cast<int>(capacity) : kEndlessQueue);
  }
}

// Of a queue without a bound: less is taken than put.
void PipelineModel::ReadAhead() {
  for (size_t s = stages_.size(); s-- > 0;) {
    StageModel& stage = stages_[s];
    if (stage.output) stage.taken_ratio = stages_[*stage.output].taken_ratio;
    if (!stage.queue) continue;
    const QueueRow& queue = run_->queues[*stage.queue];
    if (queue.capacity_count > 0 || queue.gets_count <= 0) continue;
    const double taken =
        static_cast<double>(queue.gets_count) / static_cast<double>(queue.puts_count);
    if (taken < kRunsAhead) stage.taken_ratio *= taken;
  }
}

// The queues say who takes from whom. Where they do not say it of every stage but the last, the
// stages are taken one behind the other.
void PipelineModel::ReadTree() {
  const size_t n = stages_.size();
  bool known = n > 0;
  for (size_t s = 0; s + 1 < n && known; ++s) {
    known = false;
    if (!stages_[s].queue) break;
    const std::string& taker = run_->queues[*stages_[s].queue].consumer_stage;
    for (size_t t = s + 1; t < n && !known; ++t) {
      if (stages_[t].name != taker) continue;
      stages_[s].output = t;
      known = true;
    }
  }
  for (size_t s = 0; s + 1 < n; ++s) {
    if (!known) stages_[s].output = s + 1;
    stages_[*stages_[s].output].inputs.push_back(s);
  }
}

void PipelineModel::ReadOrder() {
  constexpr int64_t kMaxWindow = 1'000'000;
  ordered_ = run_->run.element_order == "file";
  const int64_t window = run_->run.order_window_count.value_or(0);
  for (size_t i = 0; i < operators_.size(); ++i) {
    if (!IsReceiving(i, kOrderKind)) continue;  // who takes batches waits for the one that is due
    ordered_ = true;
    if (const auto queue = stages_.front().queue) {
      const int64_t capacity = run_->queues[*queue].capacity_count;
      current_.order_window = static_cast<int>(std::clamp<int64_t>(capacity, 0, kMaxWindow));
    }
    return;
  }
  if (ordered_) {
    current_.order_window = static_cast<int>(std::clamp<int64_t>(window, 0, kMaxWindow));
  }
}

void PipelineModel::ReadUneven() {
  if (consumers_ > 1) return;
  // That batches are taken in turn is told by their numbers: a worker that is free to go on makes
  // more of what costs it less.
  const std::vector<LoaderWorker> workers = LoaderWorkers(*run_);
  std::vector<int64_t> pids;
  for (const LoaderWorker& worker : workers) pids.push_back(worker.pid);
  const size_t idle = CountIdleBeside(*run_, pids, false);
  for (size_t s = 0; s < stages_.size(); ++s) {
    if (stages_[s].on_consumer || stages_[s].parallelism < 2) continue;
    const auto count = static_cast<size_t>(stages_[s].parallelism);
    if (const auto uneven = FindUnevenWorkers(workers, idle, count, stages_[s].cv)) {
      uneven_ = {s, *uneven};
      return;
    }
  }
}

void PipelineModel::ReadPauses() {
  size_t s = stages_.size();
  while (s > 0 && stages_[s - 1].on_consumer) --s;
  if (s == 0 || consumers_ > 1 || !stages_[--s].queue || !(demands_.rate > 0)) return;
  int64_t starts = 0;
  for (const OperatorRow& op : run_->operators) {
    if (op.kind == kStartKind || op.kind == kFirstBatchKind) starts += op.completions_count;
  }
  const std::optional<Pauses> pauses = FindPauses(*run_, starts);
  if (!pauses || 2 * demands_.order_wait_s > pauses->lost_s()) return;
  // A queue that does not fill between them would not fill if it were longer.
  const Real& occupancy = run_->queues[*stages_[s].queue].mean_occupancy_ratio;
  if (occupancy.value_or(0) < kFullBetweenPauses) return;
  double work_s = demands_.consumer_s + OnConsumers(current_, demands_);
  if (cores_known_) work_s = std::max(work_s, demands_.cpu_s / std::max(1e-3, current_.cores));
  for (size_t i = 0; i < stages_.size(); ++i) {
    if (stages_[i].on_consumer) continue;
    work_s = std::max(work_s, demands_.stage_s[i] / std::max(1, current_.parallelism[i]));
  }
  if (1 / demands_.rate - work_s < kPausesExplain * pauses->lost_s()) return;
  pauses_ = {s, *pauses};
  stages_[s].cv = std::min(stages_[s].cv, StageModel().cv);  // between its pauses
}

double PipelineModel::LostToPauses(const Settings& settings, const Demands& demands) const {
  if (!pauses_) return 0;
  const int more =
      settings.queue_capacity[pauses_->stage] - current_.queue_capacity[pauses_->stage];
  const double step_s = demands.consumer_s + OnConsumers(settings, demands);
  return pauses_->pauses.share() * std::max(0.0, pauses_->pauses.wait_s - more * step_s);
}

int PipelineModel::QueueOverPauses() const {
  if (!pauses_) return 0;
  constexpr double kMost = 1 << 16;
  const double step_s = demands_.consumer_s + OnConsumers(current_, demands_);
  const double more = step_s > 0 ? std::ceil(pauses_->pauses.wait_s / step_s) : kMost;
  return current_.queue_capacity[pauses_->stage] + static_cast<int>(std::min(kMost, more));
}

double PipelineModel::OrderShare(size_t stage, const Settings& settings) const {
  const int parallelism = settings.parallelism[stage];
  const int queue_capacity = settings.queue_capacity[stage];
  if (!ordered_ || parallelism <= 1) return 1;
  const auto [it, added] =
      order_shares_.try_emplace({stage, parallelism, queue_capacity, settings.order_window}, 1.0);
  if (!added) return it->second;
  SimulatedPipeline alone;
  alone.cores = 1e6;
  SimulatedStage& simulated = alone.stages.emplace_back();
  simulated.parallelism = parallelism;
  simulated.queue_capacity = queue_capacity;
  simulated.ordered = true;
  simulated.window = settings.order_window;
  SimulatedOperator op;
  op.blocked_s = 1;
  op.cv = stages_[stage].cv;
  simulated.operators = {op};
  constexpr int64_t kSteps = 4000;
  constexpr uint64_t kSeed = 20261122;
  constexpr int64_t kMoves = 3'000'000;
  // Where it is not to be had, nothing is known to be lost.
  const std::optional<double> rate = SimulatedRate(alone, kSteps, kSeed, &order_moves_, kMoves);
  if (rate) it->second = std::clamp(*rate / parallelism, 0.01, 1.0);
  return it->second;
}

void PipelineModel::ReadSplit() {
  bool by_operator = true, by_clock = false, by_kernel = !run_->operators.empty(),
       by_stage = !run_->stages.empty();
  for (const OperatorRow& row : run_->operators) {
    by_operator = by_operator && row.on_cpu_ns.has_value();
    by_clock = by_clock || row.source == "thread_clock";
    by_kernel = by_kernel && row.source == "ebpf";
  }
  for (const StageRow& row : run_->stages) by_stage = by_stage && row.on_cpu_ns.has_value();
  splits_cpu_ = by_operator || by_stage;
  splits_operators_ = by_operator;
  split_source_ =
      by_operator && by_kernel ? "eBPF at context switches"
      : by_operator            ? "per-thread CPU clock at operator boundaries"
      : by_clock
          ? "per-thread CPU clock at operator boundaries, not separated where visits are short"
      : by_stage ? "the scheduler's time of each thread, not separated by operator"
                 : "";
}

void PipelineModel::ChooseSteady() {
  phases_ = FindPhases(*run_);
  steady_ = phases_.steady;
  steady_sum_ = Sum(steady_);
  first_ns_ = phases_.first_ns;
  last_ns_ = phases_.last_ns;
}

// The operators that elements of the stage pass through, in order, as told from accounts inside
// them: those of a step of theirs ("fetch.io") and those that no bytes leave (kinds of transforms)
// complete as often as they please. All where bytes are not accounted.
std::vector<size_t> PipelineModel::CarriersOf(const StageModel& stage) const {
  std::vector<size_t> carriers;
  for (size_t i : stage.operators) {
    const OperatorRow& row = run_->operators[i];
    if (row.bytes_out_bytes > 0 && row.name.find('.') == std::string::npos) carriers.push_back(i);
  }
  return carriers.empty() ? stage.operators : carriers;
}

// Over the whole run completions and steps differ by what is still in the queues and threads. A
// ratio of one inside that margin is one.
void PipelineModel::ReadVisits() {
  const double steps = static_cast<double>(run_->steps.steps_count);
  double in_flight = 1;
  for (size_t s = stages_.size(); s-- > 0;) {
    in_flight += stages_[s].parallelism;
    in_flight += current_.queue_capacity[s];
    for (size_t i : stages_[s].operators) {
      const double completions =
          static_cast<double>(run_->operators[i].completions_count) * stages_[s].taken_ratio;
      const bool one = completions >= steps - 2 && completions <= steps + in_flight;
      operators_[i].visit_ratio = one ? 1 : completions / steps;
    }
    const std::vector<size_t> carriers = CarriersOf(stages_[s]);
    if (!carriers.empty()) {
      stages_[s].last = carriers.back();
      stages_[s].visit_ratio = operators_[carriers.back()].visit_ratio;
      // A thread does all of one firing in a go, whatever comes out of it.
      stages_[s].firings = operators_[carriers.front()].visit_ratio;
      if (stages_[s].firings <= 0) stages_[s].firings = 1;  // nothing was completed
    }
    stages_[s].elements = stages_[s].visit_ratio > 0 ? stages_[s].visit_ratio : 1;
    if (stages_[s].queue) {
      const double puts = static_cast<double>(run_->queues[*stages_[s].queue].puts_count);
      if (puts > 0) {
        const double taken = puts * stages_[s].taken_ratio;
        const bool one = taken >= steps - 2 && taken <= steps + in_flight;
        stages_[s].elements = one ? 1 : taken / steps;
      }
      if (!carriers.empty()) {
        const OperatorRow& last = run_->operators[stages_[s].last];
        // One completion may put several elements; what was not yet put of the last ones must not
        // count as less of each.
        const double completions = static_cast<double>(last.completions_count);
        const double several = completions > 0 ? std::round(puts / completions) : 0;
        const bool whole =
            several >= 1 && std::abs(puts - several * completions) <= several * in_flight;
        const double put = whole ? several * completions : puts > 0 ? puts : completions;
        if (put > 0 && last.bytes_out_bytes > 0) {
          stages_[s].element_bytes = static_cast<double>(last.bytes_out_bytes) / put;
          // Elements may have another size since a lasting change than over the whole run.
          if (phases_.drift && phases_.drift->used && completions > 0) {
            double bytes = 0, done = 0;
            for (const size_t w : steady_) {
              const OperatorCounters& op = run_->windows[w].operators[stages_[s].last];
              bytes += static_cast<double>(op.bytes_out_bytes);
              done += static_cast<double>(op.completions_count);
            }
            if (bytes > 0 && done > 0) stages_[s].element_bytes = bytes / done * completions / put;
          }
        }
      }
    }
  }
}

// CPU of threads outside every stage (a consumer that computes on the cores, a library's pool)
// takes cores from the stages. Below a twentieth it is rounding. What a program uses before its
// first batch is no cost of batches, so the steady windows count where the course is known.
void PipelineModel::ReadOtherThreads() {
  const HostRow* process = run_->FindHost("process_cpu_ns");
  if (process == nullptr || !process->last_value) return;
  const WindowRow& sum = steady_sum_;
  double stages_s = 0, all_stages_s = 0;
  for (size_t r = 0; r < run_->stages.size(); ++r) {
    if (!run_->stages[r].on_cpu_ns || !sum.stages[r].on_cpu_ns) return;
    all_stages_s += Seconds(*run_->stages[r].on_cpu_ns);
    stages_s += Seconds(*sum.stages[r].on_cpu_ns);
  }
  double process_s = *process->last_value * 1e-9, steps = Steps(run_->steps);
  const std::optional<double> steady_s = ProcessSeconds(*run_, first_ns_, last_ns_);
  const int64_t within_ns = last_ns_ - first_ns_;
  if (steady_s && within_ns > 0 && sum.duration_ns > 0) {
    // Between the steady windows lie the edges of epochs.
    process_s = *steady_s * static_cast<double>(sum.duration_ns) / static_cast<double>(within_ns);
    steps = Steps(sum.steps);
  } else {
    stages_s = all_stages_s;
  }
  const double other_s = process_s - stages_s;
  if (other_s > kOtherCpuCounts * stages_s && steps > 0) other_cpu_s_ = other_s / steps;
}

void PipelineModel::LinkResources() {
  for (size_t r = 0; r < run_->resources.size(); ++r) {
    const ResourceRow& row = run_->resources[r];
    if (row.kind != "device" && row.kind != "lock") continue;  // a kind of limit knows it
    ResourceModel resource{
        row.name, row.kind, std::max(1, static_cast<int>(row.servers_count)), {}, r};
    // A device is used as long as its users are at it; a critical section is taken to be as long
    // for one who enters as for another, but no longer than all that its user does.
    std::vector<double> most;
    for (size_t i = 0; i < run_->operators.size(); ++i) {
      const OperatorRow& op = run_->operators[i];
      if (operators_[i].stage == kNoStage) continue;
      const bool named =
          op.name.find(row.name) != std::string::npos ||
          (row.kind == "lock" && op.kind == "lock") ||
          (row.kind == "device" && (op.kind == "read" || op.kind == "fetch" || op.kind == "io"));
      if (op.lock_wait_ns <= 0 && !named) continue;
      const double busy_ns =
          static_cast<double>(std::max<int64_t>(1, op.busy_ns - op.lock_wait_ns));
      const double entries = static_cast<double>(std::max<int64_t>(1, op.completions_count));
      const double weight = (row.kind == "lock" ? entries : busy_ns) * (named ? 1 : 0.1);
      resource.users.push_back({i, weight});
      most.push_back(row.hold_ns > 0 ? busy_ns / static_cast<double>(row.hold_ns) : 1);
    }
    ShareOut(most, &resource.users);
    resources_.push_back(std::move(resource));
  }
}

void PipelineModel::AddStorage() {
  std::optional<DeviceCurve> curve = DeviceCurveOf(*run_, first_ns_, last_ns_);
  if (!curve || operators_[curve->io].stage == kNoStage) return;
  ResourceModel storage{"storage", "device", 1, {{curve->io, 1.0}}};
  storage.curve = std::move(curve);
  resources_.push_back(std::move(storage));
}

void PipelineModel::AddCounted() {
  for (const auto& [name, add] : Registry<CountedResources>::Global().entries()) {
    add(*run_, &resources_);
  }
}

void PipelineModel::ShareCounted() {
  if (demands_.cpu_s <= 0) return;
  for (ResourceModel& resource : resources_) {
    if (!resource.used_by_cpu) continue;
    for (size_t i = 0; i < operators_.size(); ++i) {
      const double share = demands_.operators[i].cpu_s / demands_.cpu_s;
      if (operators_[i].stage != kNoStage && share > 0) resource.users.push_back({i, share});
    }
  }
}

void PipelineModel::ReadSpread() {
  const WindowRow& sum = steady_sum_;
  const auto spread = [&](auto time, auto count, double at_least) {
    std::vector<double> times, counts;
    for (size_t w : steady_) {
      times.push_back(time(run_->windows[w]));
      counts.push_back(count(run_->windows[w]));
    }
    return ElementCv(times, counts, at_least);
  };
  for (size_t s = 0; s < stages_.size(); ++s) {
    StageModel& stage = stages_[s];
    if (stage.operators.empty()) continue;
    const auto cv =
        spread([&](const WindowRow& window) { return WorkingTime(window, stage.operators); },
               [&](const WindowRow& window) {
                 return static_cast<double>(window.operators[stage.last].completions_count);
               },
               4.0 * stage.parallelism);
    // `cv` is per completion of the stage's last operator; the model needs it per firing.
    if (cv && stage.visit_ratio > 0) {
      stage.cv = *cv * std::sqrt(stage.firings / stage.visit_ratio);
    }
    ReadRatios(sum, &stage);
  }
  const auto consumer =
      spread([](const WindowRow& w) { return Seconds(w.steps.compute_ns); },
             [](const WindowRow& w) { return static_cast<double>(w.steps.steps_count); }, 4);
  if (consumer) consumer_cv_ = *consumer;
  for (size_t w : steady_) {
    const StepCounters& steps = run_->windows[w].steps;
    const double total = Seconds(steps.wait_ns + steps.compute_ns);
    if (total > 0) stall_by_window_.push_back({Seconds(steps.wait_ns), total});
  }
  const double total = static_cast<double>(sum.steps.wait_ns + sum.steps.compute_ns);
  stall_ratio_ = total > 0 ? static_cast<double>(sum.steps.wait_ns) / total : 0;
  current_.cores = cores_available_;
  const double compute_s = Seconds(sum.steps.compute_ns) / std::max(1.0, Steps(sum.steps));
  if (compute_s > 0 && !consumer_rows_.empty() && demands_.consumer_most_s > 0) {
    consumer_runnable_ratio_ =
        std::clamp(1 - demands_.consumer_s * consumers_ / compute_s, 0.0, 1.0);
  }
}

}  // namespace headrace::analysis
