#include "analysis/run/plausibility.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "analysis/thresholds.h"
#include "base/units.h"

namespace headrace::analysis {
namespace {

// A segment has room for as many threads (probes/account/account.h, HR_MAX_THREADS).
constexpr double kMostThreads = 512;
constexpr int64_t kMostParallelism = 65536;

double Value(int64_t value) { return static_cast<double>(value); }

struct Limits {
  double wall_ns = 0;
  double age_ns = 0;  // of the oldest process when the run began: what was under way counts whole
  double threads = 0, cores = 0;
  bool seen = false;                     // threads by the kernel's word
  double thread_ns = 0;                  // all threads' time, margin included
  std::optional<double> most_on_cpu_ns;  // all CPU time, margin included
  std::optional<double> process_cpu_ns;

  explicit Limits(const RunView& run) {
    wall_ns = Value(std::max<int64_t>(0, run.run.duration_ns));
    int64_t processes = 0;
    for (const ProcessRow& process : run.processes) {
      processes += process.has_accounts;
      age_ns = std::max(age_ns, -Value(process.started_ns));
    }
    const HostRow* count = run.FindHost("process_threads_count");
    const HostRow* host = run.FindHost("host_cores");
    cores = host && host->last_value ? *host->last_value : 0;
    seen = count && count->maximum_value && *count->maximum_value >= 1 &&
           static_cast<double>(run.run.duration_ns) >= kThreadsSeenNs;
    threads = seen ? *count->maximum_value
                   : kMostThreads * static_cast<double>(std::max<int64_t>(1, processes));
    thread_ns = kPossibleMargin * (seen ? 2 * threads + cores : threads) * wall_ns;
    const HostRow* cpu = run.FindHost("process_cpu_ns");
    if (cpu && cpu->last_value) {
      process_cpu_ns = *cpu->last_value;
      most_on_cpu_ns = 2 * *process_cpu_ns + 1e9;
    }
    if (cores > 0) {
      most_on_cpu_ns =
          std::min(most_on_cpu_ns.value_or(1e300), kPossibleMargin * cores * wall_ns + 1e9);
    }
  }

  // Time of steps and holds, told when they end.
  double ended_ns() const { return thread_ns + kPossibleMargin * (2 * threads + cores) * age_ns; }

  std::string InThatTime() const {
    return fmt::format("in {} of {}{:.0f} thread{}", FormatDuration(wall_ns),
                       seen ? "" : "at most ", threads, threads == 1 ? "" : "s");
  }
};

// "the accounts of stage decode claim 15.0 min of work in 10.0 s of 2 threads: not believed"
class Judge {
 public:
  explicit Judge(const Limits& limits) : limits_(limits) {}

  // The reason against the first of the figures that is not possible.
  void Time(const std::string& whose, const char* what, double ns, double most_ns) {
    if (ns < 0) return Reject(whose, fmt::format("a negative time {}", what));
    if (ns > most_ns) {
      Reject(whose, fmt::format("{} {} {}", FormatDuration(ns), what, limits_.InThatTime()));
    }
  }
  void Number(const std::string& whose, const char* what, int64_t count, double most_per_ns) {
    if (count < 0) return Reject(whose, fmt::format("a negative number of {}", what));
    if (Value(count) > most_per_ns * limits_.thread_ns) {
      Reject(whose, fmt::format("{:.3g} {} {}", Value(count), what, limits_.InThatTime()));
    }
  }
  void Share(const std::string& whose, const char* what, const Real& ratio, double most) {
    if (!ratio || (*ratio >= 0 && *ratio <= most)) return;
    Reject(whose, fmt::format("to be {} {:.3g} % of the time", what, *ratio * 100));
  }
  void Reject(const std::string& whose, const std::string& claim) {
    if (reason_.empty()) {
      reason_ = fmt::format("the counters of {} claim {}: not believed", whose, claim);
    }
  }
  std::string Take() { return std::exchange(reason_, ""); }

