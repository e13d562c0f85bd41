// Progress: what a run has done so far, for those who ask while it runs. Thread-safe.
#pragma once
#include <cstdint>
#include <mutex>
#include <string>
#include <vector>

namespace headrace::reader {

struct PipelineProgress {
  uint64_t batches = 0, rows = 0;        // taken by the consumer
  uint64_t wait_ns = 0, compute_ns = 0;  // of the consumer
  double fraction = -1;                  // of all splits handed out; below 0 when it has no end
  uint64_t skipped_stripes = 0, skipped_rows = 0;  // that could not be read
  std::vector<std::string> locked_columns;         // null for want of their keys (source.on_locked)
  bool resumed = false;                            // from a checkpoint
  uint64_t resumed_rows = 0;                       // settled before this run: delivered, or dropped
};

class Progress {
 public:
  // The consumer took a batch of so many rows.
  void Took(uint64_t rows, int64_t wait_ns, int64_t compute_ns);
  // A stripe could not be read: so many rows of it are left out.
  void LeftOut(uint64_t rows, const std::string& why);
  // The run goes on from a checkpoint, before which so many rows were settled.
  void Resumed(uint64_t rows);
  void SetLocked(std::vector<std::string> columns);

  PipelineProgress Now() const;
  // Why the first stripe was left out.
  std::string first_left_out() const;

 private:
  mutable std::mutex mutex_;
  PipelineProgress now_;
  std::string first_left_out_;
};

}  // namespace headrace::reader
