// PinnedBuffers: buffers that never move and are never freed. An io_uring may therefore keep their
// pages looked up ("registered"): pages of a buffer that was freed meanwhile would take the data of
// a read that is meant for whatever came to its address. Thread-safe.
#pragma once
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <span>
#include <vector>

#include "base/buffer.h"

namespace headrace::reader {

class PinnedBuffers final : public BufferPool {
 public:
  static constexpr uint32_t kMaxBuffers = 64;
  static constexpr size_t kMaxBytes = size_t{1} << 30;  // of all together

  struct Region {
    uint32_t index = 0;  // below kMaxBuffers, the same for ever
    std::span<uint8_t> bytes;
  };

  // The process's only one, never destroyed.
  static PinnedBuffers& Get();
  // A pinned buffer, or an ordinary one beyond the limits. It must not be made larger.
  Handle Take(size_t size) override;
  // The pinned buffer that holds these bytes, if any.
  std::optional<Region> Find(std::span<const uint8_t> bytes) const;

 private:
  PinnedBuffers() = default;
  void Put(Buffer* buffer) override;

  mutable std::mutex mutex_;
  std::vector<Region> regions_;
  std::vector<std::unique_ptr<Buffer>> idle_;
  std::set<const Buffer*> pinned_;
  size_t bytes_ = 0;
};

}  // namespace headrace::reader
