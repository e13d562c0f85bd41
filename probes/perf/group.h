// CounterGroup: events that are always on the PMU together, so that ratios between them are exact.
// Returns what was counted since the previous reading; what the PMU could not count stays unknown.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "probes/perf/backend.h"

namespace headrace::probes::perf {

// What a group counted between two readings.
struct GroupDelta {
  enum class Status : uint8_t {
    kCounted,
    kNotScheduled,  // the group was not on the PMU, or its threads did not run: nothing is known
    kLost,     // a pinned group lost its place on the PMU (read gave 0 bytes), and counts no more
    kFailed,   // read failed, see error
    kDamaged,  // the answer makes no sense: too short, or counts or times that fell
  };
  Status status = Status::kNotScheduled;
  int error = 0;
  std::vector<uint64_t> counts;  // as counted, not scaled; empty unless kCounted
  uint64_t enabled_ns = 0;       // time in which the group should have counted ...
  uint64_t running_ns = 0;       // ... and did
};

class CounterGroup {
 public:
  explicit CounterGroup(PerfBackend& backend) : backend_(&backend) {}
  ~CounterGroup() { Close(); }
  CounterGroup(CounterGroup&& other) noexcept;
  CounterGroup& operator=(CounterGroup&& other) noexcept;

  struct OpenResult {
    int error = 0;       // errno; 0: all are open
    size_t refused = 0;  // index of the event that was refused
    bool ok() const { return error == 0; }
  };
  // Opens `events`, the first as leader; all or none. The fields of `request` apply to all, except
  // code and leader. Closes what was open before.
  OpenResult Open(const OpenRequest& request, std::span<const EventCode> events);
  // What was counted since the reading before, or since Open.
  GroupDelta Read();
  int Enable() { return is_open() ? backend_->Enable(handles_[0]) : 0; }
  int Disable() { return is_open() ? backend_->Disable(handles_[0]) : 0; }
  void Close();

  bool is_open() const { return !handles_.empty(); }
  const std::vector<int>& handles() const { return handles_; }

 private:
  PerfBackend* backend_;
  std::vector<int> handles_;
  std::vector<uint64_t> ids_, last_;
  uint64_t last_enabled_ns_ = 0, last_running_ns_ = 0;
};

// Computes `now` - `before` for a counter of 48 bits or more: a fall from near 2^48 to near 0 is a
// wrap-around. False if the counter fell otherwise.
bool CounterDelta(uint64_t before, uint64_t now, uint64_t* delta);

}  // namespace headrace::probes::perf
