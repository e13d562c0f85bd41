// Codecs by the names that options and files of ours use.
#pragma once
#include <string>

#include "reader/dwrf/tail.h"

namespace headrace::workloads {

// "none", "zlib", "snappy", "lz4" or "zstd". Throws Error kUsage.
reader::dwrf::CompressionKind ParseCompression(const std::string& name);

}  // namespace headrace::workloads
