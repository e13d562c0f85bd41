#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>

#include "base/error.h"
#include "probes/bpf/limits.h"
#include "probes/bpf/objects.h"
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

TEST(BpfProgram, WhatKernelsWithoutLoopsGetLoadsToo) {
  const Host host;
  if (const Availability here = CheckBpf(host); !here.usable()) {
    GTEST_SKIP() << "no BPF here: " << here.reason;
  }
  setenv("HEADRACE_BPF_PLAIN", "1", 1);
  for (const auto& [object, bytes] : Objects()) {
    if (object.ends_with("_loop")) continue;
    EXPECT_EQ(Objects().count(object + "_loop"), 1u) << object;
    if (object == "counters") continue;  // its caller gives it events
    Program program(object);
    const Availability loaded = program.Load(host, Target());
    // Whose probe chooses among hooks lacks some of them here.
    const bool lacks_hook = loaded.reason.find("has no tracepoint") != std::string::npos;
    EXPECT_TRUE(loaded.usable() || lacks_hook) << object << ": " << loaded.reason;
  }
  unsetenv("HEADRACE_BPF_PLAIN");
}

// What CheckLimits says while `variable` has the value; "" if it is content.
std::string SaidOf(const char* variable, const char* value) {
  setenv(variable, value, 1);
  std::string said;
  try {
    CheckLimits();
  } catch (const Error& error) {
    said = error.code() == ExitCode::kUsage ? error.what() : "not a usage error";
  }
  unsetenv(variable);
  return said;
}

TEST(BpfLimits, NonsenseIsRefusedAndSaysWhatIsAllowed) {
  for (const char* bad : {"-5", "abc", "0", "999999999999", "65537", "5x", " 5", "1.5", "0x10"}) {
    const std::string said = SaidOf("HEADRACE_BPF_MAP_ENTRIES", bad);
    EXPECT_NE(said.find("HEADRACE_BPF_MAP_ENTRIES: '" + std::string(bad) + "'"), std::string::npos)
        << bad << ": " << said;
    EXPECT_NE(said.find("from 1 to 65536"), std::string::npos) << bad << ": " << said;
  }
  for (const char* bad : {"-4096", "abc", "0", "4095", "5000", "4294967296", "2147483648"}) {
    const std::string said = SaidOf("HEADRACE_BPF_RING_BYTES", bad);
    EXPECT_NE(said.find("HEADRACE_BPF_RING_BYTES: '" + std::string(bad) + "'"), std::string::npos)
        << bad << ": " << said;
    EXPECT_NE(said.find("power of two from 4096"), std::string::npos) << bad << ": " << said;
  }
  for (const char* good : {"1", "3", "65536", ""}) {
    EXPECT_EQ(SaidOf("HEADRACE_BPF_MAP_ENTRIES", good), "") << good;
  }
  for (const char* good : {"4096", "1048576", "1073741824", ""}) {
    EXPECT_EQ(SaidOf("HEADRACE_BPF_RING_BYTES", good), "") << good;
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
