// SourceOptions: how the bytes of a table are read. docs/pipeline.md has them as keys of [source].
#pragma once
#include <cstdint>
#include <string>

#include "reader/source/fault.h"

namespace headrace::reader {

enum class IoMethod : uint8_t { kPread, kUring };

// A table behind HTTP or S3.
struct RemoteOptions {
  std::string endpoint;  // S3: http://host:port of the store; empty: AWS
  std::string region = "us-east-1";
  int64_t timeout_ns = 10'000'000'000;  // of one request
  int64_t stall_ns = 2'000'000'000;     // without a byte
  uint32_t retries = 5;                 // of a request, in a row and without 4 KiB between them
  uint32_t connections = 8;             // per thread
  std::string ca_file;                  // certificates to trust; empty: the system's
};

struct SourceOptions {
  IoMethod io = IoMethod::kPread;
  bool direct = false;     // past the page cache (O_DIRECT)
  uint32_t depth = 16;     // requests in flight per thread, where the method can
  bool registered = true;  // io_uring: reads into buffers whose pages the kernel has looked up once
  RemoteOptions remote = {};
  FaultOptions fault = {};  // for experiments and tests
};
constexpr uint32_t kMaxDepth = 256;

}  // namespace headrace::reader
