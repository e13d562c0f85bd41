#include "analysis/fleet/job_findings.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>

#include "analysis/fleet/job_windows.h"
#include "analysis/thresholds.h"

namespace headrace::analysis {
namespace {

constexpr size_t kDraws = 200;
constexpr uint64_t kSeed = 20;
// A part of the workers' time is worth its name from here on: less comes and goes with any job.
constexpr double kLostShare = 0.15;
// A worker slower than this, of the median, is a straggler (tf.data service's and Ray's users name
// such; research 6).
constexpr double kStragglerRate = 0.7;
constexpr double kAbsentShare = 0.10;
// A rank that takes this much longer for a row than the median, and hardly waits, while others do.
constexpr double kSlowRank = 1.3;
constexpr double kThrottledShare = 0.10;
constexpr double kContended = 0.25;  // of the CPU need of a stage: waiting for a core
constexpr double kBusyMachine = 0.92;
constexpr double kMostlyBlocked = 0.5;  // of what a stage does
constexpr double kDispatcherLate = 0.10;
// Ranks that compute for less of their time show nothing of what they could take.
constexpr double kLeastCompute = 0.05;
// In seconds: of a shorter job the start of workers and the end of the last splits are much.
constexpr double kShortestJob = 5;

double Ratio(double part, double whole) { return whole > 0 ? part / whole : 0; }

double MedianOf(std::vector<double> values) {
  return values.empty() ? 0 : Quantile(std::move(values), 0.5);
}

// The stage whose threads have least time left.
void FindBusiest(const WorkerSums& sum, const Member& member, WorkerFigures* figures) {
  for (size_t s = 0; s < sum.stages.size(); ++s) {
    const WorkerSums::Stage& stage = sum.stages[s];
    const double utilisation = std::min(1.0, Ratio(stage.busy, stage.threads));
    if (stage.threads <= 0 || utilisation <= figures->utilisation) continue;
    figures->utilisation = utilisation;
    figures->busiest_stage = s < member.stages.size() ? member.stages[s] : "";
    const double need = stage.on_cpu + stage.runnable;
    figures->blocked.reset();
    figures->runnable.reset();
    if (stage.split_known) {
      figures->blocked = std::max(0.0, 1 - Ratio(need, stage.busy));
      figures->runnable = Ratio(stage.runnable, need);
    }
    figures->reads_limit = stage.reads && figures->blocked.value_or(0) > kMostlyBlocked;
  }
}

WorkerFigures FiguresOf(const WorkerSums& sum, const Member& member, size_t index) {
  WorkerFigures f;
  f.member = index;
  f.serving_s = sum.serving;
  f.rows = sum.rows;
  f.rows_per_s = Ratio(sum.rows, sum.serving);
  // Whatever its threads were counted as doing while it was stopped, it did not.
  f.absent = Ratio(sum.absent, sum.serving);
  const double left = 1 - f.absent;
  f.idle = std::min(Ratio(sum.idle, sum.serving), left);
  f.no_room = std::min(Ratio(sum.no_room, sum.serving), left - f.idle);
  FindBusiest(sum, member, &f);
  // One stage waits while another works: what its busiest does at that time is work.
  f.working = std::max(left - f.idle - f.no_room, std::min(f.utilisation, left));
  if (const double waits = f.idle + f.no_room; waits > left - f.working) {
    const double scale = std::max(0.0, left - f.working) / waits;
    f.idle *= scale;
    f.no_room *= scale;
  }
  if (sum.cpu_known > 0) f.cpu_cores = sum.cpu / sum.cpu_known;
  if (sum.throttled_known > 0) f.throttled = sum.throttled / sum.throttled_known;
  return f;
}

// Of all processes that were that rank.
std::vector<RankFigures> RanksOf(const JobView& job, const JobWindows& windows,
                                 const JobWindow& sum) {
  std::map<int64_t, RankFigures> ranks;
  for (size_t n = 0; n < windows.ranks.size(); ++n) {
    const Member& member = job.members[windows.ranks[n]];
    RankFigures& f = ranks[member.number];
    f.rank = member.number;
    f.member = windows.ranks[n];
    f.wait_s += sum.ranks[n].wait;
    f.compute_s += sum.ranks[n].compute;
    f.rows += sum.ranks[n].rows;
    f.absent += sum.ranks[n].absent;
    f.rows_per_s += sum.ranks[n].seconds;  // for now
  }
  std::vector<RankFigures> figures;
  for (auto& [number, f] : ranks) {
    f.absent = Ratio(f.absent, f.rows_per_s);
    f.rows_per_s = Ratio(f.rows, windows.end_s - windows.begin_s);
    if (f.wait_s + f.compute_s > 0) f.stall = f.wait_s / (f.wait_s + f.compute_s);
    figures.push_back(f);
  }
  return figures;
}

// Medians of all values but one, each without a look at them all.
class OthersMedian {
 public:
  explicit OthersMedian(std::vector<double> values) : sorted_(std::move(values)) {
    std::sort(sorted_.begin(), sorted_.end());
  }
  // `value` is one of them; there are two at least.
  double Without(double value) const {
    const auto place = static_cast<size_t>(std::lower_bound(sorted_.begin(), sorted_.end(), value) -
                                           sorted_.begin());
    const size_t others = sorted_.size() - 1;
    const auto other = [&](size_t i) { return sorted_[i < place ? i : i + 1]; };
    return (other((others - 1) / 2) + other(others / 2)) / 2;
  }

