// The command that sets knobs of a pipeline of somebody else's: what it is told, how it may end.
#include "experiments/foreign_target.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "base/clock.h"

namespace headrace::experiments {
namespace {

constexpr int64_t kForeignSecond = 1'000'000'000;

std::string Text(const std::string& path) {
  std::ifstream in(path);
  std::stringstream text;
  text << in.rdbuf();
  return text.str();
}

class ApplyCommand : public testing::Test {
 protected:
  ApplyCommand() {
    std::string path = testing::TempDir() + "headrace-apply-XXXXXX";
    folder_ = mkdtemp(path.data());
  }
  ~ApplyCommand() override { std::filesystem::remove_all(folder_); }

  CommandEnd Run(const std::string& command, const std::string& input = "{}\n",
                 const std::vector<std::string>& variables = {},
                 int64_t timeout_ns = 60 * kForeignSecond) {
    return RunCommand("cd " + folder_ + "; " + command, input, variables, timeout_ns);
  }
  std::string folder_;
};

TEST_F(ApplyCommand, IsToldTheDecisionAndTheKnobs) {
  const std::string decision(300'000, 'd');  // more than a pipe holds
  setenv("HEADRACE_KNOB_OLD", "1", 1);
  setenv("HEADRACE_PID", "6", 1);
  const CommandEnd end = Run("cat > input; cat /dev/stdin < /dev/null; env > environment", decision,
                             {"HEADRACE_KNOB_DECODE_PARALLELISM=4", "HEADRACE_PID=7"});
  unsetenv("HEADRACE_KNOB_OLD");
  unsetenv("HEADRACE_PID");
  EXPECT_TRUE(end.ok) << end.how;
  EXPECT_EQ(Text(folder_ + "/input"), decision);
  const std::string environment = Text(folder_ + "/environment");
  EXPECT_NE(environment.find("HEADRACE_KNOB_DECODE_PARALLELISM=4\n"), std::string::npos);
  EXPECT_NE(environment.find("HEADRACE_PID=7\n"), std::string::npos);
  EXPECT_EQ(environment.find("HEADRACE_PID=6\n"), std::string::npos) << "of who called";
  EXPECT_NE(environment.find("PATH="), std::string::npos);
  EXPECT_EQ(environment.find("HEADRACE_KNOB_OLD"), std::string::npos) << "of another decision";
}

TEST_F(ApplyCommand, HowItEnds) {
  const struct {
    const char* command;
    bool ok;
    const char* how;
  } cases[] = {
      {"true", true, "exited 0"},
      {"exit 3", false, "exited 3"},
      {"no-such-command", false, "exited 127"},
      {"kill -9 $$", false, "was killed by signal 9"},
      {"kill -TERM $$", false, "was killed by signal 15"},
      {"exec <&-; true", true, "exited 0"},  // does not read what it is told
  };
  for (const auto& [command, ok, how] : cases) {
    const CommandEnd end = Run(std::string(command) + " 2> errors");
    EXPECT_EQ(end.ok, ok) << command;
    EXPECT_EQ(end.how, how) << command;
  }
}

TEST_F(ApplyCommand, OneThatDoesNotEndIsEndedWithAllItStarted) {
  const CommandEnd end = Run("sleep 1000 & echo $! > child; wait", "{}", {}, kForeignSecond / 2);
  EXPECT_FALSE(end.ok);
  EXPECT_EQ(end.how, "did not end within 500 ms");
  const int child = std::stoi(Text(folder_ + "/child"));
  int64_t wait = 0;
  while (kill(child, 0) == 0 &&
         Text("/proc/" + std::to_string(child) + "/stat").find(") Z") == std::string::npos) {
    SleepUntilNs(MonotonicNs() + kForeignSecond / 50);
    ASSERT_LT(++wait, 1000) << "the child of the command lives on";
  }
}

TEST(KnobVariable, NamesOfKnobs) {
  EXPECT_EQ(KnobVariable("decode.parallelism"), "HEADRACE_KNOB_DECODE_PARALLELISM");
  EXPECT_EQ(KnobVariable("my-stage 2.queue"), "HEADRACE_KNOB_MY_STAGE_2_QUEUE");
  EXPECT_EQ(KnobVariable("\xc3\xa4=b.queue"), "HEADRACE_KNOB____B_QUEUE");
}

}  // namespace
}  // namespace headrace::experiments
