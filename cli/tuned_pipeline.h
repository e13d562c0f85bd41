// The reference pipeline of this process as the tuner sees it: threads and queues set live, the run
// read from the database that its collector writes.
#pragma once
#include <atomic>
#include <cstdint>
#include <optional>
#include <string>

#include "analysis/tuned_target.h"
#include "reader/pipeline/pipeline.h"

namespace headrace::cli {

class TunedPipeline : public analysis::TunedTarget {
 public:
  // `pipeline` must outlive it; `ended` becomes true when Observe is to return at once.
  TunedPipeline(reader::Pipeline* pipeline, std::string database, int64_t run_id,
                const std::atomic<bool>* ended);

  analysis::KnobValues knobs() const override;
  int64_t Apply(const std::vector<analysis::Change>& changes) override;
  std::optional<analysis::RunView> Observe(int64_t wait_ns) override;
  std::optional<int64_t> now_ns() override;

 private:
  reader::Pipeline* pipeline_;
  std::string database_;
  int64_t run_id_;
  const std::atomic<bool>* ended_;
  int64_t began_ns_ = 0;     // of the run, by the monotonic clock; 0: not known yet
  int64_t recorded_ns_ = 0;  // end of the last window that was seen
};

}  // namespace headrace::cli
