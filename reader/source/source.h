// Source: a named immutable byte array that may be far away. It reads ranges and never interprets
// them. Thread-safe.
#pragma once
#include <cstdint>
#include <memory>
#include <span>
#include <string>

namespace headrace::reader {

class Source {
 public:
  virtual ~Source() = default;
  virtual const std::string& name() const = 0;  // for messages: a path
  virtual uint64_t size() const = 0;
  // Fills `out` from `offset`. Throws Error when the range cannot be had whole.
  virtual void ReadAt(uint64_t offset, std::span<uint8_t> out) const = 0;
};

// A local file through pread. Throws Error (base/file.h).
std::shared_ptr<const Source> OpenFileSource(const std::string& path);
// Bytes in memory: tests and fuzzers.
std::shared_ptr<const Source> MemorySource(std::string name, std::string bytes);

}  // namespace headrace::reader
