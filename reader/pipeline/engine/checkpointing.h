// Checkpointing: keeps account of the rows that the consumer has delivered and writes it, with the
// consumer's state of the same moment, so that another run goes on with exactly the rows that are
// missing. For the consumer's thread alone.
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
  uint64_t every = 64;  // batches between two of them
  bool resume = false;  // go on from the file at `path`, if there is one
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

  // A batch without rows has come to its end: the rows that were dropped of it are settled.
  void SettleDropped(const Element& batch) { ledger_.Settle(SpansOf(batch)); }
  // Before the consumer takes a batch, and after it did.
  void BeginStep(const Element& batch);
  void EndStep() { ++steps_taken_; }
  // Settles the steps that the consumer has delivered meanwhile.
  void SettleDelivered();

  // So many steps were settled since the last time that it should be written.
  bool is_due() const { return since_save_ >= options_.every; }
  void Save();
  // The last Save did not come through.
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
