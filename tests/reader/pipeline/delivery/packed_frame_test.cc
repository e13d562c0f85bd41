// Compressed frames: what comes out is what went in, and damage is refused.
#include "reader/pipeline/delivery/packed_frame.h"

#include <gtest/gtest.h>

#include <cstring>
#include <optional>
#include <vector>

#include "base/block_pool.h"
#include "base/error.h"
#include "tests/reader/pipeline/delivery/random_batch.h"
#include "tests/reader/pipeline/delivery/same_batch.h"

namespace headrace::reader {
namespace {

constexpr WireCodec kCodecs[] = {WireCodec::kLz4, WireCodec::kZstd};

// As it is behind a header.
std::vector<uint8_t> BodyOf(const Frame& frame) {
  std::vector<uint8_t> body;
  for (const auto part : frame.parts) body.insert(body.end(), part.begin(), part.end());
  return body;
}

std::optional<TensorBatch> Decode(FrameDecoder* decoder, const Frame& frame) {
  const std::vector<uint8_t> body = BodyOf(frame);
  FrameHeader header = frame.header;
  header.checksum = FrameChecksum(header, body);
  header = ParseFrameHeader({reinterpret_cast<const uint8_t*>(&header), sizeof header});
  return decoder->Decode(header, body);
}

// Of ids that a codec can make something of.
TensorBatch SmallIds(uint64_t rows, std::mt19937_64& random) {
  TensorBatch batch = RandomBatch({.rows = rows, .dense = 5, .sparse = 3}, random);
  for (int64_t& id : batch.sparse.values) id &= 0xff;
  return batch;
}

std::string RefusalOf(std::span<const uint8_t> body) {
  try {
    UnpackBody(body);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::kBadData);
    return error.what();
  }
  return "accepted";
}

TEST(PackedFrame, RandomBatchesComeOutAsTheyWentIn) {
  std::mt19937_64 random(TestSeed());
  FrameEncoder encoder;
  FrameDecoder decoder;
  FramePacker packer;
  for (int i = 0; i < 200; ++i) {
    const TensorBatch batch = i % 2 == 0 ? RandomBatch(RandomShape(random), random)
                                         : SmallIds(1 + random() % 20000, random);
    std::vector<Frame> frames = encoder.Encode(batch);
    frames.back() = packer.Pack(frames.back(), kCodecs[random() % 2]);
    EXPECT_EQ(frames.back().bytes() % kFrameAlignment, 0u);
    std::optional<TensorBatch> got;
    for (const Frame& frame : frames) got = Decode(&decoder, frame);
    ASSERT_TRUE(got.has_value());
    ExpectSame(batch, *got);
    if (HasFailure()) return;
  }
}

TEST(PackedFrame, IsSmallerWhereItCanBeAndHardlyLongerWhereNot) {
  std::mt19937_64 random(TestSeed());
  FramePacker packer;
  for (const WireCodec codec : kCodecs) {
    for (const bool is_small : {true, false}) {
      FrameEncoder encoder;
      const TensorBatch batch =
          is_small ? SmallIds(30000, random)
                   : RandomBatch({.rows = 30000, .sparse = 3, .longest = 20}, random);
      const Frame plain = encoder.Encode(batch).back();
      const Frame packed = packer.Pack(plain, codec);
      const double ratio = static_cast<double>(packed.bytes()) / static_cast<double>(plain.bytes());
      EXPECT_LT(ratio, is_small ? 0.6 : 1.001) << NameOf(codec);
    }
  }
}

TEST(PackedFrame, AnyDamageIsRefusedOrGivesABodyOfThatLength) {
  std::mt19937_64 random(TestSeed());
  FrameEncoder encoder;
  FramePacker packer;
  const Frame plain = encoder.Encode(SmallIds(4000, random)).back();
  for (const WireCodec codec : kCodecs) {
    const std::vector<uint8_t> body = BodyOf(packer.Pack(plain, codec));
    int refused = 0;
    for (int i = 0; i < 2000; ++i) {
      std::vector<uint8_t> damaged = body;
      // Early bytes lead to lengths.
      const size_t most = i % 2 == 0 ? 64 : damaged.size();
      damaged[random() % most] = static_cast<uint8_t>(random());
      if (i % 5 == 0) damaged.resize(random() % damaged.size());
      try {
        EXPECT_EQ(UnpackBody(damaged)->size(), plain.header.body_bytes);
      } catch (const Error& error) {
        EXPECT_EQ(error.code(), ExitCode::kBadData) << error.what();
        ++refused;
      }
    }
    EXPECT_GT(refused, 500);
  }
}

TEST(PackedFrame, RefusalsSayWhy) {
  const auto body = [](uint64_t plain, std::vector<uint32_t> words) {
    std::vector<uint8_t> bytes(sizeof plain + words.size() * sizeof words[0]);
    std::memcpy(bytes.data(), &plain, sizeof plain);
    std::memcpy(bytes.data() + sizeof plain, words.data(), bytes.size() - sizeof plain);
    return RefusalOf(bytes);
  };
  const struct {
    std::string got;
    const char* expected;
  } kCases[] = {
      {RefusalOf({}), "ends within its length"},
      {body(63, {}), "claims a body of 63 bytes"},
      {body(kMaxFrameBytes + 64, {}), "claims a body of"},
      {body(64, {0}), "ends within a block"},
      {body(64, {0, 64, 64}), "claims 64 bytes in 64"},
      {body(64, {0, 128, 0}), "claims 128 bytes in 0"},
      {body(64, {0, 0, 0}), "claims 0 bytes in 0"},
      {body(64, {0, 64, 4, 0}), "has 4 bytes and claims 64"},
      {body(64, {9, 64, 4, 0}), "unknown codec 9"},
      {body(64, {1, 64, 4, 0x01010101}), "lz4 cannot decompress it"},
      {body(64, {2, 64, 4, 0x01010101}), "zstd cannot decompress it"},
      {body(0, std::vector<uint32_t>(16)), "longer than its blocks"},
  };
  for (const auto& [got, expected] : kCases)
    EXPECT_NE(got.find(expected), std::string::npos) << got;
}

// A claim of the longest body takes no memory that its bytes do not account for.
TEST(PackedFrame, AClaimAloneTakesLittleMemory) {
  std::vector<uint8_t> bytes(64);
  std::memcpy(bytes.data(), &kMaxFrameBytes, sizeof kMaxFrameBytes);
  const BlockPool::ThreadPeak peak;
  EXPECT_NE(RefusalOf(bytes), "accepted");
  EXPECT_LE(peak.bytes(), uint64_t{4} << 20);
}

TEST(PackedFrame, IsRefusedWhereItsProducerCanStillWrite) {
  std::mt19937_64 random(TestSeed());
  FrameEncoder encoder;
  FrameDecoder decoder;
  FramePacker packer;
  std::vector<Frame> frames = encoder.Encode(SmallIds(100, random));
  Decode(&decoder, frames.front());
  const Frame packed = packer.Pack(frames.back(), WireCodec::kLz4);
  const auto body = std::make_shared<std::vector<uint8_t>>(BodyOf(packed));
  FrameHeader header = packed.header;
  header.flags |= kFrameUnhashed;
  try {
    decoder.Decode(header, *body, body, FrameMemory::kShared);
    FAIL() << "accepted";
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(), "a frame is compressed where none can be");
  }
}

// What a batch's counts claim is looked at again once its body is plain.
TEST(PackedFrame, CountsBeyondThePlainBodyAreRefused) {
  std::mt19937_64 random(TestSeed());
  FrameEncoder encoder;
  FrameDecoder decoder;
  FramePacker packer;
  std::vector<Frame> frames = encoder.Encode(SmallIds(1000, random));
  Decode(&decoder, frames.front());
  Frame packed = packer.Pack(frames.back(), WireCodec::kZstd);
  packed.header.sparse_values += 1000;
  EXPECT_THROW(Decode(&decoder, packed), Error);
}

}  // namespace
}  // namespace headrace::reader
