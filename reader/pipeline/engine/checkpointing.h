// Checkpointing: records which rows the consumer has delivered and writes that to a file, with the
// consumer's state at the same moment, so that another run can continue with exactly the missing
// rows. Used by the consumer's thread alone.
#pragma once
#include <cstdint>
#include <deque>
#include <string>
#include <vector>

#include "reader/pipeline/consumer.h"
#include "reader/pipeline/delivery/ledger.h"
#include "reader/pipeline/fingerprint.h"

namespace headrace::reader {

struct CheckpointOptions {
  std::string path;     // empty: no checkpoint
  uint64_t every = 64;  // batches between two checkpoints
  bool resume = false;  // continue from the file at `path`, if there is one
};

class Checkpointing {
 public:
  // Reads the checkpoint to go on from, if there is one, and gives the consumer its state. `table`
  // is null for a synthetic source. Throws Error kUsage for that, and when the file exists and the
  // options do not say to go on from it.
  Checkpointing(CheckpointOptions options, const PipelineSpec& spec, const Table* table,
                Consumer* consumer);

  bool has_resumed() const { return has_resumed_; }
  const DeliveryLedger& ledger() const { return ledger_; }

  // Call when a batch without rows has reached the consumer: settles the rows that were dropped
  // from it.
  void SettleDropped(const Element& batch) { ledger_.Settle(SpansOf(batch)); }
  // Call BeginStep before the consumer takes a batch, EndStep afterwards.
  void BeginStep(const Element& batch);
  void EndStep() { ++steps_taken_; }
  // Settles the steps that the consumer has delivered meanwhile.
  void SettleDelivered();

  // Whether enough steps were settled since the last checkpoint to write the next one.
  bool is_due() const { return since_save_ >= options_.every; }
  void Save();
  // Whether the last Save failed.
  bool has_failed() const { return has_failed_; }

 private:
  struct Step {
    std::vector<RowSpan> spans;
    uint64_t rows = 0;
  };

  void Resume();

  const CheckpointOptions options_;
  Consumer* const consumer_;
  const uint64_t splits_;
  DeliveryLedger ledger_;
  Fingerprint fingerprint_;
  uint64_t earlier_batches_ = 0, earlier_rows_ = 0;  // delivered by earlier runs
  std::deque<Step> unsettled_;                       // steps that are not delivered for good
  uint64_t steps_taken_ = 0, steps_settled_ = 0, rows_settled_ = 0, since_save_ = 0;
  bool has_resumed_ = false, has_failed_ = false;
};

}  // namespace headrace::reader
