// FlightRecorder: holds the last seconds in full detail, in memory. Intervals leave it merged into
// coarse ones; only those shortly before and after a pulled trigger leave it as they were recorded.
#pragma once
#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <vector>

#include "collectors/store/store.h"

namespace headrace::collectors {

class FlightRecorder {
 public:
  // Keeps `ring_ns` before and after a trigger in detail, within `limit_bytes` of memory, and
  // merges the rest into intervals of `coarse_ns`.
  explicit FlightRecorder(int64_t ring_ns, int64_t coarse_ns = 10'000'000'000,
                          size_t limit_bytes = 16 << 20);

  // Adds the next interval. `reason`: what pulled the trigger in it, if anything did.
  void Add(IntervalSample sample, const std::optional<std::string>& reason);
  // Call after the last interval: what the ring holds becomes coarse.
  void Finish();

  // The intervals that are ready to be stored, in order of time.
  std::vector<IntervalSample> TakeCoarse();
  std::vector<IntervalSample> TakeDetail();
  // The range of detail that is being kept or was kept last, if it changed since the last call.
  std::optional<DetailRange> TakeRange();

  // Intervals that left the ring too early because memory was short.
  int64_t intervals_cut() const { return intervals_cut_; }
  size_t held_bytes() const { return held_bytes_; }

 private:
  void ToCoarse(IntervalSample sample);
  void FlushCoarse();

  int64_t ring_ns_, coarse_ns_;
  size_t limit_bytes_;
  std::deque<IntervalSample> ring_;
  size_t held_bytes_ = 0;
  std::optional<IntervalSample> coarse_;
  std::vector<IntervalSample> ready_coarse_, ready_detail_;
  std::optional<DetailRange> range_;
  bool range_changed_ = false;
  int64_t keep_until_ns_ = 0, intervals_cut_ = 0;
};

}  // namespace headrace::collectors
