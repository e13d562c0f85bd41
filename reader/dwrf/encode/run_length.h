// The value encodings of DWRF streams, each as one function from all values of a stripe to bytes
// appended to a sink: byte runs, bits, integer runs (RLE version 1), direct integers. docs/dwrf.md
// has the layouts.
//
// `cuts` are ascending value numbers, each at most the number of values: the first values of the
// strides. For every cut a Mark is appended: where a reader must start to get that value next.
// Bytes in a mark count from the sink's size at the call.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "reader/dwrf/encode/bit_buffer.h"
#include "reader/dwrf/encode/byte_sink.h"

namespace headrace::reader::dwrf {

struct Mark {
  uint64_t byte = 0;  // start of a run, or of the value where there are no runs
  uint32_t skip = 0;  // values of that run (bits: bytes) before the one meant
  uint32_t bits = 0;  // bits only: bits to skip after that
  bool operator==(const Mark&) const = default;
};

struct IntegerForm {
  bool is_signed = false;
  uint32_t width = 0;  // 0: varint (zigzag where signed); 2, 4, 8: little-endian of so many bytes,
                       // high bits cut off
};

void EncodeByteRuns(std::span<const uint8_t> values, std::span<const uint64_t> cuts, ByteSink* sink,
                    std::vector<Mark>* marks);
// The last byte is padded with zero bits.
void EncodeBits(const BitBuffer& values, std::span<const uint64_t> cuts, ByteSink* sink,
                std::vector<Mark>* marks);
void EncodeIntegerRuns(std::span<const uint32_t> values, IntegerForm form,
                       std::span<const uint64_t> cuts, ByteSink* sink, std::vector<Mark>* marks);
// For an unsigned stream the values are stored as two's complement, as integers outside a
// dictionary are.
void EncodeIntegerRuns(std::span<const int64_t> values, IntegerForm form,
                       std::span<const uint64_t> cuts, ByteSink* sink, std::vector<Mark>* marks);
void EncodeIntegers(std::span<const int64_t> values, IntegerForm form,
                    std::span<const uint64_t> cuts, ByteSink* sink, std::vector<Mark>* marks);

inline uint64_t ZigZag(int64_t value) {
  return static_cast<uint64_t>(value) << 1 ^ static_cast<uint64_t>(value >> 63);
}

}  // namespace headrace::reader::dwrf
