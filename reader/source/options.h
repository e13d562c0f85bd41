// SourceOptions: how the bytes of a table are read. docs/pipeline.md has them as keys of [source].
#pragma once
#include <cstdint>

namespace headrace::reader {

enum class IoMethod : uint8_t { kPread, kUring };

struct SourceOptions {
  IoMethod io = IoMethod::kPread;
  bool direct = false;     // past the page cache (O_DIRECT)
  uint32_t depth = 16;     // requests in flight per thread, where the method can
  bool registered = true;  // io_uring: reads into buffers whose pages the kernel has looked up once
};
constexpr uint32_t kMaxDepth = 256;

}  // namespace headrace::reader
