// WireCodec: how a batch's bytes are made fewer on their way through a socket.
#pragma once
#include <cstdint>
#include <optional>
#include <string>

namespace headrace::reader {

// Each does what those before it do, and more.
enum class WireCodec : uint8_t {
  kRaw = 0,
  kNarrow = 1,  // 64-bit integers that fit 32 bits take 32 (narrow.h)
  kLz4 = 2,
  kZstd = 3
};

// What a pipeline file asks for; none: whatever gets most rows through.
using WireSetting = std::optional<WireCodec>;

const char* NameOf(WireCodec codec);  // "lz4"
// "auto", "raw", "narrow", "lz4" or "zstd". Throws Error kUsage for anything else.
WireSetting ParseWire(const std::string& text);

constexpr uint32_t WireBit(WireCodec codec) { return uint32_t{1} << static_cast<int>(codec); }
// The codecs that this headrace can unpack, as a consumer's answer to a greeting has them.
constexpr uint32_t kWireCodecs =
    WireBit(WireCodec::kNarrow) | WireBit(WireCodec::kLz4) | WireBit(WireCodec::kZstd);

}  // namespace headrace::reader
