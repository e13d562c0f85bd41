// AppendBits: a run of bits behind others, a word at a time; how presence is cut and joined.
#pragma once
#include <algorithm>
#include <bit>
#include <cstdint>
#include <vector>

namespace headrace::reader {

// Bits [first, first + count) of `from` behind the first `place` bits of `to`, which are all it
// has (those of its last word beyond them are 0). Returns how many of them are set.
inline uint64_t AppendBits(const std::vector<uint64_t>& from, uint64_t first, uint64_t count,
                           uint64_t place, std::vector<uint64_t>* to) {
  to->resize((place + count + 63) / 64);
  uint64_t set = 0;
  for (uint64_t done = 0; done < count;) {
    const uint64_t source = first + done, target = place + done;
    const uint64_t take = std::min({64 - (source & 63), 64 - (target & 63), count - done});
    uint64_t bits = from[source >> 6] >> (source & 63);
    if (take < 64) bits &= (uint64_t{1} << take) - 1;
    (*to)[target >> 6] |= bits << (target & 63);
    set += static_cast<uint64_t>(std::popcount(bits));
    done += take;
  }
  return set;
}

}  // namespace headrace::reader
