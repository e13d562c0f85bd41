// Value encodings and chunk framing, byte by byte.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <libdeflate.h>
#include <lz4.h>
#include <snappy.h>
#include <zstd.h>

#include <cstring>
#include <random>

#include "base/error.h"
#include "reader/dwrf/decode/stream_decoders.h"
#include "tests/reader/dwrf/test_files.h"
#include "tests/seed.h"

namespace headrace::reader::dwrf {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string FromHex(const std::string& hex) {
  std::string bytes;
  for (size_t i = 0; i + 1 < hex.size();) {
    if (hex[i] == ' ') {
      ++i;
      continue;
    }
    bytes.push_back(static_cast<char>(std::stoi(hex.substr(i, 2), nullptr, 16)));
    i += 2;
  }
  return bytes;
}

ByteStream Stream(const std::string& bytes, CompressionKind compression = CompressionKind::kNone,
                  uint64_t block_size = 64) {
  auto origin = std::make_shared<StreamOrigin>();
  origin->source = MemorySource("test", bytes);
  origin->context.compression = compression;
  origin->context.block_size = block_size;
  origin->context.where = "test";
  origin->length = bytes.size();
  return ByteStream(origin);
}

std::string Fact(const std::function<void()>& action) {
  try {
    action();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::kBadData);
    return error.what();
  }
  return "no error";
}

TEST(Rle, ExamplesOfTheFormat) {
  const struct {
    const char* name;
    const char* hex;
    IntegerFormat format;
    std::vector<int64_t> values;
  } cases[] = {
      {"unsigned run", "02 02 28", {false, 0}, {40, 42, 44, 46, 48}},
      {"signed run down", "00 ff c8 01", {true, 0}, {100, 99, 98}},
      {"signed literals", "fd 01 d8 04 00", {true, 0}, {-1, 300, 0}},
      {"run, then literals", "00 00 07 fe 01 02", {false, 0}, {7, 7, 7, 1, 2}},
      {"run that wraps", "00 01 ff ff ff ff ff ff ff ff ff 01", {false, 0}, {-1, 0, 1}},
      {"fixed width 4, unsigned", "fe 01 00 00 00 ff ff ff ff", {false, 4}, {1, 4294967295}},
      {"fixed width 8, signed", "ff fe ff ff ff ff ff ff ff", {true, 8}, {-2}},
      {"fixed width run", "00 ff 05 00", {true, 2}, {5, 4, 3}},
  };
  for (const auto& c : cases) {
    SCOPED_TRACE(c.name);
    RleDecoder decoder(Stream(FromHex(c.hex)), c.format);
    for (const int64_t value : c.values) EXPECT_EQ(decoder.Next(), value);
    EXPECT_TRUE(decoder.stream().AtEnd());
    for (size_t skip = 0; skip < c.values.size(); ++skip) {
      RleDecoder skipping(Stream(FromHex(c.hex)), c.format);
      skipping.Skip(skip);
      EXPECT_EQ(skipping.Next(), c.values[skip]);
    }
    RleDecoder past(Stream(FromHex(c.hex)), c.format);
    EXPECT_THAT(Fact([&] { past.Skip(c.values.size() + 1); }),
                HasSubstr("ends before its last value"));
  }
}

TEST(Rle, LongestRunHas130Values) {
  RleDecoder decoder(Stream(FromHex("7f 00 05")), {false, 0});
  for (int i = 0; i < 130; ++i) EXPECT_EQ(decoder.Next(), 5);
  EXPECT_TRUE(decoder.stream().AtEnd());
}

TEST(Direct, ExamplesOfTheFormat) {
  DirectDecoder decoder(Stream(FromHex("09 d8 04 ff ff ff ff ff ff ff ff ff 01")), {true, 0});
  EXPECT_EQ(decoder.Next(), -5);
  EXPECT_EQ(decoder.Next(), 300);
  EXPECT_EQ(decoder.Next(), INT64_MIN);
  DirectDecoder fixed(Stream(FromHex("ff ff 05 00")), {true, 2});
  EXPECT_EQ(fixed.Next(), -1);
  EXPECT_EQ(fixed.Next(), 5);
  DirectDecoder endless(Stream(FromHex("80 80 80 80 80 80 80 80 80 80 80 00")), {true, 0});
  EXPECT_THAT(Fact([&] { endless.Next(); }), HasSubstr("more than 10 bytes"));
}

