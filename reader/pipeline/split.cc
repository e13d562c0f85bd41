#include "reader/pipeline/split.h"

#include <fmt/format.h>

#include "base/error.h"
#include "reader/dwrf/file_reader.h"
#include "reader/dwrf/slices.h"

namespace headrace::reader {

SplitLedger::SplitLedger(std::vector<Split> splits, uint64_t epochs,
                         std::shared_ptr<const DeliveryLedger> delivered)
    : splits_(std::move(splits)), epochs_(epochs), delivered_(std::move(delivered)) {
  if (delivered_) next_ = delivered_->first_epoch() * splits_.size();
}

std::optional<HandedSplit> SplitLedger::Next(StopSignal* /*stop*/) {
  std::lock_guard lock(mutex_);
  if (splits_.empty()) return std::nullopt;
  for (; epochs_ == 0 || next_ < splits_.size() * epochs_; ++next_) {
    const uint64_t split = next_ % splits_.size(), epoch = next_ / splits_.size();
    std::shared_ptr<const std::vector<RowSpan>> wanted;
    if (delivered_) {
      // A split without rows is settled and still handed out, as in a run from the beginning.
      if (splits_[split].rows > 0 && delivered_->IsDone(epoch, split)) continue;
      if (splits_[split].rows > 0 && !delivered_->IsWhole(epoch, split))
        wanted = std::make_shared<std::vector<RowSpan>>(delivered_->Remaining(epoch, split));
    }
    const uint64_t first_slice = slices_;
    slices_ += dwrf::NumSlices(splits_[split].rows, slice_rows_);
    return HandedSplit{splits_[split], sequence_++, first_slice, next_++, epoch, std::move(wanted)};
  }
  return std::nullopt;
}

std::vector<RowRange> RangesOf(const std::vector<Split>& splits) {
  std::vector<RowRange> ranges;
  for (const Split& split : splits) ranges.push_back({split.first_row, split.rows});
  return ranges;
}

uint64_t SplitLedger::handed_out() const {
  std::lock_guard lock(mutex_);
  return next_;
}

std::optional<uint64_t> SplitLedger::total() const {
  if (epochs_ == 0) return std::nullopt;
  return splits_.size() * epochs_;
}

double SplitLedger::fraction() const {
  const auto all = total();
  return !all || *all == 0 ? -1 : static_cast<double>(handed_out()) / static_cast<double>(*all);
}

Table OpenTable(const std::string& path, const SourceOptions& options, const SourceContext& context,
                const dwrf::OpenOptions& opening) {
  Table table;
  for (const std::string& file : ListTable(path, options, context)) {
    auto reader = dwrf::FileReader::Open(OpenSource(file, options, context), opening);
    if (!table.files.empty() && !(reader->schema() == table.files[0]->schema())) {
      throw Error(
          ExitCode::kBadData,
          fmt::format("its schema differs from that of {}", table.files[0]->source().name()), file,
          "keep files of different schemas in different folders");
    }
    if (reader->num_rows() > kMostTableRows - table.rows)
      throw Error(
          ExitCode::kBadData,
          fmt::format("its footer claims {} rows, and the files before it have {}: more than "
                      "a table can have",
                      reader->num_rows(), table.rows),
          file, "the file is damaged: write it again, or take it out of the folder");
    for (size_t s = 0; s < reader->num_stripes(); ++s) {
      const uint64_t rows = reader->tail().footer.stripes(static_cast<int>(s)).number_of_rows();
      table.splits.push_back({table.splits.size(), static_cast<uint32_t>(table.files.size()),
                              static_cast<uint32_t>(s), table.rows, rows});
      table.rows += rows;
    }
    table.files.push_back(std::move(reader));
  }
  return table;
}

}  // namespace headrace::reader
