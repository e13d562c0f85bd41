// StreamTier: keeps stored streams where they can be read faster than from the storage: in memory
// (memory_tier.h) or in a folder on a fast disk (disk_tier.h). Two policies:
//
//   pinned   a stream that came in stays for ever; when the budget is used up nothing else comes in
//   lru      a stream that comes in displaces those not used for the longest time
//
// Thread-safe.
#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/buffer.h"
#include "reader/dwrf/projection.h"
#include "reader/source/source.h"

namespace headrace::reader {

enum class TierPolicy : uint8_t { kPinned, kLru };

struct TierOptions {
  uint64_t budget_bytes = 0;  // bounds the streams' bytes, on disk the files' bytes; 0: no tier
  TierPolicy policy = TierPolicy::kLru;
  std::string popularity =
      {};                   // a co-read log (reader/fetch/popularity.h); empty: all streams come in
  std::string folder = {};  // absolute; empty: memory
  bool enabled() const { return budget_bytes > 0; }
  bool on_disk() const { return enabled() && !folder.empty(); }
};

// What the tier did for its callers; calls add to it.
struct TierFigures {
  uint64_t hits = 0, hit_bytes = 0;  // streams found
  uint64_t misses = 0, miss_bytes = 0;
};

// The streams of a stripe that a tier has.
struct TierStreams {
  std::vector<std::span<const uint8_t>> streams;  // parallel to those of the plan; empty: a miss
  // These own the bytes.
  std::vector<BufferPool::Handle> buffers;
  std::vector<std::shared_ptr<const void>> entries;
  uint64_t state = 0;  // for the tier's own use
};

// A stream of the plan that was read from the storage.
struct TierOffer {
  size_t stream = 0;
  std::span<const uint8_t> bytes;
};

class StreamTier {
 public:
  // `features`: only streams of these are offered to the tier (Fetch checks that); nothing: all
  // streams.
  explicit StreamTier(const TierOptions& options,
                      std::optional<std::set<std::string>> features = std::nullopt)
      : options_(options), features_(std::move(features)) {}
  virtual ~StreamTier() = default;
  StreamTier(const StreamTier&) = delete;
  StreamTier& operator=(const StreamTier&) = delete;

  const TierOptions& options() const { return options_; }
  const std::optional<std::set<std::string>>& features() const { return features_; }

  // The plan's streams that the tier has. They stay readable even if they are displaced meanwhile.
  virtual TierStreams Find(const dwrf::StripePlan& plan, const Source& source) = 0;
  // Offers streams that Find did not find, with what it returned.
  virtual void Insert(const dwrf::StripePlan& plan, const Source& source, const TierStreams& found,
                      std::span<const TierOffer> offers) = 0;

  virtual uint64_t bytes() const = 0;  // at most the budget, always
  // What a user should know about how it went, one line each.
  virtual std::vector<std::string> notes() const { return {}; }
  // The accounts (hr_operator) of reads from the tier's device and of writes to it, where it has
  // one.
  virtual void SetAccounts([[maybe_unused]] uint32_t read, [[maybe_unused]] uint32_t fill) {}

 private:
  const TierOptions options_;
  const std::optional<std::set<std::string>> features_;
};

}  // namespace headrace::reader
