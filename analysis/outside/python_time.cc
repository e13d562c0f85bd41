#include "analysis/outside/python_time.h"

#include <algorithm>
#include <map>
#include <set>
#include <string_view>
#include <tuple>
#include <utility>

#include "analysis/run/python_frames.h"
#include "analysis/thresholds.h"

namespace headrace::analysis {
namespace {

// Of the threads of one name.
struct NamedThreads {
  double seconds = 0, idle_s = 0, locks_s = 0;
  int64_t samples_count = 0;
  std::map<std::string, double> functions;  // at work in which

  double waits_ratio() const { return seconds > 0 ? (idle_s + locks_s) / seconds : 1; }
};

template <class Map>
const typename Map::key_type& LargestKey(const Map& map) {
  return std::max_element(map.begin(), map.end(),
                          [](const auto& a, const auto& b) { return a.second < b.second; })
      ->first;
}

// A stack of the main thread, as often as it was seen.
struct Sample {
  std::vector<PythonFrame> frames;
  double seconds = 0;
  int64_t samples_count = 0;
};
using Samples = std::vector<Sample>;

// Time by a key, and the key of most of it.
template <class Key>
class Shares {
 public:
  void Add(const Key& key, double seconds) {
    seconds_[key] += seconds;
    all_s_ += seconds;
  }
  bool empty() const { return seconds_.empty(); }
  double all_s() const { return all_s_; }
  const Key& Most() const { return LargestKey(seconds_); }
  double MostRatio() const { return all_s_ > 0 ? seconds_.at(Most()) / all_s_ : 0; }

