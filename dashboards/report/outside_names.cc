#include "dashboards/report/outside_names.h"

#include <fmt/format.h>

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
  return seen.compute_place.find("recv (multiprocessing/connection.py") != std::string::npos ||
         UnpicklesTasks(seen);
}

bool UnpicklesTasks(const analysis::Outside& seen) {
  return seen.units[seen.culprit].kind != seen.units[0].kind &&
         seen.compute_place.find("Queue.get (multiprocessing/queues.py") != std::string::npos;
}

bool StartsWorkers(const analysis::Outside& seen) {
  return seen.workers && seen.workers->start_ratio > 0.5;
}

bool AreWorkersShortLived(const analysis::Outside& seen) {
  return IsWorkerOfTorch(seen) && analysis::IsCulpritShortLived(seen);
}

bool AreProcessesShortLived(const analysis::Outside& seen) {
  return !IsWorkerOfTorch(seen) && analysis::IsCulpritShortLived(seen);
}

std::optional<Asked> AskedProcess(const analysis::Outside& seen) {
  constexpr double kGoodPart = 0.25;
  // Who only feeds them is rarely woken by them; who answers is, for about each answer.
  constexpr double kOneByOne = 0.3;
  const analysis::OutsideUnit& unit = seen.units[seen.culprit];
  if (unit.kind == seen.units[0].kind || unit.shares.wait_input < kGoodPart) return std::nullopt;
  const double own_s = seen.groups[unit.key_group].time.total();
  std::optional<Asked> asked;
  for (size_t u = 1; u < seen.units.size(); ++u) {
    const analysis::OutsideUnit& other = seen.units[u];
    const bool is_another = other.kind != unit.kind && other.kind != seen.units[0].kind;
    if (!is_another || seen.kinds[other.kind].pids.size() != 1) continue;
    double waits_s = 0, answers = 0, questions = 0;
    for (const analysis::WakeEdge& edge : seen.edges) {
      if (!edge.waker) continue;
      const size_t waker = *edge.waker;
      if (edge.wakee == unit.key_group && seen.groups[waker].kind == other.kind) {
        waits_s += edge.wait_s;
        answers += static_cast<double>(edge.wakeups_count);
      }
      if (waker == unit.key_group && seen.groups[edge.wakee].kind == other.kind) {
        questions += static_cast<double>(edge.wakeups_count);
      }
    }
    const double ratio = own_s > 0 ? waits_s / own_s : 0;
    const bool answers_questions = questions >= kOneByOne * answers;
    if (ratio < kGoodPart || !answers_questions || (asked && asked->wait_ratio >= ratio)) continue;
    asked = Asked{
        fmt::format("process {} ({})", seen.kinds[other.kind].name, seen.kinds[other.kind].pids[0]),
        ratio};
  }
  return asked;
}

std::string PoolThreadDoes(const analysis::Outside& seen) {
  if (!seen.is_busy_thread || !seen.python_threads) return "";
  const analysis::PythonThreads& threads = *seen.python_threads;
  // A task may be made there, by a generator of the program.
  const bool of_library = threads.busy_function.find(" (multiprocessing/") != std::string::npos;
  const auto is = [&](const std::string& name) {
    return of_library && (threads.busy_thread == name ||
                          threads.busy_function.find(name + " (") != std::string::npos);
  };
  if (is("_handle_tasks")) return "pickles what is sent to the pool's processes";
  if (is("_handle_results")) return "unpickles what the pool's processes return";
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
