// ByteSink: bytes being written, growing without initialising. Encoders reserve room, write through
// the pointer, and report where they stopped.
#pragma once
#include <algorithm>
#include <cstdint>
#include <cstring>
#include <span>

#include "base/buffer.h"

namespace headrace::reader::dwrf {

class ByteSink {
 public:
  // Room for `bytes` more; the pointer holds until the next call.
  uint8_t* Reserve(size_t bytes) {
    if (size_ + bytes > buffer_.size()) buffer_.Resize(std::max(size_ + bytes, 2 * buffer_.size()));
    return buffer_.data() + size_;
  }
  // `end` points into what Reserve returned.
  void Finish(const uint8_t* end) { size_ = static_cast<size_t>(end - buffer_.data()); }
  void Append(std::span<const uint8_t> bytes) {
    if (bytes.empty()) return;
    std::memcpy(Reserve(bytes.size()), bytes.data(), bytes.size());
    size_ += bytes.size();
  }
  void Clear() { size_ = 0; }  // keeps the memory
  size_t size() const { return size_; }
  const uint8_t* data() const { return buffer_.data(); }
  std::span<const uint8_t> span() const { return {buffer_.data(), size_}; }

 private:
  Buffer buffer_;
  size_t size_ = 0;
};

}  // namespace headrace::reader::dwrf
