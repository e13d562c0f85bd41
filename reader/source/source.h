// Source: bytes that can be read at offsets. The reader's only way to storage, and what tests replace.
#pragma once
#include <cstdint>
#include <memory>
#include <span>
#include <string>

namespace headrace::reader {

// Implementations are thread-safe and do not change while open.
class Source {
 public:
  virtual ~Source() = default;
  virtual const std::string& name() const = 0;  // for messages: the path
  virtual uint64_t size() const = 0;
  // Fills `out` from `offset`. Throws Error kBadData when the range passes the end, and what the storage fails with.
  virtual void ReadAt(uint64_t offset, std::span<uint8_t> out) const = 0;
};

// A regular file read with pread. Throws Error when it cannot be opened.
std::shared_ptr<const Source> OpenFileSource(const std::string& path);
// Bytes in memory, for tests and fuzzers.
std::shared_ptr<const Source> MemorySource(std::string name, std::string bytes);

}  // namespace headrace::reader
