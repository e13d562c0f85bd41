// Split: the unit of work, one stripe of one file. A SplitSource hands splits out; the usual one is
// SplitLedger: those of a table, each exactly once per epoch, or what is left of them if the run
// continues an earlier one.
#pragma once
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "reader/dwrf/file_reader.h"
#include "reader/pipeline/delivery/ledger.h"
#include "reader/source/open.h"

namespace headrace::reader {

struct Split {
  uint64_t id = 0;  // its place in the table: files in name order, stripes in file order
  uint32_t file_index = 0;
  uint32_t stripe = 0;
  uint64_t first_row = 0;  // of the table
  uint64_t rows = 0;
};

class StopSignal;

struct HandedSplit {
  Split split;
  uint64_t sequence = 0;     // counts the splits handed out
  uint64_t first_slice = 0;  // counts the slices of the splits handed out before
  uint64_t place = 0;        // number of the split, counted over all epochs
  uint64_t epoch = 0;
  std::shared_ptr<const std::vector<RowSpan>> wanted;  // null: all rows
};

// Thread-safe.
class SplitSource {
 public:
  virtual ~SplitSource() = default;
  // Waits for the next split; nothing when there are no more, or `stop` was given.
  virtual std::optional<HandedSplit> Next(StopSignal* stop) = 0;
  // Share of all splits that were handed out; below 0 when there is no end.
  virtual double fraction() const { return -1; }
};

// Thread-safe.
class SplitLedger final : public SplitSource {
 public:
  // `epochs` 0 = for ever. What `delivered` has settled is not handed out again; null: nothing is.
  SplitLedger(std::vector<Split> splits, uint64_t epochs,
              std::shared_ptr<const DeliveryLedger> delivered = nullptr);

  // Splits become slices of `rows` rows (dwrf/slices.h); 0, the default: one slice each.
  void SetSliceRows(uint64_t rows) { slice_rows_ = rows; }
  std::optional<HandedSplit> Next(StopSignal* stop = nullptr) override;  // never waits
  uint64_t handed_out() const;  // including splits that were skipped
  // Splits of all epochs; nothing when it never ends.
  std::optional<uint64_t> total() const;
  double fraction() const override;

 private:
  mutable std::mutex mutex_;
  std::vector<Split> splits_;
  uint64_t epochs_;
  std::shared_ptr<const DeliveryLedger> delivered_;
  uint64_t next_ = 0, sequence_ = 0, slice_rows_ = 0, slices_ = 0;
};

// An opened table: the files part-*.dwrf (or all *.dwrf and *.orc) of a folder in name order, or
// one file.
struct Table {
  std::vector<std::shared_ptr<const dwrf::FileReader>> files;
  std::vector<Split> splits;
  uint64_t rows = 0;
};
// The splits' rows, for a DeliveryLedger.
std::vector<RowRange> RangesOf(const std::vector<Split>& splits);

// Throws Error kBadData when there is no such file, when a file is damaged, or when schemas differ.
Table OpenTable(const std::string& path, const SourceOptions& options = {},
                const SourceContext& context = {}, const dwrf::OpenOptions& opening = {});

}  // namespace headrace::reader
