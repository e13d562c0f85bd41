#include "reader/dwrf/verify.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <xxhash.h>

#include <algorithm>
#include <map>
#include <span>

#include "base/error.h"
#include "reader/dwrf/column_reader.h"
#include "reader/dwrf/file_statistics.h"
#include "reader/dwrf/row_index.h"
#include "reader/dwrf/row_reader.h"
#include "reader/dwrf/stride_statistics.h"
#include "reader/dwrf/text.h"

namespace headrace::reader::dwrf {
namespace {

constexpr uint64_t kBatchRows = 4096, kBatchBytes = 32 << 20;

// An index without its bytes, in the map.
constexpr uint64_t kIndexBytes = sizeof(RowIndexReader) + 64;

// What a stripe may cost beyond reading its rows once, by the bytes it has in the file: a few of
// them can claim any number of strides, keys and row indexes. For 60,000 columns of keys, seven
// strides and their row indexes stay below the limit of the smallest stripe; each further one has
// stored bytes of its own.
uint64_t MaxMemoryBytes(uint64_t stored) {
  return std::clamp<uint64_t>(64 * stored, 256 << 20, 1 << 30);
}
// Statistics of one (node, sequence) in one stride, and streams opened for one stride.
uint64_t MaxParts(uint64_t stored) { return std::max<uint64_t>(2 << 20, 4 * stored); }
// Unpacked to read the strides again.
uint64_t MaxSeekBytes(uint64_t stored) { return (uint64_t{1} << 30) + 1024 * stored; }

uint64_t StoredBytes(const Stripe& stripe) { return stripe.index_length + stripe.data_length; }

// The canonical text of rows as one number, however they came in batches.
class RowHash {
 public:
  explicit RowHash(const Schema& schema)
      : state_(XXH64_createState(), XXH64_freeState),
        printer_(schema, TextFormat::kCanonical, [this](std::string_view text) {
          XXH64_update(state_.get(), text.data(), text.size());
        }) {
    XXH64_reset(state_.get(), 0);
  }
  void Add(const Column& batch) { printer_.Print(batch, 0, batch.rows); }
  uint64_t Take() {
    printer_.Flush();
    const uint64_t hash = XXH64_digest(state_.get());
    XXH64_reset(state_.get(), 0);
    return hash;
  }

 private:
  std::unique_ptr<XXH64_state_t, decltype(&XXH64_freeState)> state_;
  RowPrinter printer_;
};

class Verifier {
 public:
  explicit Verifier(const std::shared_ptr<const FileReader>& file)
      : file_(file), schema_(file->schema()), totals_(file->schema().size()) {
    ChooseColumns();
    const proto::PostScript& ps = file_->tail().postscript;
    // Older Java writers kept bounds in another form.
    trust_text_ = ps.writer_version() >= 2 || WriterIs("dwio") || WriterIs("presto");
  }

  Verification Run() {
    if (!seek_reason_.empty()) result_.not_checked.push_back(seek_reason_);
    for (size_t s = 0; s < file_->num_stripes(); ++s) VerifyStripe(s);
    VerifyFooter();
    if (!any_column_) result_.not_checked.push_back("columns: all are encrypted and locked");
    return std::move(result_);
  }

 private:
  bool WriterIs(std::string_view name) const {
    for (const proto::UserMetadataItem& item : file_->tail().footer.metadata())
      if (item.name() == "orc.writer.name" && item.value() == name) return true;
    return false;
  }
  bool IsOpen(uint32_t column) const {
    for (uint32_t node = column; node <= schema_.node(column).last; ++node) {
      const uint32_t group = file_->keys().GroupOf(node);
      if (group != 0 && !file_->keys().groups()[group - 1].why_locked.empty()) return false;
    }
    return true;
  }
  void ChooseColumns() {
    const SchemaNode& root = schema_.root();
    bool all = true;
    open_.assign(schema_.size(), true);
    for (size_t c = 0; c < root.children.size(); ++c) {
      if (IsOpen(root.children[c])) {
        nodes_.push_back(root.children[c]);
        options_.columns.push_back({root.field_names[c], true, {}});
        continue;
      }
      all = false;
      for (uint32_t node = root.children[c]; node <= schema_.node(root.children[c]).last; ++node)
        open_[node] = false;
      result_.not_checked.push_back("column " + Printable(root.field_names[c]) +
                                    ": encrypted, and locked");
    }
    any_column_ = root.children.empty() || !nodes_.empty();
    if (all) options_.columns.clear();  // all: also those of equal names
    // A writer whose positions are known to be wrong where a string is longer than its buffer.
    if (file_->tail().compression == CompressionKind::kNone && WriterIs("presto"))
      seek_reason_ = "positions: this writer's are known to be wrong in files without compression";
    options_.strict_seeks = true;
  }