 private:
  std::map<Key, double> seconds_;
  double all_s_ = 0;
};

// A function, by its name and its file; both empty: none.
using Function = std::pair<std::string_view, std::string_view>;

Function FunctionAt(const Sample& sample, size_t depth) {
  if (depth >= sample.frames.size()) return {};
  return {sample.frames[depth].function, sample.frames[depth].file};
}

template <class Keep>
void KeepOnly(Samples* samples, Keep keep) {
  std::erase_if(*samples, [&](const Sample& sample) { return !keep(sample); });
}

bool IsRecognised(const PythonFrame& frame) {
  return IsLoader(frame) || HandsOver(frame) || IsStep(frame);
}

bool Writes(const PythonFrame& frame) { return WritingOf(frame) != Writing::kNone; }

// Parts of a function that the program is in one after the other: lines in no loop, or loops.
struct Part {
  int64_t samples_count = 0;
  bool is_recognised = false;  // it leads to functions of libraries that load or train
};

// The one that trains: of those with recognised functions the one with most samples, as scoring
// comes after it and makes fewer; else the last one that is worth a word, as set-up comes before.
int64_t PartThatTrains(const std::map<int64_t, Part>& parts) {
  int64_t trains = 0, last = 0, most = 0, count = 0;
  for (const auto& [line, part] : parts) {
    if (part.is_recognised && part.samples_count > most) {
      most = part.samples_count;
      trains = line;
    }
    if (part.samples_count >= kFewestSamples || part.samples_count > count) last = line;
    count = std::max(count, part.samples_count);
  }
  return most >= kFewestSamples ? trains : last;
}

// Leaves of the samples of a function of the program (at `depth` in each) those of one of its
// loops, as far as it was seen in them; else those of one line. Returns whether there are loops.
bool KeepLoops(size_t depth, Samples* samples) {
  std::map<int64_t, Part> loops, lines;
  int64_t in_loops = 0;
  for (const Sample& sample : *samples) {
    const PythonFrame& frame = sample.frames[depth];
    const auto below = sample.frames.begin() + static_cast<std::ptrdiff_t>(depth) + 1;
    const bool recognised = std::any_of(below, sample.frames.end(), IsRecognised);
    const auto add = [&](Part& part) {
      part.samples_count += sample.samples_count;
      part.is_recognised |= recognised;
    };
    if (frame.loop > 0) {
      in_loops += sample.samples_count;
      add(loops[frame.outermost]);
    }
    add(lines[frame.line]);
  }
  if (in_loops >= kFewestSamples) {
    const int64_t loop = PartThatTrains(loops);
    KeepOnly(samples, [&](const Sample& sample) {
      return sample.frames[depth].loop > 0 && sample.frames[depth].outermost == loop;
    });
    return true;
  }
  const int64_t line = PartThatTrains(lines);
  KeepOnly(samples, [&](const Sample& sample) { return sample.frames[depth].line == line; });
  return false;
}

// Whether a loop only repeats what `next` does, which trains in a loop of its own, as that over
// epochs does: nothing that is `recognised` is called beside it.
bool IsInnerLoop(const Samples& samples, size_t depth, const Function& next,
                 const Shares<Function>& recognised) {
  if (!recognised.empty()) return recognised.MostRatio() >= 1 && recognised.Most() == next;
  double all_s = 0, in_loops_s = 0;
  for (const Sample& sample : samples) {
    if (FunctionAt(sample, depth + 1) != next) continue;
    all_s += sample.seconds;
    if (sample.frames[depth + 1].loop > 0) in_loops_s += sample.seconds;
  }
  return in_loops_s >= kMostOfALoop * all_s && WhatNameSays(next.first) != NameSays::kLoads;
}

// Lightning gives each batch to such a function of the program's before the step has it.
bool PreparesBatch(const PythonFrame& frame) {
  return frame.is_own && (frame.function.ends_with("on_after_batch_transfer") ||
                          frame.function.ends_with("on_before_batch_transfer"));
}

// Whether the function at that depth calls both, one apart from the other: what prepares a batch,
// and the step, for a twentieth of its time or more.
bool IsStepBesidePreparing(const Samples& samples, size_t depth) {
  std::set<Function> prepare;
  std::map<Function, double> known;  // seconds of those that are at other known functions
  double all_s = 0, beside_s = 0;
  for (const Sample& sample : samples) {
    const Function call = FunctionAt(sample, depth + 1);
    const auto begin = sample.frames.begin() + static_cast<std::ptrdiff_t>(depth) + 1;
    all_s += sample.seconds;
    if (std::any_of(begin, sample.frames.end(), PreparesBatch)) {
      prepare.insert(call);
    } else if (std::any_of(begin, sample.frames.end(), IsRecognised)) {
      known[call] += sample.seconds;
    }
  }
  for (const auto& [call, seconds] : known) {
    if (!prepare.contains(call)) beside_s += seconds;
  }
  return !prepare.empty() && beside_s >= kSmallStall * all_s;
}

// Follows the program from its first function to the loop that trains: to where calls of the step
// and of the loading part, or where no function has most of the time. Leaves the samples in it.
// Returns the depth of its function in each of them.
size_t FindLoop(Samples* samples) {
  Shares<Function> roots;
  for (const Sample& sample : *samples) roots.Add(FunctionAt(sample, 0), sample.seconds);
  if (roots.empty()) return 0;
  const Function root = roots.Most();
  KeepOnly(samples, [&](const Sample& sample) { return FunctionAt(sample, 0) == root; });
  for (size_t depth = 0;; ++depth) {
    const bool is_own = std::any_of(samples->begin(), samples->end(), [&](const Sample& sample) {
      return sample.frames[depth].is_own;
    });
    const bool has_loops = is_own && KeepLoops(depth, samples);
    Shares<Function> calls, recognised;  // of which functions; of those that lead to known ones
    Shares<Function> no_setup;           // of those, and of those that save or report
    double asks_s = 0;
    for (const Sample& sample : *samples) {
      const Function call = FunctionAt(sample, depth + 1);
      calls.Add(call, sample.seconds);
      const auto begin = sample.frames.begin() + static_cast<std::ptrdiff_t>(depth) + 1;
      const bool is_known = std::any_of(begin, sample.frames.end(), IsRecognised);
      if (!call.first.empty() && is_known) recognised.Add(call, sample.seconds);
      if (!call.first.empty() && (is_known || std::any_of(begin, sample.frames.end(), Writes))) {
        no_setup.Add(call, sample.seconds);
      }
      const bool asks = sample.frames[depth].asks && !call.first.empty() && begin->is_own;
      if (asks) asks_s += sample.seconds;
    }
    Function next = calls.Most();
    if (IsStepBesidePreparing(*samples, depth)) return depth;
    if (calls.MostRatio() < kMostOfALoop) {
      // In a library's function set-up may be as long as the loop that it leads to.
      if (has_loops || no_setup.MostRatio() < kMostOfALoop) return depth;
      next = no_setup.Most();
    }
    const bool asks = asks_s >= kSmallStall * calls.all_s();
    if (next.first.empty() || (has_loops && asks)) return depth;
    if (has_loops && !IsInnerLoop(*samples, depth, next, recognised)) return depth;
    const auto leads = std::find_if(samples->begin(), samples->end(), [&](const Sample& sample) {
      return FunctionAt(sample, depth + 1) == next;
    });
    if (IsRecognised(leads->frames[depth + 1])) return depth;
    KeepOnly(samples, [&](const Sample& sample) { return FunctionAt(sample, depth + 1) == next; });
  }
}

// What a stack of the loop is at.
struct Reading {
  enum class Kind : uint8_t { kWaits, kLoads, kSteps, kUnknown };
  Kind kind = Kind::kUnknown;
  const PythonFrame* function = nullptr;  // that does it: of the program, where it calls a library
  const char* operator_name = "";         // of a loader: what it does
  bool of_loader = false;
  bool by_name = false;  // only the function's name says so
};

Reading ReadLoader(const std::vector<PythonFrame>& frames, size_t first) {
  size_t last = first;  // the innermost function of the loader
  for (size_t f = first; f < frames.size(); ++f) {
    if (IsLoader(frames[f]) || HandsOver(frames[f])) last = f;
  }
  Reading reading{Reading::Kind::kLoads, &frames[std::min(last + 1, frames.size() - 1)],
                  OperatorOf(frames, first), true};
  if (Waits(frames) && !StartsProcess(frames)) reading.kind = Reading::Kind::kWaits;
  return reading;
}

// `depth`: of the loop's function. What is recognised first, from the loop on, decides: a loader
// may call a network, and a step may read a file.
Reading Read(const std::vector<PythonFrame>& frames, size_t depth) {
  const auto loop = frames.begin() + static_cast<std::ptrdiff_t>(depth);
  const bool calls = depth + 1 < frames.size();
  // The program's own function below a loop of its own, or below a library's.
  const PythonFrame* own = &frames[depth];
  if (calls && own->is_own && frames[depth + 1].is_own) own = &frames[depth + 1];
  if (calls && !own->is_own) {
    const auto below =
        std::find_if(loop, frames.end(), [](const auto& each) { return each.is_own; });
    own = below != frames.end() ? &*below : &frames[depth + 1];
  }
  const auto first = std::find_if(loop, frames.end(), IsRecognised);
  const bool is_loader = first != frames.end() && !IsStep(*first);
  if (is_loader) return ReadLoader(frames, static_cast<size_t>(first - frames.begin()));
  // A `for` over a generator of the program. What a library hands out may be a network's layers.
  // A step that takes its batch by next() in the same line is no loading.
  const bool called_trains =
      calls && (WhatNameSays(frames[depth + 1].function) == NameSays::kSteps ||
                (first != frames.end() && IsStep(*first)));
  const bool asked = (loop->asks && (!calls || frames[depth + 1].is_own) && !called_trains) ||
                     std::any_of(frames.begin(), frames.end(), PreparesBatch);
  Reading reading{Reading::Kind::kUnknown, own};
  if (TakesAndTrains(frames)) return reading;
  if (first != frames.end() && !asked) {
    reading.kind = Reading::Kind::kSteps;
  } else if (const auto writer = FirstWriter(frames, depth + 1); writer != frames.end()) {
    // What is kept or told is no part of loading, unless what loads keeps or asks something by it.
    const bool may_load = asked || std::any_of(loop + 1, writer + 1, [](const PythonFrame& frame) {
                            return frame.is_own ? WhatNameSays(frame.function) == NameSays::kLoads
                                                : IsDataLibrary(frame) && !SaysItWrites(frame);
                          });
    reading.kind = may_load ? Reading::Kind::kUnknown : Reading::Kind::kSteps;
  } else if (Waits(frames)) {
    reading.kind = Reading::Kind::kWaits;
  } else if (asked) {
    reading.kind = Reading::Kind::kLoads;
  } else if (std::any_of(loop, frames.end(), IsDataLibrary)) {
    reading.kind = Reading::Kind::kLoads;
  } else {
    // Of nested loops the innermost: "train_epoch" only calls what "load_batch" does.
    auto inner = loop;
    for (auto frame = loop; frame != frames.end(); ++frame) {
      if (frame->is_own && frame->loop > 0) inner = frame;
    }
    const bool calls_own =
        std::any_of(inner + 1, frames.end(), [](const PythonFrame& each) { return each.is_own; });
    for (auto frame = inner + (calls_own || inner == loop ? 1 : 0);
         frame < frames.end() && !reading.by_name; ++frame) {
      const NameSays says = frame->is_own ? WhatNameSays(frame->function) : NameSays::kNothing;
      reading.by_name = says != NameSays::kNothing;
      if (says == NameSays::kLoads) reading.kind = Reading::Kind::kLoads;
      if (says == NameSays::kSteps) reading.kind = Reading::Kind::kSteps;
    }
  }
  return reading;
}

// Of what is of one kind, the operator that most of it is, and the function that most of that is.
class LargestParts {
 public:
  void Add(const std::string& operator_name, const std::string& function, double seconds) {
    operators_.Add(operator_name, seconds);
    functions_[operator_name].Add(function, seconds);
  }
  std::pair<std::string, std::string> Most() const {
    if (operators_.empty()) return {};
    return {operators_.Most(), functions_.at(operators_.Most()).Most()};
  }

