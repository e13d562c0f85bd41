// FaultSource: faults depend on the seed and the bytes asked for alone, and are what they say.
#include "reader/source/fault.h"

#include <gtest/gtest.h>

#include <bit>
#include <map>
#include <vector>

#include "base/error.h"

namespace headrace::reader {
namespace {

std::string Content() {
  std::string text(1 << 16, '\0');
  for (size_t i = 0; i < text.size(); ++i) text[i] = static_cast<char>(i * 7 + i / 251);
  return text;
}

// What a read gives: its bytes, or the error's words.
std::string Outcome(const Source& source, uint64_t offset, uint64_t bytes, bool many) {
  std::string out(bytes, '\0');
  const std::span<uint8_t> span(reinterpret_cast<uint8_t*>(out.data()), bytes);
  try {
    if (many) {
      const ReadRequest request{offset, span};
      ReadFigures figures;
      source.ReadMany({&request, 1}, &figures);
    } else {
      source.ReadAt(offset, span);
    }
  } catch (const Error& error) {
    return error.what();
  }
  return out;
}

TEST(FaultSource, TheSameReadFailsTheSameWay) {
  const std::string content = Content();
  FaultOptions options;
  options.seed = 3;
  options.error_ratio = options.short_ratio = options.flip_ratio = 0.2;
  const auto source = Faulty(MemorySource("m", content), options);
  const auto again = Faulty(MemorySource("m", content), options);
  options.seed = 4;
  const auto other = Faulty(MemorySource("m", content), options);
  int errors = 0, shorts = 0, flips = 0, differences = 0;
  for (uint64_t offset = 0; offset < 60'000; offset += 100) {
    const std::string got = Outcome(*source, offset, 100, false);
    EXPECT_EQ(got, Outcome(*again, offset, 100, true)) << offset;
    differences += got != Outcome(*other, offset, 100, false);
    if (got.find("Input/output error") != std::string::npos) {
      ++errors;
    } else if (got.find("bytes early") != std::string::npos) {
      ++shorts;
    } else if (got != content.substr(offset, 100)) {
      int bits = 0;
      for (size_t i = 0; i < 100; ++i)
        bits += std::popcount(static_cast<uint8_t>(got[i] ^ content[offset + i]));
      EXPECT_EQ(bits, 1);
      ++flips;
    }
  }
  // 600 reads: 120, 96 and 77 expected.
  EXPECT_NEAR(errors, 120, 50);
  EXPECT_NEAR(shorts, 96, 45);
  EXPECT_NEAR(flips, 77, 40);
  EXPECT_GT(differences, 100);
}

TEST(FaultSource, WithoutFaultsItIsItsInner) {
  const std::string content = Content();
  FaultOptions options;
  EXPECT_FALSE(options.enabled());
  options.stall_ratio = 1;
  options.stall_ns = 1'000'000'000'000;
  const auto source = Faulty(MemorySource("m", content), options, [] { return true; });
  EXPECT_EQ(Outcome(*source, 5, 300, true), content.substr(5, 300)) << "a stop ends stalls";
  EXPECT_EQ(source->size(), content.size());
}

}  // namespace
}  // namespace headrace::reader
