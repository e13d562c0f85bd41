// Passing over varints ends where decoding them ends.
#include "reader/dwrf/decode/varint_skip.h"

#include <gtest/gtest.h>

#include <random>
#include <vector>

#include "base/buffer.h"
#include "reader/dwrf/decode/varint_simd.h"

namespace headrace::reader::dwrf {
namespace {

std::vector<InstructionSet> Sets() {
  std::vector<InstructionSet> sets;
  for (const InstructionSet set :
       {InstructionSet::kScalar, InstructionSet::kAvx2, InstructionSet::kAvx512})
    if (set <= BestInstructionSet()) sets.push_back(set);
  return sets;
}

TEST(SkipVarints, EndsWhereDecodingEnds) {
  std::mt19937_64 random(11);
  for (int trial = 0; trial < 300; ++trial) {
    std::vector<uint8_t> bytes;
    const size_t count = random() % 400;
    for (size_t i = 0; i < count; ++i) {
      uint64_t value = random() >> (random() % 64);
      for (; value >= 128; value >>= 7) bytes.push_back(static_cast<uint8_t>(value | 128));
      bytes.push_back(static_cast<uint8_t>(value));
    }
    const size_t size = bytes.size();
    bytes.resize(size + Buffer::kPadding, static_cast<uint8_t>(trial % 2 == 0 ? 0 : 0x80));
    const uint8_t *begin = bytes.data(), *end = begin + size;
    std::vector<int64_t> out(count + 1 + kDecodeSlack);
    for (const InstructionSet set : Sets()) {
      for (const size_t n : {size_t{0}, count / 3, count / 2, count}) {
        ASSERT_EQ(SkipVarints(begin, end, n, set),
                  DecodeVarints(begin, end, n, false, out.data(), InstructionSet::kScalar))
            << InstructionSetName(set) << ", " << n << " of " << count;
      }
      // The bytes end before one more; what stands behind them does not count.
      ASSERT_EQ(SkipVarints(begin, end, count + 1, set), nullptr) << InstructionSetName(set);
      if (size == 0) continue;
      ASSERT_EQ(SkipVarints(begin, end - 1, count, set), nullptr) << InstructionSetName(set);
    }
  }
}

}  // namespace
}  // namespace headrace::reader::dwrf