  std::string StrideName(const Stripe& stripe, uint64_t stride) const {
    const uint64_t first = stride * stride_rows_;
    const uint64_t end = std::min(stripe.rows, first + stride_rows_);
    return fmt::format("stripe {}, rows {} to {}", stripe.index, stripe.first_row + first,
                       stripe.first_row + end - 1);
  }
  std::string ColumnName(uint32_t node, uint32_t sequence) const {
    if (node == 0) return "the row itself";
    return fmt::format("column {} (node {} sequence {})", Printable(schema_.Path(node)), node,
                       sequence);
  }
  [[noreturn]] void Differ(const std::string& where, const std::string& what) const {
    throw Error(ExitCode::kBadData, what, file_->source().name() + ": " + where,
                "the metadata was changed, or the file is damaged");
  }

  void VerifyStripe(size_t index) {
    ++result_.stripes;
    const std::shared_ptr<const Stripe> stripe = file_->ReadStripe(index);
    if (stripe->rows == 0 || !any_column_) return;
    result_.checksums += file_->VerifyChecksum(index) ? 1 : 0;
    CheckStrides(*stripe);
    LoadIndexes(*stripe);
    const uint64_t strides = (stripe->rows + stride_rows_ - 1) / stride_rows_;
    RowReaderOptions options = options_;
    options.first_stripe = index;
    options.num_stripes = 1;
    options.verify_checksums = false;  // done
    RowReader rows(file_, options);
    StrideStatistics statistics(schema_, *stripe, nodes_);
    RowHash hash(rows.schema());
    const bool seeks = strides > 1 && seek_reason_.empty();
    std::vector<uint64_t> hashes;
    Column batch;
    for (uint64_t stride = 0; stride < strides; ++stride) {
      ReadStride(
          &rows, *stripe, stride,
          [&] {
            statistics.AddRows(batch);
            if (seeks) hash.Add(batch);
          },
          &batch);
      hashes.push_back(hash.Take());
      CompareStride(*stripe, stride, statistics);
      statistics.MoveTo(&totals_);
    }
    result_.rows += stripe->rows;
    if (seeks) SeekStrides(*stripe, hashes, &rows);
  }

  // Calls step() with the rows of one stride, batch by batch, in `batch`.
  template <class Step>
  void ReadStride(RowReader* rows, const Stripe& stripe, uint64_t stride, Step step,
                  Column* batch) const {
    const uint64_t first = stride * stride_rows_;
    uint64_t left = std::min(stride_rows_, stripe.rows - first);
    while (left > 0) {
      if (!rows->NextBatch(std::min(left, kBatchRows), kBatchBytes, batch) || batch->rows > left)
        Differ(StrideName(stripe, stride), fmt::format("{} rows are missing", left));
      step();
      left -= batch->rows;
    }
  }

  // What a stride of the stripe is: without an index, all of its rows.
  void CheckStrides(const Stripe& stripe) {
    stride_rows_ = file_->tail().footer.row_index_stride();
    const bool has_index = std::ranges::any_of(
        stripe.streams, [&](const StreamInfo& stream) { return HasIndex(stream); });
    if (stride_rows_ == 0 || !has_index) stride_rows_ = stripe.rows;
    const uint64_t strides = (stripe.rows + stride_rows_ - 1) / stride_rows_;
    const uint64_t parts =
        schema_.size() + StrideStatistics::Size(schema_, stripe) + stripe.streams.size();
    if (strides == 1 || strides <= MaxParts(StoredBytes(stripe)) / parts) return;
    Differ(
        fmt::format("stripe {}", stripe.index),
        fmt::format("{} strides of {} rows, each of {} nodes, keys and streams, are more than its "
                    "{} bytes can mean",
                    strides, stride_rows_, parts, StoredBytes(stripe)));
  }
  bool HasIndex(const StreamInfo& stream) const {
    return stream.kind == StreamKind::kRowIndex && stream.length > 0 && open_[stream.node];
  }