TEST(ByteRle, ExamplesOfTheFormat) {
  ByteRleDecoder decoder(Stream(FromHex("03 09 fe 01 02")));
  std::vector<int> values;
  for (int i = 0; i < 8; ++i) values.push_back(decoder.Next());
  EXPECT_THAT(values, ElementsAre(9, 9, 9, 9, 9, 9, 1, 2));
  EXPECT_TRUE(decoder.stream().AtEnd());
}

TEST(Bools, MostSignificantBitFirst) {
  BoolDecoder decoder(Stream(FromHex("ff b0")));
  std::vector<uint8_t> bits(5);
  EXPECT_EQ(decoder.Read(5, bits.data()), 3u);
  EXPECT_THAT(bits, ElementsAre(1, 0, 1, 1, 0));
}

TEST(Bools, AnyPortionsGiveTheSameBits) {
  const std::string bytes =
      FromHex("00 ff fd a5 00 81 05 00 fe 0f f0");  // ff ff ff a5 00 81 00 x8 0f f0
  BoolDecoder whole(Stream(bytes));
  std::vector<uint8_t> all(16 * 8);
  const uint64_t set = whole.Read(all.size(), all.data());
  EXPECT_EQ(set, 24u + 4 + 2 + 4 + 4);
  for (uint64_t step = 1; step < 40; ++step) {
    BoolDecoder parts(Stream(bytes));
    uint64_t at = 0;
    for (; at + step <= all.size(); at += step) {
      if (at / step % 3 == 1) {
        uint64_t expected = 0;
        for (uint64_t i = 0; i < step; ++i) expected += all[at + i];
        ASSERT_EQ(parts.Skip(step), expected);
        continue;
      }
      std::vector<uint8_t> bits(step);
      parts.Read(step, bits.data());
      for (uint64_t i = 0; i < step; ++i)
        ASSERT_EQ(bits[i], all[at + i]) << "step " << step << " bit " << at + i;
    }
  }
}

// ---- chunks

std::string Chunk(const std::string& payload, bool original) {
  const size_t h = payload.size() << 1 | size_t{original};
  std::string out;
  for (int i = 0; i < 3; ++i) out.push_back(static_cast<char>(h >> (8 * i)));
  return out + payload;
}

std::string Compress(CompressionKind kind, const std::string& plain) {
  std::string out(plain.size() * 2 + 1000, '\0');
  size_t size = 0;
  libdeflate_compressor* deflate = libdeflate_alloc_compressor(6);
  switch (kind) {
    case CompressionKind::kZlib:
      size =
          libdeflate_deflate_compress(deflate, plain.data(), plain.size(), out.data(), out.size());
      break;
    case CompressionKind::kGzip:
      size = libdeflate_gzip_compress(deflate, plain.data(), plain.size(), out.data(), out.size());
      break;
    case CompressionKind::kZstd:
      size = ZSTD_compress(out.data(), out.size(), plain.data(), plain.size(), 3);
      break;
    case CompressionKind::kLz4:
      size = static_cast<size_t>(LZ4_compress_default(
          plain.data(), out.data(), static_cast<int>(plain.size()), static_cast<int>(out.size())));
      break;
    case CompressionKind::kSnappy:
      snappy::RawCompress(plain.data(), plain.size(), out.data(), &size);
      break;
    default:
      ADD_FAILURE();
  }
  libdeflate_free_compressor(deflate);
  return out.substr(0, size);
}

constexpr CompressionKind kCodecs[] = {CompressionKind::kZlib, CompressionKind::kGzip,
                                       CompressionKind::kZstd, CompressionKind::kLz4,
                                       CompressionKind::kSnappy};

// Three blocks of 64 bytes or fewer: packed, original, packed; with an empty chunk between.
std::string Framed(CompressionKind kind, const std::string& plain) {
  return Chunk(Compress(kind, plain.substr(0, 64)), false) + Chunk("", true) +
         Chunk(plain.substr(64, 40), true) + Chunk(Compress(kind, plain.substr(104)), false);
}

