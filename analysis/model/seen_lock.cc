// Locks that nobody accounts for, seen from outside: threads of a stage that wait inside an
// operator for something that no device ends.
//
// If n threads share one lock and each waits for it a share w of its time, n w of them wait on
// average. (Each rank has its own.) They can be n - 1 at most, and only while another one holds it:
// it is held n w / (n - 1) of the time or more, whatever they do while they hold it. (An
// operational law: it needs no distribution. Denning and Buzen, ACM Computing Surveys 10(3), 1978,
// section 3.)
#include <algorithm>
#include <cmath>

#include "analysis/model/resource_model.h"
#include "analysis/run/counter_sums.h"
#include "analysis/run/ranks.h"
#include "analysis/thresholds.h"

namespace headrace::analysis {
namespace {

// Waits for a lock that a thread like the one that waits ended: another holder, and no helper
// thread of its own. The name of a thread is that of its group; the subject is "PID/GROUP".
double EndedByItsLikeNs(const RunView& run) {
  double ended_ns = 0;
  for (const MeasurementRow& row : run.measurements) {
    if (row.metric != "wakeup_wait_ns" || row.cause != "lock" || !row.value) continue;
    const size_t slash = row.subject.find('/');
    if (slash == std::string::npos || row.thread.empty()) continue;
    if (row.subject.substr(slash + 1) == row.thread) ended_ns += *row.value;
  }
  return ended_ns;
}

// What it waits for is accounted: a lock, or a device, whose queue is a lock to the kernel as well.
bool HasAccounted(const std::vector<ResourceModel>& resources, size_t op) {
  return std::any_of(resources.begin(), resources.end(), [op](const ResourceModel& resource) {
    return (resource.kind == "lock" || (resource.kind == "device" && resource.account)) &&
           std::any_of(resource.users.begin(), resource.users.end(),
                       [op](const auto& user) { return user.first == op; });
  });
}

void AddSeenLocks(const RunView& run, std::vector<ResourceModel>* resources) {
  if (run.steps.steps_count <= 0 || run.run.duration_ns <= 0) return;
  const double by_its_like_ns = EndedByItsLikeNs(run);
  const int ranks = RanksOf(run);  // each with a lock of its own
  for (const StageRow& stage : run.stages) {
    const auto threads =
        static_cast<double>(stage.lifetime_ns) / static_cast<double>(run.run.duration_ns);
    const double all =
        std::max(std::round(threads), static_cast<double>(stage.last_parallelism_count));
    const double n = all / ranks;
    if (n < 2 || stage.lifetime_ns <= 0) continue;
    size_t waits = run.operators.size();
    double most_ns = 0;
    for (size_t i = 0; i < run.operators.size(); ++i) {
      if (run.operators[i].stage != stage.name) continue;
      const double wait_ns = OffCpuNs(run, run.operators[i], "lock");
      if (wait_ns <= most_ns) continue;
      most_ns = wait_ns;
      waits = i;
    }
    const double waited = most_ns / static_cast<double>(stage.lifetime_ns);
    const double held = n * waited / (n - 1);
    // More than always is no lock of which one thread at a time is the holder.
    if (by_its_like_ns < kEndedByItsLike * most_ns) continue;
    if (held < kSeenLockHeld || held > kHeldAtMost || HasAccounted(*resources, waits)) continue;
    const OperatorRow& op = run.operators[waits];
    const double blocked_ns = std::max(
        most_ns, static_cast<double>(op.blocked_ns.value_or(op.busy_ns) - op.lock_wait_ns));
    ResourceModel lock{"in " + op.name, "lock", ranks, {{waits, 1.0}}};
    lock.counted_s = ranks * std::min(1.0, held) * static_cast<double>(run.run.duration_ns) * 1e-9 /
                     static_cast<double>(run.steps.steps_count);
    // What more threads than these wait for each other is no demand of theirs.
    lock.enough_threads = all * (1 - most_ns / blocked_ns);
    resources->push_back(std::move(lock));
  }
}

HR_COUNTED_RESOURCES("seen lock", AddSeenLocks);

}  // namespace
}  // namespace headrace::analysis
