// Codecs by the names that options use, and the goals that choose among them.
#pragma once
#include <string>

#include "reader/dwrf/layout_policy.h"

namespace headrace::workloads {

// "none", "zlib", "snappy", "lz4" or "zstd". Throws Error kUsage.
reader::dwrf::CompressionKind ParseCompression(const std::string& name);

// Options for a goal: what no option names is chosen (reader/dwrf/layout_cost.h).
void SetGoal(reader::dwrf::LayoutGoal goal, reader::dwrf::WriterOptions* options);

}  // namespace headrace::workloads
