// Source: a named immutable byte array that may be far away. It reads ranges and never interprets
// them. Thread-safe.
#pragma once
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "base/buffer.h"

namespace headrace::reader {

struct ReadRequest {
  uint64_t offset = 0;
  std::span<uint8_t> out;
};

// What a source did for its callers; calls add to it.
struct ReadFigures {
  uint64_t requests = 0;         // sent to the storage, repeated ones included
  uint64_t bytes = 0;            // that came back and were kept
  uint64_t retries = 0;          // of the requests, those that repeat a failed one
  uint64_t discarded_bytes = 0;  // that came back for nothing
};

class Source {
 public:
  virtual ~Source() = default;
  virtual const std::string& name() const = 0;  // for messages: a path
  virtual uint64_t size() const = 0;
  // A text that changes when the bytes do, as far as the storage tells: the time of the last
  // change, an ETag; empty where it tells nothing.
  virtual std::string version() const { return {}; }
  // Fills `out` from `offset`, whatever the alignment. Throws Error when the range cannot be had
  // whole.
  virtual void ReadAt(uint64_t offset, std::span<uint8_t> out) const = 0;
  // Fills all requests, in any order and as many at a time as the source can. Throws Error when one
  // cannot be had whole; nothing is written to a request's memory after that. Where alignment() is
  // above 1, offsets and addresses are multiples of it, and lengths are too unless they end at
  // size(): then whole blocks must fit behind `out`.
  virtual void ReadMany(std::span<const ReadRequest> requests, ReadFigures* figures) const;
  virtual uint64_t alignment() const { return 1; }
  // How many requests of one ReadMany are under way together.
  virtual uint32_t depth() const { return 1; }
  // Where the memory that ReadMany fills had best come from; null: anywhere.
  virtual BufferPool* buffers() const { return nullptr; }
  // Asks the page cache of this machine to forget the range; nothing where there is none.
  virtual void ForgetPages(uint64_t /*offset*/, uint64_t /*length*/) const {}
  // What works less well than asked for, and why; empty: nothing.
  virtual std::string note() const { return {}; }
};

// A local file through pread. Throws Error (base/file.h).
std::shared_ptr<const Source> OpenFileSource(const std::string& path);
// Bytes in memory: tests and fuzzers.
std::shared_ptr<const Source> MemorySource(std::string name, std::string bytes);

}  // namespace headrace::reader
