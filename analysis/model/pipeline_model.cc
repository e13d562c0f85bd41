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

double Seconds(int64_t ns) { return static_cast<double>(ns) * 1e-9; }
double Seconds(const Count& ns) { return ns ? Seconds(*ns) : 0; }

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

// Share of time that the stages' threads had a core, out of the time that they had work for one;
// none where that was not recorded.
std::optional<double> ShareOfCores(const WindowRow& sum) {
  double on_cpu_s = 0, runnable_s = 0;
  for (const StageCounters& stage : sum.stages) {
    if (!stage.on_cpu_ns || !stage.runnable_ns) continue;
    on_cpu_s += Seconds(*stage.on_cpu_ns);
    runnable_s += Seconds(*stage.runnable_ns);
  }
  if (on_cpu_s <= 0) return std::nullopt;
  return on_cpu_s / (on_cpu_s + runnable_s);
}

bool HostIsFull(const RunView& run) {
  constexpr double kFull = 0.95;
  const HostRow* busy = run.FindHost("host_busy_cores");
  const HostRow* total = run.FindHost("host_cores");
  return busy != nullptr && total != nullptr && busy->mean_value && total->mean_value &&
         *busy->mean_value >= kFull * *total->mean_value;
}

double Steps(const StepCounters& steps) { return static_cast<double>(steps.steps_count); }

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

// c of the operators of one stage, in seconds: what each lies between, and a choice that adds up.
struct StageSplit {
  std::vector<double> low, high, cpu_s;
  double sum_s = 0;
};

// What c of an operator lies between in these windows, as told of the run.
void AddOperator(const OperatorCounters& op, bool told, StageSplit* split) {
  double low = 0, high = Seconds(op.busy_ns);
  if (op.on_cpu_low_ns && op.on_cpu_high_ns) {
    low = std::min(Seconds(op.on_cpu_low_ns), Seconds(op.on_cpu_high_ns));
    high = std::max(Seconds(op.on_cpu_low_ns), Seconds(op.on_cpu_high_ns));
  }
  if (told && op.on_cpu_ns) low = high = Seconds(op.on_cpu_ns);
  split->low.push_back(low);
  split->high.push_back(high);
}

void ChooseMiddle(StageSplit* split) {
  for (size_t i = 0; i < split->low.size(); ++i) {
    split->cpu_s.push_back((split->low[i] + split->high[i]) / 2);
    split->sum_s += split->cpu_s[i];
  }
}

// Chooses c of each operator within its interval so that all add up to `sum_s` as far as they can:
// at the same part of every interval, or at parts in proportion to `places`.
void Choose(double sum_s, const std::vector<double>& places, StageSplit* split) {
  split->cpu_s.resize(split->low.size());
  const auto at = [&](double scale) {
    split->sum_s = 0;
    for (size_t i = 0; i < split->low.size(); ++i) {
      const double part = std::min(1.0, scale * (places.empty() ? 1.0 : places[i]));
      split->cpu_s[i] = split->low[i] + part * (split->high[i] - split->low[i]);
      split->sum_s += split->cpu_s[i];
    }
    return split->sum_s;
  };
  double least = 0, most = 1;
  while (most < 1e6 && at(most) < sum_s) most *= 2;
  for (int i = 0; i < 60; ++i) {
    const double middle = (least + most) / 2;
    (at(middle) < sum_s ? least : most) = middle;
  }
}

}  // namespace

PipelineModel::PipelineModel(const RunView& run) : run_(&run) {
  if (run.operators.empty()) {
    throw Error(ExitCode::kInconclusive,
                "this run has no operator accounts (profiled from outside)", "run " + run.run.name,
                "write accounts with the C header (docs/accounts.md), or run the pipeline with "
                "'headrace run'");
  }
  if (const Doubts doubts = FindDoubts(run); doubts.any()) {
    throw Error(ExitCode::kInconclusive, doubts.Summary(), "run " + run.run.name,
                "see what writes these accounts (docs/accounts.md)");
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
  ReadVisits();
  CountConsumers();
  ReadOtherThreads();
  LinkResources();
  AddStorage();
  AddCounted();
  demands_ = Estimate(steady_);
  ShareCounted();
  ReadCores();
  ReadSpread();
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
    current_.queue_capacity.push_back(
        stage.queue ? std::max(1, static_cast<int>(run_->queues[*stage.queue].capacity_count)) : 4);
  }
}

// A stage that has no threads although its operators were at work ran on the thread that asked for
// batches: the consumer's, which then waited for as long as they took.
// Whether another stage's threads lived so much longer than their operators were visited that they
// may have done this stage's work: a thread belongs to the stage of the operator it enters first.
bool PipelineModel::OtherThreadsHaveTime(size_t s, int64_t busy_ns) const {
  for (size_t t = 0; t < stages_.size(); ++t) {
    if (t == s || stages_[t].row == kNoStage) continue;
    int64_t free_ns = run_->stages[stages_[t].row].lifetime_ns;
    for (const size_t i : stages_[t].operators) {
      const OperatorRow& op = run_->operators[i];
      free_ns -= op.busy_ns + op.wait_in_ns + op.wait_out_ns;
    }
    if (free_ns >= busy_ns) return true;
  }
  return false;
}