 private:
  std::vector<double> sorted_;
};

void MarkSlowRanks(std::vector<RankFigures>* ranks) {
  if (ranks->size() < 2) return;
  std::vector<double> costs, stalls;
  for (const RankFigures& one : *ranks) {
    costs.push_back(Ratio(one.compute_s, one.rows));
    stalls.push_back(one.stall.value_or(0));
  }
  const OthersMedian cost(std::move(costs)), stall(std::move(stalls));
  for (RankFigures& one : *ranks) {
    const double own = Ratio(one.compute_s, one.rows);
    const bool is_slower = own > kSlowRank * cost.Without(own);
    const bool others_wait =
        stall.Without(one.stall.value_or(0)) > std::max(0.1, 2 * one.stall.value_or(1));
    one.is_slow = (is_slower && others_wait) || (one.absent > kAbsentShare && others_wait);
  }
}

// Rate that the ranks would take if they never waited.
std::optional<double> DemandOf(const JobView& job, const std::vector<RankFigures>& ranks) {
  double sum = 0, least = INFINITY;
  for (const RankFigures& one : ranks) {
    if (one.compute_s <= kLeastCompute * (one.wait_s + one.compute_s) || one.rows <= 0)
      return std::nullopt;
    const double rate = one.rows / one.compute_s;
    sum += rate;
    least = std::min(least, rate);
  }
  if (ranks.empty()) return std::nullopt;
  return job.mode == "lockstep" ? least * static_cast<double>(ranks.size()) : sum;
}

// One judgement of a sum of windows.
struct Judgement {
  JobLimit limit = JobLimit::kWorkers, next = JobLimit::kTrainers;
  std::optional<size_t> member;
  double share = 0;
  std::vector<JobShare> shares;
  std::vector<WorkerFigures> workers;
  std::vector<RankFigures> ranks;
  double worst_stall = 0, mean_stall = 0;
  int64_t worst_rank = 0;
  std::optional<double> late;  // as JobFindings::dispatcher_late
};

class Judge {
 public:
  Judge(const JobView& job, const JobWindows& windows, const JobWindow& sum)
      : job_(job), windows_(windows), sum_(sum) {}

  Judgement Decide() {
    out_.ranks = RanksOf(job_, windows_, sum_);
    MarkSlowRanks(&out_.ranks);
    for (size_t n = 0; n < windows_.workers.size(); ++n) {
      if (sum_.workers[n].serving <= 0) continue;
      const Member& member = job_.members[windows_.workers[n]];
      out_.workers.push_back(FiguresOf(sum_.workers[n], member, windows_.workers[n]));
      has_busy_machine_.push_back(MachineIsBusy(sum_.workers[n], member));
    }
    for (const WorkerFigures& one : out_.workers) serving_ += one.serving_s;
    Stalls();
    AddLost();
    const JobLimit work = WorkLimit();
    out_.shares.push_back({work, DivideTime()});
    Name(work);
    return std::move(out_);
  }

 private:
  void Stalls() {
    double sum = 0;
    for (const RankFigures& one : out_.ranks) {
      const double stall = one.stall.value_or(0);
      sum += stall;
      if (stall <= out_.worst_stall) continue;
      out_.worst_stall = stall;
      out_.worst_rank = one.rank;
    }
    out_.mean_stall = Ratio(sum, static_cast<double>(out_.ranks.size()));
  }

