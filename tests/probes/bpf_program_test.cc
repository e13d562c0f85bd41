#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include "probes/bpf/program.h"

namespace headrace::probes::bpf {
namespace {

TEST(BpfProgram, WordsAreTakenApart) {
  EXPECT_FALSE(TakeApart(0).operator_index);
  const Word word = TakeApart(7u << 20 | 3u << 16 | 42u);
  EXPECT_EQ(word.operator_index, 41u);
  EXPECT_EQ(word.doing, 3);
  EXPECT_EQ(word.resource_index, 6u);
}

TEST(BpfProgram, ThreadsOfOneGroupHaveOneName) {
  for (const auto& [comm, group] : {std::pair{"decode-12", "decode"},
                                    {"pt_data_worker", "pt_data_worker"},
                                    {"worker7", "worker"},
                                    {"12", "12"},
                                    {"", ""},
                                    {"io:3", "io"}}) {
    EXPECT_EQ(ThreadGroupName(comm), group);
  }
}

TEST(BpfProgram, TheSmallestProgramLoadsOrSaysWhyNot) {
  const Availability available = CheckBpf(Host());
  if (!available.usable()) {
    EXPECT_NE(available.reason, "");
    EXPECT_NE(available.fix, "");
    GTEST_SKIP() << "no BPF here: " << available.reason;
  }
}

TEST(BpfProgram, WithoutPrivilegeTheReasonIsSaid) {
  int fds[2];
  ASSERT_EQ(pipe(fds), 0);
  const pid_t child = fork();
  if (child == 0) {
    if (geteuid() == 0 && setuid(65534) != 0) _exit(1);
    const Availability available = CheckBpf(Host());
    const std::string text = available.usable() ? "usable" : available.reason + "|" + available.fix;
    _exit(write(fds[1], text.data(), text.size()) < 0);
  }
  close(fds[1]);
  char text[512] = "";
  const ssize_t n = read(fds[0], text, sizeof text - 1);
  close(fds[0]);
  int status = 0;
  waitpid(child, &status, 0);
  ASSERT_EQ(status, 0);
  EXPECT_NE(std::string(text, static_cast<size_t>(n)).find("CAP_BPF"), std::string::npos) << text;
}

}  // namespace
}  // namespace headrace::probes::bpf
