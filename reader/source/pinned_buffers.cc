#include "reader/source/pinned_buffers.h"

#include <algorithm>
#include <bit>

namespace headrace::reader {

PinnedBuffers& PinnedBuffers::Get() {
  static auto* buffers = new PinnedBuffers();
  return *buffers;
}

BufferPool::Handle PinnedBuffers::Take(size_t size) {
  const std::lock_guard lock(mutex_);
  auto best = idle_.end();
  for (auto place = idle_.begin(); place != idle_.end(); ++place) {
    if ((*place)->capacity() >= size &&
        (best == idle_.end() || (*place)->capacity() < (*best)->capacity()))
      best = place;
  }
  std::unique_ptr<Buffer> buffer;
  if (best != idle_.end()) {
    buffer = std::move(*best);
    idle_.erase(best);
  } else {
    // Powers of two, so that stripes of similar sizes share buffers.
    const size_t room = std::bit_ceil(std::max<size_t>(size, 1 << 20));
    if (regions_.size() == kMaxBuffers || room > kMaxBytes - bytes_) return BufferPool::Take(size);
    buffer = std::make_unique<Buffer>(room);
    regions_.push_back({static_cast<uint32_t>(regions_.size()), buffer->span()});
    pinned_.insert(buffer.get());
    bytes_ += room;
  }
  buffer->Resize(size);
  return Handle(buffer.release(), Return{this});
}

void PinnedBuffers::Put(Buffer* buffer) {
  {
    const std::lock_guard lock(mutex_);
    if (pinned_.count(buffer) > 0) {
      idle_.emplace_back(buffer);
      return;
    }
  }
  BufferPool::Put(buffer);
}

std::optional<PinnedBuffers::Region> PinnedBuffers::Find(std::span<const uint8_t> bytes) const {
  const std::lock_guard lock(mutex_);
  for (const Region& region : regions_) {
    if (bytes.data() >= region.bytes.data() &&
        bytes.data() + bytes.size() <= region.bytes.data() + region.bytes.size())
      return region;
  }
  return std::nullopt;
}

}  // namespace headrace::reader
