// FileWriter: writes one DWRF file, every type, flattened maps, dictionaries, row index,
// statistics, checksums.
//
//   FileWriter writer("part-00000.dwrf",
//                     Schema::Parse("struct<label:float,sparse:map<int,list<bigint>>>"),
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

#include "reader/dwrf/flat_batch.h"
#include "reader/dwrf/layout_policy.h"
#include "reader/schema.h"

namespace headrace::reader::dwrf {

struct WrittenFile {
  uint64_t bytes = 0;  // of the file
  uint64_t rows = 0;
  uint64_t raw_bytes = 0;  // logical size of the values
  uint32_t stripes = 0;
  LayoutChoice layout;
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
  // the batch does not fit the schema (kinds, lengths), kBadData where a value does not (outside
  // its type's range, a null or repeated key in a flattened map); the writer is then unusable. Null
  // root rows are not representable and refused.
  void Write(const Column& rows);
  // As Write. Throws Error kUsage also for types FlatColumn cannot express.
  void WriteFlat(const FlatBatch& batch);

  // Ends the stripe being filled, if it has rows.
  void EndStripe();
  // Writes the tail, syncs, renames. Throws Error; then no file appears. No call may follow.
  // Without `sync` the caller syncs, before it says that the file is there.
  WrittenFile Close(bool sync = true);

  const Schema& schema() const;
  uint64_t rows() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace headrace::reader::dwrf
