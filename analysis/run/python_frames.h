// Frames of sampled Python stacks (docs/stacks.md): where each is, and which libraries' functions
// hand out batches, compute a step, or wait. Lists of libraries are here and nowhere else.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace headrace::analysis {

// "main (train.py:30, loop 28)": function "main" of "train.py" in line 30, which is in the loop
// that begins in line 28. The views refer to the folded text.
struct PythonFrame {
  std::string_view function, file;
  int64_t line = 0;
  bool is_own = false;       // a file of the program, not of a library: its loops are known
  int64_t loop = 0;          // 0: in none, or not known
  int64_t outermost = 0;     // the loop of the function that this one is in; itself if in no other
  bool sleeps = false;       // the line sleeps
  bool locks = false;        // the line waits at a lock
  bool asks = false;         // the line asks a `for`, or next(), for what comes next
  std::string Name() const;  // "main (train.py:30)"
};

// Root first; what is no frame, as a thread's name, is left out.
std::vector<PythonFrame> FramesOf(std::string_view folded);

// The innermost of the program's own functions, of the frames from `first` on; nullptr: none is.
const PythonFrame* InnermostOwn(const std::vector<PythonFrame>& frames, size_t first);

// Whether the frame's file is `part`, or in a folder of that name, from some folder on.
bool IsIn(const PythonFrame& frame, std::string_view part);

// Functions of libraries, and of the import hook, that hand out batches. None of them calls a
// training step.
bool IsLoader(const PythonFrame& frame);

// Functions of the standard library that hand over what another thread or process made.
bool HandsOver(const PythonFrame& frame);

// Functions of libraries that call, or are, what is done between steps: callbacks.
bool CallsBack(const PythonFrame& frame);

// Functions of libraries that compute a training step, its gradients, or its metrics, and are asked
// for nothing else; and callbacks, which are no loading.
bool IsStep(const PythonFrame& frame);

// Whether its name says that it measures the model on data that it does not train on: functions of
// the program, and of libraries that have a loop for it. What the program's own call must show that
// they do (FindValidation).
bool Validates(const PythonFrame& frame);

// Functions of libraries that read, decode or transform data, and are called for little else.
bool IsDataLibrary(const PythonFrame& frame);

// What the name of a function says that it does, by the words that people use: "load_batch",
// "train_step". Where it has some of both the first word decides: "train_batch" trains.
enum class NameSays : uint8_t { kNothing, kLoads, kSteps };
NameSays WhatNameSays(std::string_view function);

// Whether the name of a function says that it writes, or reports: "savez_compressed", "log_loss".
bool SaysItWrites(const PythonFrame& frame);

// What a function writes, where its name or its library leaves little doubt: what is kept
// (checkpoints, results), or what tells of the training (logs, metrics, figures).
enum class Writing : uint8_t { kNone, kSaves, kReports };
Writing WritingOf(const PythonFrame& frame);

// Functions of libraries that make programs of what Python says: what traces, and what compiles.
bool Compiles(const PythonFrame& frame);

// The outermost of the frames from `first` on that writes by either; the end: none does.
std::vector<PythonFrame>::const_iterator FirstWriter(const std::vector<PythonFrame>& frames,
                                                     size_t first);

// Whether the innermost of the frames waits, whoever called it.
bool Waits(const std::vector<PythonFrame>& frames);

// Whether the innermost of the frames reads what another process sent: it may wait, too.
bool ReceivesBytes(const std::vector<PythonFrame>& frames);

// Whether a process of a pool is in the function that takes tasks: it waits for one, or unpickles
// it in C.
bool TakesTask(const std::vector<PythonFrame>& frames);

// Whether the innermost of the frames waits for something to do.
bool IsIdle(const std::vector<PythonFrame>& frames);

// Of a process that Python's multiprocessing started: leaves what it runs, without what its parent
// was at when it forked, or how it was spawned.
void LeaveParent(std::vector<PythonFrame>* frames);

// Whether they start another process, or wait for the end of one.
bool StartsProcess(const std::vector<PythonFrame>& frames);

// Whether a module is being loaded.
bool IsImport(const std::vector<PythonFrame>& frames);

// "_job_producer" of "Thread (_job_producer)", as py-spy names threads by their function.
std::string OwnName(const std::string& thread);

// Whether they are in fit() or evaluate() of Keras with TensorFlow, and not in what it calls back:
// one function takes a batch and computes, and which of the two it is at cannot be seen.
bool TakesAndTrains(const std::vector<PythonFrame>& frames);

// Whether that is no part of a loop's steady course, or may be a wait for a device.
bool IsAside(const std::vector<PythonFrame>& frames);

// What the frames from `first` on do, as the import hook names operators.
const char* OperatorOf(const std::vector<PythonFrame>& frames, size_t first);

}  // namespace headrace::analysis
