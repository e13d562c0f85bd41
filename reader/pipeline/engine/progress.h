// Progress: what a run has done so far, for those who ask while it runs. Thread-safe.
#pragma once
#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

namespace headrace::reader {

struct PipelineProgress {
  uint64_t batches = 0, rows = 0;        // taken by the consumer
  uint64_t wait_ns = 0, compute_ns = 0;  // of the consumer
  int64_t first_ns = 0;                  // when the first batch came; 0: none has
  int64_t first_step_ns = 0;             // when its step was over
  uint64_t first_rows = 0;               // of that batch
  // Share of all splits that were handed out; below 0 when there is no end.
  double fraction = -1;
  uint64_t skipped_stripes = 0, skipped_rows = 0;  // that could not be read
  // Read as null because their key is missing (source.on_locked).
  std::vector<std::string> locked_columns;
  bool resumed = false;       // from a checkpoint
  uint64_t resumed_rows = 0;  // settled before this run: delivered, or dropped

  // Adds a batch whose step was over at `done_ns`.
  void Took(uint64_t batch_rows, int64_t waited_ns, int64_t computed_ns, int64_t done_ns);
  // Rows a second from the end of the first step to `end_ns`: what comes before waits for others to
  // begin. Empty before the second batch.
  std::optional<double> SteadyRowsPerSecond(int64_t end_ns) const;
};

class Progress {
 public:
  // Call when the consumer has taken a batch of `rows` rows; its step was over at `done_ns`.
  void Took(uint64_t rows, int64_t wait_ns, int64_t compute_ns, int64_t done_ns);
  // Call when a stripe could not be read: `rows` rows of it are left out.
  void LeftOut(uint64_t rows, const std::string& why);
  // Call when the run continues from a checkpoint in which `rows` rows were settled.
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
