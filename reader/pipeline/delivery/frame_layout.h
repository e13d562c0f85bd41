// How a frame's bytes lie, for those who write and read them; what frame.h does not show.
#pragma once
#include <array>
#include <cstdint>
#include <optional>
#include <string>

#include "reader/pipeline/delivery/frame.h"

namespace headrace::reader {

constexpr uint64_t PaddedBytes(uint64_t bytes) {
  return (bytes + kFrameAlignment - 1) & ~(kFrameAlignment - 1);
}

// Throws Error kBadData.
[[noreturn]] void ThrowBadFrame(const std::string& what);

// The sections of a batch's body, in their order.
enum Section {
  kOrigin,  // 64 bytes: first_row, the numbers of spans and of groups, the term, and zeros
  kRowIds,
  kLabels,
  kDense,
  kSparseLengths,
  kSparseValues,
  kSparseWeights,
  kWeightedLengths,
  kWeightedValues,
  kWeightedWeights,
  kNumSections
};

// Bytes of each section that the header accounts for, none when the whole would be longer than
// kMaxFrameBytes. Behind them come the groups and the spans, whose numbers stand in the origin.
std::optional<std::array<uint64_t, kNumSections>> SectionBytes(const FrameHeader& header);

// What the checksum of the body begins with.
uint64_t ChecksumSeed(FrameHeader header);

}  // namespace headrace::reader
