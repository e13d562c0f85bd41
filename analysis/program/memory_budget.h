// MemoryBudget: which settings fit the memory that a plan may use.
//
// What a process needs is what it held at its peak without its queues, and for each stage its queue
// full and every thread with an element in hand.
#pragma once
#include <cstdint>
#include <optional>

#include "analysis/model/pipeline_model.h"

namespace headrace::analysis {

// Bytes of one element behind a stage; 0 where the run did not record it.
double ElementBytes(const PipelineModel& model, size_t stage);

// Queues full and every thread with an element in hand; empty when no element size was recorded.
std::optional<double> QueueMemory(const PipelineModel& model, const Settings& settings);

// What the process may use: `bytes`, else the run's own limit; infinite where there is none.
double MemoryLimit(const PipelineModel& model, std::optional<uint64_t> bytes);

class MemoryBudget {
 public:
  // At most MemoryLimit(model, bytes). Throws Error kInconclusive, saying by how much,
  // where not even queues of one element fit.
  MemoryBudget(const PipelineModel& model, std::optional<uint64_t> bytes);

  // Infinite: no limit.
  double limit_bytes() const { return limit_bytes_; }
  // Of the process without its queues.
  double base_bytes() const { return base_bytes_; }
  // With those settings and so much more in memory.
  double Needed(const Settings& settings, double more_bytes = 0) const;
  bool Fits(const Settings& settings, double more_bytes = 0) const {
    return Needed(settings, more_bytes) <= limit_bytes_;
  }
  // With queues so short that they fit beside one thread per stage; else as they are.
  Settings Shortened(Settings settings) const;

 private:
  const PipelineModel& model_;
  double base_bytes_ = 0, limit_bytes_ = 0;
};

}  // namespace headrace::analysis
