#include "analysis/outside/python_time.h"

#include <algorithm>
#include <map>
#include <string_view>

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

// Files of libraries that hand out batches. None of them calls a training step.
bool IsLoader(const Frame& frame) {
  constexpr std::string_view kFolders[] = {"torch/utils/data/",
                                           "torchdata/",
                                           "tensorflow/python/data/",
                                           "keras/src/trainers/data_adapters/",
                                           "ray/data/",
                                           "datasets/arrow_dataset",
                                           "datasets/iterable_dataset",
                                           "webdataset/",
                                           "litdata/",
                                           "streaming/base/",
                                           "accelerate/data_loader"};
  return std::any_of(std::begin(kFolders), std::end(kFolders),
                     [&](std::string_view folder) { return Contains(frame.file, folder); });
}

// Functions of the standard library that hand over what another thread or process made.
bool HandsOver(const Frame& frame) {
  const bool queue = frame.file.ends_with("multiprocessing/queues.py") ||
                     frame.file == "queue.py" || frame.file.ends_with("/queue.py");
  if (queue) return frame.function.ends_with("get");
  if (frame.file.ends_with("multiprocessing/pool.py")) {
    return frame.function.ends_with("next") || frame.function.ends_with(".get");
  }
  return frame.file.ends_with("concurrent/futures/_base.py") &&
         (Contains(frame.function, "result") || Contains(frame.function, "wait"));
}

// Functions in which a thread waits, whoever called them.
bool Waits(const Frame& frame) {
  constexpr std::string_view kFiles[] = {
      "selectors.py", "threading.py", "socket.py", "ssl.py", "multiprocessing/synchronize.py",
      "subprocess.py"};
  for (const std::string_view file : kFiles) {
    if (frame.file.ends_with(file)) return true;
  }
  if (frame.file.ends_with("multiprocessing/connection.py")) {
    return Contains(frame.function, "poll") || Contains(frame.function, "wait");
  }
  // tf.data makes batches in threads of its own.
  if (Contains(frame.function, "iterator_get_next")) return true;
  return frame.file.ends_with("queue.py") || Contains(frame.file, "ray/_private/worker.py");
}

bool IsImport(const std::vector<Frame>& frames) {
  return std::any_of(frames.begin(), frames.end(), [](const Frame& frame) {
    return frame.function == "_find_and_load" || frame.function == "_handle_fromlist";
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
  if (in_file("multiprocessing/popen") || in_file("multiprocessing/process.py")) {
    return "start_workers";
  }
  if (in_file("multiprocessing/reduction") || in_file("multiprocessing/queues.py")) {
    return "unpickle";
  }
  return "next";
}

}  // namespace

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
    if (frames.empty() || IsImport(frames)) continue;
    const double seconds = static_cast<double>(stack.time_ns) * 1e-9;
    time.samples_count += stack.samples_count;
    time.seconds += seconds;
    const auto first = std::find_if(frames.begin(), frames.end(), [](const Frame& frame) {
      return IsLoader(frame) || HandsOver(frame);
    });
    if (first == frames.end()) continue;
    has_loader = true;
    if (Waits(frames.back())) {
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
  for (const auto& [name, part] : parts) {
    if (part.seconds <= time.operator_share * time.loads_s) continue;
    time.operator_name = name;
    time.operator_share = part.seconds / time.loads_s;
    time.function =
        std::max_element(part.functions.begin(), part.functions.end(),
                         [](const auto& a, const auto& b) { return a.second < b.second; })
            ->first;
  }
  return time;
}

}  // namespace headrace::analysis
