#include "reader/dwrf/verify.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <xxhash.h>

#include <algorithm>
#include <map>
#include <span>

#include "base/error.h"
#include "reader/dwrf/file_statistics.h"
#include "reader/dwrf/row_index.h"
#include "reader/dwrf/row_reader.h"
#include "reader/dwrf/stride_statistics.h"
#include "reader/dwrf/text.h"

namespace headrace::reader::dwrf {
namespace {

constexpr uint64_t kBatchRows = 4096, kBatchBytes = 32 << 20;

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

  // The row indexes of the stripe, and what a stride of it is: without an index, all of its rows.
  void LoadIndexes(const Stripe& stripe) {
    indexes_.clear();
    stride_rows_ = file_->tail().footer.row_index_stride();
    if (stride_rows_ == 0) stride_rows_ = stripe.rows;
    const uint64_t strides = (stripe.rows + stride_rows_ - 1) / stride_rows_;
    for (const StreamInfo& stream : stripe.streams) {
      if (stream.kind != StreamKind::kRowIndex || stream.length == 0 || !open_[stream.node])
        continue;
      proto::RowIndex index = ReadRowIndex(*file_, stripe, stream.node, stream.sequence);
      if (static_cast<uint64_t>(index.entry_size()) != strides) {
        Differ(fmt::format("stripe {}, {}", stripe.index, ColumnName(stream.node, stream.sequence)),
               fmt::format("the row index has {} entries, {} rows in strides of {} have {}",
                           index.entry_size(), stripe.rows, stride_rows_, strides));
      }
      indexes_.emplace(std::pair(stream.node, stream.sequence), std::move(index));
    }
    if (indexes_.empty()) stride_rows_ = stripe.rows;
  }

  void CompareStride(const Stripe& stripe, uint64_t stride, const StrideStatistics& statistics) {
    if (indexes_.empty()) return;
    statistics.ForEach([&](uint32_t node, uint32_t sequence, const StatisticsBuilder& decoded) {
      const auto index = indexes_.find(std::pair(node, sequence));
      if (index == indexes_.end()) return;
      const proto::RowIndexEntry& entry = index->second.entry(static_cast<int>(stride));
      if (!entry.has_statistics()) return;
      ++result_.index_entries;
      const auto differences = Compare(entry.statistics(), decoded, schema_.node(node).kind,
                                       trust_text_, &result_.figures);
      if (differences.empty()) return;
      Differ(StrideName(stripe, stride) + ", " + ColumnName(node, sequence),
             fmt::format("the row index says {} {}, the rows have {}", differences[0].figure,
                         differences[0].stored, differences[0].decoded));
    });
  }

  // Each stride again, from the positions that the row index gives.
  void SeekStrides(const Stripe& stripe, std::span<const uint64_t> hashes, RowReader* rows) {
    RowHash hash(rows->schema());
    Column batch;
    for (uint64_t stride = 1; stride < hashes.size(); ++stride) {
      const std::string where = StrideName(stripe, stride);
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

  // The first column that reads otherwise through the row index, for the message.
  std::string WrongColumn(const Stripe& stripe, uint64_t stride) {
    for (size_t c = 0; c < nodes_.size(); ++c) {
      RowReaderOptions options = options_;
      const auto& names = schema_.root().field_names;
      const auto& ids = schema_.root().children;
      const auto at = std::find(ids.begin(), ids.end(), nodes_[c]) - ids.begin();
      options.columns = {{names[static_cast<size_t>(at)], true, {}}};
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
      if (hashes[0] != hashes[1]) return ColumnName(nodes_[c], 0);
    }
    return "some column";
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
  std::map<std::pair<uint32_t, uint32_t>, proto::RowIndex> indexes_;  // of the stripe
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
