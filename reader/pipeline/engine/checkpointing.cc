#include "reader/pipeline/engine/checkpointing.h"

#include <filesystem>
#include <system_error>
#include <utility>

#include "base/check.h"
#include "base/error.h"
#include "reader/pipeline/delivery/checkpoint.h"

namespace headrace::reader {
namespace {

const Table& TableOf(const Table* table, const CheckpointOptions& options) {
  if (table != nullptr) return *table;
  throw Error(ExitCode::kUsage, "synthetic elements have no rows to go on from", options.path,
              "leave out --checkpoint");
}

// Rows that no span speaks of would be delivered again by the next run.
void CheckSpans(const std::vector<RowSpan>& spans, uint64_t rows) {
  if (spans.empty())
    throw Error(ExitCode::kUsage, "the last operator makes no batches of rows to keep a record of",
                "--checkpoint",
                "a checkpoint needs extract, or an operator behind it, as the last");
  uint64_t counted = 0;
  for (const RowSpan& span : spans) counted += span.rows;
  HR_CHECK(counted == rows, "an operator changed the rows of a batch and not its spans");
}

}  // namespace

Checkpointing::Checkpointing(CheckpointOptions options, const PipelineSpec& spec,
                             const Table* table, Consumer* consumer)
    : options_(std::move(options)),
      consumer_(consumer),
      splits_(TableOf(table, options_).splits.size()),
      ledger_(RangesOf(table->splits)) {
  RemoveTornCheckpoints(options_.path);
  fingerprint_ = FingerprintOf(*table, spec);
  std::error_code ignored;
  if (!std::filesystem::exists(options_.path, ignored)) return;
  if (!options_.resume)
    throw Error(ExitCode::kUsage, "exists", options_.path,
                "add --resume to go on from it, or remove it to start from the first row");
  Resume();
}

void Checkpointing::Resume() {
  Checkpoint saved = ReadCheckpoint(options_.path);
  CheckFingerprint(saved.fingerprint, fingerprint_, options_.path);
  try {
    if (saved.splits != splits_) throw Error(ExitCode::kBadData, "the splits differ in number");
    if (saved.delivered.closed)
      throw Error(
          ExitCode::kUsage,
          "is the checkpoint of one of several ranks: it does not say which rows others had", {},
          "go on with 'headrace consume', or start without the checkpoint");
    ledger_ = DeliveryLedger(ledger_.splits(), std::move(saved.delivered));
    consumer_->LoadState(saved.consumer_state);
  } catch (const Error& error) {
    throw error.Within(options_.path);
  }
  earlier_batches_ = saved.batches;
  earlier_rows_ = saved.rows;
  has_resumed_ = true;
}

void Checkpointing::BeginStep(const Element& batch) {
  unsettled_.push_back({SpansOf(batch), batch.rows});
  CheckSpans(unsettled_.back().spans, batch.rows);
}

void Checkpointing::SettleDelivered() {
  const uint64_t delivered = consumer_->DeliveredSteps(steps_taken_);
  for (; steps_settled_ < delivered; ++steps_settled_, ++since_save_) {
    HR_CHECK(!unsettled_.empty(), "a consumer delivered more steps than it took");
    ledger_.Settle(unsettled_.front().spans);
    rows_settled_ += unsettled_.front().rows;
    unsettled_.pop_front();
  }
}

void Checkpointing::Save() {
  Checkpoint save;
  save.fingerprint = fingerprint_;
  save.splits = splits_;
  save.delivered = ledger_.state();
  save.batches = earlier_batches_ + steps_settled_;
  save.rows = earlier_rows_ + rows_settled_;
  has_failed_ = true;
  save.consumer_state = consumer_->SaveState();
  WriteCheckpoint(options_.path, save);
  has_failed_ = false;
  since_save_ = 0;
}

}  // namespace headrace::reader
