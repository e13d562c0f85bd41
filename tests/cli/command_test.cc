// What all commands share.
#include "cli/command.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <new>
#include <stdexcept>

namespace headrace::cli {
namespace {

using testing::HasSubstr;

TEST(ErrorOf, IsWhateverWasThrown) {
  EXPECT_FALSE(ErrorOf([] {}));
  const auto own = ErrorOf([] { throw Error(ExitCode::kInconclusive, "what", "where"); });
  EXPECT_EQ(own->code(), ExitCode::kInconclusive);
  EXPECT_STREQ(own->what(), "where: what");
  EXPECT_EQ(ErrorOf([] { throw std::bad_alloc(); })->code(), ExitCode::kResources);
  const auto other = ErrorOf([] { throw std::out_of_range("no\nsuch"); });
  EXPECT_EQ(other->code(), ExitCode::kFailure);
  EXPECT_THAT(other->what(), HasSubstr("internal error: no\\x0asuch"));
}

}  // namespace
}  // namespace headrace::cli
