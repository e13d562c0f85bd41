// FindChangedLists against lists compared one by one, with every kernel, and on bytes that end
// early.
#include "reader/dwrf/decode/unique_lists.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <random>
#include <vector>

#include "reader/dwrf/decode/varint_simd.h"
#include "tests/seed.h"

namespace headrace::reader::dwrf {
namespace {

struct Lists {
  std::vector<uint32_t> lengths;
  std::vector<std::vector<uint8_t>> encoded;  // of each list
  std::vector<uint8_t> bytes;
};

void Append(uint64_t value, uint8_t width, std::vector<uint8_t>* out) {
  if (width > 0) {
    for (uint8_t i = 0; i < width; ++i) out->push_back(static_cast<uint8_t>(value >> 8 * i));
    return;
  }
  for (; value >= 0x80; value >>= 7) out->push_back(static_cast<uint8_t>(value | 0x80));
  out->push_back(static_cast<uint8_t>(value));
}

// Lists that often repeat the one before, or differ from it in their first or last value alone.
Lists Random(size_t count, uint8_t width, std::mt19937_64* random) {
  Lists lists;
  std::vector<uint64_t> values;
  for (size_t i = 0; i < count; ++i) {
    const uint64_t draw = (*random)() % 10;
    if (draw < 3 || i == 0) {
      values.resize((*random)() % ((*random)() % 8 == 0 ? 200 : 6));
      for (uint64_t& value : values) value = (*random)() >> (*random)() % 64;
    } else if (draw == 3 && !values.empty()) {
      ++values.front();
    } else if (draw == 4 && !values.empty()) {
      ++values.back();
    }
    lists.lengths.push_back(static_cast<uint32_t>(values.size()));
    std::vector<uint8_t>& encoded = lists.encoded.emplace_back();
    for (const uint64_t value : values) Append(value, width, &encoded);
    lists.bytes.insert(lists.bytes.end(), encoded.begin(), encoded.end());
  }
  return lists;
}

TEST(UniqueLists, EveryKernelFindsWhatComparingFinds) {
  const uint64_t seed = TestSeed();
  for (int set = 0; set <= static_cast<int>(BestInstructionSet()); ++set) {
    for (const uint8_t width : {0, 2, 4, 8}) {
      for (const size_t count : {0, 1, 2, 63, 64, 65, 300}) {
        SCOPED_TRACE(testing::Message() << "HEADRACE_SEED=" << seed << " set " << set << " width "
                                        << int{width} << " lists " << count);
        std::mt19937_64 random(seed + count);
        const Lists lists = Random(count, width, &random);
        std::vector<uint64_t> starts(count + 1), changed((count + 63) / 64, ~uint64_t{0});
        const uint8_t* begin = lists.bytes.data();
        ASSERT_TRUE(FindChangedLists(begin, begin + lists.bytes.size(), width, lists.lengths,
                                     starts.data(), changed.data(),
                                     static_cast<InstructionSet>(set)));
        uint64_t start = 0;
        for (size_t i = 0; i < count; ++i) {
          EXPECT_EQ(starts[i], start);
          start += lists.encoded[i].size();
          const bool differs = i == 0 || lists.encoded[i] != lists.encoded[i - 1];
          EXPECT_EQ(changed[i >> 6] >> (i & 63) & 1, uint64_t{differs}) << "list " << i;
        }
        EXPECT_EQ(starts[count], start);
        if (count % 64 != 0) {
          EXPECT_EQ(changed.back() >> (count % 64), 0u);
        }
      }
    }
  }
}

TEST(UniqueLists, ChosenListsAreDecodedOneBehindTheOther) {
  const uint64_t seed = TestSeed();
  for (int set = 0; set <= static_cast<int>(BestInstructionSet()); ++set) {
    for (const uint8_t width : {0, 2, 4, 8}) {
      SCOPED_TRACE(testing::Message()
                   << "HEADRACE_SEED=" << seed << " set " << set << " width " << int{width});
      std::mt19937_64 random(seed);
      Lists lists = Random(300, width, &random);
      const size_t size = lists.bytes.size();
      lists.bytes.resize(size + 128);
      std::vector<uint64_t> starts(301), changed(5);
      const uint8_t* begin = lists.bytes.data();
      ASSERT_TRUE(FindChangedLists(begin, begin + size, width, lists.lengths, starts.data(),
                                   changed.data()));
      const IntegerFormat format{true, width};
      std::vector<uint32_t> chosen;
      std::vector<int64_t> expected;
      for (uint32_t i = 0; i < 300; ++i) {
        if (random() % 3 == 0) continue;
        chosen.push_back(i);
        std::vector<int64_t> values(lists.lengths[i] + kDecodeSlack);
        DecodePlain(begin + starts[i], begin + starts[i + 1], lists.lengths[i], format,
                    values.data(), InstructionSet::kScalar);
        expected.insert(expected.end(), values.begin(), values.end() - kDecodeSlack);
      }
      std::vector<int64_t> out(expected.size() + kDecodeSlack);
      ASSERT_TRUE(DecodeLists(begin, chosen, lists.lengths.data(), starts.data(), format,
                              out.data(), static_cast<InstructionSet>(set)));
      out.resize(expected.size());
      EXPECT_EQ(out, expected);
    }
  }
}

TEST(UniqueLists, BytesThatEndEarlyAreRefused) {
  const uint64_t seed = TestSeed();
  SCOPED_TRACE(testing::Message() << "HEADRACE_SEED=" << seed);
  std::mt19937_64 random(seed);
  for (int set = 0; set <= static_cast<int>(BestInstructionSet()); ++set) {
    for (const uint8_t width : {0, 4}) {
      const Lists lists = Random(40, width, &random);
      std::vector<uint64_t> starts(41), changed(1);
      // A copy of each length, so that a read past its end shows under a sanitizer.
      for (size_t size = 0; size < lists.bytes.size(); size += 1 + size / 7) {
        const std::vector<uint8_t> cut(lists.bytes.begin(),
                                       lists.bytes.begin() + static_cast<ptrdiff_t>(size));
        const bool complete =
            FindChangedLists(cut.data(), cut.data() + size, width, lists.lengths, starts.data(),
                             changed.data(), static_cast<InstructionSet>(set));
        EXPECT_FALSE(complete) << size << " of " << lists.bytes.size();
      }
    }
  }
  // Nothing but continuation bytes.
  const std::vector<uint8_t> endless(500, 0xff);
  const std::vector<uint32_t> lengths = {1};
  uint64_t starts[2], changed[1];
  for (int set = 0; set <= static_cast<int>(BestInstructionSet()); ++set)
    EXPECT_FALSE(FindChangedLists(endless.data(), endless.data() + endless.size(), 0, lengths,
                                  starts, changed, static_cast<InstructionSet>(set)));
}

}  // namespace
}  // namespace headrace::reader::dwrf
