// Children that run to their end: what they said, how they ended, and that nothing of them is left.
#include "experiments/child_run.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>

#include "base/clock.h"

namespace headrace::experiments {
namespace {

using testing::HasSubstr;

ChildEnd Shell(const std::string& command, const ChildOptions& options = {}) {
  return RunChild({"/bin/sh", "-c", command}, options);
}

TEST(RunChild, SaysHowItEndedAndWhatItSaid) {
  const struct {
    const char* command;
    int code;
    const char *out, *last;
  } cases[] = {
      {"echo yes; echo no >&2; exit 3", 3, "yes\n", "no"},
      {"printf 'one\\ntwo \\n\\n' >&2", 0, "", "two"},
      {"kill -9 $$", 137, "", ""},
      {"cat", 0, "", ""},  // its standard input is empty
      // More than a pipe holds, of both.
      {"head -c 300000 /dev/zero | tr '\\0' x >&2; echo >&2; echo last >&2; echo out", 0, "out\n",
       "last"},
  };
  for (const auto& [command, code, out, last] : cases) {
    const ChildEnd end = Shell(command, {.keep_output = true});
    EXPECT_EQ(end.code, code) << command;
    EXPECT_EQ(end.out, out) << command;
    EXPECT_FALSE(end.timed_out) << command;
    EXPECT_EQ(end.last(), last) << command;
  }
  EXPECT_EQ(Shell("echo yes").out, "") << "was not asked for";
  EXPECT_EQ(RunChild({"/no/such/program"}).code, 127);
}

TEST(RunChild, DoesNotWaitForWhoHoldsThePipesOpen) {
  const ChildEnd end = Shell("sleep 300 & echo $! >&2; echo done", {.keep_output = true});
  EXPECT_EQ(end.out, "done\n");
  const pid_t left = static_cast<pid_t>(std::strtol(end.last().c_str(), nullptr, 10));
  ASSERT_GT(left, 0) << end.error;
  EXPECT_EQ(kill(left, SIGKILL), 0) << "it was still there";
}

TEST(RunChild, AfterItsTimeAlsoOneThatNeverStopsWritingIsKilled) {
  EXPECT_TRUE(Shell("yes >&2", {.timeout_ns = 300'000'000}).timed_out);
}

TEST(RunChild, KeepsABoundedPartOfWhatItSaid) {
  const ChildEnd end = Shell("yes | head -c 5000000; yes | head -c 5000000 >&2; echo why >&2",
                             {.keep_output = true});
  EXPECT_LE(end.out.size(), (1u << 20) + 4096);
  EXPECT_LE(end.error.size(), 2u * (1 << 14) + 4096);
  EXPECT_EQ(end.last(), "why");
}

TEST(RunChild, AfterItsTimeAllOfItIsKilled) {
  ChildEnd end;
  // A busy machine may not let it say a word in the first.
  for (int64_t timeout_ns = 300'000'000; end.out.empty() && timeout_ns < 300'000'000'000;
       timeout_ns *= 10)
    end = Shell("sleep 300 & echo $!; wait", {.keep_output = true, .timeout_ns = timeout_ns});
  EXPECT_TRUE(end.timed_out);
  EXPECT_EQ(end.code, 128 + SIGKILL);
  const pid_t left = static_cast<pid_t>(std::stol(end.out));
  // Whoever inherits it has yet to take note of its end.
  const int64_t most_ns = MonotonicNs() + 10'000'000'000;
  const auto state = [&] {
    const ChildEnd ps = Shell(fmt::format("ps -o stat= -p {}", left), {.keep_output = true});
    return ps.out.substr(0, 1);
  };
  while (state() != "" && state() != "Z" && MonotonicNs() < most_ns)
    SleepUntilNs(MonotonicNs() + 10'000'000);
  EXPECT_THAT(state(), testing::AnyOf("", "Z"));
}

TEST(ErrorOfChild, IsTheChildsOwn) {
  const struct {
    int code;
    const char* error;
    ExitCode expected;
    const char* line;
  } cases[] = {
      {5, "x\nheadrace run: a.toml: is bad\n", ExitCode::kBadData, "side A: a.toml: is bad"},
      {7, "headrace run: disk full", ExitCode::kResources, "side A: disk full"},
      {137, "", ExitCode::kFailure, "side A: headrace run ended with exit code 137"},
      {42, "what\n", ExitCode::kFailure, "side A: what"},
  };
  for (const auto& [code, text, expected, line] : cases) {
    ChildEnd end;
    end.code = code;
    end.error = text;
    const Error error = ErrorOfChild(end, "headrace run", "side A");
    EXPECT_EQ(error.code(), expected) << line;
    EXPECT_STREQ(error.what(), line);
  }
}

}  // namespace
}  // namespace headrace::experiments
