#include "base/buffer.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "base/error.h"

namespace headrace {

Buffer& Buffer::operator=(Buffer&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(size_, other.size_);
  std::swap(capacity_, other.capacity_);
  return *this;
}

Buffer::~Buffer() { std::free(data_); }

void Buffer::Resize(size_t size) {
  if (size > capacity_ || data_ == nullptr) {
    const size_t wanted = std::max(size, capacity_ + capacity_ / 2);
    const size_t bytes = (wanted + kPadding + kAlignment - 1) / kAlignment * kAlignment;
    void* fresh = wanted > SIZE_MAX / 2 ? nullptr : std::aligned_alloc(kAlignment, bytes);
    if (fresh == nullptr)
      throw Error(ExitCode::kResources, fmt::format("no memory for a buffer of {} bytes", size));
    if (size_ > 0) std::memcpy(fresh, data_, size_);
    std::free(data_);
    data_ = static_cast<uint8_t*>(fresh);
    capacity_ = bytes - kPadding;
  }
  size_ = size;
  std::memset(data_ + size_, 0, kPadding);
}

BufferPool::Handle BufferPool::Take(size_t size) {
  std::unique_ptr<Buffer> buffer;
  {
    std::lock_guard lock(mutex_);
    if (!idle_.empty()) {
      buffer = std::move(idle_.back());
      idle_.pop_back();
    }
  }
  if (!buffer) buffer = std::make_unique<Buffer>();
  buffer->Resize(0);  // the old bytes need not survive a growth
  buffer->Resize(size);
  return Handle(buffer.release(), Return{this});
}

void BufferPool::Put(Buffer* buffer) {
  std::unique_ptr<Buffer> owned(buffer);
  std::lock_guard lock(mutex_);
  if (idle_.size() < max_idle_) idle_.push_back(std::move(owned));
}

}  // namespace headrace