  // The share that is work; all together are at most 1. What is lost may seem to be work in the
  // workers' own time: one that lags works slowly.
  double DivideTime() {
    double lost = 0;
    for (const JobShare& one : out_.shares) lost += one.share;
    if (lost > 1)
      for (JobShare& one : out_.shares) one.share /= lost;
    return std::clamp(1 - lost, 0.0, WorkingShare());
  }
  double WorkingShare() const {
    double working = 0;
    for (const WorkerFigures& one : out_.workers) working += one.working * one.serving_s;
    return Ratio(working, serving_);
  }
  double Lost(double WorkerFigures::*part) const {
    double lost = 0;
    for (const WorkerFigures& one : out_.workers) lost += one.*part * one.serving_s;
    return Ratio(lost, serving_);
  }

  const RankFigures* SlowRank() const {
    const RankFigures* slowest = nullptr;
    for (const RankFigures& one : out_.ranks)
      if (one.is_slow && (slowest == nullptr || Ratio(one.compute_s, one.rows) >
                                                    Ratio(slowest->compute_s, slowest->rows)))
        slowest = &one;
    return slowest;
  }

  // What stragglers would have made beyond what they did, and time in which workers stood still.
  double StragglerShare() {
    std::vector<double> rates;
    for (const WorkerFigures& one : out_.workers) rates.push_back(one.rows_per_s);
    const double median = MedianOf(rates);
    double missing = 0;
    for (WorkerFigures& one : out_.workers) {
      const bool has_work = one.idle + one.no_room < 0.5;
      one.is_straggler =
          one.absent > kAbsentShare || (out_.workers.size() > 2 && has_work && one.serving_s > 1 &&
                                        one.rows_per_s < kStragglerRate * median);
      if (!one.is_straggler) continue;
      missing += std::max(one.absent, 1 - Ratio(one.rows_per_s, median)) * one.serving_s;
    }
    return Ratio(missing, serving_);
  }

  // Workers that were there at other times and are missed, and rows made again.
  double FailureShare() const {
    if (sum_.job.lost <= 0) return 0;
    const double most = ServingAtBest();
    const double missing = most > 0 ? 1 - Ratio(sum_.job.serving, most * sum_.job.running) : 0;
    double rows = 0;
    for (const WorkerFigures& one : out_.workers) rows += one.rows;
    return 1 - (1 - std::clamp(missing, 0.0, 1.0)) / (1 + Ratio(sum_.job.again_rows, rows));
  }
  double ServingAtBest() const {
    std::vector<double> serving;
    for (const JobWindow& window : windows_.windows)
      if (window.job.running > 0) serving.push_back(window.job.serving / window.job.running);
    return serving.empty() ? 0 : std::max(1.0, std::ceil(Quantile(serving, 0.9) - 0.1));
  }

  void AddLost() {
    const double no_split =
        std::min(Ratio(sum_.job.no_split, sum_.job.serving), Lost(&WorkerFigures::idle));
    const double idle = Lost(&WorkerFigures::idle) - no_split;
    Add(JobLimit::kSplits, no_split);
    // That it was stopped costs nothing while workers have leases.
    Add(JobLimit::kDispatcher, idle);
    const double late = Ratio(sum_.job.late, sum_.job.running);
    if (late > kDispatcherLate) out_.late = late;
    Add(SlowRank() != nullptr ? JobLimit::kSlowRank : JobLimit::kDelivery,
        Lost(&WorkerFigures::no_room));
    Add(JobLimit::kStraggler, StragglerShare());
    Add(JobLimit::kFailures, FailureShare());
    std::stable_sort(out_.shares.begin(), out_.shares.end(),
                     [](const JobShare& a, const JobShare& b) { return a.share > b.share; });
  }
  void Add(JobLimit limit, double share) {
    if (share >= 0.005) out_.shares.push_back({limit, std::min(1.0, share)});
  }

  // What limits a typical worker that has work and room.
  JobLimit WorkLimit() const {
    double reads = 0, throttled = 0, contended = 0, machine = 0, all = 0;
    for (size_t n = 0; n < out_.workers.size(); ++n) {
      const WorkerFigures& one = out_.workers[n];
      all += one.serving_s;
      if (one.reads_limit) reads += one.serving_s;
      if (one.throttled.value_or(0) > kThrottledShare) throttled += one.serving_s;
      // Whatever others do with the cores: a stage that mostly waits for something else has enough.
      if (one.blocked.value_or(0) > kMostlyBlocked) continue;
      if (one.runnable.value_or(0) > kContended) contended += one.serving_s;
      if (has_busy_machine_[n]) machine += one.serving_s;
    }
    if (reads > all / 2) return JobLimit::kStorage;
    if (throttled > all / 2) return JobLimit::kQuota;
    if (contended > all / 2 || machine > all / 2) return JobLimit::kMachine;
    return JobLimit::kWorkers;
  }
  static bool MachineIsBusy(const WorkerSums& sum, const Member& member) {
    return member.host_cores && sum.host_known > 0 &&
           sum.host_busy / sum.host_known > kBusyMachine * *member.host_cores;
  }

