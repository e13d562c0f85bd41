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
