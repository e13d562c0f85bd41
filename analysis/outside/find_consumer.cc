#include "analysis/outside/find_consumer.h"

#include <algorithm>

#include "analysis/thresholds.h"

namespace headrace::analysis {
namespace {

std::optional<size_t> MainGroup(const SeenThreads& seen, size_t kind) {
  for (size_t g = 0; g < seen.groups.size(); ++g) {
    if (seen.groups[g].kind == kind && seen.groups[g].main) return g;
  }
  return std::nullopt;
}

double Work(const SeenThreads& seen, size_t kind, const Totals& totals) {
  double work = 0;
  for (size_t g = 0; g < seen.groups.size(); ++g) {
    if (seen.groups[g].kind == kind) work += GroupWork(totals.times[g]) + 1e-9;
  }
  // What its descendants do counts for it, so that the walk goes towards the pipeline.
  for (size_t k = 0; k < seen.kinds.size(); ++k) {
    if (seen.kinds[k].parent == kind) work += Work(seen, k, totals);
  }
  return work;
}

// Whether processes of kind `below` lived for much of the time that those of `kind` did: who runs a
// tool for a moment has not launched a pipeline.
bool LivesAlong(const SeenThreads& seen, size_t kind, size_t below, const Totals& totals) {
  const auto longest = [&](size_t of) {
    double seconds = 0;
    for (size_t g = 0; g < seen.groups.size(); ++g) {
      if (seen.groups[g].kind == of) seconds = std::max(seconds, totals.times[g].total());
    }
    return seconds;
  };
  return longest(below) >= kLivesAlong * longest(kind);
}

// Whether a first thread does nothing but wait for the end of another one: a JVM's, which starts
// the thread that runs main().
bool OnlyJoins(const SeenThreads& seen, size_t main, const Totals& totals) {
  const ThreadTimes& time = totals.times[main];
  if (time.blocked_s[Index(WaitCause::kLock)] < kOnlyJoins * time.total()) return false;
  int64_t wakeups = 0;
  for (const WakeEdge& edge : seen.edges) {
    if (edge.wakee == main) wakeups += edge.wakeups_count;
  }
  return static_cast<double>(wakeups) <= std::max(2.0, kOnlyJoinsWakeups * time.total());
}

// The thread that has the process's name, as the first one has; else the one that computes most.
std::optional<size_t> OtherMain(const SeenThreads& seen, size_t kind, size_t main,
                                const Totals& totals) {
  std::optional<size_t> best;
  for (size_t g = 0; g < seen.groups.size(); ++g) {
    const ThreadGroup& group = seen.groups[g];
    if (group.kind != kind || g == main) continue;
    if (group.thread == seen.kinds[kind].name) return g;
    if (!best || totals.times[g].on_cpu_s > totals.times[*best].on_cpu_s) best = g;
  }
  return best;
}

// Whether the main thread only looks after what it has started: between two looks it sleeps or
// waits for the end of a child, and hardly any of its waits is ended by data from below. What it
// computes (imports, at the start of a short recording) does not matter then.
bool LooksAfter(const SeenThreads& seen, size_t kind, size_t main, const Totals& totals) {
  const ThreadTimes& time = totals.times[main];
  const double waits =
      time.blocked_s[Index(WaitCause::kChild)] + time.blocked_s[Index(WaitCause::kSleep)];
  if (waits < kLooksAfterTime * time.total() || waits < kLooksAfterWaits * time.blocked())
    return false;
  double fed = 0;
  for (size_t e = 0; e < seen.edges.size(); ++e) {
    const WakeEdge& edge = seen.edges[e];
    if (edge.wakee != main || !edge.waker || !EndedByThreads(edge.cause)) continue;
    if (seen.groups[*edge.waker].kind != kind) fed += totals.waits[e];
  }
  return fed < kFedFromBelow * time.total();
}

// Whether threads of `below` spend much of their time waiting for what `kind` ends: a launcher
// only waits for its children, and a consumer that sleeps takes what they made.
bool MakesRoomFor(const SeenThreads& seen, size_t kind, size_t below, const Totals& totals) {
  for (size_t g = 0; g < seen.groups.size(); ++g) {
    if (seen.groups[g].kind != below) continue;
    double waited = 0;
    for (size_t e = 0; e < seen.edges.size(); ++e) {
      const WakeEdge& edge = seen.edges[e];
      if (edge.wakee != g || !edge.waker || !EndedByThreads(edge.cause)) continue;
      if (seen.groups[*edge.waker].kind == kind) waited += totals.waits[e];
    }
    if (waited > kWaitsForRoom * totals.times[g].total()) return true;
  }
  return false;
}

}  // namespace

double GroupWork(const ThreadTimes& time) {
  return time.on_cpu_s + time.runnable_s + time.blocked_s[Index(WaitCause::kStorage)] +
         time.blocked_s[Index(WaitCause::kNetwork)] + time.blocked_s[Index(WaitCause::kFault)] +
         0.1 * time.blocked_s[Index(WaitCause::kSleep)];
}

std::optional<size_t> FindConsumer(const SeenThreads& seen, const Totals& totals) {
  std::optional<size_t> kind;
  for (size_t k = 0; k < seen.kinds.size(); ++k) {
    if (!seen.kinds[k].parent && (!kind || Work(seen, k, totals) > Work(seen, *kind, totals)))
      kind = k;
  }
  if (!kind) return std::nullopt;
  for (int steps = 0; steps < 16; ++steps) {
    const auto main = MainGroup(seen, *kind);
    std::optional<size_t> child;
    for (size_t k = 0; k < seen.kinds.size(); ++k) {
      if (seen.kinds[k].parent == kind &&
          (!child || Work(seen, k, totals) > Work(seen, *child, totals)))
        child = k;
    }
    if (!child || !LivesAlong(seen, *kind, *child, totals)) break;
    if (main) {
      const ThreadTimes& time = totals.times[*main];
      const double total = time.total();
      const double waits =
          time.blocked_s[Index(WaitCause::kChild)] + time.blocked_s[Index(WaitCause::kSleep)];
      const bool only_waits =
          waits > kOnlyWaits * total && time.on_cpu_s < kOnlyWaitsComputes * total;
      if (total > 0 && !only_waits && !LooksAfter(seen, *kind, *main, totals)) break;
      if (MakesRoomFor(seen, *kind, *child, totals)) break;
    }
    kind = child;
  }
  const auto main = MainGroup(seen, *kind);
  if (main && OnlyJoins(seen, *main, totals)) {
    if (const auto other = OtherMain(seen, *kind, *main, totals)) return other;
  }
  if (main) return main;
  // Probes that do not tell first threads apart: the group that used most CPU time.
  std::optional<size_t> best;
  for (size_t g = 0; g < seen.groups.size(); ++g) {
    if (seen.groups[g].kind != *kind) continue;
    if (!best || totals.times[g].on_cpu_s > totals.times[*best].on_cpu_s) best = g;
  }
  return best;
}

}  // namespace headrace::analysis