  void Name(JobLimit work) {
    const JobShare* lost = nullptr;
    for (const JobShare& one : out_.shares)
      if (one.limit != work && one.share >= kLostShare &&
          (lost == nullptr || one.share > lost->share))
        lost = &one;
    if (out_.worst_stall < kSmallStall) {
      out_.limit = JobLimit::kTrainers;
      out_.next = lost != nullptr && lost->limit != JobLimit::kDelivery ? lost->limit : work;
      return;
    }
    if (const RankFigures* slow = SlowRank()) {
      out_.limit = JobLimit::kSlowRank;
      out_.member = slow->member;
      out_.next = work;
      for (const JobShare& one : out_.shares)
        if (one.limit == JobLimit::kSlowRank) out_.share = one.share;
      return;
    }
    if (lost == nullptr) {
      out_.limit = work;
      out_.next = JobLimit::kTrainers;
      return;
    }
    out_.limit = lost->limit;
    out_.share = lost->share;
    out_.next = work;
    for (const JobShare& one : out_.shares)
      if (&one != lost && one.limit != work && one.share >= kLostShare) {
        out_.next = one.limit;
        break;
      }
    if (out_.limit == JobLimit::kStraggler) out_.member = WorstStraggler();
  }
  // One alone; several have no single name.
  std::optional<size_t> WorstStraggler() const {
    std::optional<size_t> member;
    for (const WorkerFigures& one : out_.workers) {
      if (!one.is_straggler) continue;
      if (member) return std::nullopt;
      member = one.member;
    }
    return member;
  }

