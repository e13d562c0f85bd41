// The text that py-spy (0.3, 0.4) writes with --format raw: a line for each stack, root first, with
// the number of its samples. With --subprocesses and --threads it begins with processes and thread:
//
//   process 7:"python train.py";process 9:"python train.py";thread (9): MainThread;main (t.py:4) 12
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace headrace::probes::stack {

struct PythonStack {
  int64_t pid = 0;      // of the innermost process; 0: the text does not say
  int64_t tid = 0;      // the system's number of the thread; 0: the text does not say
  std::string thread;   // its name in Python: "MainThread", "Thread-1 (work)"; "" unknown
  std::string frames;   // "main (t.py:4);load (t.py:9)", root first, no control characters
  int64_t samples = 0;  // > 0
};

struct PySpyText {
  std::vector<PythonStack> stacks;
  int64_t refused_lines = 0;  // not of this format
};

// Stacks as they stand there, in their order; the same stack may come twice. Lines over 64 KiB are
// refused. Throws nothing but bad_alloc.
PySpyText ParsePySpyText(std::string_view text);

}  // namespace headrace::probes::stack
