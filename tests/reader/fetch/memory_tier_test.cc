#include "reader/fetch/memory_tier.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <random>
#include <thread>

#include "reader/fetch/fetch.h"

namespace headrace::reader {
namespace {

// The bytes of the stream at `offset` of a file: told by both.
std::vector<uint8_t> BytesOf(const std::string& file, uint64_t offset, uint64_t length) {
  std::vector<uint8_t> bytes(length);
  for (uint64_t i = 0; i < length; ++i)
    bytes[i] = static_cast<uint8_t>(offset * 31 + i * 7 + static_cast<uint8_t>(file.back()));
  return bytes;
}

bool FindAndCheck(MemoryTier* tier, const std::string& file, uint64_t offset, uint64_t length) {
  const MemoryTier::Bytes found = tier->FindStream(file, offset, length);
  if (!found) return false;
  EXPECT_EQ(*found, BytesOf(file, offset, length));
  return true;
}

// Against a list that is searched from end to end.
TEST(MemoryTier, BehavesAsThePolicySaysAndKeepsTheBudget) {
  for (const TierPolicy policy : {TierPolicy::kPinned, TierPolicy::kLru}) {
    for (uint64_t seed = 0; seed < 50; ++seed) {
      SCOPED_TRACE(seed);
      std::mt19937_64 random(seed);
      const uint64_t budget = 1 + random() % 5000;
      MemoryTier tier({budget, policy});
      std::deque<std::pair<std::string, uint64_t>> expected;  // the one used last first
      const auto length_of = [](uint64_t offset) { return 1 + offset * 977 % 1500; };
      const auto used = [&] {
        uint64_t bytes = 0;
        for (const auto& entry : expected) bytes += length_of(entry.second);
        return bytes;
      };
      for (int i = 0; i < 500; ++i) {
        const std::string file = random() % 2 == 0 ? "a" : "b";
        const uint64_t offset = random() % 10, length = length_of(offset);
        const auto entry = std::pair(file, offset);
        const auto place = std::find(expected.begin(), expected.end(), entry);
        const bool here = place != expected.end();
        ASSERT_EQ(FindAndCheck(&tier, file, offset, length), here);
        ASSERT_FALSE(FindAndCheck(&tier, file, offset, length + 1)) << "another stream";
        if (here && policy == TierPolicy::kLru) {
          expected.erase(place);
          expected.push_front(entry);
        } else if (!here) {
          tier.InsertStream(file, offset, BytesOf(file, offset, length));
          if (length <= budget && policy == TierPolicy::kLru) {
            while (used() + length > budget) expected.pop_back();
          }
          if (used() + length <= budget) expected.push_front(entry);
        }
        ASSERT_EQ(tier.bytes(), used());
        ASSERT_LE(tier.bytes(), budget);
      }
    }
  }
}

TEST(MemoryTier, ThreadsShareIt) {
  MemoryTier tier({20000, TierPolicy::kLru});
  std::vector<std::thread> threads;
  for (uint64_t t = 0; t < 4; ++t) {
    threads.emplace_back([&tier, t] {
      std::mt19937_64 random(t);
      for (int i = 0; i < 3000; ++i) {
        const uint64_t offset = random() % 50, length = 100 + offset * 20;
        if (!FindAndCheck(&tier, "f", offset, length))
          tier.InsertStream("f", offset, BytesOf("f", offset, length));
        EXPECT_LE(tier.bytes(), 20000u);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST(Fetch, TakesFromTheTierWhatItHasAndReadsTheRest) {
  std::string bytes(100000, '\0');
  std::mt19937_64 random(1);
  for (char& byte : bytes) byte = static_cast<char>(random());
  const auto source = MemorySource("f", bytes);
  dwrf::StripePlan plan;
  for (const uint64_t offset : {0, 5000, 20000, 90000})
    plan.streams.push_back({1, 0, dwrf::StreamKind::kData, offset, 1000, true});
  MemoryTier tier({3000, TierPolicy::kPinned});
  for (int round = 0; round < 3; ++round) {
    SCOPED_TRACE(round);
    const FetchedStripe fetched = Fetch(plan, *source, {.max_gap_bytes = 0}, &tier);
    for (size_t i = 0; i < plan.streams.size(); ++i) {
      EXPECT_EQ(std::string(fetched.stored[i].begin(), fetched.stored[i].end()),
                bytes.substr(plan.streams[i].offset, 1000));
    }
    const uint64_t hits = round == 0 ? 0 : 3;
    EXPECT_EQ(fetched.tier.hits, hits);
    EXPECT_EQ(fetched.tier.misses, 4 - hits);
    EXPECT_EQ(fetched.tier.hit_bytes, 1000 * hits);
    EXPECT_EQ(fetched.tier.miss_bytes, 1000 * (4 - hits));
    EXPECT_EQ(fetched.figures.bytes, 1000 * (4 - hits));
    EXPECT_EQ(fetched.read_bytes, 4000u) << "from the storage and the tier";
    EXPECT_EQ(fetched.wanted_bytes, 4000u);
  }
  EXPECT_EQ(tier.bytes(), 3000u);
}

// Whoever asks for all of a stripe looks at it first: what is damaged must not be kept.
TEST(Fetch, WhatIsReadToBeSummedIsOfferedOnlyWhenTheCallerSaysSo) {
  const std::string bytes(10'000, 'x');
  const auto source = MemorySource("f", bytes);
  dwrf::StripePlan plan;
  plan.streams.push_back({1, 0, dwrf::StreamKind::kData, 2000, 1000, true});
  MemoryTier tier({3000, TierPolicy::kPinned});
  FetchOptions options;
  options.whole = {1000, 8000};
  FetchedStripe fetched = Fetch(plan, *source, options, &tier);
  EXPECT_EQ(tier.bytes(), 0u);
  OfferTo(&tier, *source, &fetched);
  EXPECT_EQ(tier.bytes(), 1000u);
  EXPECT_EQ(Fetch(plan, *source, options, &tier).tier.hits, 1u);
}

}  // namespace
}  // namespace headrace::reader
