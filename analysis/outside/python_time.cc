#include "analysis/outside/python_time.h"

#include <algorithm>
#include <map>
#include <string_view>

#include "analysis/thresholds.h"

namespace headrace::analysis {
namespace {

// "__next__" of "torch/utils/data/dataloader.py" in line 725.
struct Frame {
  std::string_view text, function, file;
};

std::vector<Frame> FramesOf(std::string_view folded) {
  std::vector<Frame> frames;
  while (!folded.empty()) {
    const size_t end = std::min(folded.find(';'), folded.size());
    const std::string_view text = folded.substr(0, end);
    folded.remove_prefix(std::min(folded.size(), end + 1));
    const size_t open = text.rfind(" (");
    if (open == std::string_view::npos || !text.ends_with(')')) continue;  // a thread's name
    std::string_view file = text.substr(open + 2, text.size() - open - 3);
    const size_t colon = file.rfind(':');
    if (colon != std::string_view::npos) file = file.substr(0, colon);
    frames.push_back({text, text.substr(0, open), file});
  }
  return frames;
}

bool Contains(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

// Whether the file is `part`, or in a folder of that name, from some folder on.
bool IsIn(const Frame& frame, std::string_view part) {
  for (size_t at = frame.file.find(part); at != std::string_view::npos;
       at = frame.file.find(part, at + 1)) {
    if (at == 0 || frame.file[at - 1] == '/') return true;
  }
  return false;
}

template <size_t kCount>
bool IsInAny(const Frame& frame, const std::string_view (&parts)[kCount]) {
  return std::any_of(std::begin(parts), std::end(parts),
                     [&](std::string_view part) { return IsIn(frame, part); });
}

// Functions of libraries that hand out batches. None of them calls a training step.
bool IsLoader(const Frame& frame) {
  constexpr std::string_view kFolders[] = {"torch/utils/data/",
                                           "torchdata/",
                                           "tensorflow/python/data/",
                                           "keras/src/trainers/data_adapters/",
                                           "ray/data/",
                                           "webdataset/",
                                           "litdata/",
                                           "streaming/base/",
                                           "accelerate/data_loader.py",
                                           "fastai/data/load.py",
                                           "torch_geometric/loader/",
                                           "torchrl/data/replay_buffers/",
                                           "monai/data/dataloader.py",
                                           "ultralytics/data/",
                                           "grain/_src/",
                                           "spdl/pipeline/",
                                           "petastorm/",
                                           "h5py/_hl/dataset.py"};
  if (IsInAny(frame, kFolders)) return true;
  // Of Hugging Face's only what iterates: map() and its like run before the training.
  constexpr std::string_view kDatasets[] = {"datasets/arrow_dataset.py",
                                            "datasets/iterable_dataset.py"};
  return IsInAny(frame, kDatasets) &&
         (frame.function.ends_with("__iter__") || frame.function.ends_with("__next__"));
}

// Functions of the standard library that hand over what another thread or process made.
bool HandsOver(const Frame& frame) {
  constexpr std::string_view kQueues[] = {"multiprocessing/queues.py", "queue.py"};
  if (IsInAny(frame, kQueues)) return frame.function.ends_with("get");
  if (IsIn(frame, "multiprocessing/pool.py")) {
    return frame.function.ends_with("next") || frame.function.ends_with(".get");
  }
  return IsIn(frame, "concurrent/futures/_base.py") &&
         (Contains(frame.function, "result") || Contains(frame.function, "wait"));
}

// Whether the innermost of the frames waits, whoever called it.
bool Waits(const std::vector<Frame>& frames) {
  constexpr std::string_view kFiles[] = {"selectors.py",
                                         "threading.py",
                                         "socket.py",
                                         "ssl.py",
                                         "multiprocessing/synchronize.py",
                                         "subprocess.py",
                                         "queue.py",
                                         "ray/_private/worker.py"};
  const Frame& last = frames.back();
  if (IsInAny(last, kFiles)) return true;
  if (IsIn(last, "multiprocessing/connection.py")) {
    // What a batch's own parts are asked for is of unpacking it.
    return std::none_of(frames.begin(), frames.end(),
                        [](const Frame& frame) { return Contains(frame.function, "rebuild_"); });
  }
  // tf.data makes batches in threads of its own.
  return Contains(last.function, "iterator_get_next");
}

// Whether that is no part of a loop's steady course, or may be a wait for a device.
bool IsAside(const std::vector<Frame>& frames) {
  constexpr std::string_view kWorkers[] = {
      "multiprocessing/process.py", "multiprocessing/popen_fork.py",
      "multiprocessing/popen_spawn_posix.py", "multiprocessing/popen_forkserver.py"};
  return std::any_of(frames.begin(), frames.end(), [&](const Frame& frame) {
    if (frame.function == "_find_and_load" || frame.function == "_handle_fromlist") return true;
    if (IsIn(frame, "datasets/arrow_dataset.py") &&
        (frame.function.ends_with(".map") || frame.function.ends_with(".filter"))) {
      return true;
    }
    // A copy to a device waits for what that computes.
    return IsInAny(frame, kWorkers) || Contains(frame.function, "send_to_device");
  });
}

// What the frames from `first` on do, as the import hook names operators.
const char* OperatorOf(const std::vector<Frame>& frames, size_t first) {
  const auto any = [&](auto matches) {
    return std::any_of(frames.begin() + static_cast<std::ptrdiff_t>(first), frames.end(), matches);
  };
  const auto in_file = [&](std::string_view file) {
    return any([&](const Frame& frame) { return Contains(frame.file, file); });
  };
  const auto in_function = [&](std::string_view name) {
    return any([&](const Frame& frame) { return Contains(frame.function, name); });
  };
  if (in_function("_next_index") || in_file("torch/utils/data/sampler.py")) return "sampler";
  if (in_function("collate") || in_file("_utils/collate.py")) return "collate";
  if (in_file("_utils/fetch.py")) return "getitem";
  if (in_file("_utils/pin_memory.py")) return "pin_memory";
  if (in_file("multiprocessing/reduction") || in_file("multiprocessing/queues.py")) {
    return "unpickle";
  }
  return "next";
}

// Whether the innermost of the frames waits for something to do.
bool IsIdle(const std::vector<Frame>& frames) {
  const Frame& last = frames.back();
  const bool of_pool = IsIn(last, "concurrent/futures/thread.py") && last.function == "_worker";
  return of_pool || Waits(frames);
}

// Of the threads of one name.
struct NamedThreads {
  double seconds = 0, idle_s = 0;
  int64_t samples_count = 0;
  std::map<std::string, double> functions;  // at work in which

  double idle_ratio() const { return seconds > 0 ? idle_s / seconds : 1; }
};

// "_job_producer" of "Thread (_job_producer)".
std::string OwnName(const std::string& thread) {
  constexpr std::string_view kBefore = "Thread (";
  if (!thread.starts_with(kBefore) || !thread.ends_with(')')) return thread;
  return thread.substr(kBefore.size(), thread.size() - kBefore.size() - 1);
}

template <class Map>
const std::string& LargestKey(const Map& map) {
  return std::max_element(map.begin(), map.end(),
                          [](const auto& a, const auto& b) { return a.second < b.second; })
      ->first;
}

}  // namespace

std::optional<PythonThreads> LookAtPythonThreads(const RunView& run, int64_t process_id) {
  std::map<std::string, NamedThreads> threads;
  double main_s = 0;  // as long as the process was looked at
  for (const StackRow& stack : run.stacks) {
    if (stack.kind != "python" || stack.process_id != process_id) continue;
    const double seconds = static_cast<double>(stack.time_ns) * 1e-9;
    if (stack.thread == "MainThread") {
      main_s += seconds;
      continue;
    }
    const std::vector<Frame> frames = FramesOf(stack.folded);
    if (frames.empty()) continue;
    NamedThreads& named = threads[OwnName(stack.thread)];
    named.seconds += seconds;
    named.samples_count += stack.samples_count;
    if (IsIdle(frames)) {
      named.idle_s += seconds;
    } else {
      named.functions[std::string(frames.back().text)] += seconds;
    }
  }
  if (threads.empty()) return std::nullopt;
  PythonThreads found;
  double all_s = 0, idle_s = 0, others_idle = 1;
  const std::string* busiest = nullptr;
  for (const auto& [name, named] : threads) {
    all_s += named.seconds;
    idle_s += named.idle_s;
    if (busiest == nullptr || named.idle_ratio() < threads[*busiest].idle_ratio()) busiest = &name;
  }
  found.idle_ratio = all_s > 0 ? idle_s / all_s : 0;
  for (const auto& [name, named] : threads) {
    if (&name != busiest) others_idle = std::min(others_idle, named.idle_ratio());
  }
  const NamedThreads& busy = threads[*busiest];
  // Threads that Python did not start have the program's name: there may be several.
  const bool one = busy.seconds < kOneThreadsTime * main_s && !busiest->starts_with("python");
  if (one && !busy.functions.empty() && busy.idle_ratio() < kHardlyIdles &&
      others_idle > kIdlesBeside && busy.seconds > kSampledMostly * main_s) {
    found.busy_thread = *busiest;
    found.busy_function = LargestKey(busy.functions);
    found.busy_samples_count = busy.samples_count;
  }
  return found;
}

std::optional<PythonTime> LookAtPython(const RunView& run,
                                       const std::vector<int64_t>& process_ids) {
  PythonTime time;
  bool has_loader = false;
  struct Part {
    double seconds = 0;
    std::map<std::string, double> functions;
  };
  std::map<std::string, Part> parts;  // by operator
  for (const StackRow& stack : run.stacks) {
    if (stack.kind != "python" || stack.thread != "MainThread" || !stack.process_id) continue;
    if (std::find(process_ids.begin(), process_ids.end(), *stack.process_id) == process_ids.end()) {
      continue;
    }
    const std::vector<Frame> frames = FramesOf(stack.folded);
    if (frames.empty() || IsAside(frames)) continue;
    const double seconds = static_cast<double>(stack.time_ns) * 1e-9;
    time.samples_count += stack.samples_count;
    time.seconds += seconds;
    const auto first = std::find_if(frames.begin(), frames.end(), [](const Frame& frame) {
      return IsLoader(frame) || HandsOver(frame);
    });
    if (first == frames.end()) continue;
    has_loader = true;
    if (Waits(frames)) {
      time.waits_s += seconds;
      continue;
    }
    time.loads_s += seconds;
    const size_t begin = static_cast<size_t>(first - frames.begin());
    size_t last = begin;  // the innermost function of the loader
    for (size_t f = begin; f < frames.size(); ++f) {
      if (IsLoader(frames[f]) || HandsOver(frames[f])) last = f;
    }
    Part& part = parts[OperatorOf(frames, begin)];
    part.seconds += seconds;
    const Frame& function = frames[std::min(last + 1, frames.size() - 1)];
    part.functions[std::string(function.text)] += seconds;
  }
  if (!has_loader) return std::nullopt;
  double most = 0;
  for (const auto& [name, part] : parts) {
    if (part.seconds <= most) continue;
    most = part.seconds;
    time.operator_name = name;
    time.function = LargestKey(part.functions);
  }
  return time;
}

}  // namespace headrace::analysis
