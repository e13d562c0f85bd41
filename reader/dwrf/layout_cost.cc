#include "reader/dwrf/layout_cost.h"

#include <algorithm>
#include <array>

namespace headrace::reader::dwrf {
namespace {

struct GoalRow {
  LayoutGoal goal;
  const char* name;
  double byte_ns;
};
constexpr std::array kGoals = {
    GoalRow{LayoutGoal::kFixed, "off", 0},
    // A core's share of a network of 25 Gbit/s for 16 cores. Below it rm1 with stripes of 2048 rows
    // would become larger than under zstd without a goal (docs/measurements.md).
    GoalRow{LayoutGoal::kBalanced, "balanced", 5},
    // Fetching from the page cache: 0.07 to 0.2 ns a byte ("fetch" of scan_bench).
    GoalRow{LayoutGoal::kRead, "read", 0.15},
    GoalRow{LayoutGoal::kSize, "size", 100},
};

struct CodecTime {
  double chunk_ns, stored_ns, plain_ns;  // a chunk, a stored byte, an unpacked byte
};
CodecTime TimeOf(CompressionKind kind) {
  switch (kind) {
    case CompressionKind::kZstd:
      return {1500, 0.6, 0.3};
    case CompressionKind::kLz4:
      return {300, 0, 0.25};
    case CompressionKind::kSnappy:
      return {300, 0, 0.5};
    case CompressionKind::kNone:
      return {0, 0, 0};
    default:  // deflate
      return {2000, 2.5, 0.5};
  }
}

}  // namespace

const char* LayoutGoalName(LayoutGoal goal) { return kGoals[static_cast<size_t>(goal)].name; }

std::optional<LayoutGoal> FindLayoutGoal(const std::string& name) {
  const auto found = std::find_if(kGoals.begin(), kGoals.end(),
                                  [&](const GoalRow& row) { return name == row.name; });
  if (found == kGoals.end()) return std::nullopt;
  return found->goal;
}

double ByteNs(LayoutGoal goal) { return kGoals[static_cast<size_t>(goal)].byte_ns; }

void NodeLayout::Add(const NodeLayout& other) {
  streams += other.streams;
  compressed_streams += other.compressed_streams;
  stored.Add(other.stored);
  integers += other.integers;
  dictionaries += other.dictionaries;
  fixed_width += other.fixed_width;
  values.Add(other.values);
  varints.Add(other.varints);
}

void LayoutChoice::Add(const LayoutChoice& file) {
  goal = file.goal;
  compression = file.compression;
  stripe_rows = file.stripe_rows;
  rows += file.rows;
  nodes.resize(std::max(nodes.size(), file.nodes.size()));
  for (size_t i = 0; i < file.nodes.size(); ++i) nodes[i].Add(file.nodes[i]);
  if (tried.empty()) tried = file.tried;
}

uint64_t ChooseStripeRows(LayoutGoal goal, uint64_t table_rows, double row_bytes) {
  constexpr uint64_t kLeast = 2048, kStripes = 8;
  const uint64_t most = goal == LayoutGoal::kSize ? 16'384 : 8192;
  constexpr double kMostBytes = 256 << 20;
  uint64_t rows = kLeast;
  while (rows < most && 2 * rows * kStripes <= table_rows &&
         2 * static_cast<double>(rows) * row_bytes <= kMostBytes)
    rows *= 2;
  return rows;
}

double DecompressNs(CompressionKind kind, uint64_t stored, uint64_t plain) {
  const CodecTime time = TimeOf(kind);
  return time.chunk_ns + time.stored_ns * static_cast<double>(stored) +
         time.plain_ns * static_cast<double>(plain);
}

uint64_t MostStoredBytes(LayoutGoal goal, CompressionKind kind, uint64_t plain) {
  // stored x price + time(stored, plain) < plain x price, solved for stored.
  const double price = ByteNs(goal);
  const CodecTime time = TimeOf(kind);
  const double left = (price - time.plain_ns) * static_cast<double>(plain) - time.chunk_ns;
  return left <= 0 ? 0 : static_cast<uint64_t>(left / (price + time.stored_ns));
}

double VarintsNs(uint64_t values, uint64_t bytes) {
  return 0.1 * static_cast<double>(values) + 0.17 * static_cast<double>(bytes);
}

double FixedWidthNs(uint64_t values) { return 0.2 * static_cast<double>(values); }

double DictionaryNs(uint64_t values, uint64_t entries) {
  return 150 + 0.8 * static_cast<double>(values) + 2.5 * static_cast<double>(entries);
}

}  // namespace headrace::reader::dwrf
