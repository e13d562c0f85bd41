// Stacks of Python functions, with file and line: what each thread that executes Python is at,
// busy or waiting, some times a second. The program is neither changed nor stopped. They are read
// from its memory by py-spy (https://github.com/benfred/py-spy: CPython 2.7 to 3.14), where that is
// installed; this probe runs it, some seconds at a time, beside the recording.
//
// A sample stands for the time from one sample to the next, whatever the thread did then. Of the
// program's own files, in the folders of its script and where it was started, each line says which
// loop it is in (probes/stack/python_loops.h).
#pragma once
#include <sys/types.h>

#include <map>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "probes/probe.h"
#include "probes/stack/python_loops.h"

namespace headrace::probes::stack {

struct PythonStacksOptions {
  std::string program = "py-spy";  // looked for as a shell does
  int samples_per_s = 10;          // of each thread, where processes are few
  int processes_per_s = 12;        // samples of all processes together
  int64_t chunk_s = 60;            // what is recorded at a time
};

class PythonStacks : public Probe {
 public:
  explicit PythonStacks(PythonStacksOptions options = {}) : options_(std::move(options)) {}
  ~PythonStacks() override { Stop(); }

  static Availability Check(const Host& host, const std::string& program);
  Availability Start(const Host& host, const Target& target) override;
  // Waits up to 2 s where the recording ends (Target::ending), else not. Throws Error if no process
  // could be looked at, several times in a row.
  void Read(Sink& sink) override;
  void Stop() override;

 private:
  // A run of py-spy, for a Python process and those that it started.
  struct Spy {
    pid_t child = -1;
    int output = -1, messages = -1;  // files in memory
    int samples_per_s = 0;
    int64_t cpu_ns = 0;
  };
  // What a process executes.
  struct Program {
    std::string path;
    bool is_python = false;
  };
  struct Key {
    int64_t pid = 0;
    std::string thread, frames;
    auto operator<=>(const Key&) const = default;
  };
  struct Total {
    int64_t samples = 0, time_ns = 0;
    bool changed = false;
  };

  std::vector<int64_t> Roots();
  bool IsPython(int64_t pid);
  void Begin(int64_t root);
  void Watch(int64_t root, Spy* spy);
  void End(int64_t root, Spy* spy, int status);
  void Keep(const std::string& text, int64_t root, int samples_per_s);
  void WaitForAll();

  PythonStacksOptions options_;
  const Host* host_ = nullptr;
  const Target* target_ = nullptr;
  std::string path_;
  std::map<int64_t, Program> programs_;   // by process
  size_t processes_ = 0;                  // that execute Python
  std::map<int64_t, Spy> spies_;          // by root
  std::map<int64_t, PythonLoops> loops_;  // by root
  std::map<int64_t, int> failures_;       // by root, in a row
  std::map<int64_t, int64_t> next_ns_;    // by root: not before
  std::map<Key, Total> totals_;
  size_t bytes_ = 0;
  int64_t refused_lines_ = 0, samples_ = 0, unseen_ = 0, overflowed_ = 0;
  std::string why_;  // the last failure
};

}  // namespace headrace::probes::stack
