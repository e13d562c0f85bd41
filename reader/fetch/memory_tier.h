// MemoryTier: the StreamTier in memory. It lasts as long as the run. Thread-safe.
#pragma once
#include <cstdint>
#include <list>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "reader/fetch/stream_tier.h"

namespace headrace::reader {

class MemoryTier final : public StreamTier {
 public:
  using StreamTier::StreamTier;
  TierStreams Find(const dwrf::StripePlan& plan, const Source& source) override;
  void Insert(const dwrf::StripePlan& plan, const Source& source, const TierStreams& found,
              std::span<const TierOffer> offers) override;
  uint64_t bytes() const override;

  using Bytes = std::shared_ptr<const std::vector<uint8_t>>;
  // The stream of `file` that begins at `offset` and has `length` bytes, or null. It stays readable
  // even if it is displaced meanwhile.
  Bytes FindStream(const std::string& file, uint64_t offset, uint64_t length);
  // Offers a stream that was not found.
  void InsertStream(const std::string& file, uint64_t offset, std::span<const uint8_t> bytes);

 private:
  struct Key {
    std::string file;
    uint64_t offset, length;
    bool operator==(const Key&) const = default;
  };
  struct KeyHash {
    size_t operator()(const Key& key) const {
      return std::hash<std::string>()(key.file) ^ (key.offset * 0x9e3779b97f4a7c15u + key.length);
    }
  };
  struct Entry {
    Key key;
    Bytes bytes;
  };

  mutable std::mutex mutex_;  // guards the following
  std::list<Entry> entries_;  // most recently used first
  std::unordered_map<Key, std::list<Entry>::iterator, KeyHash> places_;
  uint64_t bytes_ = 0;
};

}  // namespace headrace::reader