  // The row indexes of the stripe.
  void LoadIndexes(const Stripe& stripe) {
    indexes_.clear();
    index_bytes_ = 0;
    const uint64_t strides = (stripe.rows + stride_rows_ - 1) / stride_rows_;
    const uint64_t most = MaxMemoryBytes(StoredBytes(stripe));
    Budget budget{most};
    try {
      budget.Charge(StrideStatistics::Size(schema_, stripe), sizeof(StatisticsBuilder));
      for (const StreamInfo& stream : stripe.streams) {
        if (!HasIndex(stream)) continue;
        RowIndexReader index(*file_, stripe, stream.node, stream.sequence);
        budget.Charge(1, index.bytes() + kIndexBytes);
        index_bytes_ += index.bytes();
        CheckEntries(stripe, stream, index.CountLeft(), strides);
        indexes_.emplace(std::pair(stream.node, stream.sequence), std::move(index));
      }
    } catch (const BatchTooLarge&) {
      Differ(
          fmt::format("stripe {}", stripe.index),
          fmt::format("its row indexes and the statistics of its keys need more than {} bytes of "
                      "memory, {} bytes are stored",
                      most, StoredBytes(stripe)));
    }
  }
  void CheckEntries(const Stripe& stripe, const StreamInfo& stream, uint64_t entries,
                    uint64_t strides) const {
    if (entries == strides) return;
    Differ(fmt::format("stripe {}, {}", stripe.index, ColumnName(stream.node, stream.sequence)),
           fmt::format("the row index has {} entries, {} rows in strides of {} have {}", entries,
                       stripe.rows, stride_rows_, strides));
  }

  // To be called once for each stride, in their order.
  void CompareStride(const Stripe& stripe, uint64_t stride, const StrideStatistics& statistics) {
    if (indexes_.empty()) return;
    statistics.ForEach([&](uint32_t node, uint32_t sequence, const StatisticsBuilder& decoded) {
      const auto index = indexes_.find(std::pair(node, sequence));
      if (index == indexes_.end()) return;
      proto::RowIndexEntry entry;
      if (!index->second.Next(&entry) || !entry.has_statistics()) return;
      ++result_.index_entries;
      const auto differences = Compare(entry.statistics(), decoded, schema_.node(node).kind,
                                       trust_text_, &result_.figures);
      if (differences.empty()) return;
      Differ(StrideName(stripe, stride) + ", " + ColumnName(node, sequence),
             fmt::format("the row index says {} {}, the rows have {}", differences[0].figure,
                         differences[0].stored, differences[0].decoded));
    });
  }

  // Each stride again, from the positions that the row index gives; as many as may be unpacked.
  void SeekStrides(const Stripe& stripe, std::span<const uint64_t> hashes, RowReader* rows) {
    RowHash hash(rows->schema());
    Column batch;
    const uint64_t most = MaxSeekBytes(StoredBytes(stripe)), before = rows->unpacked_bytes();
    for (uint64_t stride = 1; stride < hashes.size(); ++stride) {
      const std::string where = StrideName(stripe, stride);
      // A seek unpacks each index, and goes through its entries.
      if (rows->unpacked_bytes() - before + 2 * stride * index_bytes_ > most) {
        result_.not_checked.push_back(
            fmt::format("positions from {} on: to read the strides again means to unpack more than "
                        "{} bytes, the stripe has {}",
                        where, most, StoredBytes(stripe)));
        return;
      }
      rows->SeekToRow(stripe.first_row + stride * stride_rows_);
      try {
        ReadStride(
            rows, stripe, stride, [&] { hash.Add(batch); }, &batch);
      } catch (const Error& error) {
        if (error.code() != ExitCode::kBadData) throw;
        Differ(where + ", through the row index", error.fact());
      }
      if (hash.Take() != hashes[stride])
        Differ(where + ", " + WrongColumn(stripe, stride),
               "other rows are at the positions of the row index than in order");
      ++result_.seeks;
    }
  }