 private:
  Shares<std::string> operators_;
  std::map<std::string, Shares<std::string>> functions_;
};

}  // namespace

std::string OperatorBeside(const PythonTime& time) {
  const auto named = time.operators_s.find(time.operator_name);
  if (named == time.operators_s.end() || time.operator_name.empty()) return "";
  std::string beside;
  double most_s = named->second / 2;
  for (const auto& [name, seconds] : time.operators_s) {
    if (name.empty() || name == time.operator_name || seconds <= most_s) continue;
    most_s = seconds;
    beside = name;
  }
  return beside;
}

void CountReceiving(double blocked_ratio, PythonTime* time) {
  const double waits_s = std::min(time->waits_s, blocked_ratio * time->seconds);
  const double receives_s = std::min(time->receives_s, time->waits_s - waits_s);
  if (receives_s <= 0) return;
  if (receives_s > time->loads_s) {
    time->operator_name = "unpickle";
    time->function = time->receive_function;
  }
  time->loads_s += receives_s;
  time->operators_s["unpickle"] += receives_s;
  time->waits_s -= receives_s;
}

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
    const std::vector<PythonFrame> frames = FramesOf(stack.folded);
    if (frames.empty()) continue;
    NamedThreads& named = threads[OwnName(stack.thread)];
    named.seconds += seconds;
    named.samples_count += stack.samples_count;
    if (IsIdle(frames)) {
      named.idle_s += seconds;
    } else if (frames.back().locks) {
      named.locks_s += seconds;
    } else {
      named.functions[frames.back().Name()] += seconds;
    }
  }
  if (threads.empty()) return std::nullopt;
  PythonThreads found;
  double all_s = 0, idle_s = 0, others_idle = 1;
  const std::string* busiest = nullptr;
  for (const auto& [name, named] : threads) {
    all_s += named.seconds;
    idle_s += named.idle_s;
    if (busiest == nullptr || named.waits_ratio() < threads[*busiest].waits_ratio())
      busiest = &name;
  }
  found.idle_ratio = all_s > 0 ? idle_s / all_s : 0;
  for (const auto& [name, named] : threads) {
    if (&name != busiest) others_idle = std::min(others_idle, named.waits_ratio());
  }
  const NamedThreads& busy = threads[*busiest];
  // Threads that Python did not start have the program's name: there may be several.
  const bool one = busy.seconds < kOneThreadsTime * main_s && !busiest->starts_with("python");
  if (one && !busy.functions.empty() && busy.waits_ratio() < kHardlyIdles &&
      others_idle > kIdlesBeside && busy.seconds > kSampledMostly * main_s) {
    found.busy_thread = *busiest;
    found.busy_function = LargestKey(busy.functions);
    found.busy_samples_count = busy.samples_count;
  }
  return found;
}

