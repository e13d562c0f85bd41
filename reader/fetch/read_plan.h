// ReadPlan: which reads fetch a set of byte ranges. Ranges that are close together become one read,
// because each read costs as much as moving some more bytes.
//
//   wanted ranges    [0,10) [12,20)          [60,70)
//   gap 8            [0,     20)             [60,70)    2 reads, 28 wanted, 30 read, 2 over-read
//   gap 64           [0,                      70)       1 read,  28 wanted, 70 read, 42 over-read
//
// Over-read are the bytes of holes and of alignment. Thread-safe: functions of their arguments.
#pragma once
#include <cstdint>
#include <vector>

namespace headrace::reader {

struct ByteRange {
  uint64_t offset = 0, length = 0;  // in the file
  bool operator==(const ByteRange&) const = default;
};

struct ReadPlanOptions {
  // What one read costs, in bytes: a hole up to this long is read over rather than issue another
  // read. 128 KiB is about what a solid-state disk moves in the time that it takes to answer; a
  // disk or a remote store wants 1 MiB and more (docs/storage.md).
  uint64_t max_gap_bytes = 128 << 10;
  // Longest read. A range longer than this is a read of its own.
  uint64_t max_read_bytes = 8 << 20;
  // Reads begin and end at multiples of this (a power of two), but never end behind source_bytes.
  uint64_t alignment = 1;
  uint64_t source_bytes = UINT64_MAX;
};

struct ReadPlan {
  std::vector<ByteRange> reads;  // sorted, disjoint; each range lies within one read
  uint64_t wanted_bytes = 0;     // bytes of the ranges; shared bytes count once
  uint64_t read_bytes = 0;       // bytes of the reads
  uint64_t over_read_bytes() const { return read_bytes - wanted_bytes; }
};

// The plan with the least read_bytes + max_gap_bytes * reads.size() among those whose reads are at
// most max_read_bytes long; of equal ones that with the fewest reads. Ranges that overlap, or whose
// aligned forms do, share a read whatever its length. Empty ranges are left out. `ranges` in any
// order. O(n log n).
ReadPlan PlanReads(std::vector<ByteRange> ranges, const ReadPlanOptions& options = {});

}  // namespace headrace::reader