TEST(Chunks, EveryCodecUnpacksWholeAndPieceByPiece) {
  std::string plain;
  for (int i = 0; i < 160; ++i) plain.push_back(static_cast<char>(i < 90 ? 'a' : i * 7));
  for (const CompressionKind kind : kCodecs) {
    SCOPED_TRACE(CompressionKindName(kind));
    const std::string framed = Framed(kind, plain);
    Buffer out;
    Unframe({reinterpret_cast<const uint8_t*>(framed.data()), framed.size()}, {kind, 64, "test", 0},
            &out);
    EXPECT_EQ(std::string(reinterpret_cast<const char*>(out.data()), out.size()), plain);
    for (size_t skip = 0; skip <= plain.size(); ++skip) {
      ByteStream stream = Stream(framed, kind);
      stream.Skip(skip);
      ByteStream copy = stream;
      std::string rest;
      stream.AppendTo(&rest, plain.size() - skip);
      EXPECT_EQ(rest, plain.substr(skip));
      EXPECT_TRUE(stream.AtEnd());
      if (skip < plain.size()) {
        EXPECT_EQ(copy.ReadByte(), static_cast<uint8_t>(plain[skip]))
            << "a copy stays where it was";
      }
    }
  }
}

TEST(Chunks, SeekTakesEffectWhenReadFrom) {
  const std::string plain(160, 'x');
  const std::string framed = Framed(CompressionKind::kZstd, plain);
  const uint64_t first = Chunk(Compress(CompressionKind::kZstd, plain.substr(0, 64)), false).size();
  ByteStream stream = Stream(framed, CompressionKind::kZstd);
  stream.Seek(0, 64);  // the end of a chunk: the next one's start
  std::string rest;
  stream.AppendTo(&rest, 96);
  EXPECT_TRUE(stream.AtEnd());
  stream.Seek(framed.size(), 0);
  EXPECT_TRUE(stream.AtEnd());
  stream.Seek(first + 3, 39);
  stream.AppendTo(&rest, 57);
  EXPECT_TRUE(stream.AtEnd());
  stream.Seek(0, 65);
  EXPECT_THAT(Fact([&] { stream.ReadByte(); }), HasSubstr("position 65 in a chunk of 64 bytes"));
  EXPECT_THAT(Fact([&] { stream.Seek(framed.size() + 1, 0); }), HasSubstr("row index"));
}

TEST(Chunks, DamageIsNamedWithItsByte) {
  const std::string good = Chunk(Compress(CompressionKind::kZstd, std::string(64, 'x')), false);
  const struct {
    const char* name;
    std::string bytes;
    const char* text;
  } cases[] = {
      {"header cut", good + "\x01", "byte"},
      {"length past the end", good + std::string("\x20\x00\x00", 3), "exceeds"},
      {"not zstd", Chunk("nonsense", false), "zstd"},
      {"larger than a block", Chunk(Compress(CompressionKind::kZstd, std::string(65, 'x')), false),
       "zstd"},
  };
  for (const auto& c : cases) {
    SCOPED_TRACE(c.name);
    EXPECT_THAT(Fact([&] {
                  ByteStream stream = Stream(c.bytes, CompressionKind::kZstd);
                  std::string out;
                  stream.AppendTo(&out, 1000);
                }),
                HasSubstr(c.text));
    EXPECT_THAT(Fact([&] {
                  Buffer out;
                  Unframe({reinterpret_cast<const uint8_t*>(c.bytes.data()), c.bytes.size()},
                          {CompressionKind::kZstd, 64, "test", 0}, &out);
                }),
                HasSubstr(c.text));
  }
  EXPECT_THAT(Fact([&] { Stream(Chunk("abc", false), CompressionKind::kLzo).ReadByte(); }),
              HasSubstr("LZO compression is not supported"));
}

TEST(Codecs, RandomBytesNeverOverrun) {
  const uint64_t seed = TestSeed(7);
  SCOPED_TRACE("HEADRACE_SEED=" + std::to_string(seed));
  std::mt19937_64 random(seed);
  for (const CompressionKind kind : kCodecs) {
    for (int round = 0; round < 2000; ++round) {
      std::string in = Compress(kind, std::string(random() % 300, 'q'));
      for (uint64_t flips = random() % 4; flips > 0 && !in.empty(); --flips)
        in[random() % in.size()] ^= static_cast<char>(1 << random() % 8);
      const std::span<const uint8_t> bytes(reinterpret_cast<const uint8_t*>(in.data()), in.size());
      std::vector<uint8_t> out(MaxDecompressedSize(kind, bytes, 256));
      EXPECT_LE(out.size(), 256u);
      try {
        EXPECT_LE(Decompress(kind, bytes, out), out.size());
      } catch (const Error& error) {
        EXPECT_EQ(error.code(), ExitCode::kBadData);
      }
    }
  }
}

}  // namespace
}  // namespace headrace::reader::dwrf
