// PeerCpu: which of the other programs share the CPUs with the run thread by thread. The kernel's
// scheduler divides CPU time between control groups, and in the top one between sessions
// (CONFIG_SCHED_AUTOGROUP), before it divides it between threads. Only beside programs in its own
// group do more threads of a program get more CPU time.
#pragma once
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>

#include "base/cgroup.h"
#include "probes/host.h"

namespace headrace::collectors {

class PeerCpu {
 public:
  // `pid`: a process of the run. `proc` replaces "/proc" in tests.
  explicit PeerCpu(int64_t pid, std::string proc = "/proc");

  // CPU time, in ns, that visible processes in the group of `pid` used since construction, but for
  // those of which `is_own` says that they are the run's (start_ticks as in probes::ProcessStat).
  // What a process used between the last call and its end is missing. Reads a file of every
  // process: it is to be called seldom.
  int64_t ReadNs(const std::function<bool(int64_t pid, int64_t start_ticks)>& is_own);

  // Whether the group is known. If not, nothing is found.
  bool known() const { return group_.has_value(); }

 private:
  struct Process {
    int64_t start_ticks = 0, cpu_ns = 0;
  };
  std::optional<std::string> GroupOf(int64_t pid) const;
  // Calls `each` with every process and what it used since the last look, and remembers.
  void Look(const std::function<void(int64_t pid, int64_t start_ticks, int64_t used_ns)>& each);

  int64_t pid_;
  std::string proc_;
  probes::Host files_;  // below proc_
  CgroupMounts mounts_;
  bool by_session_ = false;
  std::optional<std::string> group_;
  int64_t newest_ticks_ = 0;  // start of the newest process at construction
  std::map<int64_t, Process> seen_;
  int64_t peers_ns_ = 0;
};

}  // namespace headrace::collectors