namespace {

bool IsCalledBack(const Sample& sample) {
  return std::any_of(sample.frames.begin(), sample.frames.end(), CallsBack);
}

// fit() of Keras: seconds in itself, and in what it calls back.
struct FitTime {
  double itself_s = 0, called_s = 0;
  bool IsMostlyItself() const { return itself_s > 0 && called_s <= itself_s; }
};

FitTime TimeOfFit(const Samples& samples) {
  FitTime time;
  for (const Sample& sample : samples) {
    if (TakesAndTrains(sample.frames)) time.itself_s += sample.seconds;
    if (IsCalledBack(sample)) time.called_s += sample.seconds;
  }
  return time;
}

// Leaves what fit() of Keras does where most of it is in what it calls back, else nothing of it.
void LeaveFit(Samples* samples) {
  if (!TimeOfFit(*samples).IsMostlyItself()) return;
  KeepOnly(samples, [](const Sample& sample) {
    return !TakesAndTrains(sample.frames) && !IsCalledBack(sample);
  });
}

// Of these processes, without what they do aside. Adds to `sampled_s` the time of all samples.
Samples MainThreadSamples(const RunView& run, const std::vector<int64_t>& process_ids,
                          bool workers_follow, double* sampled_s) {
  Samples samples;
  for (const StackRow& stack : run.stacks) {
    if (stack.kind != "python" || stack.thread != "MainThread" || !stack.process_id) continue;
    if (std::find(process_ids.begin(), process_ids.end(), *stack.process_id) == process_ids.end()) {
      continue;
    }
    Sample sample{FramesOf(stack.folded), static_cast<double>(stack.time_ns) * 1e-9,
                  stack.samples_count};
    LeaveParent(&sample.frames);
    if (sample.frames.empty()) continue;
    *sampled_s += sample.seconds;
    if (IsAside(sample.frames) || (!workers_follow && StartsProcess(sample.frames))) continue;
    samples.push_back(std::move(sample));
  }
  return samples;
}

}  // namespace

