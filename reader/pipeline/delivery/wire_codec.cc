#include "reader/pipeline/delivery/wire_codec.h"

#include <fmt/format.h>

#include "base/error.h"

namespace headrace::reader {

const char* NameOf(WireCodec codec) {
  switch (codec) {
    case WireCodec::kNarrow:
      return "narrow";
    case WireCodec::kLz4:
      return "lz4";
    case WireCodec::kZstd:
      return "zstd";
    case WireCodec::kRaw:
      break;
  }
  return "raw";
}

WireSetting ParseWire(const std::string& text) {
  if (text == "auto") return std::nullopt;
  for (const WireCodec codec :
       {WireCodec::kRaw, WireCodec::kNarrow, WireCodec::kLz4, WireCodec::kZstd})
    if (text == NameOf(codec)) return codec;
  throw Error(ExitCode::kUsage, fmt::format("{:?} is no way of sending batches", text), {},
              "use \"auto\", \"raw\", \"narrow\", \"lz4\" or \"zstd\"");
}

}  // namespace headrace::reader
