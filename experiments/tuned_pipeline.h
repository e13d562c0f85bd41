// The reference pipeline of this process as the tuner sees it: threads and queues set live, the run
// read from the database that its collector writes.
#pragma once
#include <atomic>
#include <cstdint>
#include <optional>
#include <string>

#include "analysis/tuning/tuned_target.h"
#include "experiments/run_watch.h"
#include "reader/pipeline/pipeline.h"

namespace headrace::experiments {

class TunedPipeline : public analysis::TunedTarget {
 public:
  // `pipeline` must outlive it. When `*ended` becomes true, Observe returns at once.
  TunedPipeline(reader::Pipeline* pipeline, std::string database, int64_t run_id,
                const std::atomic<bool>* ended);

  analysis::KnobValues knobs() const override;
  int64_t Apply(const std::vector<analysis::Change>& changes) override;
  std::optional<analysis::RunView> Observe(int64_t wait_ns) override;
  std::optional<int64_t> now_ns() override { return watch_.now_ns(); }

 private:
  reader::Pipeline* pipeline_;
  RunWatch watch_;
  const std::atomic<bool>* ended_;
};

}  // namespace headrace::experiments
