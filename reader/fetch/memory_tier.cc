#include "reader/fetch/stream_tier.h"

#include <utility>

namespace headrace::reader {

StreamTier::Bytes StreamTier::Find(const std::string& file, uint64_t offset, uint64_t length) {
  const Key key{file, offset, length};
  const std::lock_guard lock(mutex_);
  const auto place = places_.find(key);
  if (place == places_.end()) return nullptr;
  if (options_.policy == TierPolicy::kLru)
    entries_.splice(entries_.begin(), entries_, place->second);
  return place->second->bytes;
}

void StreamTier::Insert(const std::string& file, uint64_t offset, std::span<const uint8_t> bytes) {
  if (bytes.empty() || bytes.size() > options_.budget_bytes) return;
  Key key{file, offset, bytes.size()};
  Bytes copy = std::make_shared<std::vector<uint8_t>>(bytes.begin(), bytes.end());
  const std::lock_guard lock(mutex_);
  // Another thread may have fetched the same stripe of another epoch meanwhile.
  if (places_.count(key) > 0) return;
  if (options_.policy == TierPolicy::kPinned && bytes.size() > options_.budget_bytes - bytes_)
    return;
  while (bytes.size() > options_.budget_bytes - bytes_) {
    bytes_ -= entries_.back().bytes->size();
    places_.erase(entries_.back().key);
    entries_.pop_back();
  }
  entries_.push_front({key, std::move(copy)});
  places_.emplace(std::move(key), entries_.begin());
  bytes_ += bytes.size();
}

uint64_t StreamTier::bytes() const {
  const std::lock_guard lock(mutex_);
  return bytes_;
}

}  // namespace headrace::reader