  const JobView& job_;
  const JobWindows& windows_;
  const JobWindow& sum_;
  Judgement out_;
  std::vector<bool> has_busy_machine_;  // parallel to out_.workers
  double serving_ = 0;
};

// What more rate the verdict promises: what is lost comes back, up to what ranks take.
void FindGain(const Judgement& j, JobFindings* f) {
  const std::optional<double> most =
      f->demand_rows_per_s && f->rows_per_s > 0
          ? std::optional(std::max(1.0, *f->demand_rows_per_s / f->rows_per_s))
          : std::nullopt;
  if (j.limit == JobLimit::kTrainers || !most) return;
  if (j.limit == JobLimit::kSlowRank) {
    // Lockstep: as many rows as the next slower rank would take.
    double next = INFINITY, own = 0;
    for (const RankFigures& one : j.ranks) {
      const double rate = Ratio(one.rows, one.compute_s);
      if (j.member == one.member) {
        own = rate;
      } else if (rate > 0) {
        next = std::min(next, rate);
      }
    }
    if (own <= 0 || !std::isfinite(next)) return;
    // Nor more than the workers make while they have room.
    f->gain = std::clamp(next / own, 1.0, j.share < 1 ? 1 / (1 - j.share) : INFINITY);
    return;
  }
  if (j.share > 0 && j.share < 0.99) {
    f->gain = std::min(1 / (1 - j.share), *most);
  } else {
    f->gain = most;
  }
}

void FindNeeded(const Judgement& j, JobFindings* f) {
  if (!f->demand_rows_per_s || f->rows_per_s <= 0) return;
  double working = 0, serving = 0;
  for (const WorkerFigures& one : j.workers) {
    working += one.working * one.serving_s;
    serving += one.serving_s;
  }
  const double busy_workers = f->workers * Ratio(working, serving);
  const double needed = busy_workers * *f->demand_rows_per_s / f->rows_per_s;
  if (needed > 0 && needed < 1e6)
    f->workers_needed = static_cast<int64_t>(std::ceil(needed * 1.02));
}

void FindCost(const JobWindow& sum, JobFindings* f) {
  double serving = 0, cpu = 0, known = 0;
  for (const WorkerSums& one : sum.workers) {
    serving += one.serving;
    cpu += one.cpu;
    known += one.cpu_known;
  }
  if (f->rows <= 0) return;
  f->worker_seconds_per_million_rows = serving / f->rows * 1e6;
  if (known > 0.5 * serving) f->cpu_seconds_per_million_rows = cpu / f->rows * 1e6;
}

// How often draws of windows come to the same answer, and how the worst rank's stall varies.
void FindProbability(const JobView& job, const JobWindows& windows, JobFindings* f) {
  Random random(kSeed);
  size_t same = 0;
  std::vector<double> stalls;
  for (size_t draw = 0; draw < kDraws; ++draw) {
    const JobWindow sum = SumOf(windows, BlockResample(windows.windows.size(), 2, random));
    const Judgement j = Judge(job, windows, sum).Decide();
    same += j.limit == f->limit && j.member == f->member;
    stalls.push_back(j.worst_stall);
  }
  // Of few intervals all draws are alike: n of them, all of one kind, say no more of the next than
  // this (Laplace's rule of succession).
  const auto n = static_cast<double>(std::min(windows.measured, windows.windows.size()));
  f->probability =
      std::min(static_cast<double>(same) / static_cast<double>(kDraws), (n + 1) / (n + 2));
  f->stall_interval = IntervalAround(*f->worst_stall, stalls, 0.9);
}

}  // namespace

const char* JobLimitKey(JobLimit limit) {
  constexpr const char* kKeys[] = {"trainers", "slow_rank", "delivery",  "dispatcher",
                                   "splits",   "failures",  "straggler", "storage",
                                   "quota",    "machine",   "workers"};
  return kKeys[static_cast<size_t>(limit)];
}

const char* JobLimitName(JobLimit limit) {
  constexpr const char* kNames[] = {"the trainers themselves",
                                    "a slow rank",
                                    "the way from workers to ranks",
                                    "the dispatcher",
                                    "too few splits",
                                    "lost workers",
                                    "workers that are stopped or lag",
                                    "storage",
                                    "the workers' CPU quota",
                                    "the cores of the workers' machines",
                                    "the number of workers"};
  return kNames[static_cast<size_t>(limit)];
}

JobFindings JudgeJob(const JobView& job) {
  JobFindings f;
  const JobWindows windows = MakeWindows(job);
  if (windows.windows.empty()) {
    f.undecided =
        windows.ranks.empty() ? "no rank has sent measurements" : "no rank has had a batch yet";
    f.undecided_fix = "Report it again once its ranks take batches.";
    return f;
  }
  std::vector<size_t> all(windows.windows.size());
  std::iota(all.begin(), all.end(), size_t{0});
  const JobWindow sum = SumOf(windows, all);
  Judgement j = Judge(job, windows, sum).Decide();
  f.seconds = windows.end_s - windows.begin_s;
  for (const RankFigures& one : j.ranks) f.rows += one.rows;
  f.rows_per_s = Ratio(f.rows, f.seconds);
  f.workers = Ratio(sum.job.serving, sum.job.running);
  if (sum.job.running <= 0) {  // no dispatcher has kept the course: as the workers say it
    for (const WorkerFigures& one : j.workers) f.workers += one.serving_s / f.seconds;
  }
  f.worst_stall = j.worst_stall;
  f.mean_stall = j.mean_stall;
  f.worst_rank = j.worst_rank;
  f.demand_rows_per_s = DemandOf(job, j.ranks);
  for (const JobInterval& one : job.intervals) {
    f.redone_rows = f.redone_rows.value_or(0) + static_cast<double>(one.again_rows);
    f.lost_workers = f.lost_workers.value_or(0) + static_cast<double>(one.lost);
  }
  if (job.splits > 0 && job.epochs > 0 && job.rows > 0)
    f.largest_split_ratio = static_cast<double>(job.largest_split_rows) /
                            (static_cast<double>(job.rows) / static_cast<double>(job.epochs) /
                             static_cast<double>(job.splits));
  if (j.workers.empty()) {
    f.undecided = "no worker has sent measurements";
    f.undecided_fix = "Report it again once workers have run for a second.";
    f.rank_figures = std::move(j.ranks);
    return f;
  }
  if (f.seconds < kShortestJob) {
    f.undecided = fmt::format(
        "ranks took batches for {:.2g} s, of which most may be the start of workers; a verdict "
        "needs {:g} s",
        f.seconds, kShortestJob);
    f.undecided_fix = fmt::format("Run it longer: {:g} s at least.", kShortestJob);
    f.worker_figures = std::move(j.workers);
    f.rank_figures = std::move(j.ranks);
    return f;
  }
  f.limit = j.limit;
  // That only trainers are left shows where it is known what they could take.
  if (j.next != JobLimit::kTrainers || f.demand_rows_per_s) f.next = j.next;
  f.member = j.member;
  f.share = j.share;
  FindGain(j, &f);
  FindNeeded(j, &f);
  FindCost(sum, &f);
  FindProbability(job, windows, &f);
  f.dispatcher_late = j.late;
  f.shares = std::move(j.shares);
  f.worker_figures = std::move(j.workers);
  f.rank_figures = std::move(j.ranks);
  return f;
}

}  // namespace headrace::analysis