void PipelineModel::FindStagesOnConsumer() {
  int64_t consumer_ns = 0;
  for (const size_t row : consumer_rows_) consumer_ns += run_->stages[row].lifetime_ns;
  if (consumer_ns <= 0) return;
  for (size_t s = 0; s < stages_.size(); ++s) {
    StageModel& stage = stages_[s];
    if (stage.row == kNoStage || run_->stages[stage.row].lifetime_ns > 0) continue;
    int64_t busy_ns = 0;
    for (const size_t i : stage.operators) busy_ns += run_->operators[i].busy_ns;
    constexpr double kWithin = 1.1;  // both are timed apart
    // Of several ranks, the sum of their ones.
    const bool declared = run_->stages[stage.row].max_parallelism_count > 0 &&
                          run_->stages[stage.row].last_parallelism_count == 0;
    if (busy_ns <= 0 ||
        static_cast<double>(busy_ns) > kWithin * static_cast<double>(run_->steps.wait_ns) ||
        (!declared && OtherThreadsHaveTime(s, busy_ns))) {
      continue;
    }
    stage.on_consumer = true;
    stage.stays_on_consumer = declared;
    current_.parallelism[s] = 0;
  }
}

bool PipelineModel::loads_on_consumer() const {
  return std::any_of(stages_.begin(), stages_.end(),
                     [](const StageModel& stage) { return stage.on_consumer; });
}

bool PipelineModel::IsReceiving(size_t op, const char* kind) const {
  const size_t stage = operators_[op].stage;
  return operators_[op].kind == kind && stage != kNoStage && stages_[stage].stays_on_consumer;
}

double PipelineModel::OnConsumers(const Settings& settings, const Demands& demands) const {
  double all_s = 0;
  for (size_t s = 0; s < stages_.size(); ++s) {
    if (settings.parallelism[s] <= 0) all_s += demands.stage_s[s];
  }
  return all_s / consumers_;
}

