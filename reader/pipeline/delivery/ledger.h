// DeliveryLedger: which rows of which epoch the consumer has taken. Rows are settled by the spans
// of its batches (reader/batch/row_span.h). A fully settled split takes one bit, a fully settled
// epoch nothing; of splits that are not, a range of rows takes a few bytes (row_set.h).
//
// Not thread-safe, except for const functions while nothing changes it.
#pragma once
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "reader/batch/row_span.h"
#include "reader/pipeline/delivery/row_set.h"

namespace headrace::reader {

// Rows of several epochs, when it no longer matters which ones they are, but must be seen that they
// are those that others lack. `sum` is a sum of hashes, one of each row of each epoch, so that the
// sums of ledgers that divide some rows between them add up to the sum of these rows. If they have
// other rows, although as many, the sum differs but for one case in 2^64.
struct RowTotal {
  uint64_t rows = 0, sum = 0;
  RowTotal operator+(const RowTotal& other) const { return {rows + other.rows, sum + other.sum}; }
  bool operator==(const RowTotal&) const = default;
};

// A ledger's content, for a file. Epochs before first_epoch are over: their rows are settled, here
// or in the ledgers of other ranks. Later epochs that are not in `epochs` have nothing settled.
struct DeliveryState {
  struct Epoch {
    std::vector<uint64_t> done;  // a bit per split, least significant first
    RowSet partial;              // the settled rows of splits that are not done
    bool operator==(const Epoch&) const = default;
  };
  uint64_t first_epoch = 0;
  // Rows of the epochs before first_epoch that are settled here; which ones is no longer known.
  // Nothing: all of them.
  std::optional<RowTotal> closed = std::nullopt;
  std::map<uint64_t, Epoch> epochs;
  bool operator==(const DeliveryState&) const = default;
};

class DeliveryLedger {
 public:
  // `splits` are those of the table, in its order, one behind the other: throws Error kBadData
  // where they are not. Splits without rows are settled from the beginning.
  explicit DeliveryLedger(std::vector<RowRange> splits);
  // Continues from `state`. Throws Error kBadData when it does not fit these splits: rows of no
  // split, of one that is done, or all of one that is not; bits for splits that are not there.
  DeliveryLedger(std::vector<RowRange> splits, DeliveryState state);
  // The same of the splits of another one, which both then have together.
  DeliveryLedger(const DeliveryLedger& like, DeliveryState state);

  // HR_CHECKs that no row is settled twice and no span is outside its split, because all of
  // delivery relies on that.
  void Settle(std::span<const RowSpan> spans);

  // Throws Error kBadData for rows outside their split: the span may come from another process.
  void CheckRows(const RowSpan& span) const;
  // The parts of `span` that are not settled, ascending, with rows = count. Throws as CheckRows.
  std::vector<RowSpan> Unsettled(const RowSpan& span) const;
  // Settles what of `spans` is not settled yet, and returns it. Throws as CheckRows.
  std::vector<RowSpan> Admit(std::span<const RowSpan> spans);
  // Adds what another ledger of the same splits has settled. Throws Error kBadData where both have
  // settled a row. Of epochs that one of them has closed only totals are compared: it throws where
  // both together have too many rows, or as many as there are, and not each once.
  void Merge(const DeliveryLedger& other);
  // Epochs before this one are over: all their rows are settled, here or in the ledgers of other
  // ranks. Only the total of those settled here is kept, so that a job without end takes no more
  // memory.
  // Does nothing for epochs that are over already.
  void Close(uint64_t until);

  // The ranges that are settled, of this epoch and those after it, with rows = count; one after the
  // other, as all together may be many. Not of epochs that were closed.
  void EachSettled(uint64_t from_epoch, const std::function<void(const RowSpan&)>& take) const;
  std::vector<RowSpan> Settled(uint64_t from_epoch = 0) const;

  bool IsDone(uint64_t epoch, uint64_t split) const;
  // The ranges of a split that are not settled, ascending, with rows = count.
  std::vector<RowSpan> Remaining(uint64_t epoch, uint64_t split) const;
  bool IsWhole(uint64_t epoch, uint64_t split) const;  // none of its rows is settled
  // All epochs before this one are over.
  uint64_t first_epoch() const { return state_.first_epoch; }
  uint64_t settled_rows() const { return RowsBefore(UINT64_MAX); }  // of all epochs
  // Settled rows of the epochs before this one, which is not before first_epoch() if epochs were
  // closed. Time: splits of each that is not over.
  uint64_t RowsBefore(uint64_t epoch) const;
  // The same with their sum. Time: also ranges.
  RowTotal TotalBefore(uint64_t epoch) const;
  // Rows of epochs that are over that are not settled here.
  uint64_t missing_rows() const;
  const DeliveryState& state() const { return state_; }
  const std::vector<RowRange>& splits() const { return *splits_; }

 private:
  // Of these rows of the split, those that are not settled.
  std::vector<RowSpan> Left(uint64_t epoch, uint64_t split, const RowRange& within) const;
  DeliveryState::Epoch& EpochOf(uint64_t epoch);
  uint64_t SumBefore(uint64_t epoch, uint64_t row) const;
  uint64_t SumOf(uint64_t epoch, const RowRange& rows) const;
  RowTotal AllBefore(uint64_t epoch) const;
  // A row that is settled of an epoch after first_epoch(), if any is.
  std::optional<uint64_t> AnySettled(const DeliveryState::Epoch& epoch) const;
  std::optional<RowSpan> AnySettledBefore(uint64_t until) const;
  void MergeEpoch(uint64_t number, const DeliveryState::Epoch& theirs);
  void CheckApart(uint64_t number, const DeliveryState::Epoch& done, const RowSet& rows) const;
  void Finish(uint64_t epoch);

  std::shared_ptr<const std::vector<RowRange>>
      splits_;  // of many ledgers: a table may have a million
  uint64_t rows_ = 0;
  std::map<uint64_t, uint64_t> num_done_;  // splits, of the epochs in state_
  DeliveryState state_;
};

}  // namespace headrace::reader
