// StreamTier: stored streams kept in memory, in front of storage that is slower. Two policies:
//
//   pinned   a stream that came in stays for ever; when the budget is used up nothing else comes in
//   lru      a stream that comes in displaces those not used for the longest time
//
// Thread-safe.
#pragma once
#include <cstdint>
#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

namespace headrace::reader {

enum class TierPolicy : uint8_t { kPinned, kLru };

struct TierOptions {
  uint64_t budget_bytes = 0;  // of the streams' bytes; 0: no tier
  TierPolicy policy = TierPolicy::kLru;
  std::string popularity =
      {};  // a co-read log (reader/fetch/popularity.h); empty: all streams come in
  bool enabled() const { return budget_bytes > 0; }
};

// What the tier did for its callers; calls add to it.
struct TierFigures {
  uint64_t hits = 0, hit_bytes = 0;  // streams found
  uint64_t misses = 0, miss_bytes = 0;
};

class StreamTier {
 public:
  // `features`: only their streams are offered (Fetch looks); nothing: all streams.
  explicit StreamTier(const TierOptions& options,
                      std::optional<std::set<std::string>> features = std::nullopt)
      : options_(options), features_(std::move(features)) {}
  const std::optional<std::set<std::string>>& features() const { return features_; }

  using Bytes = std::shared_ptr<const std::vector<uint8_t>>;
  // The stream of `file` that begins at `offset` and has `length` bytes, or null. It stays readable
  // when it is displaced meanwhile.
  Bytes Find(const std::string& file, uint64_t offset, uint64_t length);
  // Offers a stream that was not found.
  void Insert(const std::string& file, uint64_t offset, std::span<const uint8_t> bytes);

  uint64_t bytes() const;  // at most the budget, always

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

  TierOptions options_;
  std::optional<std::set<std::string>> features_;
  mutable std::mutex mutex_;  // guards the following
  std::list<Entry> entries_;  // the one used last first
  std::unordered_map<Key, std::list<Entry>::iterator, KeyHash> places_;
  uint64_t bytes_ = 0;
};

}  // namespace headrace::reader
