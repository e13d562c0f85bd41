// Narrowed integers: what comes out is what went in, whatever it was.
#include "reader/pipeline/delivery/narrow.h"

#include <gtest/gtest.h>

#include <cstring>
#include <random>
#include <vector>

#include "tests/seed.h"

namespace headrace::reader {
namespace {

// Runs of integers that fit 32 bits and of those that do not, and some bytes behind them.
std::vector<uint8_t> RandomPlain(size_t bytes, double share_of_slim, std::mt19937_64& random) {
  std::vector<uint8_t> plain(bytes);
  std::bernoulli_distribution is_slim(share_of_slim);
  bool slim = true;
  for (size_t at = 0; at < bytes; at += sizeof(uint64_t)) {
    if (at % 1024 == 0) slim = is_slim(random);
    const uint64_t value = slim ? random() >> 32 : random();
    std::memcpy(plain.data() + at, &value, std::min(sizeof value, bytes - at));
  }
  return plain;
}

TEST(Narrow, WhatComesOutIsWhatWentIn) {
  std::mt19937_64 random(TestSeed());
  int narrowed = 0;
  for (int i = 0; i < 2000; ++i) {
    const std::vector<uint8_t> plain = RandomPlain(random() % (i % 2 == 0 ? 3000 : 100000),
                                                   static_cast<double>(i % 5) / 4, random);
    std::vector<uint8_t> to(NarrowRoom(plain.size())), back(plain.size());
    const size_t size = Narrow(plain, to.data());
    if (size == 0) continue;
    ++narrowed;
    EXPECT_LE(size, plain.size() - plain.size() / 8);
    ASSERT_TRUE(Widen({to.data(), size}, back));
    ASSERT_EQ(back, plain);
  }
  EXPECT_GT(narrowed, 800);
}

TEST(Narrow, HalvesSmallIntegersAndLeavesOthers) {
  std::mt19937_64 random(TestSeed());
  const std::vector<uint8_t> small = RandomPlain(1 << 19, 1, random);
  std::vector<uint8_t> to(small.size());
  EXPECT_NEAR(static_cast<double>(Narrow(small, to.data())), 0.5 * (1 << 19), 2000);
  EXPECT_EQ(Narrow(RandomPlain(1 << 19, 0, random), to.data()), 0u);
  EXPECT_EQ(Narrow({}, to.data()), 0u);
}

TEST(Narrow, OtherBytesAreRefused) {
  std::mt19937_64 random(TestSeed());
  const std::vector<uint8_t> plain = RandomPlain(5003, 1, random);
  std::vector<uint8_t> to(plain.size()), back(plain.size());
  const size_t size = Narrow(plain, to.data());
  ASSERT_GT(size, 0u);
  EXPECT_FALSE(Widen({to.data(), size - 1}, back));
  EXPECT_FALSE(Widen({}, back));
  EXPECT_FALSE(Widen({to.data(), size}, {back.data(), back.size() - 8}));
  to[0] ^= 1;  // another group is wide, or narrow
  EXPECT_FALSE(Widen({to.data(), size}, back));
}

}  // namespace
}  // namespace headrace::reader
