#include "reader/pipeline/engine/progress.h"

#include <utility>

namespace headrace::reader {

void PipelineProgress::Took(uint64_t batch_rows, int64_t waited_ns, int64_t computed_ns,
                            int64_t done_ns) {
  if (batches++ == 0) {
    first_ns = done_ns - computed_ns;
    first_step_ns = done_ns;
    first_rows = batch_rows;
  }
  rows += batch_rows;
  wait_ns += static_cast<uint64_t>(waited_ns);
  compute_ns += static_cast<uint64_t>(computed_ns);
}

std::optional<double> PipelineProgress::SteadyRowsPerSecond(int64_t end_ns) const {
  if (batches < 2 || end_ns <= first_step_ns) return std::nullopt;
  return static_cast<double>(rows - first_rows) / static_cast<double>(end_ns - first_step_ns) * 1e9;
}

void Progress::Took(uint64_t rows, int64_t wait_ns, int64_t compute_ns, int64_t done_ns) {
  std::lock_guard lock(mutex_);
  now_.Took(rows, wait_ns, compute_ns, done_ns);
}

void Progress::LeftOut(uint64_t rows, const std::string& why) {
  std::lock_guard lock(mutex_);
  if (++now_.skipped_stripes == 1) first_left_out_ = why;
  now_.skipped_rows += rows;
}

void Progress::Resumed(uint64_t rows) {
  std::lock_guard lock(mutex_);
  now_.resumed = true;
  now_.resumed_rows = rows;
}

void Progress::SetLocked(std::vector<std::string> columns) {
  std::lock_guard lock(mutex_);
  now_.locked_columns = std::move(columns);
}

PipelineProgress Progress::Now() const {
  std::lock_guard lock(mutex_);
  return now_;
}

std::string Progress::first_left_out() const {
  std::lock_guard lock(mutex_);
  return first_left_out_;
}

}  // namespace headrace::reader