// Several trainers in one recording wait and compute for more time than passes.
void PipelineModel::CountConsumers() {
  const WindowRow sum = Sum(steady_);
  if (sum.duration_ns <= 0) return;
  const double at_once = static_cast<double>(sum.steps.wait_ns + sum.steps.compute_ns) /
                         static_cast<double>(sum.duration_ns);
  constexpr double kMost = 4096;
  if (!std::isfinite(at_once)) return;
  consumers_ = static_cast<int>(std::lround(std::clamp(at_once, 1.0, kMost)));
  // No more than the threads that they had, where these are known.
  double threads = 0;
  for (const size_t row : consumer_rows_) {
    threads +=
        static_cast<double>(sum.stages[row].lifetime_ns) / static_cast<double>(sum.duration_ns);
  }
  if (threads > 0) {
    consumers_ = std::min(consumers_, std::max(1, static_cast<int>(std::lround(threads))));
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
          ? "per-thread CPU clock at operator boundaries, not told apart where visits are short"
      : by_stage ? "the scheduler's account of each thread, not told apart by operator"
                 : "";
}

void PipelineModel::ChooseSteady() {
  phases_ = FindPhases(*run_);
  steady_ = phases_.steady;
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
      const double completions = static_cast<double>(run_->operators[i].completions_count);
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
        const bool one = puts >= steps - 2 && puts <= steps + in_flight;
        stages_[s].elements = one ? 1 : puts / steps;
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
  const WindowRow sum = Sum(steady_);
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
  if (other_s > 0.05 * stages_s && steps > 0) other_cpu_s_ = other_s / steps;
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

void PipelineModel::LeaveOutWaitsAtFullStore(const ResourceModel& store, Demands* demands) const {
  if (!store.enough_threads || store.users.empty()) return;
  const size_t op = store.users[0].first, stage = operators_[op].stage;
  if (stage == kNoStage || current_.parallelism[stage] <= *store.enough_threads) return;
  const double less_s =
      demands->operators[op].blocked_s * (1 - *store.enough_threads / current_.parallelism[stage]);
  demands->operators[op].blocked_s -= less_s;
  demands->stage_s[stage] -= less_s;
}

WindowRow PipelineModel::Sum(const std::vector<size_t>& windows) const {
  WindowRow sum;
  if (windows.empty()) {
    sum.duration_ns = run_->run.duration_ns;
    sum.operators.assign(run_->operators.begin(), run_->operators.end());
    sum.stages.assign(run_->stages.begin(), run_->stages.end());
    sum.queues.assign(run_->queues.begin(), run_->queues.end());
    sum.resources.assign(run_->resources.begin(), run_->resources.end());
    sum.steps = run_->steps;
    return sum;
  }
  sum.operators.resize(run_->operators.size());
  sum.stages.resize(run_->stages.size());
  sum.resources.resize(run_->resources.size());
  bool first = true;
  for (size_t w : windows) {
    const WindowRow& window = run_->windows[w];
    sum.duration_ns += window.duration_ns;
    for (size_t i = 0; i < window.operators.size(); ++i) {
      Add(&sum.operators[i], window.operators[i], first);
    }
    for (size_t i = 0; i < window.stages.size(); ++i) {
      sum.stages[i].lifetime_ns += window.stages[i].lifetime_ns;
      Add(&sum.stages[i].on_cpu_ns, window.stages[i].on_cpu_ns, first);
      Add(&sum.stages[i].runnable_ns, window.stages[i].runnable_ns, first);
    }
    for (size_t i = 0; i < window.resources.size(); ++i) {
      sum.resources[i].acquisitions_count += window.resources[i].acquisitions_count;
      sum.resources[i].wait_ns += window.resources[i].wait_ns;
      sum.resources[i].hold_ns += window.resources[i].hold_ns;
      sum.resources[i].moved_bytes += window.resources[i].moved_bytes;
    }
    sum.steps.steps_count += window.steps.steps_count;
    sum.steps.rows_count += window.steps.rows_count;
    sum.steps.wait_ns += window.steps.wait_ns;
    sum.steps.compute_ns += window.steps.compute_ns;
    first = false;
  }
  return sum;
}

double PipelineModel::ConsumerComputeCpu(const Demands& demands) const {
  double cpu_s = 0;
  bool known = true;
  for (size_t i = 0; i < operators_.size(); ++i) {
    if (operators_[i].stage != kNoStage) continue;
    cpu_s += demands.operators[i].cpu_s;
    known = known && run_->operators[i].on_cpu_ns.has_value();
  }
  return std::min(demands.consumer_s, known ? cpu_s : demands.consumer_cpu_s);
}

// What the scheduler accounts to the stage's threads. A stage on the consumer's has its share of
// that one, by the time it was busy.
StageCounters PipelineModel::ThreadsOf(const StageModel& stage, const WindowRow& sum) const {
  if (!stage.on_consumer) {
    return stage.row < sum.stages.size() ? sum.stages[stage.row] : StageCounters();
  }
  double busy_ns = 0;
  for (const size_t i : stage.operators) busy_ns += static_cast<double>(sum.operators[i].busy_ns);
  const double all_ns = static_cast<double>(sum.steps.wait_ns + sum.steps.compute_ns);
  const double share = all_ns > 0 ? std::min(1.0, busy_ns / all_ns) : 0;
  StageCounters threads;
  for (const size_t row : consumer_rows_) {
    const auto add = [share](const Count& from, Count* to) {
      if (from) *to = to->value_or(0) + std::llround(share * static_cast<double>(*from));
    };
    add(sum.stages[row].on_cpu_ns, &threads.on_cpu_ns);
    add(sum.stages[row].runnable_ns, &threads.runnable_ns);
  }
  return threads;
}

// The consumer's c + b. How long it had no core inside its step (q) is known from its operators, or
// lies between what its threads' account allows; where that is not readable and the machine is
// full, it suffers at most what the stages do.
void PipelineModel::EstimateConsumer(const WindowRow& sum, Demands* demands) const {
  const double steps = std::max(1.0, Steps(sum.steps)) * consumers_;
  const double compute_s = Seconds(sum.steps.compute_ns), wait_s = Seconds(sum.steps.wait_ns);
  double q_s = 0, c_s = 0;
  bool by_operator = false, known = true;
  for (size_t i = 0; i < operators_.size(); ++i) {
    if (operators_[i].stage != kNoStage) continue;
    const OperatorCounters& op = sum.operators[i];
    by_operator = true;
    known = known && op.runnable_ns.has_value();
    q_s += Seconds(op.runnable_ns);
    c_s += Seconds(op.on_cpu_ns);
  }
  double least_q = q_s, most_q = q_s;
  if (!by_operator || !known) {
    Count threads;
    for (const size_t row : consumer_rows_) {
      if (!sum.stages[row].runnable_ns) {
        threads.reset();
        break;
      }
      threads = threads.value_or(0) + *sum.stages[row].runnable_ns;
    }
    q_s = least_q = most_q = 0;
    if (threads) {
      const double all_s = Seconds(threads);
      least_q = std::max(0.0, all_s - wait_s);
      most_q = std::min(all_s, std::max(0.0, compute_s - c_s));
      q_s = compute_s + wait_s > 0 ? all_s * compute_s / (compute_s + wait_s) : 0;
    } else if (HostIsFull(*run_)) {
      most_q = compute_s * (1 - ShareOfCores(sum).value_or(1));
    }
  }
  const auto left = [&](double q) {
    return std::max({compute_s - q, std::min(c_s, compute_s), 0.0}) / steps;
  };
  demands->consumer_s = left(std::clamp(q_s, least_q, std::max(least_q, most_q)));
  demands->consumer_least_s = left(std::max(least_q, most_q));
  demands->consumer_most_s = left(least_q);
}

// Requests for batches that run on the consumer's thread take as long as its operators plus the
// time outside them, which is work of the loader, too, but for the waits for those that make the
// batches. The part of that time in which the thread did not compute may have been spent waiting
// for others.
void PipelineModel::EstimateLoad(const WindowRow& sum, Demands* demands) const {
  size_t stage = 0;
  while (stage < stages_.size() && !stages_[stage].on_consumer) ++stage;
  if (stage == stages_.size()) return;
  const double steps = std::max(1.0, Steps(sum.steps)) * consumers_;
  double busy_s = 0, own_cpu_s = 0, q_s = 0, lifetime_s = 0;
  for (size_t i = 0; i < operators_.size(); ++i) {
    const size_t of = operators_[i].stage;
    if (of == kNoStage) own_cpu_s += demands->operators[i].cpu_s;
    if (of == kNoStage || !stages_[of].on_consumer) continue;
    busy_s += Seconds(sum.operators[i].busy_ns) + Seconds(sum.operators[i].wait_in_ns);
  }
  for (const size_t row : consumer_rows_) {
    q_s += Seconds(sum.stages[row].runnable_ns);
    lifetime_s += Seconds(sum.stages[row].lifetime_ns);
  }
  const double ran = lifetime_s > 0 ? std::clamp(1 - q_s / lifetime_s, 0.0, 1.0) : 1;
  const double rest_s = ran * std::max(0.0, Seconds(sum.steps.wait_ns) - busy_s) / steps;
  const double cpu_s = std::min(rest_s, std::max(0.0, demands->consumer_cpu_s - own_cpu_s));
  demands->stage_s[stage] += rest_s;
  demands->stage_cpu_s[stage] += cpu_s;
  demands->consumer_cpu_s -= cpu_s;
  demands->unattributed_cpu_s -= cpu_s;
  demands->consumer_load_s = rest_s - cpu_s;
}

// Workers that are always busy lose nothing by the order, in whatever order their batches come.
void PipelineModel::EstimateOrder(const WindowRow& sum, Demands* demands) const {
  double wait_s = 0;
  for (size_t i = 0; i < operators_.size(); ++i) {
    if (IsReceiving(i, kOrderKind)) wait_s += Seconds(sum.operators[i].wait_in_ns);
  }
  if (wait_s <= 0) return;
  double idle = 1;
  for (const StageModel& stage : stages_) {
    double all_s = 0, out_s = 0;
    if (stage.on_consumer) continue;
    for (const size_t i : stage.operators) {
      const OperatorCounters& op = sum.operators[i];
      all_s += Seconds(op.busy_ns) + Seconds(op.wait_in_ns) + Seconds(op.wait_out_ns);
      out_s += Seconds(op.wait_out_ns);
    }
    if (all_s > 0) idle = std::min(idle, out_s / all_s);
  }
  demands->order_wait_most_s = wait_s / (std::max(1.0, Steps(sum.steps)) * consumers_);
  demands->order_wait_s = idle * demands->order_wait_most_s;
}

Demands PipelineModel::Estimate(const std::vector<size_t>& windows,
                                const std::vector<double>& places) const {
  const WindowRow sum = Sum(windows);
  Demands demands;
  const double steps = std::max<double>(1, static_cast<double>(sum.steps.steps_count));
  demands.rate = sum.duration_ns > 0 ? steps / Seconds(sum.duration_ns) : 0;
  demands.rows = static_cast<double>(sum.steps.rows_count) / steps;
  demands.operators.resize(operators_.size());
  demands.stage_s.resize(stages_.size());
  demands.stage_cpu_s.resize(stages_.size());
  double stages_cpu_s = 0, on_consumer_s = 0;
  for (size_t s = 0; s < stages_.size(); ++s) {
    const std::vector<size_t>& members = stages_[s].operators;
    double busy = 0, off_cpu = 0;
    bool split = true;
    StageSplit cpu;
    std::vector<double> stage_places;
    for (size_t i : members) {
      const OperatorCounters& op = sum.operators[i];
      const bool told = run_->operators[i].on_cpu_ns.has_value();
      busy += Seconds(op.busy_ns);
      AddOperator(op, told, &cpu);
      if (!places.empty()) stage_places.push_back(places[i]);
      split = split && told && (op.on_cpu_ns || op.on_cpu_low_ns);
    }
    const StageCounters threads = ThreadsOf(stages_[s], sum);
    const bool scheduled = threads.on_cpu_ns.has_value();
    if (split) {
      ChooseMiddle(&cpu);
    } else {
      Choose(scheduled ? std::min(Seconds(threads.on_cpu_ns), busy) : 0, stage_places, &cpu);
    }
    const double on_cpu = cpu.sum_s;
    for (size_t m = 0; m < members.size(); ++m) {
      const OperatorCounters& op = sum.operators[members[m]];
      off_cpu += std::max(0.0, Seconds(op.busy_ns) - cpu.cpu_s[m] - Seconds(op.lock_wait_ns));
    }
    const double stage_on_cpu = scheduled ? Seconds(threads.on_cpu_ns) : on_cpu;
    const double stage_runnable = Seconds(threads.runnable_ns);
    // A thread that mostly blocks inside its operators is made runnable as often by its queues'
    // waits as by its own; one that computes is preempted while it computes. Where being runnable
    // is half of its time off the cores and more, they are full, and it is the latter.
    double inside = stage_runnable;
    if (split && off_cpu > 3 * on_cpu) {
      const double share = stage_runnable / off_cpu;
      inside *= 0.5 + 0.5 * std::clamp((share - 0.1) / 0.4, 0.0, 1.0);
    }
    for (size_t m = 0; m < members.size(); ++m) {
      const size_t i = members[m];
      const OperatorCounters& op = sum.operators[i];
      const double op_busy = Seconds(op.busy_ns), lock_wait = Seconds(op.lock_wait_ns);
      const double c = cpu.cpu_s[m];
      double b;
      if (split && op.blocked_ns) {
        b = std::max(0.0, Seconds(op.blocked_ns) - lock_wait);
      } else if (split) {
        const double off = std::max(0.0, op_busy - c - lock_wait);
        b = std::max(0.0, off - (off_cpu > 0 ? inside * off / off_cpu : 0));
      } else {
        const double share = busy > 0 ? op_busy / busy : 0;
        b = std::max(0.0, op_busy - lock_wait - c - stage_runnable * share);
      }
      if (!op.blocked_ns && op.blocked_low_ns && op.blocked_high_ns) {
        b = std::min(std::max(b, Seconds(op.blocked_low_ns) - lock_wait),
                     Seconds(op.blocked_high_ns));
      }
      // Who takes a batch from a worker is blocked for as long as that one is busy with others.
      if (stages_[s].stays_on_consumer && split && operators_[i].kind != kStartKind) b = 0;
      const double completions = static_cast<double>(op.completions_count);
      // An operator that completed nothing in these windows is booked per step instead.
      const double scale = completions > 0 ? operators_[i].visit_ratio / completions : 1 / steps;
      Demands::Operator& out = demands.operators[i];
      out.cpu_s = c * scale;
      out.cpu_low_s = cpu.low[m] * scale;
      out.cpu_high_s = cpu.high[m] * scale;
      out.blocked_s = b * scale;
      out.lock_wait_s = lock_wait * scale;
      out.busy_s = op_busy * scale;
      out.rows = static_cast<double>(op.rows_count) * scale;
      out.bytes_in = static_cast<double>(op.bytes_in_bytes) * scale;
      out.bytes_out = static_cast<double>(op.bytes_out_bytes) * scale;
      demands.stage_s[s] += out.cpu_s + out.blocked_s;
      demands.stage_cpu_s[s] += out.cpu_s;
    }
    demands.cpu_s += demands.stage_cpu_s[s];
    // The rest of the consumer's thread is the consumer's.
    if (stages_[s].on_consumer) {
      stages_cpu_s += demands.stage_cpu_s[s];
      on_consumer_s += demands.stage_cpu_s[s];
    } else {
      stages_cpu_s += stage_on_cpu / steps;
    }
  }
  demands.unattributed_cpu_s = std::max(0.0, stages_cpu_s - demands.cpu_s) + other_cpu_s_;
  for (size_t i = 0; i < operators_.size(); ++i) {
    if (operators_[i].stage != kNoStage) continue;
    demands.operators[i].cpu_s = Seconds(sum.operators[i].on_cpu_ns) / steps;
    demands.consumer_cpu_s += demands.operators[i].cpu_s;
  }
  // Its threads also wake for each batch and take it, outside of their operators.
  double threads_s = 0;
  for (size_t row : consumer_rows_) threads_s += Seconds(sum.stages[row].on_cpu_ns) / steps;
  demands.consumer_cpu_s = std::max(demands.consumer_cpu_s, threads_s - on_consumer_s);
  EstimateConsumer(sum, &demands);
  demands.unattributed_cpu_s += demands.consumer_cpu_s;
  demands.cpu_s += demands.unattributed_cpu_s;
  EstimateLoad(sum, &demands);
  EstimateOrder(sum, &demands);
  for (size_t r = 0; r < resources_.size(); ++r) {
    if (resources_[r].curve) {
      const DeviceCurve& curve = *resources_[r].curve;
      const Demands::Operator& io = demands.operators[curve.io];
      Demands::Resource storage;
      storage.bytes = curve.from_device * io.bytes_out;
      storage.hold_s = std::min(storage.bytes / curve.Most(), io.cpu_s + io.blocked_s);
      // Where the device is full, reads also wait for each other: no demand of theirs, as waiting
      // for a lock is none.
      constexpr double kFull = 0.8;
      const size_t stage = operators_[curve.io].stage;
      const double in_flight = curve.in_flight * std::max(1, current_.parallelism[stage]);
      if (demands.rate * storage.hold_s > kFull && in_flight * curve.At(1) > curve.Most()) {
        const double alone = curve.Most() / (in_flight * curve.At(1));
        const double less_s =
            std::min(io.blocked_s * (1 - alone), std::max(0.0, io.blocked_s - storage.hold_s));
        demands.operators[curve.io].blocked_s -= less_s;
        demands.stage_s[stage] -= less_s;
      }
      demands.resources.push_back(storage);
      continue;
    }
    // It cannot be less than what passed: the phase may be faster than the run, which is what the
    // counters are of.
    if (resources_[r].counted_s) {
      demands.resources.emplace_back().hold_s =
          demands.rate > 0
              ? std::min(*resources_[r].counted_s, resources_[r].servers / demands.rate)
              : *resources_[r].counted_s;
      LeaveOutWaitsAtFullStore(resources_[r], &demands);
      continue;
    }
    const ResourceCounters& counters = sum.resources[*resources_[r].account];
    Demands::Resource resource;
    resource.hold_s = Seconds(counters.hold_ns) / steps;
    resource.wait_s = Seconds(counters.wait_ns) / steps;
    resource.bytes = static_cast<double>(counters.moved_bytes) / steps;
    // The holder of a lock that is preempted holds it longer than it needs to: the demand is at
    // most what its users do. A device also works while its users do something else.
    double users_s = 0;
    for (const auto& [index, share] : resources_[r].users) {
      users_s += demands.operators[index].cpu_s + demands.operators[index].blocked_s;
    }
    // A rate limiter may book the time for its tokens as waiting. Then hold time says little, but
    // users that queue for it most of their time show that it delivers what it can.
    double busy_s = 0;
    for (const auto& [index, share] : resources_[r].users)
      busy_s += demands.operators[index].busy_s;
    if (resources_[r].kind == "device" && resource.wait_s > 4 * resource.hold_s && busy_s > 0 &&
        resource.wait_s > 0.8 * busy_s && demands.rate > 0) {
      resource.limiter_s = resources_[r].servers / demands.rate;
    }
    if (users_s > 0 && splits_cpu_ && resources_[r].kind == "lock") {
      resource.hold_s = std::min(resource.hold_s, users_s);
    }
    demands.resources.push_back(resource);
  }
  return demands;
}

void PipelineModel::ReadCores() {
  cores_known_ = splits_cpu_ && run_->run.cores_count.has_value();
  cores_budget_ = run_->run.cores_count.value_or(1);
  cores_available_ = cores_budget_;
  if (!splits_cpu_) return;
  cores_used_ = demands_.cpu_s * demands_.rate;
  const HostRow* busy = run_->FindHost("host_busy_cores");
  const HostRow* total = run_->FindHost("host_cores");
  if (busy == nullptr || !busy->mean_value) return;
  // The machine's figure is of the whole run, with what the process used before its steady phase;
  // no less than in that, as a start that idles makes no others.
  double own = *cores_used_;
  if (!run_->process_cpu.empty() && run_->run.duration_ns > 0) {
    own =
        std::max(own, run_->process_cpu.back().value / static_cast<double>(run_->run.duration_ns));
  }
  cores_other_ = std::max(0.0, *busy->mean_value - own);
  // The host counts by ticks; of the recording itself more is known.
  const HostRow* collector = run_->FindHost("collector_cpu_ns");
  if (collector != nullptr && collector->last_value && run_->run.duration_ns > 0) {
    cores_other_ = std::max(*cores_other_,
                            *collector->last_value / static_cast<double>(run_->run.duration_ns));
  }
  const double host = total != nullptr && total->mean_value ? *total->mean_value : cores_budget_;
  ReadContention(host);
  if (cores_contended()) {
    Settings present = current_;
    present.cores = cores_available_;
    const double shared = SharedCores(present, demands_);
    // What is in use is there: a stage whose threads get more than the mean share leaves less.
    const double left = contended_cores_ - shared;
    if (*cores_used_ > shared && left > 0) {
      others_keep_ = std::max(0.0, contended_cores_ - *cores_used_) / left;
    }
    cores_available_ = std::clamp(std::max(shared, *cores_used_), 1e-3, cores_budget_);
    cores_other_here_ = others_used_;
    return;
  }
  // On a host with more cores than our budget the others may run elsewhere.
  cores_available_ = std::min(cores_budget_, std::max(host - *cores_other_, *cores_used_));
  constexpr double kMore = 0.5;
  cores_other_here_ =
      host > cores_budget_ + kMore ? cores_budget_ - cores_available_ : *cores_other_;
}

// Where every core is busy and others keep some of them so, the threads' own accounts say what
// share of a core one that wants it gets. Others' threads get as much each, so what they used tells
// how many of them want a core. A program that hardly waits gets nearly all of one: others fill
// what it leaves.
void PipelineModel::ReadContention(double host) {
  constexpr double kLeastOthers = 0.1, kMostIdle = 0.15;  // shares of the cores
  constexpr double kWaits = 0.85;                         // a share that is less than a core
  constexpr double kAtQuota = 0.9;
  const WindowRow sum = Sum(steady_);
  const std::optional<double> share = ShareOfCores(sum);
  if (!share) return;
  // A quota stops threads on cores that are idle.
  const std::string& bound_by = run_->run.cores_bound_by;
  const bool quota =
      bound_by.find("cgroup") != std::string::npos || bound_by.find("quota") != std::string::npos;
  if (quota && *cores_used_ > kAtQuota * cores_budget_) return;
  const double cores = quota ? host : std::min(host, cores_budget_);
  // On fewer cores than the machine has, how much of the others is on these is not known; the
  // threads that wait say that they are full.
  const bool part = cores < host - 0.5;
  if (part && *share > kWaits) return;
  const double others =
      part ? std::min(*cores_other_, std::max(0.0, cores - *cores_used_)) : *cores_other_;
  const double idle = cores - *cores_used_ - others;
  if (others < kLeastOthers * cores || idle > kMostIdle * cores) return;
  contended_cores_ = cores;
  others_used_ = others;
  others_runnable_ = others / *share;
}

// Whether the threads have the CPU time for `rate` batches per second if each gets that share of a
// core while it wants one.
bool PipelineModel::ThreadsSustain(const Settings& settings, const Demands& demands, double rate,
                                   double share) const {
  double consumer_s = demands.consumer_cpu_s;
  for (size_t s = 0; s < stages_.size(); ++s) {
    const double cpu_s = demands.stage_cpu_s[s];
    if (settings.parallelism[s] <= 0) {
      consumer_s += cpu_s;
    } else if (rate * cpu_s > share * settings.parallelism[s]) {
      return false;
    }
  }
  return rate * consumer_s <= share * consumers_;
}

double PipelineModel::SharedCores(const Settings& settings, const Demands& demands) const {
  if (!cores_contended() || demands.cpu_s <= 0) return settings.cores;
  // The more this program takes, the less is left to each thread of the others, and as little to
  // each of its own.
  double low = 0, high = contended_cores_ / demands.cpu_s;
  constexpr int kHalvings = 30;
  for (int i = 0; i < kHalvings; ++i) {
    const double rate = (low + high) / 2;
    const double share =
        std::min(1.0, (contended_cores_ - rate * demands.cpu_s) / others_runnable_);
    (share > 0 && ThreadsSustain(settings, demands, rate, share) ? low : high) = rate;
  }
  const double fair = low * demands.cpu_s;
  const double kept = std::max(contended_cores_ - others_used_, cores_used_.value_or(0));
  double shared =
      fair > kept ? kept + demands.others_yield.value_or(kOthersYield) * (fair - kept) : fair;
  shared = contended_cores_ - others_keep_ * (contended_cores_ - shared);
  // Cores that are added come on top of what the present settings have; a budget of fewer holds.
  const double got = settings.cores < cores_available_ ? std::min(shared, settings.cores)
                                                       : shared + settings.cores - cores_available_;
  return std::max(1e-3, got);
}

void PipelineModel::ReadSpread() {
  const WindowRow sum = Sum(steady_);
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
    const auto cv = spread(
        [&](const WindowRow& window) {
          double time = 0;
          for (size_t i : stage.operators) {
            const OperatorCounters& op = window.operators[i];
            const double off = Seconds(op.busy_ns - op.lock_wait_ns);
            if (op.on_cpu_ns && op.blocked_ns) {
              time +=
                  Seconds(*op.on_cpu_ns) + std::max(0.0, Seconds(*op.blocked_ns - op.lock_wait_ns));
              continue;
            }
            time += op.on_cpu_ns && 2 * Seconds(op.on_cpu_ns) > off ? Seconds(op.on_cpu_ns) : off;
          }
          return time;
        },
        [&](const WindowRow& window) {
          return static_cast<double>(window.operators[stage.last].completions_count);
        },
        4.0 * stage.parallelism);
    // `cv` is per completion of the stage's last operator; the model needs it per firing.
    if (cv && stage.visit_ratio > 0) {
      stage.cv = *cv * std::sqrt(stage.firings / stage.visit_ratio);
    }
    double busy = 0, wait_in = 0, wait_out = 0;
    for (size_t i : stage.operators) {
      busy += Seconds(sum.operators[i].busy_ns);
      wait_in += Seconds(sum.operators[i].wait_in_ns);
      wait_out += Seconds(sum.operators[i].wait_out_ns);
    }
    const bool known = stage.row < sum.stages.size();
    double lifetime = known ? Seconds(sum.stages[stage.row].lifetime_ns) : 0;
    if (stage.on_consumer) lifetime = Seconds(sum.steps.wait_ns + sum.steps.compute_ns);
    if (lifetime <= 0) lifetime = busy + wait_in + wait_out;
    if (lifetime <= 0) continue;
    stage.busy_ratio = std::min(1.0, busy / lifetime);
    stage.wait_in_ratio = std::min(1.0, wait_in / lifetime);
    stage.wait_out_ratio = std::min(1.0, wait_out / lifetime);
    if (known && sum.stages[stage.row].runnable_ns) {
      stage.runnable_ratio = std::min(1.0, Seconds(sum.stages[stage.row].runnable_ns) / lifetime);
    }
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

// The work of one firing of stage `s`; `overhead`: CPU time on top of that of operators.
void PipelineModel::AddSimulatedOperators(const StageModel& model, size_t s, const Demands& demands,
                                          double overhead, double firings, double cv,
                                          SimulatedStage* stage) const {
  for (size_t i : model.operators) {
    const Demands::Operator& op = demands.operators[i];
    SimulatedOperator simulated;
    simulated.name = operators_[i].name;
    simulated.cpu_s = op.cpu_s * (1 + overhead) / firings;
    simulated.blocked_s = op.blocked_s / firings;
    simulated.cv = cv;
    for (size_t r = 0; r < resources_.size(); ++r) {
      for (const auto& [user, share] : resources_[r].users) {
        if (user != i || simulated.resource >= 0 || resources_[r].counted_s) continue;
        const double hold = demands.resources[r].hold_s * share / firings;
        simulated.resource = static_cast<int>(r);
        simulated.held_blocked_s = std::min(simulated.blocked_s, hold);
        simulated.held_cpu_s = std::min(simulated.cpu_s, hold - simulated.held_blocked_s);
        simulated.blocked_s -= simulated.held_blocked_s;
        simulated.cpu_s -= simulated.held_cpu_s;
      }
    }
    stage->operators.push_back(simulated);
  }
  if (model.on_consumer) {  // what its operators leave out
    SimulatedOperator rest;
    rest.cpu_s = demands.stage_cpu_s[s];
    rest.blocked_s = demands.stage_s[s] - demands.stage_cpu_s[s];
    for (size_t i : model.operators) {
      rest.cpu_s -= demands.operators[i].cpu_s;
      rest.blocked_s -= demands.operators[i].blocked_s;
    }
    rest.cpu_s = std::max(0.0, rest.cpu_s) * (1 + overhead) / firings;
    rest.blocked_s = std::max(0.0, rest.blocked_s) / firings;
    rest.cv = cv;
    stage->operators.push_back(rest);
  }
}

SimulatedPipeline PipelineModel::Simulated(const Settings& settings, const Demands& demands) const {
  SimulatedPipeline pipeline;
  pipeline.cores = cores_known_ ? SharedCores(settings, demands) : 1e6;
  // What it computes on the cores is a part of its step.
  pipeline.consumer_s = demands.consumer_s - ConsumerComputeCpu(demands) + demands.order_wait_s;
  pipeline.consumer_cpu_s = demands.consumer_cpu_s;
  pipeline.consumer_cv = consumer_cv_;
  double cpu = 0;
  for (double stage_cpu : demands.stage_cpu_s) cpu += stage_cpu;
  const double overhead =
      cpu > 0 ? std::max(0.0, demands.unattributed_cpu_s - demands.consumer_cpu_s) / cpu : 0;
  for (const ResourceModel& resource : resources_) {
    pipeline.resources.push_back({resource.name, resource.servers});
  }
  // Elements and firings finer than kFinest to a batch are simulated several at a time.
  constexpr double kFinest = 8;
  const auto grain = [](double per_batch) { return std::max(1.0, per_batch / kFinest); };
  for (size_t s = 0; s < stages_.size(); ++s) {
    const StageModel& model = stages_[s];
    const double together = grain(model.firings);
    const double firings = std::max(model.firings / together, 1e-6);
    const bool on_consumer = settings.parallelism[s] <= 0;
    SimulatedStage stage{model.name, std::max(1, settings.parallelism[s]), 1, {}};
    stage.queue_capacity = std::max(
        1, static_cast<int>(std::lround(settings.queue_capacity[s] / grain(model.elements))));
    stage.emit = model.elements / grain(model.elements) / firings;
    stage.ordered = ordered_;
    stage.window =
        settings.order_window > 0
            ? std::max(1, static_cast<int>(std::lround(settings.order_window / together)))
            : 0;
    stage.inputs.emplace();
    for (size_t input : model.inputs) {
      const double elements = stages_[input].elements;
      stage.inputs->push_back({input, elements / grain(elements) / firings});
    }
    // One cv for each operator, so that all of them together vary as the stage does.
    double sum = 0, squares = 0;
    for (size_t i : model.operators) {
      const double cost = demands.operators[i].cpu_s + demands.operators[i].blocked_s;
      sum += cost;
      squares += cost * cost;
    }
    const double cv = model.cv / std::sqrt(together) * (squares > 0 ? sum / std::sqrt(squares) : 1);
    // Its work is a part of the consumer's step.
    if (on_consumer) {
      pipeline.consumer_cpu_s += demands.stage_cpu_s[s] * (1 + overhead) / consumers_;
      pipeline.consumer_s +=
          std::max(0.0, demands.stage_s[s] - demands.stage_cpu_s[s]) / consumers_;
      stage.operators.push_back({});
      pipeline.stages.push_back(std::move(stage));
      continue;
    }
    AddSimulatedOperators(model, s, demands, overhead, firings, cv, &stage);
    if (stage.operators.empty()) stage.operators.push_back({});
    pipeline.stages.push_back(std::move(stage));
  }
  if (!stages_.empty()) {
    const double elements = stages_.back().elements;
    pipeline.consumer_take = elements / grain(elements);
  }
  return pipeline;
}

}  // namespace headrace::analysis
