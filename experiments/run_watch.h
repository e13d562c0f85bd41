// RunWatch: reads a run while it is being recorded. It waits until a given amount more is stored,
// and tells the time by the run's clock.
#pragma once
#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "analysis/run/run_view.h"

namespace headrace::experiments {

class RunWatch {
 public:
  RunWatch(std::string database, int64_t run_id);

  // The run so far, once `wait_ns` more of it are recorded; nothing when `ended` says so or the
  // user interrupts. Throws Error kFailure where the recording makes no progress.
  std::optional<analysis::RunView> Observe(int64_t wait_ns, const std::function<bool()>& ended);
  // Time since the run began; none before the first Observe.
  std::optional<int64_t> now_ns() const;
  int64_t recorded_ns() const { return recorded_ns_; }  // end of the last window seen

 private:
  std::string database_;
  int64_t run_id_;
  int64_t began_ns_ = 0;  // start of the run by the monotonic clock; 0: not known yet
  int64_t recorded_ns_ = 0;
};

}  // namespace headrace::experiments
