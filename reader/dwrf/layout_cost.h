// What a layout costs those who read it: stored bytes, and CPU time to decompress and decode them.
// The writer chooses by it where WriterOptions::goal asks for that: the codec of a file, and stream
// by stream whether it is compressed, and whether integers are varints, of fixed width or in a
// dictionary.
//
// Bytes are those really written. Times are a model, so that the same rows give the same file on
// every machine: figures of tests/bench/layout_cost_bench.cc (docs/measurements.md, "Layouts chosen
// by cost"). Only what differs between layouts is in it: not the bits, lengths and floats, which
// are decoded the same way in each.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "reader/dwrf/codec.h"

namespace headrace::reader::dwrf {

// What a layout is chosen for, as a price of a stored byte in ns of CPU time.
enum class LayoutGoal : uint8_t {
  kFixed,     // nothing is chosen: codec, ratio and dictionaries are as the options say
  kBalanced,  // what a byte costs of a core's share of a network
  kRead,      // what a byte costs that comes from the page cache
  kSize,      // bytes come first
};
const char* LayoutGoalName(LayoutGoal goal);  // "off", "balanced", "read", "size"
// By that name. Nothing for another name.
std::optional<LayoutGoal> FindLayoutGoal(const std::string& name);
double ByteNs(LayoutGoal goal);  // ns of CPU time per stored byte; 0 for kFixed

struct LayoutCost {
  double bytes = 0;  // stored
  double ns = 0;     // to read them, modelled
  void Add(const LayoutCost& other) {
    bytes += other.bytes;
    ns += other.ns;
  }
  double At(LayoutGoal goal) const { return ns + bytes * ByteNs(goal); }
};

// What was chosen for one node, over all its keys and stripes.
struct NodeLayout {
  uint64_t streams = 0, compressed_streams = 0;  // of the data area
  LayoutCost stored;                             // of all of them
  // Integers: streams of values, those in dictionaries and of fixed width, and what the values
  // cost (part of `stored`), and would cost as varints under the same codec. Without a goal only
  // `integers` is counted.
  uint64_t integers = 0, dictionaries = 0, fixed_width = 0;
  LayoutCost values, varints;
  void Add(const NodeLayout& other);
};

// What was chosen for a file, or for the files of a table together.
struct LayoutChoice {
  LayoutGoal goal = LayoutGoal::kFixed;
  CompressionKind compression = CompressionKind::kNone;  // of the last file
  uint64_t stripe_rows = 0;                              // 0: a stripe ends by its bytes
  uint64_t rows = 0;
  std::vector<NodeLayout> nodes;  // per node of the schema
  // Where a codec was chosen: what a part of the first stripe costs under each.
  std::vector<std::pair<CompressionKind, LayoutCost>> tried;
  void Add(const LayoutChoice& file);
};
// Rows of a stripe, for a table of so many rows of so many logical bytes each: from 2048 to 8192,
// for kSize to 16384. Larger stripes have fewer footers and fuller dictionaries, and need more
// memory; a table keeps eight of them, so that threads share them and rows can be shuffled, and one
// has at most 256 MiB where it can.
uint64_t ChooseStripeRows(LayoutGoal goal, uint64_t table_rows, double row_bytes);

// Time to decompress one chunk.
double DecompressNs(CompressionKind kind, uint64_t stored, uint64_t plain);
// The most bytes a chunk may be compressed to for that to be worth its time; 0: it never is.
uint64_t MostStoredBytes(LayoutGoal goal, CompressionKind kind, uint64_t plain);

// Times to decode the integers of one stream.
double VarintsNs(uint64_t values, uint64_t bytes);
double FixedWidthNs(uint64_t values);
double DictionaryNs(uint64_t values, uint64_t entries);

constexpr double kStreamNs = 110;  // to find a stream in the footer of its stripe

}  // namespace headrace::reader::dwrf
