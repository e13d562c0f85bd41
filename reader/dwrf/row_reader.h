// RowReader: the rows of a DWRF file, any type, any projection, in batches bounded by rows and
// bytes: the general reader behind `cat` and the round-trip tests (the fast path for features is
// feature_stream.h).
//
//   auto file = FileReader::Open(OpenFileSource("rm1.dwrf"));
//   RowReader rows(file, {.columns = {{"label"}, {"sparse", false, {MapKey::Of(17)}}}});
//   Column batch;
//   while (rows.NextBatch(1024, 16 << 20, &batch)) ...
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "reader/batch/column.h"
#include "reader/dwrf/file_reader.h"

namespace headrace::reader::dwrf {

// A top-level column, or some keys of one that is a map.
struct ColumnSelection {
  std::string column;
  bool all_keys = true;
  std::vector<MapKey> keys;  // when !all_keys: entries of other keys are left out, as if absent

  // "id", "map1[17]", "map2[key-null]": keys are read as the schema's type of the map's key. An
  // exact column name wins over the bracket form. Throws Error kUsage.
  static ColumnSelection Parse(const std::string& text, const Schema& schema);
};

struct RowReaderOptions {
  std::vector<ColumnSelection>
      columns;                   // order of the output; empty = all; same column twice: keys add up
  bool verify_checksums = true;  // of every stripe that is read from
  bool skip_bad = false;         // leave out damaged data instead of throwing
  std::function<void(const std::string&)> on_skip = {};  // called for each thing left out
  uint64_t max_row_bytes = uint64_t{1}
                           << 30;  // a row that takes more memory is refused (kResources)
  int64_t timestamp_base =
      1420099200;  // Unix seconds of stored second 0; the file does not record it
  size_t first_stripe = 0;
  size_t num_stripes = SIZE_MAX;
  bool strict_seeks = false;  // SeekToRow throws for wrong positions instead of skipping from the
                              // stripe's first row
};

class RowReader {
 public:
  // Throws Error kUsage for unknown columns (naming the nearest), kPrivilege for encrypted
  // ones without their key.
  explicit RowReader(std::shared_ptr<const FileReader> file, RowReaderOptions options = {});
  ~RowReader();
  RowReader(const RowReader&) = delete;
  RowReader& operator=(const RowReader&) = delete;

  // The batches' type: a struct of the selected columns in the order asked for, with node ids of
  // its own.
  const Schema& schema() const;
  // Replaces `out` by the next rows, a struct Column: at most `max_rows`, and no more than fit in
  // about `max_bytes` of memory, but at least one row. False at the end. Batches end at stripe
  // borders. Throws Error kBadData for damage, kResources for a row that is too large. With
  // skip_bad a damaged column of a stripe reads as null, a damaged key as absent, a damaged stripe
  // is left out.
  bool NextBatch(uint64_t max_rows, uint64_t max_bytes, Column* out);
  // The file's row number of the next batch's first row.
  uint64_t row() const;
  // Bytes unpacked so far; bytes that were unpacked twice count twice.
  uint64_t unpacked_bytes() const;
  // Continues at `row` of the file, through the row index where there is one, else by skipping.
  void SeekToRow(uint64_t row);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace headrace::reader::dwrf
