#include "dashboards/report/outside_names.h"

namespace headrace::dashboards {
namespace {

bool IsWorkerOfTorch(const analysis::Outside& seen) {
  return seen.kinds[seen.units[seen.culprit].kind].name.starts_with("pt_data_worker");
}

}  // namespace

std::string TrainerWord(const analysis::Statements& statements) {
  return statements.outside ? statements.outside->ConsumerWord() : "the trainer";
}

bool Unpickles(const analysis::Outside& seen) {
  return seen.compute_place.find("recv (multiprocessing/connection.py") != std::string::npos;
}

bool StartsWorkers(const analysis::Outside& seen) {
  return seen.workers && seen.workers->start_ratio > 0.5;
}

bool StartsWorkersAgain(const analysis::Outside& seen) {
  return IsWorkerOfTorch(seen) && analysis::FollowEachOther(seen);
}

bool StartsProcessesAgain(const analysis::Outside& seen) {
  return !IsWorkerOfTorch(seen) && analysis::FollowEachOther(seen);
}

std::string PoolThreadDoes(const analysis::Outside& seen) {
  if (!seen.is_busy_thread || !seen.python_threads) return "";
  const std::string& function = seen.python_threads->busy_function;
  if (function.find("_handle_tasks (multiprocessing/pool.py") != std::string::npos) {
    return "pickles what is sent to the pool's processes";
  }
  if (function.find("_handle_results (multiprocessing/pool.py") != std::string::npos) {
    return "unpickles what the pool's processes return";
  }
  return "";
}

std::string UnitWord(const analysis::Outside& seen, size_t u, UnitNumber number) {
  if (u == 0) return seen.ConsumerWord();
  const analysis::OutsideUnit& unit = seen.units[u];
  const std::string& kind = seen.kinds[unit.kind].name;
  if (kind.starts_with("pt_data_worker")) return "the workers";
  if (seen.flavour == analysis::OutsideFlavour::kTensorflow && unit.kind == seen.units[0].kind) {
    return "tf.data's threads";
  }
  // The same program again: a pool's or an own worker process.
  const analysis::ProcessKind& process = seen.kinds[unit.kind];
  const size_t home = seen.units[0].kind;
  if (process.parent == home && kind == seen.kinds[home].name) {
    const bool many = number == UnitNumber::kMany || process.pids.size() > 1;
    return seen.ConsumerWord() + (many ? "'s child processes" : "'s child process");
  }
  return unit.name;
}

}  // namespace headrace::dashboards