std::optional<PythonTime> LookAtPython(const RunView& run, const std::vector<int64_t>& process_ids,
                                       bool workers_follow) {
  PythonTime time;
  Samples samples = MainThreadSamples(run, process_ids, workers_follow, &time.sampled_s);
  LeaveFit(&samples);
  const size_t depth = FindLoop(&samples);
  bool is_told = false;  // whether the samples tell anything
  LargestParts loads, receives, steps, unknown;
  PythonLines step_lines;
  std::vector<WeighedStack> in_libraries;  // of the step
  const auto add_step = [&](const Sample& sample) {
    const PythonFrame* own = InnermostOwn(sample.frames, depth);
    step_lines.Add(own, sample.seconds);
    if (own == nullptr)
      in_libraries.push_back({&sample.frames, sample.seconds, sample.samples_count});
  };
  for (const Sample& sample : samples) {
    time.samples_count += sample.samples_count;
    time.seconds += sample.seconds;
    const Reading reading = Read(sample.frames, depth);
    time.is_loop_known |= sample.frames[depth].is_own;
    is_told |= reading.kind != Reading::Kind::kUnknown || sample.frames[depth].is_own;
    time.has_loader |= reading.of_loader;
    const std::string function = reading.function->Name();
    const double by_name_s = reading.by_name ? sample.seconds : 0;
    switch (reading.kind) {
      case Reading::Kind::kWaits:
        time.waits_s += sample.seconds;
        if (!ReceivesBytes(sample.frames)) break;
        time.receives_s += sample.seconds;
        receives.Add("", function, sample.seconds);
        break;
      case Reading::Kind::kLoads:
        time.loads_s += sample.seconds;
        time.loads_by_name_s += by_name_s;
        loads.Add(reading.operator_name, function, sample.seconds);
        time.operators_s[reading.operator_name] += sample.seconds;
        break;
      case Reading::Kind::kSteps:
        time.step_s += sample.seconds;
        time.step_by_name_s += by_name_s;
        steps.Add("", function, sample.seconds);
        add_step(sample);
        break;
      case Reading::Kind::kUnknown:
        time.unknown_s += sample.seconds;
        unknown.Add("", function, sample.seconds);
        add_step(sample);
        break;
    }
  }
  if (!is_told) return std::nullopt;
  std::tie(time.operator_name, time.function) = loads.Most();
  time.receive_function = receives.Most().second;
  time.step_function = steps.Most().second;
  time.unknown_function = unknown.Most().second;
  time.step_place = step_lines.Busiest();
  if (!time.step_place) {
    time.step_place = DeepestOfMost(in_libraries, depth + 1, time.step_s + time.unknown_s);
    if (time.step_place && time.step_s > time.unknown_s) {
      time.step_function = time.step_place->name;
    }
  }
  return time;
}

