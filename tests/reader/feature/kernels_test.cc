// Every kernel against a plain reference, on every instruction set of this machine: same values,
// same verdict on damage.
#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>
#include <optional>
#include <random>
#include <vector>

#include "base/buffer.h"
#include "reader/dwrf/decode/bool_expand.h"
#include "reader/dwrf/decode/presence_expand.h"
#include "reader/dwrf/decode/rle_simd.h"
#include "reader/dwrf/decode/varint_simd.h"
#include "tests/seed.h"

namespace headrace::reader::dwrf {
namespace {

using Bytes = std::vector<uint8_t>;

uint64_t KernelSeed() {
  static const uint64_t seed = TestSeed(20260101);
  return seed;
}

std::vector<InstructionSet> Sets() {
  std::vector<InstructionSet> sets;
  for (int i = 0; i <= static_cast<int>(BestInstructionSet()); ++i)
    sets.push_back(static_cast<InstructionSet>(i));
  return sets;
}

// The bytes at some alignment inside a padded buffer whose padding holds `filler`, so that use of a
// byte past the end shows.
struct Padded {
  Padded(const Bytes& bytes, size_t misalign, uint8_t filler)
      : buffer(bytes.size() + misalign + 256) {
    std::memset(buffer.data(), filler, buffer.size());
    begin = buffer.data() + misalign;
    if (!bytes.empty()) std::memcpy(buffer.data() + misalign, bytes.data(), bytes.size());
    end = begin + bytes.size();
  }
  Buffer buffer;
  const uint8_t *begin, *end;
};

void PutVarint(Bytes* out, uint64_t value) {
  for (; value >= 128; value >>= 7) out->push_back(static_cast<uint8_t>(value | 128));
  out->push_back(static_cast<uint8_t>(value));
}
uint64_t Zigzag(int64_t v) {
  return (static_cast<uint64_t>(v) << 1) ^ static_cast<uint64_t>(v >> 63);
}

// Values of at most `bits` bits, or of random size when 0.
uint64_t RandomValue(std::mt19937_64& random, unsigned bits) {
  if (bits == 0) bits = 1 + random() % 64;
  return random() >> (64 - bits);
}

TEST(DecodeVarints, AgreesWithScalarOnEverySizeAndMisalignment) {
  std::mt19937_64 random(KernelSeed());
  for (const unsigned bits : {0u, 1u, 7u, 8u, 14u, 27u, 35u, 49u, 56u, 57u, 62u, 63u, 64u}) {
    for (const size_t count : {0, 1, 2, 7, 8, 9, 63, 64, 65, 127, 128, 1000}) {
      for (const bool zigzag : {false, true}) {
        Bytes bytes;
        std::vector<int64_t> expected;
        for (size_t i = 0; i < count; ++i) {
          const uint64_t value = RandomValue(random, random() % 8 == 0 ? 7 : bits);
          PutVarint(&bytes, value);
          expected.push_back(zigzag ? UndoZigzag(value) : static_cast<int64_t>(value));
        }
        for (const size_t misalign : {0, 1, 3}) {
          for (const uint8_t filler : {0x00, 0xff, 0x01}) {
            const Padded in(bytes, misalign, filler);
            for (const InstructionSet set : Sets()) {
              std::vector<int64_t> out(count + kDecodeSlack);
              ASSERT_EQ(DecodeVarints(in.begin, in.end, count, zigzag, out.data(), set), in.end)
                  << InstructionSetName(set) << " bits " << bits << " count " << count;
              out.resize(count);
              ASSERT_EQ(out, expected)
                  << InstructionSetName(set) << " bits " << bits << " count " << count;
            }
          }
        }
      }
    }
  }
}

TEST(DecodeVarints, ExamplesOfTheFormatText) {
  const Bytes bytes = {0x09, 0xd8, 0x04, 0xff, 0xff, 0xff, 0xff,
                       0xff, 0xff, 0xff, 0xff, 0xff, 0x01};
  const Padded in(bytes, 0, 0);
  for (const InstructionSet set : Sets()) {
    int64_t out[3 + kDecodeSlack];
    ASSERT_EQ(DecodeVarints(in.begin, in.end, 3, true, out, set), in.end);
    EXPECT_EQ(out[0], -5);
    EXPECT_EQ(out[1], 300);
    EXPECT_EQ(out[2], INT64_MIN);
  }
}

TEST(DecodeVarints, DamageIsRefusedAlike) {
  Bytes long_run(200, 0x80);
  Bytes eleven(10, 0x80);
  eleven.push_back(1);
  Bytes eleven_late(131, 1);
  std::memset(eleven_late.data() + 60, 0x80, 10);
  const struct {
    const char* name;
    Bytes bytes;
    size_t count;
  } cases[] = {{"empty", {}, 1},
               {"cut value", {0x80}, 1},
               {"one too few", {1, 1, 1}, 4},
               {"one too few of many", Bytes(100, 1), 101},
               {"no end in 200 bytes", long_run, 1},
               {"eleven bytes", eleven, 1},
               {"eleven bytes across blocks", eleven_late, 100}};
  for (const auto& c : cases) {
    for (const uint8_t filler : {0x00, 0xff}) {
      const Padded in(c.bytes, 0, filler);
      for (const InstructionSet set : Sets()) {
        std::vector<int64_t> out(c.count + kDecodeSlack);
        EXPECT_EQ(DecodeVarints(in.begin, in.end, c.count, true, out.data(), set), nullptr)
            << c.name << ' ' << InstructionSetName(set);
      }
    }
  }
}

TEST(DecodeVarints, BytesBehindTheLastValueDoNotCount) {
  std::mt19937_64 random(KernelSeed() + 2);
  for (const unsigned bits : {1u, 7u, 14u, 27u, 63u, 64u}) {
    for (size_t count = 1; count < 140; ++count) {
      Bytes bytes;
      for (size_t i = 0; i < count; ++i) PutVarint(&bytes, RandomValue(random, bits));
      const size_t size = bytes.size();
      bytes.resize(size + 200, 0xff);
      const Padded in(bytes, count % 64, 0xff);
      for (const InstructionSet set : Sets()) {
        std::vector<int64_t> out(count + kDecodeSlack);
        const uint8_t* p = DecodeVarints(in.begin, in.end, count, false, out.data(), set);
        ASSERT_EQ(p, in.begin + size)
            << bits << " bits, " << count << ' ' << InstructionSetName(set);
      }
    }
  }
}

// A kernel's answer: bytes used, or nothing, and the values.
using Answer = std::optional<std::pair<ptrdiff_t, std::vector<int64_t>>>;

TEST(DecodeVarints, RandomBytesGiveTheSameAnswerOnEverySet) {
  std::mt19937_64 random(KernelSeed() + 1);
  for (int trial = 0; trial < 3000; ++trial) {
    Bytes bytes(random() % 400);
    const unsigned continued = random() % 256;  // how often the high bit is set
    for (uint8_t& byte : bytes)
      byte = static_cast<uint8_t>((random() & 0x7f) | (random() % 256 < continued ? 0x80 : 0));
    const size_t count = random() % 300;
    const Padded in(bytes, random() % 64, static_cast<uint8_t>(random()));
    std::optional<Answer> first;
    for (const InstructionSet set : Sets()) {
      std::vector<int64_t> out(count + kDecodeSlack);
      const uint8_t* p = DecodeVarints(in.begin, in.end, count, trial % 2 != 0, out.data(), set);
      out.resize(count);
      const Answer answer = p == nullptr ? Answer() : Answer({p - in.begin, out});
      if (!first) first = answer;
      ASSERT_TRUE(answer == *first) << "trial " << trial << ' ' << InstructionSetName(set);
    }
  }
}

// RLE of random groups; the values as the format text defines them.
Bytes RandomRle(std::mt19937_64& random, bool is_signed, unsigned bits, bool small_steps,
                std::vector<int64_t>* values, size_t groups) {
  Bytes bytes;
  for (size_t g = 0; g < groups; ++g) {
    if (random() % 2 == 0) {
      const unsigned control = random() % 128;
      const int delta =
          small_steps ? static_cast<int>(random() % 3) : static_cast<int8_t>(random());
      uint64_t base = RandomValue(random, bits);
      bytes.push_back(static_cast<uint8_t>(control));
      bytes.push_back(static_cast<uint8_t>(delta));
      PutVarint(&bytes, is_signed ? Zigzag(static_cast<int64_t>(base)) : base);
      for (unsigned i = 0; i < control + 3; ++i)
        values->push_back(static_cast<int64_t>(base + static_cast<uint64_t>(int64_t{delta}) * i));
    } else {
      const unsigned count = 1 + random() % 128;
      bytes.push_back(static_cast<uint8_t>(256 - count));
      for (unsigned i = 0; i < count; ++i) {
        const uint64_t value = RandomValue(random, random() % 16 == 0 ? bits : std::min(bits, 7u));
        PutVarint(&bytes, is_signed ? Zigzag(static_cast<int64_t>(value)) : value);
        values->push_back(static_cast<int64_t>(value));
      }
    }
  }
  return bytes;
}

TEST(DecodeRle, AgreesWithTheDefinition) {
  std::mt19937_64 random(KernelSeed() + 2);
  for (int trial = 0; trial < 300; ++trial) {
    const bool is_signed = trial % 2 != 0;
    std::vector<int64_t> values;
    const Bytes bytes =
        RandomRle(random, is_signed, 1 + random() % 64, false, &values, random() % 20);
    const Padded in(bytes, random() % 64, 0xff);
    for (const InstructionSet set : Sets()) {
      std::vector<int64_t> out(values.size() + kDecodeSlack);
      ASSERT_EQ(DecodeRle(in.begin, in.end, values.size(), {is_signed, 0}, out.data(), set),
                in.end);
      out.resize(values.size());
      ASSERT_EQ(out, values) << InstructionSetName(set);
      std::vector<int64_t> more(values.size() + 1 + kDecodeSlack);
      ASSERT_EQ(DecodeRle(in.begin, in.end, values.size() + 1, {is_signed, 0}, more.data(), set),
                nullptr);
    }
  }
}

TEST(DecodeRle, ExamplesOfTheFormatText) {
  const struct {
    Bytes bytes;
    IntegerFormat format;
    std::vector<int64_t> values;
  } cases[] = {
      {{0x02, 0x02, 0x28}, {false, 0}, {40, 42, 44, 46, 48}},
      {{0xfd, 0x01, 0xd8, 0x04, 0x00}, {true, 0}, {-1, 300, 0}},
      {{0xfe, 0xff, 0xff, 0xff, 0xff, 0x01, 0x00, 0x00, 0x00}, {true, 4}, {-1, 1}},
      {{0x00, 0xff, 0x05, 0x00}, {false, 2}, {5, 4, 3}},
  };
  for (const auto& c : cases) {
    const Padded in(c.bytes, 0, 0);
    for (const InstructionSet set : Sets()) {
      std::vector<int64_t> out(c.values.size() + kDecodeSlack);
      ASSERT_EQ(DecodeRle(in.begin, in.end, c.values.size(), c.format, out.data(), set), in.end);
      out.resize(c.values.size());
      EXPECT_EQ(out, c.values);
    }
  }
}

TEST(DecodeRle, ARunThatClaimsMoreThanAskedIsCut) {
  const Padded in({0x7f, 0x00, 0x07}, 0, 0);
  for (const InstructionSet set : Sets()) {
    std::vector<int64_t> out(2 + kDecodeSlack, -1);
    ASSERT_NE(DecodeRle(in.begin, in.end, 2, {}, out.data(), set), nullptr);
    EXPECT_EQ(out[0], 7);
    EXPECT_EQ(out[1], 7);
  }
}

TEST(DecodeLengths, AgreesWithTheDefinition) {
  std::mt19937_64 random(KernelSeed() + 3);
  for (int trial = 0; trial < 300; ++trial) {
    std::vector<int64_t> values;
    const Bytes bytes = RandomRle(random, false, 1 + random() % 30, true, &values, random() % 20);
    const Padded in(bytes, random() % 64, 0x80);
    uint64_t expected_total = 0;
    for (const int64_t value : values) expected_total += static_cast<uint64_t>(value);
    for (const InstructionSet set : Sets()) {
      std::vector<uint32_t> out(values.size() + kDecodeSlack);
      uint64_t total = 0;
      ASSERT_EQ(DecodeLengths(in.begin, in.end, values.size(), {}, out.data(), &total, set),
                in.end);
      for (size_t i = 0; i < values.size(); ++i)
        ASSERT_EQ(out[i], static_cast<uint64_t>(values[i]));
      EXPECT_EQ(total, expected_total);
      std::vector<uint32_t> more(values.size() + 1 + kDecodeSlack);
      ASSERT_EQ(DecodeLengths(in.begin, in.end, values.size() + 1, {}, more.data(), &total, set),
                nullptr);
    }
  }
}

TEST(DecodeLengths, NegativeAndHugeLengthsAreDamage) {
  const struct {
    const char* name;
    Bytes bytes;
    size_t count;
  } cases[] = {{"run down below zero", {0x00, 0xff, 0x01}, 3},
               {"literal of 2^32", {0xff, 0x80, 0x80, 0x80, 0x80, 0x10}, 1},
               {"run past 2^32", {0x00, 0x7f, 0xff, 0xff, 0xff, 0xff, 0x0f}, 3}};
  for (const auto& c : cases) {
    const Padded in(c.bytes, 0, 0);
    for (const InstructionSet set : Sets()) {
      std::vector<uint32_t> out(c.count + kDecodeSlack);
      uint64_t total = 0;
      EXPECT_EQ(DecodeLengths(in.begin, in.end, c.count, {}, out.data(), &total, set), nullptr)
          << c.name;
    }
  }
}

TEST(DecodeBits, AgreesWithTheDefinition) {
  const Bytes example = {0xff, 0xb0};
  uint64_t word = 0;
  ASSERT_TRUE(DecodeBits(example, 5, &word));
  EXPECT_EQ(word, 0b01101u);  // 1 0 1 1 0
  std::mt19937_64 random(KernelSeed() + 4);
  for (int trial = 0; trial < 500; ++trial) {
    Bytes bytes, plain;
    for (size_t g = random() % 12; g > 0; --g) {
      const uint8_t control = static_cast<uint8_t>(random());
      bytes.push_back(control);
      if (control < 128) {
        bytes.push_back(static_cast<uint8_t>(random()));
        plain.insert(plain.end(), control + 3u, bytes.back());
      } else {
        for (int i = 0; i < 256 - control; ++i) {
          bytes.push_back(static_cast<uint8_t>(random()));
          plain.push_back(bytes.back());
        }
      }
    }
    const uint64_t count = plain.empty() ? 0 : random() % (plain.size() * 8) + 1;
    for (const InstructionSet set : Sets()) {
      std::vector<uint64_t> words(NumWords(count));
      ASSERT_TRUE(DecodeBits(bytes, count, words.data(), set));
      uint64_t set_bits = 0;
      for (uint64_t i = 0; i < NumWords(count) * 64; ++i) {
        const bool expected = i < count && (plain[i / 8] >> (7 - i % 8) & 1);
        set_bits += expected;
        ASSERT_EQ(words[i / 64] >> (i % 64) & 1, expected)
            << "bit " << i << ' ' << InstructionSetName(set);
      }
      EXPECT_EQ(CountBits(words.data(), words.size(), set), set_bits);
      std::vector<uint64_t> more(NumWords(plain.size() * 8 + 1));
      EXPECT_FALSE(DecodeBits(bytes, plain.size() * 8 + 1, more.data(), set));
    }
  }
}

TEST(DepositBits, PutsPackedBitsAtSetBits) {
  std::mt19937_64 random(KernelSeed() + 5);
  for (int trial = 0; trial < 300; ++trial) {
    const size_t num_words = random() % 9;
    std::vector<uint64_t> mask(num_words), expected(num_words);
    for (uint64_t& word : mask)
      word = trial % 5 == 0 ? ~uint64_t{0} : random() & (trial % 3 == 0 ? random() : ~uint64_t{0});
    const uint64_t set_bits = CountBits(mask.data(), num_words, InstructionSet::kScalar);
    std::vector<uint64_t> packed(NumWords(set_bits));
    for (uint64_t& word : packed) word = random();
    uint64_t used = 0;
    for (uint64_t row = 0; row < num_words * 64; ++row) {
      if (!(mask[row / 64] >> (row % 64) & 1)) continue;
      expected[row / 64] |= (packed[used / 64] >> (used % 64) & 1) << (row % 64);
      ++used;
    }
    for (const InstructionSet set : Sets()) {
      std::vector<uint64_t> out = mask;
      DepositBits(packed.data(), packed.size(), out.data(), num_words, out.data(), set);
      ASSERT_EQ(out, expected) << InstructionSetName(set);
    }
  }
}

TEST(Expand, FloatsAndLengthsGoToTheirRows) {
  std::mt19937_64 random(KernelSeed() + 6);
  for (int trial = 0; trial < 300; ++trial) {
    const uint64_t rows = random() % 300;
    std::vector<uint64_t> present(NumWords(rows));
    Bytes packed;
    std::vector<uint32_t> lengths;
    std::vector<float> expected(rows);
    std::vector<uint32_t> expected_offsets(rows + 1);
    for (uint64_t row = 0; row < rows; ++row) {
      expected_offsets[row + 1] = expected_offsets[row];
      if (random() % 10 >= static_cast<uint64_t>(trial % 11)) continue;
      present[row / 64] |= uint64_t{1} << (row % 64);
      expected[row] = static_cast<float>(random() % 1000) - 500.0f;
      const auto* bytes = reinterpret_cast<const uint8_t*>(&expected[row]);
      packed.insert(packed.end(), bytes, bytes + 4);
      lengths.push_back(static_cast<uint32_t>(random() % 200));
      expected_offsets[row + 1] += lengths.back();
    }
    lengths.resize(lengths.size() + kDecodeSlack, 0xffffffffu);
    const Padded in(packed, random() % 7, 0xff);
    for (const InstructionSet set : Sets()) {
      std::vector<float> out(rows, -1.0f);
      ExpandFloats(in.begin, present.data(), rows, out.data(), set);
      ASSERT_EQ(out, expected) << InstructionSetName(set);
      std::vector<uint32_t> offsets(rows + 1, 9);
      ExpandLengths(lengths.data(), present.data(), rows, offsets.data(), set);
      ASSERT_EQ(offsets, expected_offsets) << InstructionSetName(set);
    }
  }
}

}  // namespace
}  // namespace headrace::reader::dwrf
