#include "base/buffer.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <utility>

#include "base/block_pool.h"
#include "base/error.h"

namespace headrace {

Buffer& Buffer::operator=(Buffer&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(size_, other.size_);
  std::swap(capacity_, other.capacity_);
  std::swap(block_bytes_, other.block_bytes_);
  return *this;
}

Buffer::~Buffer() { BlockPool::Get().Give({data_, block_bytes_}); }

void Buffer::Resize(size_t size) {
  if (size > capacity_ || data_ == nullptr) {
    const size_t wanted = std::max(size, capacity_ + capacity_ / 2);
    if (wanted > SIZE_MAX / 4)
      throw Error(ExitCode::kResources, fmt::format("no memory for a buffer of {} bytes", size));
    const Block fresh = BlockPool::Get().Take(wanted + kPadding);
    if (size_ > 0) std::memcpy(fresh.data, data_, size_);
    BlockPool::Get().Give({data_, block_bytes_});
    data_ = static_cast<uint8_t*>(fresh.data);
    block_bytes_ = fresh.bytes;
    capacity_ = fresh.bytes - kPadding;
  }
  size_ = size;
  std::memset(data_ + size_, 0, kPadding);
}

BufferPool::Handle BufferPool::Take(size_t size) {
  return Handle(std::make_unique<Buffer>(size).release(), Return{this});
}

void BufferPool::Put(Buffer* buffer) { delete buffer; }

}  // namespace headrace
