// ProcessTree: a process and all it starts, from the first fork where the kernel tells of forks
// (process events; needs CAP_NET_ADMIN), else by looking again and again. Where a BPF program
// follows forks as well, its findings can be added.
//
// Not thread-safe. Update() never blocks.
#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "probes/probe.h"

namespace headrace::probes {

struct TreeProcess {
  int64_t pid = 0, parent_pid = 0;
  int64_t start_ticks = 0;  // since boot; 0: it was gone before it could be looked at
  std::string name, command;
  int64_t first_seen_ns = 0;        // CLOCK_MONOTONIC
  std::optional<int64_t> ended_ns;  // nothing: alive at the last Update
  std::optional<int> wait_status;   // as wait(2) gives it; only where the kernel tells
};

class ProcessTree {
 public:
  // `host` outlives the tree.
  ProcessTree(const Host& host, int64_t root_pid);
  ~ProcessTree();
  ProcessTree(const ProcessTree&) = delete;
  ProcessTree& operator=(const ProcessTree&) = delete;

  // Subscribes to process events and takes in what is already running. Ok: no fork is missed.
  // Degraded: children that live shorter than the time between two Updates can be missed.
  // Unavailable: there is no such process.
  Availability Start();
  // Takes in new children, marks those that ended. Call it at every tick.
  void Update();
  // Adds a process seen by other means, and its name as it was; it is looked at in the next Update.
  void Add(int64_t pid, int64_t parent_pid, const std::string& name = "");

  // Live ones in the order they were seen, the root first. Empty once all ended.
  const std::vector<int64_t>& pids() const { return live_; }
  // All ever seen, oldest first; at most kMaxProcesses, the rest is counted in dropped().
  const std::vector<TreeProcess>& processes() const { return processes_; }
  // Process events that the kernel dropped because we were late, so that forks may be missing
  // (each counts once however many were in it).
  int64_t lost_events() const { return lost_; }
  int64_t dropped() const { return dropped_; }

  static constexpr size_t kMaxProcesses = 65536;

 private:
  bool Subscribe(std::string* why);
  void DrainEvents();
  void Scan();          // children by parent, over all of /proc
  void ScanChildren();  // children lists of the live ones
  void MarkEnded();
  void RebuildLive();
  void Look(TreeProcess* process) const;
  TreeProcess* FindLive(int64_t pid);

  const Host& host_;
  int64_t root_pid_;
  int socket_ = -1;
  bool scan_everything_ = false;
  int64_t lost_ = 0, dropped_ = 0;
  std::vector<TreeProcess> processes_;
  std::map<int64_t, size_t> by_pid_;  // live ones; index into processes_
  std::vector<int64_t> live_;
};

}  // namespace headrace::probes
