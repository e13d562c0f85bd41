#include "analysis/run/uneven_workers.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <iterator>

#include "analysis/run/counter_sums.h"
#include "analysis/run/process_figures.h"
#include "analysis/thresholds.h"
#include "base/units.h"

namespace headrace::analysis {

double LoaderWorker::batch_s() const { return batches > 0 ? work_s / batches : 0; }

double LoaderWorker::wait_ratio() const {
  const double all = work_s + wait_s;
  return all > 0 ? wait_s / all : 0;
}

std::vector<LoaderWorker> LoaderWorkers(const RunView& run) {
  auto by_process =
      FiguresByProcess<LoaderWorker>(run, {{"worker_batches_count", &LoaderWorker::batches},
                                           {"worker_work_ns", &LoaderWorker::work_s, 1e-9},
                                           {"worker_wait_ns", &LoaderWorker::wait_s, 1e-9}});
  // What takes batches makes none for others.
  for (const MeasurementRow& row : run.measurements) {
    if (row.metric == "rank_steps_count" && row.process_id && row.value.value_or(0) > 0) {
      by_process.erase(*row.process_id);
    }
  }
  std::vector<LoaderWorker> workers;
  for (const ProcessRow& process : run.processes) {
    const auto worker = by_process.find(process.process_id);
    if (worker == by_process.end()) continue;
    worker->second.parent_pid = process.parent_pid;
    worker->second.started_ns = process.started_ns;
  }
  for (auto& [id, worker] : by_process) {
    if (worker.batches > 0) workers.push_back(std::move(worker));
  }
  std::stable_sort(
      workers.begin(), workers.end(),
      [](const LoaderWorker& a, const LoaderWorker& b) { return a.batch_s() > b.batch_s(); });
  return workers;
}

size_t CountIdleBeside(const RunView& run, const std::vector<int64_t>& pids, bool ended) {
  const auto made = [&](const ProcessRow& process) {
    return std::find(pids.begin(), pids.end(), process.pid) != pids.end();
  };
  const ProcessRow* busiest = nullptr;
  for (const ProcessRow& process : run.processes) {
    if (made(process) && (busiest == nullptr || process.cpu_ns > busiest->cpu_ns))
      busiest = &process;
  }
  if (busiest == nullptr) return 0;
  const auto is_idle = [&](const ProcessRow& process) {
    const double apart_s = Seconds(std::abs(process.started_ns - busiest->started_ns));
    return !made(process) && process.parent_pid == busiest->parent_pid &&
           process.process == busiest->process && apart_s < kStartedTogether && process.cpu_ns &&
           Seconds(*process.cpu_ns) < kIdleWorker * Seconds(busiest->cpu_ns) &&
           (!ended || 2 * process.ended_ns.value_or(run.run.duration_ns) < run.run.duration_ns);
  };
  return static_cast<size_t>(std::count_if(run.processes.begin(), run.processes.end(), is_idle));
}

namespace {

double SumOf(const std::vector<LoaderWorker>& workers, double LoaderWorker::*figure) {
  double sum = 0;
  for (const LoaderWorker& worker : workers) sum += worker.*figure;
  return sum;
}

// Without those that make hardly any batches and hardly work: their shard is next to nothing. They
// began together with the busiest; those of another loader would not.
std::vector<LoaderWorker> WithData(const std::vector<LoaderWorker>& workers) {
  const LoaderWorker& busiest =
      *std::max_element(workers.begin(), workers.end(),
                        [](const auto& a, const auto& b) { return a.work_s < b.work_s; });
  const auto is_idle = [&](const LoaderWorker& worker) {
    return worker.batches < kNearlyIdleWorker * busiest.batches &&
           worker.work_s < kNearlyIdleWorker * busiest.work_s &&
           worker.parent_pid == busiest.parent_pid &&
           Seconds(std::abs(worker.started_ns - busiest.started_ns)) < kStartedTogether;
  };
  std::vector<LoaderWorker> busy;
  std::remove_copy_if(workers.begin(), workers.end(), std::back_inserter(busy), is_idle);
  return busy;
}

}  // namespace

std::optional<UnevenWorkers> FindUnevenWorkers(const std::vector<LoaderWorker>& all, size_t idle,
                                               size_t count, double cv) {
  if (all.size() >= count) idle = 0;  // whatever they are, they are no workers of this loader
  if (count < 2 || all.empty() || all.size() + idle != count) return std::nullopt;
  const std::vector<LoaderWorker> workers = WithData(all);
  idle += all.size() - workers.size();
  const auto [fewest, most] = std::minmax_element(
      workers.begin(), workers.end(),
      [](const LoaderWorker& a, const LoaderWorker& b) { return a.batches < b.batches; });
  if (fewest->batches < kEnoughBatchesOfWorker) return std::nullopt;
  // Each is ahead of its turn by what the queue holds for it.
  if (most->batches - fewest->batches > kBatchesAhead + kTakenInTurn * most->batches) {
    return std::nullopt;
  }
  UnevenWorkers uneven;
  uneven.slowest = workers[0];
  uneven.workers = count;
  uneven.idle = idle;
  if (idle > 0) {
    uneven.made_ratio = SumOf(workers, &LoaderWorker::batches) / SumOf(all, &LoaderWorker::batches);
    uneven.times = static_cast<double>(count) / static_cast<double>(workers.size()) *
                   SumOf(workers, &LoaderWorker::work_s) / SumOf(all, &LoaderWorker::work_s);
    return uneven;
  }
  double mean_s = 0;
  for (const LoaderWorker& worker : workers) {
    mean_s += worker.batch_s() / static_cast<double>(count);
    if (&worker == &workers[0]) continue;
    uneven.others_wait_ratio += worker.wait_ratio() / static_cast<double>(count - 1);
  }
  if (!(mean_s > 0)) return std::nullopt;
  uneven.times = workers[0].batch_s() / mean_s;
  const double by_chance = kBeyondChance * cv / std::sqrt(fewest->batches);
  if (uneven.times < 1 + std::max(kUneven, by_chance)) return std::nullopt;
  // Several as slow may be all the workers of another loader.
  if (workers[1].batch_s() > workers[0].batch_s() / (1 + kUneven)) return std::nullopt;
  return uneven;
}

std::string Words(const UnevenWorkers& uneven) {
  if (uneven.idle > 0) {
    const size_t makers = uneven.workers - uneven.idle;
    const bool all = uneven.made_ratio >= 1;
    return fmt::format(
        "{} of {} workers{} {} {} batches, and the other{} {} to do", makers, uneven.workers,
        makers == 1 ? fmt::format(" (pid {})", uneven.slowest.pid) : "",
        makers == 1 ? "makes" : "make", all ? "all" : FormatPercent(uneven.made_ratio) + " of the",
        uneven.idle == 1 ? " has" : "s have", all ? "nothing" : "next to nothing");
  }
  return fmt::format(
      "one of {} workers (pid {}) takes {:.1f} times as long for its batches as they take on "
      "average, and the others wait {} of their time",
      uneven.workers, uneven.slowest.pid, uneven.times, FormatPercent(uneven.others_wait_ratio));
}

}  // namespace headrace::analysis
