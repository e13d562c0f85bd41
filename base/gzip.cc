#include "base/gzip.h"

#include <zlib.h>

#include <cstdint>

#include "base/check.h"
#include "base/error.h"

namespace headrace {
namespace {

constexpr int kGzipWindow = 15 + 16;  // the largest window, with gzip's header

void SetInput(z_stream* stream, std::string_view bytes) {
  if (bytes.size() > UINT32_MAX) throw Error(ExitCode::kResources, "over 4 GiB to compress");
  stream->next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
  stream->avail_in = static_cast<uInt>(bytes.size());
}

}  // namespace

std::string Gzipped(std::string_view text) {
  z_stream stream{};
  SetInput(&stream, text);
  constexpr int kMemory = 8;
  if (deflateInit2(&stream, Z_DEFAULT_COMPRESSION, Z_DEFLATED, kGzipWindow, kMemory,
                   Z_DEFAULT_STRATEGY) != Z_OK) {
    throw Error(ExitCode::kResources, "no memory to compress");
  }
  std::string out(deflateBound(&stream, text.size()), '\0');
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  const int code = deflate(&stream, Z_FINISH);
  out.resize(stream.total_out);
  deflateEnd(&stream);
  HR_CHECK(code == Z_STREAM_END, "a gzip member was larger than its bound");
  return out;
}

std::string Gunzipped(std::string_view member) {
  z_stream stream{};
  SetInput(&stream, member);
  if (inflateInit2(&stream, kGzipWindow) != Z_OK) {
    throw Error(ExitCode::kResources, "no memory to decompress");
  }
  std::string out;
  int code = Z_OK;
  while (code == Z_OK) {
    constexpr size_t kStep = 64 << 10;
    const size_t have = out.size();
    out.resize(have + kStep);
    stream.next_out = reinterpret_cast<Bytef*>(out.data() + have);
    stream.avail_out = kStep;
    code = inflate(&stream, Z_NO_FLUSH);
    out.resize(have + kStep - stream.avail_out);
  }
  inflateEnd(&stream);
  HR_CHECK(code == Z_STREAM_END && stream.avail_in == 0, "what is embedded is no gzip member");
  return out;
}

}  // namespace headrace
