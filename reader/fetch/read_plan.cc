#include "reader/fetch/read_plan.h"

#include <algorithm>
#include <deque>
#include <tuple>

namespace headrace::reader {
namespace {

uint64_t End(const ByteRange& range) { return range.offset + range.length; }

// Sorted ranges with those that share bytes joined.
std::vector<ByteRange> JoinOverlapping(const std::vector<ByteRange>& ranges) {
  std::vector<ByteRange> joined;
  for (const ByteRange& range : ranges) {
    if (!joined.empty() && range.offset < End(joined.back())) {
      joined.back().length = std::max(End(joined.back()), End(range)) - joined.back().offset;
    } else {
      joined.push_back(range);
    }
  }
  return joined;
}

void Align(const ReadPlanOptions& options, std::vector<ByteRange>* ranges) {
  const uint64_t mask = options.alignment - 1;
  for (ByteRange& range : *ranges) {
    const uint64_t end =
        std::min((End(range) + mask) & ~mask, std::max(options.source_bytes, End(range)));
    range.offset &= ~mask;
    range.length = end - range.offset;
  }
}

// The best way to fetch the first n ranges, as a chain over `first`: its last read begins with
// range `first`.
struct Best {
  uint64_t cost = 0, reads = 0;
  size_t first = 0;
};

// A read of ranges [i, n) costs gap + end(n - 1) - offset(i), so the best plan for n ranges takes
// the i with the least best(i).cost - offset(i) among those within reach of max_read_bytes: the
// minimum of a sliding window, kept in `window` with growing keys.
std::vector<ByteRange> CheapestReads(const std::vector<ByteRange>& ranges,
                                     const ReadPlanOptions& options) {
  std::vector<Best> best(ranges.size() + 1);
  // Adding the last offset keeps the keys positive.
  const uint64_t shift = ranges.empty() ? 0 : ranges.back().offset;
  const auto key = [&](size_t i) {
    return std::tuple(best[i].cost + (shift - ranges[i].offset), best[i].reads);
  };
  // Beyond this a gap means: always join.
  const uint64_t gap = std::min<uint64_t>(options.max_gap_bytes, uint64_t{1} << 40);
  std::deque<size_t> window;
  for (size_t n = 1; n <= ranges.size(); ++n) {
    const size_t added = n - 1;
    // If candidates are equal, the earlier one stays, because its last read is longer.
    while (!window.empty() && key(added) < key(window.back())) window.pop_back();
    window.push_back(added);
    const uint64_t end = End(ranges[n - 1]);
    while (window.size() > 1 && end - ranges[window.front()].offset > options.max_read_bytes)
      window.pop_front();
    const size_t first = window.front();
    best[n] = {best[first].cost + gap + (end - ranges[first].offset), best[first].reads + 1, first};
  }
  std::vector<ByteRange> reads;
  for (size_t n = ranges.size(); n > 0; n = best[n].first) {
    const uint64_t offset = ranges[best[n].first].offset;
    reads.push_back({offset, End(ranges[n - 1]) - offset});
  }
  std::reverse(reads.begin(), reads.end());
  return reads;
}

}  // namespace

ReadPlan PlanReads(std::vector<ByteRange> ranges, const ReadPlanOptions& options) {
  std::erase_if(ranges, [](const ByteRange& range) { return range.length == 0; });
  std::sort(ranges.begin(), ranges.end(), [](const ByteRange& a, const ByteRange& b) {
    return std::pair(a.offset, a.length) < std::pair(b.offset, b.length);
  });
  ReadPlan plan;
  ranges = JoinOverlapping(ranges);
  for (const ByteRange& range : ranges) plan.wanted_bytes += range.length;
  if (options.alignment > 1) {
    Align(options, &ranges);
    ranges = JoinOverlapping(ranges);
  }
  plan.reads = CheapestReads(ranges, options);
  for (const ByteRange& read : plan.reads) plan.read_bytes += read.length;
  return plan;
}

}  // namespace headrace::reader
