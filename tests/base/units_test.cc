#include "base/units.h"

#include <gtest/gtest.h>

#include "base/error.h"

namespace headrace {
namespace {

TEST(Units, PrintThreeSignificantDigits) {
  const struct {
    std::string got, expected;
  } cases[] = {
      {FormatDuration(740), "740 ns"},
      {FormatDuration(118e6), "118 ms"},
      {FormatDuration(999.6e6), "1.00 s"},
      {FormatDuration(2.314e9), "2.31 s"},
      {FormatDuration(240e9), "4.00 min"},
      {FormatBytes(512), "512 B"},
      {FormatBytes(4 << 20), "4.00 MiB"},
      {FormatBytes(1023.9 * 1024), "1.00 MiB"},
      {FormatBytesRate(1.9e9), "1.90 GB/s"},
      {FormatPercent(0.46), "46.0 %"},
      {FormatPercent(0), "0.0 %"},
      {FormatPercent(0.0001), "<0.1 %"},
      {FormatCount(1262), "1262"},
      {FormatCount(51800), "51.8 k"},
      {FormatRate(1262, "rows"), "1262 rows/s"},
  };
  for (const auto& c : cases) EXPECT_EQ(c.got, c.expected);
}

TEST(Units, ParseDurations) {
  EXPECT_EQ(ParseDuration("10", "-d"), 10'000'000'000);
  EXPECT_EQ(ParseDuration("250ms", "-d"), 250'000'000);
  EXPECT_EQ(ParseDuration("1h30m", "-d"), 5400'000'000'000);
  EXPECT_EQ(ParseDuration("7d", "-d"), 604'800'000'000'000);
  EXPECT_EQ(ParseDuration("0.5s", "-d"), 500'000'000);
  for (const char* bad : {"", "ten", "-5s", "5 parsecs", "1e400", "s"}) {
    SCOPED_TRACE(bad);
    try {
      ParseDuration(bad, "--duration");
      FAIL() << "accepted";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ExitCode::kUsage);
      EXPECT_NE(std::string(error.what()).find("--duration"), std::string::npos);
    }
  }
}

TEST(Units, ParseBytes) {
  EXPECT_EQ(ParseBytes("64MiB", "x"), 64u << 20);
  EXPECT_EQ(ParseBytes("4G", "x"), 4ull << 30);
  EXPECT_EQ(ParseBytes("100 kB", "x"), 100'000u);
  EXPECT_EQ(ParseBytes("1024", "x"), 1024u);
  for (const char* bad : {"", "-1", "many", "5 XB", "9999999999G"})
    EXPECT_THROW(ParseBytes(bad, "x"), Error) << bad;
}

TEST(Units, UnavailablePrintsItsReasonNeverZero) {
  EXPECT_EQ(Format(Quantity::Unavailable("no PMU")), "unavailable (no PMU)");
  const Quantity none = Divide(Quantity::Of(5, Unit::kNone, Source::kAccount),
                               Quantity::Unavailable("not counted"), Unit::kRatio);
  EXPECT_EQ(Format(none), "unavailable (not counted)");
  EXPECT_FALSE(Divide(Quantity::Of(5, Unit::kNone, Source::kAccount),
                      Quantity::Of(0, Unit::kNone, Source::kAccount), Unit::kRatio)
                   .available());
}

TEST(Units, ArithmeticKeepsTheWorstSource) {
  const Quantity q = Divide(Quantity::Of(6, Unit::kBytes, Source::kEstimate),
                            Quantity::Of(3, Unit::kCount, Source::kCounter), Unit::kBytes);
  EXPECT_EQ(Format(q), "2 B (estimate)");
}

TEST(Units, ShellWordIsOneWordForAShell) {
  EXPECT_EQ(ShellWord("a/b-c_1.db"), "a/b-c_1.db");
  EXPECT_EQ(ShellWord(""), "''");
  EXPECT_EQ(ShellWord("a b"), "'a b'");
  EXPECT_EQ(ShellWord("it's"), "'it'\\''s'");
  EXPECT_EQ(ShellWord("$(x);&"), "'$(x);&'");
  EXPECT_EQ(ShellWord("a\x1b[2J'\\"), "$'a\\x1b[2J\\'\\\\'");
  EXPECT_EQ(ShellWord("\u202eb"), "$'\\xe2\\x80\\xaeb'");
  EXPECT_EQ(ShellWord("d\u00e9codage"), "d\u00e9codage");
}

}  // namespace
}  // namespace headrace
