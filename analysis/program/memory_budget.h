// MemoryBudget: which settings fit the memory that a plan may use.
//
// A process needs what it held at its peak without its queues, plus for each stage a full queue and
// one element for every thread.
#pragma once
#include <cstdint>
#include <optional>

#include "analysis/model/pipeline_model.h"

namespace headrace::analysis {

// Bytes of one element that a stage puts out; 0 where the run did not record it.
double ElementBytes(const PipelineModel& model, size_t stage);

// Bytes of full queues and of one element for every thread; empty when no element size was
// recorded.
std::optional<double> QueueMemory(const PipelineModel& model, const Settings& settings);

// Bytes that the process may use: `bytes`, else the run's own limit; infinite where there is none.
double MemoryLimit(const PipelineModel& model, std::optional<uint64_t> bytes);

class MemoryBudget {
 public:
  // The limit is MemoryLimit(model, bytes). Throws Error kInconclusive, saying by how much, where
  // not even queues of one element fit.
  MemoryBudget(const PipelineModel& model, std::optional<uint64_t> bytes);

  // Infinite: no limit.
  double limit_bytes() const { return limit_bytes_; }
  // Bytes of the process without its queues.
  double base_bytes() const { return base_bytes_; }
  // Bytes that the process needs with those settings, plus `more_bytes`.
  double Needed(const Settings& settings, double more_bytes = 0) const;
  bool Fits(const Settings& settings, double more_bytes = 0) const {
    return Needed(settings, more_bytes) <= limit_bytes_;
  }
  // `settings` with queues shortened so that they fit when each stage has one thread; unchanged
  // where they fit already.
  Settings Shortened(Settings settings) const;

 private:
  const PipelineModel& model_;
  double base_bytes_ = 0, limit_bytes_ = 0;
};

}  // namespace headrace::analysis
