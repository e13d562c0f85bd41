// FileReader: an open DWRF file. RowReader: its rows, any type, any projection, in batches bounded by rows and bytes: the
// general reader behind `cat` and the round-trip tests (the fast path for features is feature_stream.h).
//
//   auto reader = FileReader::Open(OpenFileSource("rm1.dwrf"));
//   RowReader rows(reader, {.columns = {{"label"}, {"sparse", false, {MapKey::Integer(17)}}}});
//   Column batch;
//   while (rows.NextBatch(1024, 16 << 20, &batch)) ...
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "reader/batch/column.h"
#include "reader/dwrf/chunk.h"
#include "reader/dwrf/stripe.h"
#include "reader/dwrf/tail.h"
#include "reader/source/source.h"

namespace headrace::reader::dwrf {

struct OpenOptions {
  bool use_cache = true;  // stripe footers and indexes from the stripe metadata cache where it has them
};

// Immutable after Open; all functions are thread-safe.
class FileReader {
 public:
  // Reads the tail. Throws Error kBadData for damaged and foreign files.
  static std::shared_ptr<const FileReader> Open(std::shared_ptr<const Source> source, const OpenOptions& options = {});

  const Source& source() const { return *source_; }
  const std::string& name() const { return source_->name(); }
  const FileTail& tail() const { return tail_; }
  const Schema& schema() const { return tail_.schema; }
  size_t num_stripes() const { return static_cast<size_t>(tail_.footer.stripes_size()); }
  uint64_t num_rows() const { return tail_.first_rows.back(); }

  // The parsed footer of stripe i. Throws Error kBadData.
  std::shared_ptr<const Stripe> ReadStripe(size_t i) const;
  // The row index of (node, sequence), one entry per stride; without entries when the stripe has none.
  proto::RowIndex ReadRowIndex(const Stripe& stripe, uint32_t node, uint32_t sequence) const;
  // Compares the stripe's bytes with its checksum; true if it matches, false if the file has none (or an algorithm that no
  // known reader implements). Throws Error kBadData with both values when it does not match.
  bool VerifyStripe(size_t i) const;

 private:
  FileReader(std::shared_ptr<const Source> source, FileTail tail, OpenOptions options);
  std::shared_ptr<const Source> source_;  // shared with streams being read
  FileTail tail_;
  OpenOptions options_;
};

struct ColumnSelection {
  std::string column;
  bool all_keys = true;
  std::vector<MapKey> keys;  // when !all_keys: entries of other keys are left out, as if absent

  // "id", "map1[17]", "map2[key-null]". Keys are texts until RowReader knows the column's type.
  static ColumnSelection Parse(const std::string& text);
};

struct RowReaderOptions {
  std::vector<ColumnSelection> columns;  // in the order of the output; empty = all; several of one column add their keys
  bool verify_checksums = true;          // of every stripe that is read from
  bool skip_bad = false;                 // leave out what is damaged instead of throwing
  std::function<void(const std::string&)> on_skip;  // told each thing left out
  uint64_t max_row_bytes = uint64_t{1} << 30;       // one row of more bytes in memory is refused (kResources)
  int64_t timestamp_base = 1420099200;              // Unix seconds of stored second 0; the file does not record it
  size_t first_stripe = 0;
  size_t num_stripes = SIZE_MAX;
};

class RowReader {
 public:
  // Throws Error kUsage for unknown columns (naming the nearest), kBadData for columns that are encrypted.
  RowReader(std::shared_ptr<const FileReader> reader, RowReaderOptions options = {});
  ~RowReader();
  RowReader(const RowReader&) = delete;
  RowReader& operator=(const RowReader&) = delete;

  // The columns of the batches: a struct of the selected columns in the order asked for, with node ids of its own.
  const Schema& schema() const;
  // Replaces `out` by the next rows, a struct Column: at most `max_rows`, and no more than fit in about `max_bytes` of memory,
  // but at least one. False at the end. Batches end at stripe borders. Throws Error kBadData for damage, kResources for a
  // row that is too large. With skip_bad a damaged column of a stripe reads as null and a damaged key as absent.
  bool NextBatch(uint64_t max_rows, uint64_t max_bytes, Column* out);
  // The file's row number of the next batch's first row.
  uint64_t row() const;
  // Continues at `row` (at most num_rows()), through the row index where there is one.
  void SeekToRow(uint64_t row);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace headrace::reader::dwrf
