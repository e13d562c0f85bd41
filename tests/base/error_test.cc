#include "base/error.h"

#include <gtest/gtest.h>

#include <cerrno>

#include "base/registry.h"

namespace headrace {
namespace {

TEST(Error, IsOneLineOfPlaceFactAndFix) {
  const Error error(ExitCode::kBadData, "0 bytes", "part-003.dwrf", "generate it again");
  EXPECT_STREQ(error.what(), "part-003.dwrf: 0 bytes; generate it again");
  EXPECT_STREQ(error.Within("stage fetch").what(),
               "stage fetch: part-003.dwrf: 0 bytes; generate it again");
  EXPECT_EQ(static_cast<int>(error.code()), 5);
}

TEST(Error, HostileNamesCannotBreakTheLine) {
  const Error error(ExitCode::kBadData, "bad", "a\nb\x1b[31m\xff");
  EXPECT_STREQ(error.what(), "a\\x0ab\\x1b[31m\\xff: bad");
}

// What JSON and terminals would refuse is spelled out: Unicode 15, table 3-7 (well-formed UTF-8).
TEST(Printable, LetsOnlyWellFormedUtf8Through) {
  for (int lead = 0x80; lead < 0x100; ++lead) {
    for (int second = 0; second < 0x100; ++second) {
      std::string text = {static_cast<char>(lead), static_cast<char>(second)};
      if (lead >= 0xE0) text += '\x80';
      if (lead >= 0xF0) text += '\x80';
      const int low = lead == 0xE0 ? 0xA0 : lead == 0xF0 ? 0x90 : 0x80;
      const int high = lead == 0xED ? 0x9F : lead == 0xF4 ? 0x8F : 0xBF;
      const bool is_good = lead >= 0xC2 && lead <= 0xF4 && second >= low && second <= high;
      EXPECT_EQ(Printable(text) == text, is_good) << std::hex << lead << " " << second;
    }
  }
}

TEST(Error, ErrnoChoosesTheExitCode) {
  EXPECT_EQ(ErrnoError(ENOSPC, "write", "x").code(), ExitCode::kResources);
  EXPECT_EQ(ErrnoError(EACCES, "open", "x").code(), ExitCode::kPrivilege);
  EXPECT_EQ(ErrnoError(ENOENT, "open", "x").code(), ExitCode::kBadData);
  EXPECT_EQ(ErrnoError(EIO, "read", "x").code(), ExitCode::kFailure);
}

TEST(NearestName, SuggestsLikelyTypingErrorsOnly) {
  const std::vector<std::string> names = {"report", "run", "runs", "inspect"};
  EXPECT_EQ(NearestName("reprot", names), "report");
  EXPECT_EQ(NearestName("inspct", names), "inspect");
  EXPECT_EQ(NearestName("fetchdecode", names), "");
}

}  // namespace
}  // namespace headrace
