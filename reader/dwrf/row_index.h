// Row index: where each stride of a stripe begins in each stream (FORMAT 10).
#pragma once
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "reader/dwrf/file_reader.h"

namespace headrace::reader::dwrf {

// The row index of (node, sequence), one entry per stride; without entries where the stripe has
// none. Throws Error kBadData.
proto::RowIndex ReadRowIndex(const FileReader& file, const Stripe& stripe, uint32_t node,
                             uint32_t sequence);

// The positions of one stride. Throws Error kBadData where there is no entry for it.
std::vector<uint64_t> ReadPositions(const FileReader& file, const Stripe& stripe, uint32_t node,
                                    uint32_t sequence, uint64_t stride);

// Takes a position list apart, group by group:
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
