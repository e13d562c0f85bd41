// Stacks of Python functions, with file and line: what each thread that executes Python is at,
// busy or waiting, some times a second. The program is neither changed nor stopped. They are read
// from its memory by py-spy (https://github.com/benfred/py-spy: CPython 2.7 to 3.14), where that is
// installed; this probe runs it beside the recording.
//
// At first one run follows a process and all that it starts. To find these it reads all of /proc
// ten times a second, which takes two to five hundredths of a core. So when the processes last,
// each gets a run of its own instead, which takes a small part of that; but for those that a
// library started for itself (base/library_processes.h). Half of the samples of those runs go to
// who computes.
//
// A sample stands for the time from one sample to the next, whatever the thread did then. Of the
// program's own files, in the folders of its script and where it was started, each line says which
// loop it is in (probes/stack/python_loops.h).
#pragma once
#include <sys/types.h>

#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "probes/probe.h"
#include "probes/stack/python_loops.h"

namespace headrace::probes::stack {

struct PythonStacksOptions {
  std::string program = "py-spy";  // looked for as a shell does
  int samples_per_s = 10;          // of each thread, where processes are few
  int processes_per_s = 15;        // samples of all processes together
  int64_t chunk_s = 180;           // what is recorded at a time ...
  int64_t second_s = 60;           // ... of a process that was not, by itself ...
  int64_t first_s = 6;             // ... and at first, of a process with those that it starts
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
  // A run of py-spy, for a Python process, or for one and all that it started.
  struct Spy {
    pid_t child = -1;
    int64_t root = 0;  // of the process's group
    bool with_children = false;
    bool is_first = false;  // finds the processes that a program starts with
    bool is_again = false;  // its start says what later ones are going to cost
    int64_t begun_ns = 0, first_look_ns = 0;
    int looks = 0;                   // at its CPU time
    int64_t start_ns = 0;            // CPU time until the first look
    int64_t told_ns = 0;             // when it was told to end; 0: it was not
    int output = -1, messages = -1;  // files in memory
    int samples_per_s = 0;
    int64_t cpu_ns = 0;
  };
  // What a process executes.
  struct Program {
    std::string path;
    bool is_python = false;
    std::string command;  // of Python, as it began; read again while it is new
    int64_t seen_ns = 0;
  };
  struct Member {
    int64_t seen_ns = 0;                  // first
    bool is_of_service = false;           // a library's service started it, and ends it as it likes
    int64_t cpu_ns = 0, cpu_read_ns = 0;  // CPU time, and when that was read
    std::optional<double> cores = {};     // that it used before, for a second or more
  };
  // A Python process that no other one of the target started, and those that it did.
  struct Group {
    int64_t begun_ns = 0;
    int64_t short_lived_ns = 0;  // when a young process was last seen to have ended; 0: never
    std::map<int64_t, Member> members;
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

  void FindGroups();
  bool IsYoung(const Group& group) const;
  int SamplesPerS(int64_t pid, bool with_children) const;
  bool FollowsChildren(const Group& group) const;
  bool EndsOthers(int64_t root, const Group& group, bool with_children);
  bool IsPython(int64_t pid);
  bool IsService(int64_t pid, const std::string& name);
  void BeginAll();
  void Begin(int64_t pid, int64_t root, bool with_children);
  void Watch(int64_t pid, Spy* spy);
  static int64_t OnceNs(Spy* spy, int64_t used_ns);
  void End(int64_t pid, Spy* spy, int status);
  void Keep(const std::string& text, int64_t pid, const Spy& spy);
  void WaitForAll();

  PythonStacksOptions options_;
  const Host* host_ = nullptr;
  const Target* target_ = nullptr;
  std::string path_;
  std::map<int64_t, Program> programs_;  // by process
  size_t processes_ = 0;                 // that execute Python
  std::map<int64_t, Group> groups_;      // by root
  std::map<int64_t, Spy> spies_;         // by process
  // Living processes that had a run: of its own, or one with those that it started.
  std::set<std::pair<int64_t, bool>> had_run_;
  size_t starts_ = 0;                     // of first runs
  std::map<int64_t, PythonLoops> loops_;  // by root
  std::map<int64_t, int> failures_;       // by process, in a row
  std::map<int64_t, int64_t> next_ns_;    // by process: not before
  std::map<Key, Total> totals_;
  size_t bytes_ = 0;
  int64_t refused_lines_ = 0, samples_ = 0, unseen_ = 0, overflowed_ = 0;
  std::string why_;  // the last failure
};

}  // namespace headrace::probes::stack
