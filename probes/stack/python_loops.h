// Which lines of a Python program are in a loop, so that a sampled stack tells the loop that trains
// from what comes before it, and what a `for` asks for from what is done with it.
//
// The program's own files are read, not those of libraries: the folders that are given are searched
// for the names that the stacks have. Lines count by their indentation, as in Python itself; a line
// that a string with line breaks holds may be taken for code.
#pragma once
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace headrace::probes::stack {

// A line of a program, in the loops of its function.
struct LoopOfLine {
  size_t loop = 0;       // the first line of the innermost one: its own where it is that; 0: none
  size_t outermost = 0;  // of the outermost one
  // The line asks for what comes next: it is the `for` of a loop and nothing else, or calls next().
  bool asks = false;
  bool sleeps = false;  // it calls a sleep()
  bool locks = false;   // it waits at a lock: "with self.lock:", "gate.acquire()"
};

// The lines of `source`, the first at index 0. Lines after 2^16 are left out.
std::vector<LoopOfLine> FindLoops(std::string_view source);

class PythonLoops {
 public:
  // Folders in which files that stacks name are looked for, first to last.
  explicit PythonLoops(std::vector<std::string> folders) : folders_(std::move(folders)) {}

  // Folded frames with the loops of their lines: "main (train.py:30);f (lib/x.py:7)" becomes
  // "main (train.py:30, loop 28 of 20);f (lib/x.py:7)" where train.py is found and lib/x.py is not,
  // "..., loop 28" where that is in no other, or "main (train.py:30, no loop)"; ", next" follows
  // where the line asks for what comes next, then ", locks" or ", sleeps". Reads each file once, up
  // to 1 MiB of it, and none that was changed after `not_after_s` (seconds since 1970; 0: any),
  // when the program had read it.
  std::string Mark(std::string_view frames);
  void IgnoreChangedAfter(int64_t not_after_s) { not_after_s_ = not_after_s; }

 private:
  const std::vector<LoopOfLine>& LinesOf(const std::string& file);

  std::vector<std::string> folders_;
  std::map<std::string, std::vector<LoopOfLine>> lines_;  // by file; empty: not found
  size_t lines_count_ = 0;
  int64_t not_after_s_ = 0;
};

}  // namespace headrace::probes::stack
