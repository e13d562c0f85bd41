// CacheOptions: the section [[cache]] of a pipeline file.
#pragma once
#include <cstdint>
#include <string>

namespace headrace::reader {

enum class CacheTier : uint8_t { kMemory, kDisk };

struct CacheOptions {
  std::string after;  // operator whose batches are kept: extract, rowmap or transform; empty: none
  CacheTier tier = CacheTier::kMemory;
  uint64_t budget_bytes = uint64_t{1} << 30;
  std::string folder;         // disk: absolute
  bool allow_random = false;  // keeps what random transforms drew
  bool enabled() const { return !after.empty(); }
};

}  // namespace headrace::reader
