// FileWriter: writes one DWRF file, every type, flattened maps, dictionaries, row index,
// statistics, checksums.
//
//   FileWriter writer("part-00000.dwrf",
//   Schema::Parse("struct<label:float,sparse:map<int,list<bigint>>>"),
//                     {.flat_maps = {"sparse"}});
//   writer.Write(batch);   // any number of times
//   writer.Close();        // the file appears now; without Close it never does
//
// Two ways in, which may be mixed: Write takes any rows as a Column; WriteFlat takes the shape of
// training tables column by column and is several times faster. The same rows give the same bytes
// whichever way and in whatever batches they come. One thread at a time; different writers are
// independent. Rows are held in memory until their stripe is full.
#pragma once
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "reader/batch/column.h"
#include "reader/dwrf/layout_policy.h"
#include "reader/schema.h"

namespace headrace::reader::dwrf {

// One key of a flattened map over the rows of a batch. Values are compact: rows without the key
// take no place. All spans are the caller's and are read before WriteFlat returns.
//
//   map<int, list<bigint>>, key 17, rows [7,8], absent, []:   present bits 1 0 1,  lengths 2 0,
//   integers 7 8 map<int, float>,        key 3,  rows 0.5, absent, 2:      present bits 1 0 1,
//   floats 0.5 2 map<int, map<bigint, float>>, key 4, rows {7:.5}, {}, absent:  present bits 1 1 0,
//   lengths 1 0,  integers 7,  floats .5
struct FlatFeature {
  MapKey key;
  std::span<const uint64_t>
      present;  // bit r % 64 of word r / 64: row r has the key. Empty: all rows have it
  std::span<const uint32_t> lengths;  // list and map values: one per row that has the key
  // The numbers: an integer value, list element or inner key in `integers`; a float one, and the
  // inner map's float values, in `floats`. Other types (double, strings, deeper nesting) go through
  // Write.
  std::span<const int64_t> integers;
  std::span<const float> floats;
};

// A top-level column of a batch: `features` for a flattened map (a map without any feature in this
// batch is an empty vector: its rows are empty maps, never null), else one of `integers` (boolean
// to bigint) and `floats`.
struct FlatColumn {
  std::string name;
  std::vector<FlatFeature> features;  // distinct keys, any order
  std::span<const uint64_t> present;  // plain columns: bit set = not null; empty = no nulls
  std::span<const int64_t> integers;  // one per row; those of null rows are ignored
  std::span<const float> floats;
};

struct FlatBatch {
  uint64_t rows = 0;
  std::vector<FlatColumn> columns;  // every top-level column of the schema once, any order
};

struct WrittenFile {
  uint64_t bytes = 0;  // of the file
  uint64_t rows = 0;
  uint64_t raw_bytes = 0;  // logical size of the values
  uint32_t stripes = 0;
};

class FileWriter {
 public:
  // The root of `schema` is a struct. Throws Error kUsage where options and schema do not fit or
  // `path` exists and !replace, and what opening the temporary file beside `path` throws.
  FileWriter(const std::string& path, Schema schema, WriterOptions options = {},
             bool replace = false);
  ~FileWriter();  // an unclosed file is removed
  FileWriter(const FileWriter&) = delete;
  FileWriter& operator=(const FileWriter&) = delete;

  // Appends all rows of a struct whose children are the schema's columns. Throws Error kUsage where
  // the batch does not fit the schema (kinds, lengths, a value outside its type's range, a null or
  // repeated key in a flattened map); the writer is then unusable. Null root rows are not
  // representable and refused.
  void Write(const Column& rows);
  // As Write. Throws Error kUsage also for types FlatColumn cannot express.
  void WriteFlat(const FlatBatch& batch);

  // Ends the stripe being filled, if it has rows.
  void EndStripe();
  // Writes the tail, syncs, renames. Throws Error; then no file appears. No call may follow.
  WrittenFile Close();

  const Schema& schema() const;
  uint64_t rows() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace headrace::reader::dwrf