namespace {

template <class Keep>
std::vector<WeighedStack> StacksOf(const Samples& samples, Keep keep) {
  std::vector<WeighedStack> stacks;
  for (const Sample& sample : samples) {
    if (keep(sample)) stacks.push_back({&sample.frames, sample.seconds, sample.samples_count});
  }
  return stacks;
}

}  // namespace

std::optional<BesideTraining> LookBesideTraining(const RunView& run,
                                                 const std::vector<int64_t>& process_ids) {
  constexpr auto kAll = [](const Sample&) { return true; };
  double sampled_s = 0;
  Samples samples = MainThreadSamples(run, process_ids, false, &sampled_s);
  const FitTime fit = TimeOfFit(samples);
  double busy_s = 0;
  std::optional<BesideTraining> of_fit;
  if (fit.IsMostlyItself()) {
    busy_s = fit.itself_s + fit.called_s;
    const auto called = FindWriting(StacksOf(samples, IsCalledBack), 0, busy_s);
    of_fit = Larger(called, FindEagerSteps(StacksOf(samples, kAll), busy_s));
    if (called || (of_fit && of_fit->IsMost())) return of_fit;
    LeaveFit(&samples);
  }
  const auto validation = FindValidation(StacksOf(samples, kAll));
  if (validation && validation->IsMost()) return validation;
  const size_t depth = FindLoop(&samples);
  const auto steps = StacksOf(samples, [&](const Sample& sample) {
    const Reading::Kind kind = Read(sample.frames, depth).kind;
    if (kind != Reading::Kind::kWaits) busy_s += sample.seconds;
    return kind == Reading::Kind::kSteps;
  });
  // Validation's share is of the time in known functions: nearly the same.
  return Larger(Larger(of_fit, validation), Larger(FindWriting(steps, depth + 1, busy_s),
                                                   FindCompiling(steps, depth + 1, busy_s)));
}

std::optional<BesideTraining> LookAtOwnLoading(const RunView& run,
                                               const std::vector<int64_t>& process_ids) {
  double sampled_s = 0, busy_s = 0;
  Samples samples = MainThreadSamples(run, process_ids, false, &sampled_s);
  LeaveFit(&samples);
  const size_t depth = FindLoop(&samples);
  const auto loads = StacksOf(samples, [&](const Sample& sample) {
    const Reading reading = Read(sample.frames, depth);
    if (reading.kind == Reading::Kind::kWaits || reading.of_loader) return false;
    busy_s += sample.seconds;
    return reading.kind == Reading::Kind::kLoads && !reading.by_name;
  });
  return FindOwnLoading(loads, depth, busy_s);
}

}  // namespace headrace::analysis
