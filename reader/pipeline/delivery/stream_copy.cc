#include "reader/pipeline/delivery/stream_copy.h"

#include <algorithm>
#include <cstring>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace headrace::reader {
namespace {

#if defined(__x86_64__)
// `to` at a multiple of 32; `size` a multiple of 128.
__attribute__((target("avx2"))) void StreamBlocks(uint8_t* to, const uint8_t* from, size_t size) {
  constexpr size_t kAhead = 1024;  // bytes that are on their way while some are copied
  for (size_t at = 0; at < size; at += 128) {
    const auto* source = reinterpret_cast<const __m256i*>(from + at);
    auto* target = reinterpret_cast<__m256i*>(to + at);
    const __m256i a = _mm256_loadu_si256(source), b = _mm256_loadu_si256(source + 1);
    const __m256i c = _mm256_loadu_si256(source + 2), d = _mm256_loadu_si256(source + 3);
    // Never beyond the end: a prefetch of what is not there costs time.
    const size_t next = std::min(at + kAhead, size - 128);
    _mm_prefetch(reinterpret_cast<const char*>(from + next), _MM_HINT_T0);
    _mm_prefetch(reinterpret_cast<const char*>(from + next + 64), _MM_HINT_T0);
    _mm256_stream_si256(target, a);
    _mm256_stream_si256(target + 1, b);
    _mm256_stream_si256(target + 2, c);
    _mm256_stream_si256(target + 3, d);
  }
  _mm_sfence();  // such stores are not ordered with those that say that they are done
}
#endif

}  // namespace

void StreamCopy(uint8_t* to, std::span<const uint8_t> from, InstructionSet set) {
#if defined(__x86_64__)
  if (set != InstructionSet::kScalar) {
    const size_t head = std::min<size_t>(from.size(), -reinterpret_cast<uintptr_t>(to) % 32);
    if (head > 0) std::memcpy(to, from.data(), head);
    const size_t blocks = (from.size() - head) / 128 * 128;
    if (blocks > 0) StreamBlocks(to + head, from.data() + head, blocks);
    to += head + blocks;
    from = from.subspan(head + blocks);
  }
#endif
  (void)set;
  if (!from.empty()) std::memcpy(to, from.data(), from.size());
}

}  // namespace headrace::reader
