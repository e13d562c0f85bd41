#include "reader/fetch/fetch.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "reader/fetch/popularity.h"

namespace headrace::reader {
namespace {

uint64_t RoundUp(uint64_t value, uint64_t alignment) {
  return (value + alignment - 1) / alignment * alignment;
}

// Which streams of the plan may come into the tier.
std::vector<bool> Offered(const dwrf::StripePlan& plan, const StreamTier* tier) {
  if (tier == nullptr || !tier->features())
    return std::vector<bool>(plan.streams.size(), tier != nullptr);
  std::vector<bool> offered(plan.streams.size());
  for (const dwrf::FeaturePlan& feature : plan.features) {
    if (tier->features()->count(feature.name) == 0) continue;
    for (const uint32_t stream : StreamsOf(feature)) offered[stream] = true;
  }
  return offered;
}

// The most that one of adjacent reads takes: whole blocks of the source.
uint64_t MostAtOnce(const FetchOptions& options, uint64_t alignment) {
  constexpr uint64_t kLeast = 4096;
  return std::max(options.max_read_bytes, std::max(kLeast, alignment)) / alignment * alignment;
}

// Counts what the tier has; returns the ranges of all other streams.
std::vector<ByteRange> CountHits(const dwrf::StripePlan& plan, const TierStreams& found,
                                 FetchedStripe* fetched) {
  std::vector<ByteRange> missing;
  for (size_t i = 0; i < plan.streams.size(); ++i) {
    const dwrf::StreamInfo& stream = plan.streams[i];
    const bool is_hit = !found.streams[i].empty();
    fetched->stream_bytes += stream.length;
    ++(is_hit ? fetched->tier.hits : fetched->tier.misses);
    (is_hit ? fetched->tier.hit_bytes : fetched->tier.miss_bytes) += stream.length;
    if (!is_hit) missing.push_back({stream.offset, stream.length});
  }
  return missing;
}

// Each read goes to its place behind `data`.
std::vector<ReadRequest> Requests(const FetchOptions& options, uint64_t alignment,
                                  const std::vector<ByteRange>& reads,
                                  const std::vector<uint64_t>& places, uint8_t* data) {
  std::vector<ReadRequest> requests;
  requests.reserve(reads.size());
  // What joins all ranges to one would leave a source nothing to do at a time.
  const uint64_t most = options.whole.length > 0 ? MostAtOnce(options, alignment) : UINT64_MAX;
  for (size_t i = 0; i < reads.size(); ++i) {
    for (uint64_t done = 0; done < reads[i].length;) {
      const uint64_t part = std::min(most, reads[i].length - done);
      requests.push_back({reads[i].offset + done, {data + places[i] + done, part}});
      done += part;
    }
  }
  return requests;
}

// Where each stream of the plan is. `hit_place`: where those of the tier are copied to, behind what
// was read; null: they stay in the tier's buffer. `offered`: which of the others may come into the
// tier.
template <class BytesAt>
void PlaceStreams(const dwrf::StripePlan& plan, const TierStreams& found, uint8_t* hit_place,
                  const std::vector<bool>& offered, const BytesAt& bytes_at,
                  FetchedStripe* fetched) {
  fetched->stored.reserve(plan.streams.size());
  for (size_t k = 0; k < plan.streams.size(); ++k) {
    const dwrf::StreamInfo& stream = plan.streams[k];
    const std::span<const uint8_t> hit = found.streams[k];
    if (!hit.empty() && hit_place == nullptr) {
      fetched->stored.push_back(hit);
      continue;
    }
    if (!hit.empty()) {
      std::memcpy(hit_place, hit.data(), hit.size());
      fetched->stored.emplace_back(hit_place, hit.size());
      hit_place += hit.size();
      continue;
    }
    fetched->stored.push_back(bytes_at(ByteRange{stream.offset, stream.length}));
    if (offered[k]) fetched->offers.push_back({k, fetched->stored.back()});
  }
}

}  // namespace

BufferPool& StripeBuffers() {
  static auto* pool = new BufferPool();
  return *pool;
}

FetchedStripe Fetch(dwrf::StripePlan plan, const Source& source, const FetchOptions& options,
                    StreamTier* tier, ReadFigures* figures) {
  FetchedStripe fetched;
  TierStreams found;
  if (tier != nullptr) found = tier->Find(plan, source);
  found.streams.resize(plan.streams.size());
  std::vector<ByteRange> missing = CountHits(plan, found, &fetched);
  const uint64_t wanted_bytes = options.whole.length == 0 ? 0 : PlanReads(missing).wanted_bytes;
  if (options.whole.length > 0) missing.push_back(options.whole);
  const uint64_t alignment = source.alignment();
  const ReadPlan planned =
      PlanReads(std::move(missing),
                {options.max_gap_bytes, options.max_read_bytes, alignment, source.size()});
  const std::vector<ByteRange>& reads = planned.reads;
  // An aligned source writes whole blocks, at aligned addresses.
  std::vector<uint64_t> places;  // of each read behind the first aligned byte of the buffer
  uint64_t room = 0;
  for (const ByteRange& read : reads) {
    places.push_back(room);
    room += RoundUp(read.length, alignment);
  }
  // A stripe that the tier read whole stays where it is.
  const bool is_read = !reads.empty() || found.buffers.size() != 1;
  if (is_read) {
    BufferPool* const own = source.buffers();
    fetched.bytes = (own != nullptr ? *own : StripeBuffers())
                        .Take(room + fetched.tier.hit_bytes + alignment - 1);
  } else {
    fetched.bytes = std::move(found.buffers[0]);
  }
  uint8_t* const data = reinterpret_cast<uint8_t*>(
      RoundUp(reinterpret_cast<uintptr_t>(fetched.bytes->data()), alignment));
  const std::vector<ReadRequest> requests = Requests(options, alignment, reads, places, data);
  try {
    source.ReadMany(requests, &fetched.figures);
  } catch (...) {
    if (figures != nullptr) *figures = fetched.figures;
    throw;
  }
  if (figures != nullptr) *figures = fetched.figures;

  // Bytes of the source that were read at once.
  const auto bytes_at = [&](const ByteRange& range) -> std::span<const uint8_t> {
    const auto after = std::upper_bound(
        reads.begin(), reads.end(), range.offset,
        [](uint64_t offset, const ByteRange& read) { return offset < read.offset; });
    const auto i = static_cast<size_t>(after - reads.begin()) - 1;
    return {data + places[i] + (range.offset - reads[i].offset), range.length};
  };
  if (options.whole.length > 0) fetched.whole = bytes_at(options.whole);
  PlaceStreams(plan, found, is_read ? data + room : nullptr, Offered(plan, tier), bytes_at,
               &fetched);
  fetched.wanted_bytes =
      (options.whole.length > 0 ? wanted_bytes : planned.wanted_bytes) + fetched.tier.hit_bytes;
  fetched.read_bytes = planned.read_bytes + fetched.tier.hit_bytes;
  fetched.plan = std::move(plan);
  fetched.found = std::move(found);
  if (options.whole.length == 0) OfferTo(tier, source, &fetched);
  return fetched;
}

void OfferTo(StreamTier* tier, const Source& source, FetchedStripe* fetched) {
  if (!fetched->offers.empty() && tier != nullptr)
    tier->Insert(fetched->plan, source, fetched->found, fetched->offers);
  fetched->offers.clear();
  fetched->found = {};
}

}  // namespace headrace::reader
