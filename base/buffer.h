// Buffer: aligned, growable bytes, readable for kPadding bytes past size() so that SIMD kernels may
// over-read. Growing does not initialise new bytes. Movable, not copyable. Its memory is
// BlockPool's and goes back there.
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

namespace headrace {

class Buffer {
 public:
  static constexpr size_t kPadding = 192;
  static constexpr size_t kAlignment = 64;

  Buffer() = default;
  explicit Buffer(size_t size) { Resize(size); }
  Buffer(Buffer&& other) noexcept { *this = std::move(other); }
  Buffer& operator=(Buffer&& other) noexcept;
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;
  ~Buffer();

  // Sets size(); keeps the first min(old, new) bytes; new bytes are not initialised, the padding is
  // zeroed. Throws Error kResources when memory cannot be had.
  void Resize(size_t size);

  uint8_t* data() { return data_; }
  const uint8_t* data() const { return data_; }
  size_t size() const { return size_; }
  size_t capacity() const { return capacity_; }
  std::span<uint8_t> span() { return {data_, size_}; }
  std::span<const uint8_t> span() const { return {data_, size_}; }

 private:
  uint8_t* data_ = nullptr;
  size_t size_ = 0, capacity_ = 0, block_bytes_ = 0;
};

// A source of buffers. This class takes them from the BlockPool, derived ones from special memory
// (source/pinned_buffers.h). A buffer returns when its handle is destroyed; the pool must outlive
// its handles. Thread-safe.
class BufferPool {
 public:
  struct Return {
    BufferPool* pool;
    void operator()(Buffer* buffer) const { pool->Put(buffer); }
  };
  using Handle = std::unique_ptr<Buffer, Return>;

  virtual ~BufferPool() = default;
  virtual Handle Take(size_t size);

 protected:
  virtual void Put(Buffer* buffer);
};

}  // namespace headrace