 private:
  const Limits& limits_;
  std::string reason_;
};

double TimeOf(const OperatorCounters& op) {
  return Value(op.busy_ns) + Value(op.wait_in_ns) + Value(op.wait_out_ns);
}

std::string StageDoubt(const RunView& run, const std::string& stage, const Limits& limits) {
  Judge judge(limits);
  const std::string whose = stage.empty() ? "threads outside every stage" : "stage " + stage;
  double work = 0, waits = 0;
  for (const OperatorRow& op : run.operators) {
    if (op.stage != stage) continue;
    work += Value(op.busy_ns);
    waits += Value(op.wait_in_ns) + Value(op.wait_out_ns);
  }
  judge.Time(whose, "of work", work, limits.thread_ns);
  judge.Time(whose, "of waiting", waits, limits.thread_ns);
  for (const StageRow& row : run.stages) {
    if (row.name != stage) continue;
    judge.Time(whose, "of its threads' lives", Value(row.lifetime_ns), limits.thread_ns);
    const double declared = std::max(row.parallelism_count, Value(row.last_parallelism_count));
    if (declared > Value(kMostParallelism) || row.parallelism_count < 0) {
      judge.Reject(whose, fmt::format("{:.3g} threads", declared));
    }
  }
  return judge.Take();
}

std::string OperatorDoubt(const OperatorRow& op, const Limits& limits) {
  Judge judge(limits);
  const std::string whose = "operator " + op.name;
  for (const int64_t ns : {op.busy_ns, op.lock_wait_ns, op.wait_in_ns, op.wait_out_ns}) {
    judge.Time(whose, "", Value(ns), limits.thread_ns);
  }
  if (op.on_cpu_ns) {
    const double most = limits.most_on_cpu_ns.value_or(limits.thread_ns);
    judge.Time(whose, "on a CPU", Value(*op.on_cpu_ns), std::min(most, limits.thread_ns));
  }
  judge.Number(whose, "elements", op.completions_count, kPossibleElements);
  judge.Number(whose, "rows", op.rows_count, kPossibleRows);
  judge.Number(whose, "bytes in", op.bytes_in_bytes, kPossibleBytes);
  judge.Number(whose, "bytes out", op.bytes_out_bytes, kPossibleBytes);
  return judge.Take();
}

// Against all operators at once: "" if their sums are possible.
std::string SumDoubt(const RunView& run, const Limits& limits) {
  double all = 0, on_cpu = 0;
  for (const OperatorRow& op : run.operators) {
    all += TimeOf(op);
    on_cpu += op.on_cpu_ns ? Value(*op.on_cpu_ns) : 0;
  }
  Judge judge(limits);
  judge.Time("all operators", "", all, limits.thread_ns);
  if (limits.most_on_cpu_ns && on_cpu > *limits.most_on_cpu_ns) {
    judge.Reject("all operators",
                 limits.process_cpu_ns
                     ? fmt::format("{} on a CPU, of {} that the kernel counted",
                                   FormatDuration(on_cpu), FormatDuration(*limits.process_cpu_ns))
                     : fmt::format("{} on a CPU in {} of {:.0f} cores", FormatDuration(on_cpu),
                                   FormatDuration(limits.wall_ns), limits.cores));
  }
  return judge.Take();
}

std::string QueueDoubt(const QueueRow& queue, const Limits& limits) {
  Judge judge(limits);
  const std::string whose = "queue " + queue.name;
  judge.Share(whose, "filled to", queue.mean_occupancy_ratio, kPossibleFill);
  judge.Share(whose, "full", queue.full_ratio, kMostOfTheTime);
  judge.Share(whose, "empty", queue.empty_ratio, kMostOfTheTime);
  judge.Number(whose, "puts", queue.puts_count, kPossibleElements);
  judge.Number(whose, "gets", queue.gets_count, kPossibleElements);
  return judge.Take();
}

std::string ResourceDoubt(const ResourceRow& resource, const Limits& limits) {
  Judge judge(limits);
  const std::string whose = resource.kind + " " + resource.name;
  judge.Time(whose, "of holding it", Value(resource.hold_ns), kPossibleHolds * limits.ended_ns());
  judge.Time(whose, "of waiting for it", Value(resource.wait_ns), limits.ended_ns());
  judge.Number(whose, "acquisitions", resource.acquisitions_count, kPossibleElements);
  judge.Number(whose, "bytes", resource.moved_bytes, kPossibleBytes);
  return judge.Take();
}

std::string StepDoubt(const StepRow& steps, const Limits& limits) {
  Judge judge(limits);
  const std::string whose = "the trainer's steps";
  judge.Number(whose, "steps", steps.steps_count, kPossibleElements);
  judge.Number(whose, "rows", steps.rows_count, kPossibleRows);
  judge.Time(whose, "of waiting", Value(steps.wait_ns), limits.ended_ns());
  judge.Time(whose, "of computing", Value(steps.compute_ns), limits.ended_ns());
  for (const Count& step : {steps.step_p50_ns, steps.step_p99_ns}) {
    if (step) judge.Time(whose, "for one of them", Value(*step), limits.ended_ns());
  }
  return judge.Take();
}

}  // namespace

std::string Doubts::Summary() const {
  if (lines.size() < 2) return lines.empty() ? "" : lines[0];
  return fmt::format("{} (and {} more)", lines[0], lines.size() - 1);
}

Doubts FindDoubts(const RunView& run) {
  const Limits limits(run);
  Doubts doubts;
  doubts.operators.resize(run.operators.size());
  if (limits.wall_ns > 0) {
    std::map<std::string, std::string> stages;
    for (const StageRow& row : run.stages) stages[row.name] = StageDoubt(run, row.name, limits);
    const std::string all = SumDoubt(run, limits);
    for (size_t i = 0; i < run.operators.size(); ++i) {
      const OperatorRow& op = run.operators[i];
      if (!stages.count(op.stage)) stages[op.stage] = StageDoubt(run, op.stage, limits);
      std::string& doubt = doubts.operators[i];
      doubt = stages[op.stage];
      if (doubt.empty()) doubt = OperatorDoubt(op, limits);
    }
    // The sums tell on all of them only where none can be told to be wrong by itself.
    const bool none = std::all_of(doubts.operators.begin(), doubts.operators.end(),
                                  [](const std::string& doubt) { return doubt.empty(); });
    if (none) std::fill(doubts.operators.begin(), doubts.operators.end(), all);
    for (const QueueRow& row : run.queues) doubts.queues.push_back(QueueDoubt(row, limits));
    for (const ResourceRow& row : run.resources) {
      doubts.resources.push_back(ResourceDoubt(row, limits));
    }
    doubts.steps = StepDoubt(run.steps, limits);
    for (const auto& [stage, doubt] : stages) doubts.lines.push_back(doubt);
  }
  doubts.queues.resize(run.queues.size());
  doubts.resources.resize(run.resources.size());
  const auto tell = [&](const std::string& doubt) { doubts.lines.push_back(doubt); };
  std::for_each(doubts.operators.begin(), doubts.operators.end(), tell);
  tell(doubts.steps);
  std::for_each(doubts.queues.begin(), doubts.queues.end(), tell);
  std::for_each(doubts.resources.begin(), doubts.resources.end(), tell);
  std::vector<std::string> once;
  for (std::string& line : doubts.lines) {
    if (line.empty() || std::find(once.begin(), once.end(), line) != once.end()) continue;
    once.push_back(std::move(line));
  }
  doubts.lines = std::move(once);
  return doubts;
}

bool IsPossibleCount(const RunView& run, int64_t count) {
  const Limits limits(run);
  return count >= 0 && (limits.wall_ns <= 0 ||
                        static_cast<double>(count) <= kPossibleElements * limits.thread_ns);
}

}  // namespace headrace::analysis
