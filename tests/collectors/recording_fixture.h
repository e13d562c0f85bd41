// Tests that record a small instrumented process into a store of their own.
#pragma once
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include "base/clock.h"
#include "collectors/recorder.h"
#include "probes/account/account_segment.h"
#include "probes/account/scope.h"
#include "tests/collectors/times.h"

namespace headrace::collectors {

// The instrumented child: one operator that sleeps 1 ms and says a row, forever or `seconds`.
[[noreturn]] inline void Pipeline(double seconds, int ready_fd) {
  hr_account_open("tiny");
  const uint32_t stage = hr_stage("work", 1, 0);
  const uint32_t op = hr_operator("nap", "sleep", stage);
  hr_thread_begin(stage);
  [[maybe_unused]] const ssize_t n = write(ready_fd, "x", 1);
  const int64_t end = MonotonicNs() + static_cast<int64_t>(seconds * 1e9);
  while (MonotonicNs() < end) {
    account::OperatorScope scope(op);
    SleepUntilNs(MonotonicNs() + kMs);
    scope.Done(1, 10, 100);
    hr_step(kMs, 0, 1);
  }
  exit(0);
}

class RecordingFixture : public testing::Test {
 protected:
  void SetUp() override {
    char folder[] = "/tmp/headrace-recorder-XXXXXX";
    folder_ = mkdtemp(folder);
    setenv("HEADRACE_ACCOUNT_DIR", folder_.c_str(), 1);
    options_.database = folder_ + "/t.db";
    options_.level = 2;  // without the kernel's programs, whose loading takes its time
  }
  void TearDown() override {
    for (const pid_t pid : children_) {
      kill(pid, SIGKILL);
      waitpid(pid, nullptr, 0);
    }
    std::filesystem::remove_all(folder_);
  }
  pid_t StartPipeline(double seconds) {
    int fds[2];
    EXPECT_EQ(pipe(fds), 0);
    const pid_t child = fork();
    if (child == 0) Pipeline(seconds, fds[1]);
    children_.push_back(child);
    char x;
    EXPECT_EQ(read(fds[0], &x, 1), 1);
    close(fds[0]);
    close(fds[1]);
    return child;
  }
  void End(pid_t child) {
    waitpid(child, nullptr, 0);
    std::erase(children_, child);
  }
  int64_t Integer(const std::string& sql) {
    ReadStore store(options_.database);
    const SqlResult result = store.Query(sql);
    if (result.rows.empty()) return -1;
    const auto* value = std::get_if<int64_t>(&result.rows[0][0]);
    return value ? *value : -1;
  }
  std::string Text(const std::string& sql) {
    ReadStore store(options_.database);
    const SqlResult result = store.Query(sql);
    if (result.rows.empty()) return "";
    const auto* value = std::get_if<std::string>(&result.rows[0][0]);
    return value ? *value : "";
  }
  std::string folder_;
  RecorderOptions options_;
  std::vector<pid_t> children_;
};

}  // namespace headrace::collectors
