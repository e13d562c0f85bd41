#include "analysis/outside/python_activity.h"

#include <algorithm>
#include <map>
#include <set>
#include <string_view>

namespace headrace::analysis {
namespace {

// How a call of the standard library or of a client library is known: its file ends in or is below
// `file`, and its function has `function` in its name (empty: any).
struct Known {
  Activity activity;
  std::string_view file, function;
};

// Of frames from the innermost outwards the first that is known decides. What only passes on, as
// Condition.wait() of a queue, stands behind those that use it.
constexpr Known kKnown[] = {
    // Something to do.
    {Activity::kIdle, "concurrent/futures/thread.py", "_worker"},
    {Activity::kIdle, "multiprocessing/pool.py", "worker"},
    {Activity::kIdle, "multiprocessing/pool.py", "_handle_"},
    {Activity::kIdle, "multiprocessing/queues.py", "_feed"},
    {Activity::kIdle, "multiprocessing/resource_sharer.py", "_serve"},
    {Activity::kIdle, "socket.py", "accept"},
    {Activity::kIdle, "torch/utils/data/_utils/worker.py", "_worker_loop"},
    {Activity::kIdle, "socketserver.py", ""},
    {Activity::kIdle, "http/server.py", ""},
    {Activity::kIdle, "tqdm/_monitor.py", ""},
    {Activity::kIdle, "logging/handlers.py", "dequeue"},
    // Locks; some wait for them by sleeping.
    {Activity::kLocks, "filelock/", ""},
    {Activity::kLocks, "portalocker/", ""},
    {Activity::kLocks, "fasteners/", ""},
    {Activity::kLocks, "threading.py", "Semaphore"},
    {Activity::kLocks, "multiprocessing/synchronize.py", "__enter__"},
    // Queues and what is like them.
    {Activity::kWaitsForRoom, "torchdata/nodes/_populate_queue.py", ""},
    {Activity::kWaitsForRoom, "queue.py", "put"},
    {Activity::kWaitsForRoom, "multiprocessing/queues.py", "put"},
    {Activity::kWaitsForOthers, "queue.py", "get"},
    {Activity::kWaitsForOthers, "multiprocessing/queues.py", "get"},
    {Activity::kWaitsForOthers, "multiprocessing/pool.py", ""},
    {Activity::kWaitsForOthers, "multiprocessing/connection.py", ""},
    {Activity::kWaitsForOthers, "multiprocessing/popen_", ""},
    {Activity::kWaitsForOthers, "concurrent/futures/_base.py", ""},
    {Activity::kWaitsForOthers, "subprocess.py", ""},
    {Activity::kWaitsForOthers, "ray/", ""},
    // Sockets.
    {Activity::kNetwork, "socket.py", ""},
    {Activity::kNetwork, "ssl.py", ""},
    {Activity::kNetwork, "http/client.py", ""},
    {Activity::kNetwork, "urllib3/util/wait.py", ""},
    {Activity::kNetwork, "urllib3/connection", ""},
    {Activity::kNetwork, "pymongo/network", ""},
    {Activity::kNetwork, "redis/_parsers/", ""},
    {Activity::kIdle, "grpc/_server.py", ""},
    {Activity::kNetwork, "grpc/", ""},
    {Activity::kEvents, "asyncio/base_events.py", "_run_once"},
    {Activity::kEvents, "uvloop/", ""},
    // What waits for a thread of its own process, last, as all of the above use it.
    {Activity::kWaitsForOthers, "threading.py", "wait"},
    {Activity::kWaitsForOthers, "threading.py", "join"},
    {Activity::kWaitsForOthers, "tensorflow/python/data/ops/iterator_ops.py", ""},
};

const Known* FindKnown(const PythonFrame& frame) {
  if (frame.is_own) return nullptr;  // a file of the program may be called so
  const auto* found = std::find_if(std::begin(kKnown), std::end(kKnown), [&](const Known& known) {
    return IsIn(frame, known.file) && frame.function.find(known.function) != std::string_view::npos;
  });
  return found == std::end(kKnown) ? nullptr : found;
}

// Whether the file is one whose functions, when innermost, do nothing but wait for others.
bool OnlyWaits(const PythonFrame& frame) {
  constexpr std::string_view kFiles[] = {"threading.py",
                                         "selectors.py",
                                         "socket.py",
                                         "ssl.py",
                                         "queue.py",
                                         "multiprocessing/queues.py",
                                         "multiprocessing/synchronize.py",
                                         "multiprocessing/connection.py"};
  if (frame.is_own) return false;
  return std::any_of(std::begin(kFiles), std::end(kFiles),
                     [&](std::string_view file) { return IsIn(frame, file); });
}

// Objects for another process, or of one, are packed in C; what waits for the pipe is a function
// below.
bool Pickles(const PythonFrame& frame) {
  if (!IsIn(frame, "multiprocessing/connection.py")) return false;
  const std::string_view name = frame.function.substr(frame.function.rfind('.') + 1);
  return name == "recv" || name == "send";
}

// Objects on their way to another process: into a pipe, or in the thread that packs what was put
// into a queue, unless that one waits for something to do.
bool SendsObjects(const std::vector<PythonFrame>& frames) {
  const PythonFrame& last = frames.back();
  if (last.is_own) return false;
  if (IsIn(last, "multiprocessing/connection.py")) {
    const std::string_view name = last.function.substr(last.function.rfind('.') + 1);
    return name == "_send" || name == "_send_bytes" || name == "send_bytes";
  }
  if (IsIn(last, "threading.py")) return false;
  return std::any_of(frames.begin(), frames.end() - 1, [](const PythonFrame& frame) {
    return IsIn(frame, "multiprocessing/queues.py") && frame.function.ends_with("_feed");
  });
}

// A thread of a multiprocessing.Pool in the process that has it, called so; or of a
// ProcessPoolExecutor.
bool HandlesPool(const std::vector<PythonFrame>& frames, std::string_view name = "_handle_") {
  return std::any_of(frames.begin(), frames.end(), [name](const PythonFrame& frame) {
    const bool of_executor = name == "_handle_" && IsIn(frame, "concurrent/futures/process.py") &&
                             frame.function.starts_with("_ExecutorManagerThread.");
    return of_executor || (IsIn(frame, "multiprocessing/pool.py") &&
                           frame.function.find(name) != std::string_view::npos);
  });
}

// Whether that thread packs or sends a task. Where the pool's own function is innermost it waits
// for one, in C.
bool SendsTask(const std::vector<PythonFrame>& frames) {
  const PythonFrame& last = frames.back();
  const bool sends =
      IsIn(last, "multiprocessing/connection.py") || IsIn(last, "multiprocessing/reduction.py");
  return sends && HandlesPool(frames, "_handle_tasks");
}

// Whether a process of such a Pool waits for a task.
bool AwaitsTask(const std::vector<PythonFrame>& frames) {
  return ActivityOf(frames) == Activity::kIdle &&
         std::any_of(frames.begin(), frames.end(), [](const PythonFrame& frame) {
           return IsIn(frame, "multiprocessing/pool.py") && frame.function == "worker";
         });
}

bool Sleeps(const PythonFrame& frame) {
  return frame.sleeps || frame.function == "sleep" || frame.function.ends_with(".sleep") ||
         IsIn(frame, "tenacity/nap.py");
}

std::string KeyOfMost(const std::map<std::string, double>& seconds) {
  const auto most =
      std::max_element(seconds.begin(), seconds.end(),
                       [](const auto& a, const auto& b) { return a.second < b.second; });
  return most == seconds.end() ? "" : most->first;
}

}  // namespace

Activity ActivityOf(const std::vector<PythonFrame>& frames) {
  const PythonFrame& last = frames.back();
  // Those that lock a file look for it again and again.
  for (size_t f = frames.size() - std::min<size_t>(4, frames.size()); f < frames.size(); ++f) {
    const Known* known = FindKnown(frames[f]);
    // Queues between processes have locks of their own, and so has what Ray or torchdata has ready.
    const bool of_queue =
        f > 0 && (IsIn(frames[f - 1], "multiprocessing/queues.py") || IsIn(frames[f - 1], "ray/") ||
                  IsIn(frames[f - 1], "torchdata/nodes/_populate_queue.py"));
    if (known != nullptr && known->activity == Activity::kLocks && !of_queue) {
      return Activity::kLocks;
    }
  }
  if (Sleeps(last)) return Activity::kSleeps;
  if (last.locks) return Activity::kLocks;
  if (SendsObjects(frames) && !HandlesPool(frames)) return Activity::kHandsOver;
  if (Pickles(last)) return Activity::kWorks;
  if (!OnlyWaits(last)) {
    // A function in which a thread waits without calling another.
    const Known* known = FindKnown(last);
    return known == nullptr ? Activity::kWorks : known->activity;
  }
  // What it waits for is said by those that called it, up to the first that does more than wait: a
  // queue, a pool, a client. Something to do, an event loop, and a full queue are further out than
  // what they wait in.
  Activity found = Activity::kWaitsForOthers;
  bool is_found = false;
  for (auto frame = frames.rbegin(); frame != frames.rend() && !frame->is_own; ++frame) {
    const Known* known = FindKnown(*frame);
    const bool passes_on = OnlyWaits(*frame) || IsIn(*frame, "headrace/");  // as the import hook
    if (known == nullptr && !passes_on) break;
    if (known == nullptr) continue;
    const bool decides = !is_found || known->activity == Activity::kIdle ||
                         known->activity == Activity::kEvents ||
                         known->activity == Activity::kWaitsForRoom;
    if (decides) found = known->activity;
    is_found = true;
  }
  return found;
}

std::optional<PythonActivity> LookAtActivity(const RunView& run,
                                             const std::vector<int64_t>& process_ids) {
  PythonActivity seen;
  std::array<std::map<std::string, double>, kNumActivities> places, threads;
  double others_s = 0, pool_s = 0;
  const std::set<int64_t> ids(process_ids.begin(), process_ids.end());
  for (const StackRow& stack : run.stacks) {
    if (stack.kind != "python" || !stack.process_id || !ids.contains(*stack.process_id)) continue;
    const std::vector<PythonFrame> frames = FramesOf(stack.folded);
    if (frames.empty()) continue;
    const double seconds = static_cast<double>(stack.time_ns) * 1e-9;
    if (IsImport(frames)) {
      if (stack.thread == "MainThread") seen.imports_s += seconds;
      continue;
    }
    const auto at = static_cast<size_t>(ActivityOf(frames));
    if (stack.thread == "MainThread") {
      seen.sampled_s += seconds;
      seen.samples_count += stack.samples_count;
      seen.main[at] += seconds;
      seen.awaits_tasks += AwaitsTask(frames) ? seconds : 0;
      continue;
    }
    seen.others[at] += seconds;
    const bool handles = HandlesPool(frames);
    others_s += handles || at != static_cast<size_t>(Activity::kIdle) ? seconds : 0;
    pool_s += handles ? seconds : 0;
    seen.sends_tasks += SendsTask(frames) ? seconds : 0;
    if (!handles && at == static_cast<size_t>(Activity::kWorks)) seen.works_beside_pool += seconds;
    const PythonFrame* own = InnermostOwn(frames, 0);
    places[at][(own != nullptr ? *own : frames.back()).Name()] += seconds;
    threads[at][OwnName(stack.thread)] += seconds;
  }
  if (seen.sampled_s + seen.imports_s <= 0) return std::nullopt;
  seen.pool_ratio = others_s > 0 ? pool_s / others_s : 0;
  const double each_s = std::max(seen.sampled_s, 1e-9);
  seen.works_beside_pool /= each_s;
  seen.sends_tasks /= each_s;
  seen.awaits_tasks /= each_s;
  for (size_t a = 0; a < kNumActivities; ++a) {
    seen.main[a] /= each_s;
    seen.others[a] /= each_s;
    seen.places[a] = KeyOfMost(places[a]);
    seen.threads[a] = KeyOfMost(threads[a]);
  }
  return seen;
}

}  // namespace headrace::analysis
