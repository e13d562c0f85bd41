#include "reader/fetch/fetch.h"

#include <algorithm>
#include <utility>

namespace headrace::reader {
namespace {

uint64_t RoundUp(uint64_t value, uint64_t alignment) {
  return (value + alignment - 1) / alignment * alignment;
}

}  // namespace

BufferPool& StripeBuffers() {
  static auto* pool = new BufferPool(64);
  return *pool;
}

FetchedStripe Fetch(dwrf::StripePlan plan, const Source& source, const FetchOptions& options) {
  FetchedStripe fetched;
  const uint64_t alignment = source.alignment();
  const ReadPlan planned = PlanReads(
      plan.ranges(), {options.max_gap_bytes, options.max_read_bytes, alignment, source.size()});
  const std::vector<ByteRange>& reads = planned.reads;
  // An aligned source writes whole blocks, at aligned addresses.
  std::vector<uint64_t> places;  // of each read behind the first aligned byte of the buffer
  uint64_t room = 0;
  for (const ByteRange& read : reads) {
    places.push_back(room);
    room += RoundUp(read.length, alignment);
  }
  BufferPool* const own = source.buffers();
  fetched.bytes = (own != nullptr ? *own : StripeBuffers()).Take(room + alignment - 1);
  uint8_t* const data = reinterpret_cast<uint8_t*>(
      RoundUp(reinterpret_cast<uintptr_t>(fetched.bytes->data()), alignment));
  std::vector<ReadRequest> requests;
  requests.reserve(reads.size());
  for (size_t i = 0; i < reads.size(); ++i)
    requests.push_back({reads[i].offset, {data + places[i], reads[i].length}});
  source.ReadMany(requests, &fetched.figures);

  fetched.stored.reserve(plan.streams.size());
  for (const dwrf::StreamInfo& stream : plan.streams) {
    const auto after = std::upper_bound(
        reads.begin(), reads.end(), stream.offset,
        [](uint64_t offset, const ByteRange& read) { return offset < read.offset; });
    const auto i = static_cast<size_t>(after - reads.begin()) - 1;
    fetched.stored.emplace_back(data + places[i] + (stream.offset - reads[i].offset),
                                stream.length);
    fetched.stream_bytes += stream.length;
  }
  fetched.wanted_bytes = planned.wanted_bytes;
  fetched.read_bytes = planned.read_bytes;
  fetched.plan = std::move(plan);
  return fetched;
}

}  // namespace headrace::reader
