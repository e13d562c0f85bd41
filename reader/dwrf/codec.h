// Block codecs behind one call. Contexts are kept per thread.
#pragma once
#include <cstdint>
#include <span>

#include "reader/dwrf/tail.h"

namespace headrace::reader::dwrf {

// Decompresses one unit into `out` and returns the bytes written, at most out.size(). Throws Error
// kBadData when the unit is damaged or would not fit, kUsage for kLzo and kNone (which have no
// decoder here); the caller adds the place.
size_t Decompress(CompressionKind kind, std::span<const uint8_t> in, std::span<uint8_t> out);

}  // namespace headrace::reader::dwrf
