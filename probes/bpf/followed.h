// Followed: what all our BPF objects share: the maps that say which processes are measured, and the
// program that follows their forks, execs and ends.
#pragma once
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "probes/probe.h"

struct bpf_object;  // libbpf's
struct bpf_link;

namespace headrace::probes::bpf {

class Program;

// The windows in which the kernel measures the run time of all BPF programs, which costs too: a
// tenth of the time; all of it when the target is deep, HEADRACE_BPF_STATS is set, or the sysctl
// kernel.bpf_stats_enabled is. Windows that another recorder has open are not known here: runs in
// them count, their time does not, so that two recorders may each claim twice what theirs cost.
class RunTimeWindows {
 public:
  ~RunTimeWindows();
  // Opens or closes a window, as it is due. Nothing opens where the kernel refuses (it takes
  // CAP_SYS_ADMIN).
  void Update(const Target& target, int64_t now_ns);
  // How long the kernel has measured, all windows together.
  int64_t MeasuredNs(int64_t now_ns) const;

 private:
  int fd_ = -1;  // while it is open, the kernel measures
  bool refused_ = false;
  int64_t begin_ns_ = 0;                // the first window is a window after it
  int64_t opened_ns_ = 0, sum_ns_ = 0;  // since when it is open, and how long it was before
};

// Once per process of ours, alive while any Program is loaded. For one thread at a time.
class Followed {
 public:
  // The one that others use, or a new one. Absent, with an errno, where the kernel refuses it.
  static std::shared_ptr<Followed> Get(int* error);
  ~Followed();
  Followed(const Followed&) = delete;
  Followed& operator=(const Followed&) = delete;

  // Tells the kernel which processes came, and removes those that went; at once, or if the last
  // time is long enough ago.
  void Follow(const Target& target, bool at_once);
  // The descriptor of the map of that name, if it is one that all objects share; else -1.
  int SharedMap(const std::string& name) const;
  bpf_object* object() const { return object_; }
  const RunTimeWindows& run_time() const { return run_time_; }

  // What serves all programs is reported by one: the first that asks, until it leaves.
  bool IsReportedBy(const Program* program);
  void Leave(const Program* program);

 private:
  Followed() = default;
  int Load();
  bool Hold(int64_t pid);
  void AddTargets(const std::map<int64_t, uint64_t>& addresses);
  void RemoveProcesses(const std::map<int64_t, uint64_t>& addresses, int64_t now_ns);
  void RemoveThreads(int64_t now_ns);

  bpf_object* object_ = nullptr;
  std::vector<bpf_link*> links_;
  int targets_ = -1, target_marks_ = -1, threads_ = -1, switch_notes_ = -1, held_process_ = -1;
  size_t thread_state_size_ = 0;
  std::map<int64_t, uint64_t> known_;  // pid -> segment address as told to the kernel
  int64_t followed_ns_ = 0, threads_looked_ns_ = 0;
  int64_t held_ = 0;                   // the process whose exec is waited for, or was
  std::map<uint32_t, uint8_t> marks_;  // as they were written to the kernel's
  std::map<uint32_t, int64_t> gone_processes_, gone_threads_;  // since when
  const Program* reporter_ = nullptr;
  RunTimeWindows run_time_;
};

// Where a process has its operator accounts mapped, from /proc/PID/maps; 0 if nowhere.
uint64_t FindSegmentAddress(const Host& host, int64_t pid);

}  // namespace headrace::probes::bpf
