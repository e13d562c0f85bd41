#include "workloads/compression.h"

#include <fmt/format.h>

#include "base/error.h"

namespace headrace::workloads {

reader::dwrf::CompressionKind ParseCompression(const std::string& name) {
  using reader::dwrf::CompressionKind;
  if (name == "none") return CompressionKind::kNone;
  if (name == "zlib") return CompressionKind::kZlib;
  if (name == "snappy") return CompressionKind::kSnappy;
  if (name == "lz4") return CompressionKind::kLz4;
  if (name == "zstd") return CompressionKind::kZstd;
  throw Error(ExitCode::kUsage, fmt::format("unknown compression '{}'", Printable(name, 40)), {},
              "use zstd, lz4, snappy, zlib or none");
}

void SetGoal(reader::dwrf::LayoutGoal goal, reader::dwrf::WriterOptions* options) {
  constexpr int kSizeLevel = 9;  // decompressing is as quick as at 3
  options->goal = goal;
  options->choose_codec = goal != reader::dwrf::LayoutGoal::kFixed;
  if (goal == reader::dwrf::LayoutGoal::kSize) options->level = kSizeLevel;
}

}  // namespace headrace::workloads