  // The first column that reads otherwise through the row index, for the message: the half that it
  // is in, and so on, which reads all columns twice.
  std::string WrongColumn(const Stripe& stripe, uint64_t stride) const {
    std::span<const uint32_t> left(nodes_);
    while (left.size() > 1) {
      const std::span<const uint32_t> half = left.first(left.size() / 2);
      left = ReadsOtherwise(stripe, stride, half) ? half : left.subspan(half.size());
    }
    if (left.empty() || !ReadsOtherwise(stripe, stride, left)) return "some column";
    return ColumnName(left[0], 0);
  }
  bool ReadsOtherwise(const Stripe& stripe, uint64_t stride,
                      std::span<const uint32_t> columns) const {
    const SchemaNode& root = schema_.root();
    RowReaderOptions options = options_;
    options.columns.clear();
    for (const uint32_t node : columns) {
      const auto at = std::find(root.children.begin(), root.children.end(), node);
      options.columns.push_back(
          {root.field_names[static_cast<size_t>(at - root.children.begin())], true, {}});
    }
    options.first_stripe = stripe.index;
    options.num_stripes = 1;
    options.verify_checksums = false;
    uint64_t hashes[2];
    for (const bool seek : {false, true}) {
      options.strict_seeks = seek;
      RowReader rows(file_, options);
      RowHash hash(rows.schema());
      Column batch;
      if (seek) rows.SeekToRow(stripe.first_row + stride * stride_rows_);
      for (uint64_t s = seek ? stride : 0; s <= stride; ++s) {
        hash.Take();
        ReadStride(
            &rows, stripe, s, [&] { hash.Add(batch); }, &batch);
      }
      hashes[seek ? 1 : 0] = hash.Take();
    }
    return hashes[0] != hashes[1];
  }

  void VerifyFooter() {
    const std::vector<proto::ColumnStatistics> stored = StoredStatistics(*file_);
    if (stored.empty()) result_.not_checked.push_back("the footer has no statistics");
    for (uint32_t node = 0; node < stored.size(); ++node) {
      if (!open_[node] || !any_column_) continue;
      ++result_.footer_nodes;
      if (stored[node].has_map_statistics())
        result_.not_checked.push_back(ColumnName(node, 0) + ": statistics of single keys");
      for (const proto::ColumnStatistics& says :
           {stored[node], file_->tail().footer.statistics(static_cast<int>(node))}) {
        const auto differences =
            Compare(says, totals_[node], schema_.node(node).kind, trust_text_, &result_.figures);
        if (differences.empty()) continue;
        Differ("footer, " + ColumnName(node, 0),
               fmt::format("the statistics say {} {}, the rows have {}", differences[0].figure,
                           differences[0].stored, differences[0].decoded));
      }
    }
  }

  std::shared_ptr<const FileReader> file_;
  const Schema& schema_;
  RowReaderOptions options_;
  std::vector<uint32_t> nodes_;  // top-level columns that are open
  std::vector<bool> open_;       // per node
  bool any_column_ = true, trust_text_ = true;
  uint64_t stride_rows_ = 0;  // of the stripe
  std::string seek_reason_;   // why positions are not checked
  // Row indexes of the stripe by (node, sequence), each at the stride that is compared next, and
  // their bytes in total.
  std::map<std::pair<uint32_t, uint32_t>, RowIndexReader> indexes_;
  uint64_t index_bytes_ = 0;
  std::vector<StatisticsBuilder> totals_;
  Verification result_;
};

}  // namespace

Verification Verify(const std::shared_ptr<const FileReader>& file) { return Verifier(file).Run(); }

std::string VerificationText(const Verification& v) {
  std::string text = fmt::format("verified: {} rows in {} stripes, {} checksums\n", v.rows,
                                 v.stripes, v.checksums);
  text += fmt::format(
      "  statistics   {} nodes in the footer, {} row index entries{}\n", v.footer_nodes,
      v.index_entries,
      v.figures.empty() ? std::string() : fmt::format(": {}", fmt::join(v.figures, ", ")));
  text += fmt::format("  positions    {} strides read again from the row index\n", v.seeks);
  for (const std::string& what : v.not_checked) text += fmt::format("  not checked  {}\n", what);
  return text;
}

}  // namespace headrace::reader::dwrf
