#include "reader/pipeline/engine/progress.h"

#include <utility>

namespace headrace::reader {

void Progress::Took(uint64_t rows, int64_t wait_ns, int64_t compute_ns) {
  std::lock_guard lock(mutex_);
  ++now_.batches;
  now_.rows += rows;
  now_.wait_ns += static_cast<uint64_t>(wait_ns);
  now_.compute_ns += static_cast<uint64_t>(compute_ns);
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
