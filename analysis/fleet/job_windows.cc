#include "analysis/fleet/job_windows.h"

#include <algorithm>
#include <cmath>

namespace headrace::analysis {
namespace {

constexpr size_t kFewestWindows = 4, kMostWindows = 40;

double JobSeconds(int64_t ns) { return static_cast<double>(ns) / 1e9; }

// Calls add(window, share) for the windows that [begin, end) meets, with the share of it in each.
template <typename Add>
void Spread(const JobWindows& w, double begin, double end, Add add) {
  if (end <= begin) return;
  const double width = (w.end_s - w.begin_s) / static_cast<double>(w.windows.size());
  const double first = std::max(0.0, std::floor((begin - w.begin_s) / width));
  for (auto i = static_cast<size_t>(first); i < w.windows.size(); ++i) {
    const double low = std::max(begin, w.begin_s + static_cast<double>(i) * width);
    const double high = std::min(end, w.begin_s + static_cast<double>(i + 1) * width);
    if (low >= end) return;
    if (high > low) add(i, (high - low) / (end - begin));
  }
}

// How long a worker's source waited for leases: its stage reads, and comes first.
double IdleSeconds(const MemberInterval& one) {
  for (const JobStage& stage : one.stages)
    if (stage.reads && stage.threads > 0) return JobSeconds(stage.wait_in_ns) / stage.threads;
  return 0;
}

void AddWorker(const MemberInterval& one, double share, WorkerSums* sum) {
  const double seconds = JobSeconds(one.duration_ns) * share;
  sum->serving += seconds;
  sum->idle += std::min(IdleSeconds(one) * share, seconds);
  sum->no_room += std::min(JobSeconds(one.no_room_ns) * share, seconds);
  sum->absent += std::min(JobSeconds(one.absent_ns) * share, seconds);
  sum->rows += static_cast<double>(one.rows) * share;
  if (one.cpu_ns) {
    sum->cpu += JobSeconds(*one.cpu_ns) * share;
    sum->cpu_known += seconds;
  }
  if (one.throttled_ns) {
    sum->throttled += std::min(JobSeconds(*one.throttled_ns) * share, seconds);
    sum->throttled_known += seconds;
  }
  if (one.host_busy_cores) {
    sum->host_busy += *one.host_busy_cores * seconds;
    sum->host_known += seconds;
  }
  sum->stages.resize(std::max(sum->stages.size(), one.stages.size()));
  for (size_t s = 0; s < one.stages.size(); ++s) {
    const JobStage& stage = one.stages[s];
    WorkerSums::Stage& to = sum->stages[s];
    to.reads = stage.reads;
    to.busy += JobSeconds(stage.busy_ns) * share;
    to.threads += stage.threads * seconds;
    if (stage.on_cpu_ns && stage.runnable_ns) {
      to.on_cpu += JobSeconds(*stage.on_cpu_ns) * share;
      to.runnable += JobSeconds(*stage.runnable_ns) * share;
    } else {
      to.split_known = to.split_known && stage.busy_ns == 0;
    }
  }
}

// A rank's first interval with steps, unless much of it passed before the first of them, in which
// workers start and open the table: then the next, if there are others.
size_t FirstOfSteps(const Member& rank) {
  constexpr double kMostUnseen = 0.1;  // the step that an interval ends in is told with the next
  size_t first = 0;
  const auto& all = rank.intervals;
  while (first < all.size() && all[first].steps == 0) ++first;
  if (first + kFewestWindows >= all.size()) return first;
  const MemberInterval& one = all[first];
  const int64_t seen = one.wait_ns + one.compute_ns + one.absent_ns;
  return JobSeconds(seen) < (1 - kMostUnseen) * JobSeconds(one.duration_ns) ? first + 1 : first;
}

template <typename T, typename Merge>
void MergeInto(const std::vector<T>& from, std::vector<T>* to, Merge merge) {
  to->resize(std::max(to->size(), from.size()));
  for (size_t i = 0; i < from.size(); ++i) merge(from[i], &(*to)[i]);
}

void MergeWorker(const WorkerSums& from, WorkerSums* to) {
  for (double WorkerSums::*m :
       {&WorkerSums::serving, &WorkerSums::idle, &WorkerSums::no_room, &WorkerSums::absent,
        &WorkerSums::rows, &WorkerSums::cpu, &WorkerSums::cpu_known, &WorkerSums::throttled,
        &WorkerSums::throttled_known, &WorkerSums::host_busy, &WorkerSums::host_known})
    to->*m += from.*m;
  MergeInto(from.stages, &to->stages, [](const WorkerSums::Stage& a, WorkerSums::Stage* b) {
    b->busy += a.busy;
    b->on_cpu += a.on_cpu;
    b->runnable += a.runnable;
    b->threads += a.threads;
    b->reads = b->reads || a.reads;
    b->split_known = b->split_known && a.split_known;
  });
}

void MergeRank(const RankSums& from, RankSums* to) {
  for (double RankSums::*m : {&RankSums::wait, &RankSums::compute, &RankSums::rows,
                              &RankSums::absent, &RankSums::seconds})
    to->*m += from.*m;
}

void MergeJob(const JobSums& from, JobSums* to) {
  for (double JobSums::*m :
       {&JobSums::running, &JobSums::serving, &JobSums::no_split, &JobSums::late, &JobSums::leases,
        &JobSums::again_rows, &JobSums::lost})
    to->*m += from.*m;
}

}  // namespace

JobWindows MakeWindows(const JobView& job) {
  JobWindows w;
  size_t most = 0;
  double begin = INFINITY, end = -INFINITY;
  for (size_t m = 0; m < job.members.size(); ++m) {
    const Member& member = job.members[m];
    if (member.role == "worker") w.workers.push_back(m);
    if (member.role != "rank") continue;
    w.ranks.push_back(m);
    most = std::max(most, member.intervals.size());
    size_t measured = 0;
    for (size_t i = FirstOfSteps(member); i < member.intervals.size(); ++i) {
      const MemberInterval& one = member.intervals[i];
      if (one.steps == 0) continue;
      ++measured;
      const int64_t at = member.began_ns + one.start_ns;
      begin = std::min(begin, JobSeconds(at));
      end = std::max(end, JobSeconds(at + one.duration_ns));
    }
    w.measured = std::max(w.measured, measured);
  }
  if (!(end > begin)) return w;
  w.begin_s = begin;
  w.end_s = end;
  w.windows.resize(std::clamp(most, kFewestWindows, kMostWindows));
  for (JobWindow& window : w.windows) {
    window.workers.resize(w.workers.size());
    window.ranks.resize(w.ranks.size());
  }
  const auto spread = [&](const Member& member, const auto& add) {
    for (const MemberInterval& one : member.intervals) {
      const double at = JobSeconds(member.began_ns + one.start_ns);
      Spread(w, at, at + JobSeconds(one.duration_ns),
             [&](size_t i, double share) { add(one, share, &w.windows[i]); });
    }
  };
  for (size_t n = 0; n < w.workers.size(); ++n)
    spread(job.members[w.workers[n]], [n](const MemberInterval& one, double share, JobWindow* to) {
      AddWorker(one, share, &to->workers[n]);
    });
  for (size_t n = 0; n < w.ranks.size(); ++n)
    spread(job.members[w.ranks[n]], [n](const MemberInterval& one, double share, JobWindow* to) {
      MergeRank({JobSeconds(one.wait_ns) * share, JobSeconds(one.compute_ns) * share,
                 static_cast<double>(one.rows) * share, JobSeconds(one.absent_ns) * share,
                 JobSeconds(one.duration_ns) * share},
                &to->ranks[n]);
    });
  for (const JobInterval& one : job.intervals) {
    const double at = JobSeconds(one.start_ns);
    Spread(w, at, at + JobSeconds(one.duration_ns), [&](size_t i, double share) {
      MergeJob({JobSeconds(one.running_ns) * share, JobSeconds(one.serving_ns) * share,
                JobSeconds(one.no_split_ns) * share, JobSeconds(one.late_ns) * share,
                static_cast<double>(one.leases) * share,
                static_cast<double>(one.again_rows) * share, static_cast<double>(one.lost) * share},
               &w.windows[i].job);
    });
  }
  return w;
}

JobWindow SumOf(const JobWindows& windows, const std::vector<size_t>& which) {
  JobWindow sum;
  sum.workers.resize(windows.workers.size());
  sum.ranks.resize(windows.ranks.size());
  for (const size_t i : which) {
    const JobWindow& from = windows.windows[i];
    for (size_t n = 0; n < sum.workers.size(); ++n) MergeWorker(from.workers[n], &sum.workers[n]);
    for (size_t n = 0; n < sum.ranks.size(); ++n) MergeRank(from.ranks[n], &sum.ranks[n]);
    MergeJob(from.job, &sum.job);
  }
  return sum;
}

}  // namespace headrace::analysis
