// Encoders against bytes written by hand, after the worked examples of the format description.
#include "reader/dwrf/encode/run_length.h"

#include <gtest/gtest.h>

#include <string>

#include "reader/dwrf/encode/bit_buffer.h"
#include "reader/dwrf/encode/chunk_encoder.h"
#include "reader/dwrf/encode/dictionary.h"

namespace headrace::reader::dwrf {
namespace {

std::string Hex(std::span<const uint8_t> bytes) {
  std::string text;
  for (const uint8_t byte : bytes) {
    char digits[4];
    std::snprintf(digits, sizeof digits, "%s%02x", text.empty() ? "" : " ", byte);
    text += digits;
  }
  return text;
}

using Integers = std::vector<int64_t>;

Integers Sequence(int64_t first, int64_t step, int count) {
  Integers values;
  for (int i = 0; i < count; ++i) values.push_back(first + i * step);
  return values;
}

TEST(EncodeIntegerRuns, WritesRunsAndLiterals) {
  const struct {
    const char* name;
    Integers values;
    IntegerForm form;
    const char* expected;
  } cases[] = {
      {"unsigned run", {40, 42, 44, 46, 48}, {false, 0}, "02 02 28"},
      {"signed run down", Sequence(100, -1, 100), {true, 0}, "61 ff c8 01"},
      {"signed literals", {-1, 300, 0}, {true, 0}, "fd 01 d8 04 00"},
      {"one value", {5}, {false, 0}, "ff 05"},
      {"none", {}, {false, 0}, ""},
      {"run of 130, then the rest", Sequence(7, 0, 132), {false, 0}, "7f 00 07 fe 07 07"},
      {"step too large for a run", {0, 200, 400}, {false, 0}, "fd 00 c8 01 90 03"},
      {"step of 127", {0, 127, 254}, {false, 0}, "00 7f 00"},
      {"step of -128", {0, -128, -256}, {true, 0}, "00 80 00"},
      {"three in a row among literals stay literals",
       {9, 1, 2, 3, 9},
       {false, 0},
       "fb 09 01 02 03 09"},
      {"five in a row leave the literals", {90, 1, 2, 3, 4, 5}, {false, 0}, "ff 5a 02 01 01"},
      {"unsigned stream of a negative inline value",
       {-3},
       {false, 0},
       "ff fd ff ff ff ff ff ff ff ff 01"},
      {"fixed width", {1, -1}, {true, 2}, "fe 01 00 ff ff"},
      {"no run across the largest value",
       {INT64_MAX - 1, INT64_MAX, INT64_MIN},
       {true, 8},
       "fd fe ff ff ff ff ff ff 7f ff ff ff ff ff ff ff 7f 00 00 00 00 00 00 00 80"},
  };
  for (const auto& c : cases) {
    ByteSink sink;
    std::vector<Mark> marks;
    EncodeIntegerRuns(c.values, c.form, {}, &sink, &marks);
    EXPECT_EQ(Hex(sink.span()), c.expected) << c.name;
  }
}

TEST(EncodeIntegerRuns, MarksPointIntoRuns) {
  ByteSink sink;
  std::vector<Mark> marks;
  const Integers values = {5, 5, 5, 5, 1, 90, 1};
  const std::vector<uint64_t> cuts = {0, 2, 4, 6, 7};
  EncodeIntegerRuns(values, {false, 0}, cuts, &sink, &marks);
  EXPECT_EQ(Hex(sink.span()), "01 00 05 fd 01 5a 01");
  EXPECT_EQ(marks, (std::vector<Mark>{{0, 0, 0}, {0, 2, 0}, {3, 0, 0}, {3, 2, 0}, {7, 0, 0}}));
}

TEST(EncodeIntegers, WritesBareVarints) {
  ByteSink sink;
  std::vector<Mark> marks;
  EncodeIntegers(Integers{-5, 300, INT64_MIN}, {true, 0}, std::vector<uint64_t>{0, 1, 2, 3}, &sink,
                 &marks);
  EXPECT_EQ(Hex(sink.span()), "09 d8 04 ff ff ff ff ff ff ff ff ff 01");
  EXPECT_EQ(marks, (std::vector<Mark>{{0, 0, 0}, {1, 0, 0}, {3, 0, 0}, {13, 0, 0}}));
}

TEST(EncodeByteRuns, WritesRunsAndLiterals) {
  const struct {
    std::vector<uint8_t> values;
    const char* expected;
  } cases[] = {
      {{9, 9, 9, 9, 9, 9}, "03 09"},
      {{1, 2}, "fe 01 02"},
      {{}, ""},
      {{1, 7, 7, 7, 7}, "ff 01 01 07"},
      {std::vector<uint8_t>(131, 4), "7f 04 ff 04"},
  };
  for (const auto& c : cases) {
    ByteSink sink;
    std::vector<Mark> marks;
    EncodeByteRuns(c.values, {}, &sink, &marks);
    EXPECT_EQ(Hex(sink.span()), c.expected);
  }
}

TEST(EncodeBits, PacksTheFirstBitHighest) {
  BitBuffer bits;
  for (const bool bit : {true, false, true, true, false}) bits.Append(bit);
  ByteSink sink;
  std::vector<Mark> marks;
  EncodeBits(bits, std::vector<uint64_t>{0, 3, 5}, &sink, &marks);
  EXPECT_EQ(Hex(sink.span()), "ff b0");
  EXPECT_EQ(marks, (std::vector<Mark>{{0, 0, 0}, {0, 0, 3}, {0, 0, 5}}));
}

TEST(BitBuffer, AppendsAtAnyAlignment) {
  const std::vector<uint64_t> words = {0x0123456789abcdef, 0xfedcba9876543210, 0x5555aaaa3333cccc};
  for (uint64_t lead = 0; lead < 70; ++lead) {
    for (uint64_t begin = 0; begin < 66; begin += 13) {
      BitBuffer bits;
      bits.AppendRun(true, lead);
      bits.AppendBits(words, begin, 120);
      ASSERT_EQ(bits.size(), lead + 120);
      for (uint64_t i = 0; i < 120; ++i)
        ASSERT_EQ(bits.Get(lead + i), (words[(begin + i) / 64] >> ((begin + i) % 64) & 1) != 0);
    }
  }
}

TEST(ChunkEncoder, KeepsAChunkOriginalUnlessItShrinksEnough) {
  std::vector<uint8_t> zeros(3000, 0), noise(3000);
  uint64_t state = 1;
  for (uint8_t& byte : noise)
    byte = static_cast<uint8_t>((state = state * 6364136223846793005 + 1) >> 56);
  for (const auto codec : {CompressionKind::kZstd, CompressionKind::kZlib, CompressionKind::kLz4,
                           CompressionKind::kSnappy}) {
    WriterOptions options;
    options.compression = codec;
    options.block_size = 2048;
    ChunkEncoder encoder(options);
    ByteSink sink;
    const ChunkMap plain = encoder.Encode(noise, true, &sink);
    EXPECT_EQ(sink.size(), 3000 + 6);
    EXPECT_EQ(plain.starts, (std::vector<uint64_t>{0, 2051, 3006}));
    EXPECT_EQ(sink.data()[0], 0x01);  // 2048 << 1 | 1
    EXPECT_EQ(sink.data()[1], 0x10);
    sink.Clear();
    encoder.Encode(zeros, true, &sink);
    EXPECT_LT(sink.size(), 400u);
    EXPECT_EQ(sink.data()[0] & 1, 0);
    sink.Clear();
    encoder.Encode(zeros, false, &sink);
    EXPECT_EQ(sink.size(), 3006u);
  }
}

TEST(OrderDictionary, TakesRepeatedValuesMostFrequentFirst) {
  Interner<std::string_view> interner;
  for (const char* text : {"b", "a", "a", "c", "d", "d", "a"}) interner.Intern(text);
  const DictionaryOrder order = OrderDictionary(interner.counts(), false);
  EXPECT_EQ(order.entries, (std::vector<uint32_t>{1, 3}));
  EXPECT_EQ(order.places, (std::vector<uint32_t>{UINT32_MAX, 0, UINT32_MAX, 1}));
  EXPECT_EQ(OrderDictionary(interner.counts(), true).entries.size(), 4u);
}

}  // namespace
}  // namespace headrace::reader::dwrf
