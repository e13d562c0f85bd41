// Row index: where each stride of a stripe begins in each stream (FORMAT 10).
#pragma once
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "reader/dwrf/file_reader.h"

namespace headrace::reader::dwrf {

// Reads the row index of (node, sequence) entry by entry, one per stride. An entry of 2 unpacked
// bytes may take forty times that as a parsed message, so only one is parsed at a time. Movable;
// file and stripe must outlive it. All functions throw Error kBadData.
class RowIndexReader {
 public:
  // Has no entries where the stripe has no index.
  RowIndexReader(const FileReader& file, const Stripe& stripe, uint32_t node, uint32_t sequence);

  // The next entry; false at the end.
  bool Next(proto::RowIndexEntry* entry);
  // Skips the next entry without parsing it; false at the end.
  bool Skip();
  // How many entries are left.
  uint64_t CountLeft() const;
  // Unpacked size of the index, which is about the memory that this object takes.
  uint64_t bytes() const { return bytes_.size(); }

 private:
  std::span<const uint8_t> Take(size_t* at) const;
  [[noreturn]] void Throw(const std::string& what) const;

  const FileReader* file_;
  const Stripe* stripe_;
  uint32_t node_, sequence_;
  std::vector<uint8_t> bytes_;
  size_t next_ = 0;  // where the next entry begins
};

// The positions of one stride. Throws Error kBadData where there is no entry for it.
std::vector<uint64_t> ReadPositions(const FileReader& file, const Stripe& stripe, uint32_t node,
                                    uint32_t sequence, uint64_t stride);

// Splits a position list into its groups:
//
//                       framed (compressed)           raw
//   byte position       chunk offset, byte in chunk   byte offset
//   run position        ... and values to skip        ... and values to skip
//   boolean position    ... bytes, then bits to skip  ... bytes, then bits to skip
class Positions {
 public:
  struct Byte {
    uint64_t stored = 0, within = 0;
  };
  struct Run {
    uint64_t stored = 0, within = 0, values = 0;
  };
  struct Bool {
    uint64_t stored = 0, within = 0, values = 0, bits = 0;
  };
  using Fail = std::function<void(const std::string&)>;  // throws

  // `numbers` must outlive it.
  Positions(std::span<const uint64_t> numbers, bool framed, Fail fail)
      : numbers_(numbers), framed_(framed), fail_(std::move(fail)) {}
  uint64_t Take();
  Byte TakeByte();
  Run TakeRun();
  Bool TakeBool();
  // Fails unless every number was taken.
  void CheckEnd() const;

 private:
  std::span<const uint64_t> numbers_;
  bool framed_;
  Fail fail_;
  size_t next_ = 0;
};

}  // namespace headrace::reader::dwrf
