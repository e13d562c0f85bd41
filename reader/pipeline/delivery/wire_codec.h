// WireCodec: how a batch's bytes are compressed on their way over a network.
#pragma once
#include <cstdint>
#include <optional>
#include <string>

namespace headrace::reader {

// Numbers stand in frames and greetings.
enum class WireCodec : uint8_t { kRaw = 0, kLz4 = 1, kZstd = 2 };

// What a pipeline file asks for; none: whatever gets most rows through.
using WireSetting = std::optional<WireCodec>;

const char* NameOf(WireCodec codec);  // "lz4"
// "auto", "raw", "lz4" or "zstd". Throws Error kUsage for anything else.
WireSetting ParseWire(const std::string& text);

// The codecs that this headrace can unpack, as a consumer's answer to a greeting has them.
constexpr uint32_t kWireCodecs =
    1u << static_cast<int>(WireCodec::kLz4) | 1u << static_cast<int>(WireCodec::kZstd);

}  // namespace headrace::reader
