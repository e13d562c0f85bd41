#include "reader/fetch/memory_tier.h"

#include <utility>

namespace headrace::reader {

TierStreams MemoryTier::Find(const dwrf::StripePlan& plan, const Source& source) {
  TierStreams found;
  found.streams.resize(plan.streams.size());
  for (size_t i = 0; i < plan.streams.size(); ++i) {
    Bytes bytes = FindStream(source.name(), plan.streams[i].offset, plan.streams[i].length);
    if (!bytes) continue;
    found.streams[i] = *bytes;
    found.entries.push_back(std::move(bytes));
  }
  return found;
}

void MemoryTier::Insert(const dwrf::StripePlan& plan, const Source& source,
                        const TierStreams& /*found*/, std::span<const TierOffer> offers) {
  for (const TierOffer& offer : offers)
    InsertStream(source.name(), plan.streams[offer.stream].offset, offer.bytes);
}

MemoryTier::Bytes MemoryTier::FindStream(const std::string& file, uint64_t offset,
                                         uint64_t length) {
  const Key key{file, offset, length};
  const std::lock_guard lock(mutex_);
  const auto place = places_.find(key);
  if (place == places_.end()) return nullptr;
  if (options().policy == TierPolicy::kLru)
    entries_.splice(entries_.begin(), entries_, place->second);
  return place->second->bytes;
}

void MemoryTier::InsertStream(const std::string& file, uint64_t offset,
                              std::span<const uint8_t> bytes) {
  if (bytes.empty() || bytes.size() > options().budget_bytes) return;
  Key key{file, offset, bytes.size()};
  Bytes copy = std::make_shared<std::vector<uint8_t>>(bytes.begin(), bytes.end());
  const std::lock_guard lock(mutex_);
  // Another thread may have fetched the same stripe of another epoch meanwhile.
  if (places_.count(key) > 0) return;
  if (options().policy == TierPolicy::kPinned && bytes.size() > options().budget_bytes - bytes_)
    return;
  while (bytes.size() > options().budget_bytes - bytes_) {
    bytes_ -= entries_.back().bytes->size();
    places_.erase(entries_.back().key);
    entries_.pop_back();
  }
  entries_.push_front({key, std::move(copy)});
  places_.emplace(std::move(key), entries_.begin());
  bytes_ += bytes.size();
}

uint64_t MemoryTier::bytes() const {
  const std::lock_guard lock(mutex_);
  return bytes_;
}

}  // namespace headrace::reader
