// Blocks of a body: what comes out is what went in, and damage is refused.
#include "reader/pipeline/delivery/wire_block.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "base/error.h"
#include "tests/seed.h"

namespace headrace::reader {
namespace {

constexpr WireCodec kCodecs[] = {WireCodec::kRaw, WireCodec::kNarrow, WireCodec::kLz4,
                                 WireCodec::kZstd};

// Integers that narrowing, a codec, both or nothing makes smaller.
std::vector<uint8_t> RandomBytes(size_t bytes, int kind, std::mt19937_64& random) {
  std::vector<uint8_t> plain(bytes);
  for (size_t at = 0; at < bytes; at += sizeof(uint64_t)) {
    uint64_t value = random();
    if (kind == 0) value >>= 32;
    if (kind == 1) value = value % 1000 << 40;
    if (kind == 2) value %= 1000;
    std::memcpy(plain.data() + at, &value, std::min(sizeof value, bytes - at));
  }
  return plain;
}

std::string ErrorOf(const std::function<void()>& act) {
  try {
    act();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::kBadData);
    return error.what();
  }
  return "accepted";
}

// As the other side has it.
std::vector<uint8_t> Unpack(const WireBlock& block, std::span<const uint8_t> stored,
                            BlockUnpacker* unpacker) {
  std::vector<uint8_t> plain(block.plain);
  BlockUnpacker::Check(block, plain.size());
  if (BlockUnpacker::IsPlain(block)) return {stored.begin(), stored.end()};
  std::copy(stored.begin(), stored.end(), unpacker->Room(block).begin());
  unpacker->Unpack(block, plain);
  return plain;
}

TEST(WireBlock, WhatComesOutIsWhatWentIn) {
  std::mt19937_64 random(TestSeed());
  BlockPacker packer;
  BlockUnpacker unpacker;
  for (int i = 0; i < 1000; ++i) {
    const size_t most = i % 3 == 0 ? 300 : kWireBlockBytes;
    const std::vector<uint8_t> plain =
        RandomBytes(1 + random() % most, static_cast<int>(random() % 4), random);
    std::span<const uint8_t> stored;
    const WireBlock block = packer.Pack(plain, kCodecs[random() % 4], &stored);
    EXPECT_EQ(block.stored, stored.size());
    ASSERT_EQ(Unpack(block, stored, &unpacker), plain) << block.codec;
  }
}

TEST(WireBlock, EachCodecDoesWhatThoseBeforeDo) {
  std::mt19937_64 random(TestSeed());
  BlockPacker packer;
  const struct {
    int kind;
    WireCodec codec;
    double least, most;  // of the bytes that are left
  } kCases[] = {{0, WireCodec::kRaw, 1, 1},      {0, WireCodec::kNarrow, 0.5, 0.51},
                {0, WireCodec::kLz4, 0.5, 0.51}, {1, WireCodec::kNarrow, 1, 1},
                {1, WireCodec::kLz4, 0, 0.6},    {2, WireCodec::kLz4, 0, 0.4},
                {2, WireCodec::kZstd, 0, 0.25},  {3, WireCodec::kZstd, 1, 1}};
  for (const auto& one : kCases) {
    const std::vector<uint8_t> plain = RandomBytes(kWireBlockBytes, one.kind, random);
    std::span<const uint8_t> stored;
    packer.Pack(plain, one.codec, &stored);
    const double left = static_cast<double>(stored.size()) / static_cast<double>(plain.size());
    EXPECT_GE(left, one.least) << one.kind << NameOf(one.codec);
    EXPECT_LE(left, one.most) << one.kind << NameOf(one.codec);
  }
}

TEST(WireBlock, AnyDamageIsRefusedOrGivesAsManyBytes) {
  std::mt19937_64 random(TestSeed());
  BlockPacker packer;
  BlockUnpacker unpacker;
  const std::vector<uint8_t> plain = RandomBytes(60000, 2, random);
  for (const WireCodec codec : kCodecs) {
    std::span<const uint8_t> stored;
    const WireBlock block = packer.Pack(plain, codec, &stored);
    for (int i = 0; i < 2000; ++i) {
      std::vector<uint8_t> damaged(stored.begin(), stored.end());
      damaged[random() % (i % 2 == 0 ? 64 : damaged.size())] = static_cast<uint8_t>(random());
      WireBlock other = block;
      if (i % 7 == 0) other.codec = static_cast<uint32_t>(random() % 3 + 256 * (random() % 2));
      if (i % 5 == 0) damaged.resize(other.stored = static_cast<uint32_t>(random() % other.stored));
      try {
        EXPECT_EQ(Unpack(other, damaged, &unpacker).size(), plain.size());
      } catch (const Error& error) {
        EXPECT_EQ(error.code(), ExitCode::kBadData) << error.what();
      }
    }
  }
}

TEST(WireBlock, RefusalsSayWhy) {
  const auto check = [](WireBlock block, uint64_t left) {
    return ErrorOf([&] { BlockUnpacker::Check(block, left); });
  };
  EXPECT_NE(check({9, 64, 4}, 64).find("unknown codec 9"), std::string::npos);
  EXPECT_NE(check({512, 64, 4}, 64).find("unknown codec 512"), std::string::npos);
  for (const auto& [block, left] : std::vector<std::pair<WireBlock, uint64_t>>{
           {{0, 0, 0}, 64},                          // nothing
           {{1, 128, 4}, 64},                        // beyond the body
           {{1, kWireBlockBytes + 64, 4}, 1 << 30},  // too long
           {{0, 64, 4}, 64},                         // of nothing
           {{1, 64, 64}, 64}})                       // not smaller
    EXPECT_NE(check(block, left).find("are due"), std::string::npos) << block.plain;
  const auto unpack = [](uint32_t codec) {
    return ErrorOf([&] {
      BlockUnpacker unpacker;
      const WireBlock block = {codec, 64, 4};
      std::vector<uint8_t> plain(block.plain);
      std::ranges::fill(unpacker.Room(block), 1);
      unpacker.Unpack(block, plain);
    });
  };
  EXPECT_NE(unpack(1).find("lz4 cannot decompress it"), std::string::npos);
  EXPECT_NE(unpack(2).find("zstd cannot decompress it"), std::string::npos);
  EXPECT_NE(unpack(256).find("4 bytes of a block are not 64 narrowed"), std::string::npos);
}

}  // namespace
}  // namespace headrace::reader
