// Tests of files in the folder that accounts are kept in: one of their own, which every user may
// write to.
#pragma once
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

namespace headrace::collectors {

class AccountFolder : public testing::Test {
 protected:
  void SetUp() override {
    // Where segments usually are: whether a file is open is asked of its file system.
    char folder[] = "/dev/shm/headrace-accounts-XXXXXX";
    ASSERT_NE(mkdtemp(folder), nullptr);
    folder_ = folder;
    ASSERT_EQ(chmod(folder, 0777), 0);
    setenv("HEADRACE_ACCOUNT_DIR", folder, 1);
  }
  void TearDown() override {
    for (const pid_t child : children_) {
      kill(child, SIGKILL);
      waitpid(child, nullptr, 0);
    }
    std::filesystem::remove_all(folder_);
    unsetenv("HEADRACE_ACCOUNT_DIR");
  }
  std::string folder_;
  std::vector<pid_t> children_;
};

}  // namespace headrace::collectors
