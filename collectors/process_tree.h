// ProcessTree: the target and everything it started, kept up to date from /proc. A process is known
// by pid and start time, so that a pid that comes back is another process. Children whose parent
// died stay in the tree; the collector itself and what it started are never in it.
#pragma once
#include <sys/types.h>

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "collectors/store/store.h"
#include "probes/host/fork_events.h"
#include "probes/process.h"

namespace headrace::collectors {

struct TreeProcess {
  ProcessRow row;  // row.id numbers the process within the run
  int64_t start_ticks = 0;
  bool alive = true;
  bool is_gone = false;  // it was not found when it was read last; its end is not yet noted
  std::string image;     // target of /proc/PID/exe; "" unreadable
  int64_t images = 0;    // how often it has executed another image since it was found
  int64_t cpu_ns = 0, rss_bytes = 0, threads = 0;
  std::optional<int64_t> read_bytes, read_call_bytes;
  int64_t base_cpu_ns = 0, base_read_bytes = 0, base_read_call_bytes = 0;
  std::optional<int64_t> parent_id;               // row.id of its parent, if that is in the tree
  int64_t reaped_cpu_ns = 0, base_reaped_ns = 0;  // CPU time of children that it has waited for
};

class ProcessTree {
 public:
  // `start_ns`: CLOCK_MONOTONIC instant of the run's start. `root` replaces "/proc" in tests.
  ProcessTree(int64_t root_pid, int64_t start_ns, std::string root = "/proc");

  // The command that the root will execute; it describes the root until then.
  void SetRootCommand(const std::string& name, const std::string& command);

  // Looks for processes that have ended or have executed another image, and for new ones, which
  // takes a look at every process or thread: `children_are_told` when Saw has had every fork since
  // the last call.
  void Update(int64_t now_ns, bool children_are_told = false);
  // Takes in an event from the kernel: a new child of one of our processes, however short-lived, or
  // how one of ours ended. Call before Update.
  void Saw(const probes::ForkEvent& event);
  // Reads CPU time, memory and IO of the live ones.
  void ReadUsage();

  int64_t root_pid() const { return root_pid_; }
  bool root_alive() const;
  // Live processes, the root first.
  const std::vector<int64_t>& live() const { return live_; }
  TreeProcess* Find(int64_t pid);  // the process that has, or last had, that pid; null if unknown
  // The row id of a process, for a probe's label. A process that the tree has not seen (too
  // short-lived) gets a new id.
  int64_t ProcessId(int64_t pid);

  // Sums over all processes since they were found, ended ones included. CPU time includes what no
  // reading saw of an ended process, as soon as its parent has waited for it.
  int64_t cpu_ns() const;
  int64_t rss_bytes() const;  // of live processes
  int64_t threads() const;
  std::optional<int64_t> read_bytes() const;
  std::optional<int64_t> read_call_bytes() const;

  // Says that the row of a process has changed.
  void Touch(int64_t pid);
  // Rows that are new or changed since the last call.
  std::vector<ProcessRow> TakeChanged();
  // Number of processes beyond the run's limit, which are left out.
  int64_t over_limit() const { return over_limit_; }

 private:
  void Add(int64_t pid, int64_t parent_pid, const char* role);
  void Describe(TreeProcess* process, const std::string& thread_name);
  // What /proc says of the process's first thread; its figures may be those of this thread alone.
  std::optional<probes::ProcessStat> FirstThread(int64_t pid) const;
  std::string HowEnded(int64_t pid) const;
  // Notes those that have ended; returns the number of threads of the others.
  size_t DropEnded(int64_t now_ns);
  void End(TreeProcess* process, int64_t now_ns, const std::string& exit_text);
  bool EndedBefore(const TreeProcess& process, const TreeProcess& parent) const;
  std::vector<int64_t> ChildrenOf(int64_t pid) const;
  std::map<int64_t, std::vector<int64_t>> AllChildren() const;

  int64_t root_pid_, start_ns_, boot_offset_ns_;
  std::string root_, own_image_;
  bool has_children_files_ = true;
  std::map<int64_t, TreeProcess> processes_;  // by number
  std::map<int64_t, int64_t> by_pid_;         // pid -> number, the newest
  std::vector<int64_t> live_;
  std::set<int64_t> changed_;
  int64_t over_limit_ = 0;
};

}  // namespace headrace::collectors
