// ForkEvents: the kernel's notifications of processes that begin and end (process events), so that
// no child is missed, however short-lived. Used where no BPF program follows forks; without it,
// trees are found by polling.
//
// Not thread-safe; nothing here blocks.
#pragma once
#include <cstdint>
#include <optional>
#include <vector>

#include "probes/probe.h"

namespace headrace::probes {

struct ForkEvent {
  int64_t pid = 0;                 // in our pid namespace
  int64_t parent_pid = 0;          // for a begin; 0: this is an end
  std::optional<int> wait_status;  // for an end, as wait(2) gives it
  int64_t time_ns = 0;             // CLOCK_MONOTONIC
};

class ForkEvents {
 public:
  ForkEvents() = default;
  ~ForkEvents();
  ForkEvents(const ForkEvents&) = delete;
  ForkEvents& operator=(const ForkEvents&) = delete;

  // Subscribes. Unavailable outside the initial namespaces, without CONFIG_PROC_EVENTS, and before
  // Linux 6.6 without CAP_NET_ADMIN. `host` must be this machine.
  Availability Start(const Host& host);
  // Begins and ends of all processes (not threads) of the machine since the last call; those of one
  // process are in order.
  std::vector<ForkEvent> Take();
  // How often the kernel dropped notifications because we were late. When it grows, look at /proc.
  int64_t lost() const { return lost_; }

 private:
  int socket_ = -1;
  int64_t lost_ = 0;
};

}  // namespace headrace::probes
