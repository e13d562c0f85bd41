#include "probes/host/fork_events.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <map>

namespace headrace::probes {
namespace {

TEST(ForkEvents, AnotherRootIsUnavailable) {
  const Host host("/nonexistent");
  ForkEvents events;
  const Availability availability = events.Start(host);
  EXPECT_EQ(availability.state, Availability::State::kUnavailable);
  EXPECT_NE(availability.reason.find("are missed"), std::string::npos);
  EXPECT_NE(availability.fix.find("CAP_NET_ADMIN"), std::string::npos);
  EXPECT_TRUE(events.Take().empty());
}

TEST(ForkEvents, EveryChildIsToldHoweverShortItLives) {
  const Host host;
  ForkEvents events;
  const Availability availability = events.Start(host);
  if (!availability.usable()) {
    EXPECT_NE(availability.reason.find("are missed"), std::string::npos);
    GTEST_SKIP() << availability.reason;
  }
  std::map<int64_t, int> children;  // pid -> how it ended
  std::map<int64_t, int64_t> begun;
  std::map<int64_t, int> ended;
  const auto take = [&] {
    for (const ForkEvent& event : events.Take()) {
      if (event.parent_pid != 0) {
        begun[event.pid] = event.parent_pid;
      } else if (begun.contains(event.pid)) {
        ended[event.pid] = event.wait_status.value_or(-1);
      }
    }
  };
  for (int i = 0; i < 200; i++) {
    const pid_t child = fork();
    if (child == 0) _exit(i % 3);
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    children[child] = status;
    if (i % 20 == 0) take();
  }
  take();
  if (events.lost() > 0) GTEST_SKIP() << "the kernel dropped news on this busy machine";
  for (const auto& [pid, status] : children) {
    ASSERT_TRUE(begun.contains(pid)) << pid;
    EXPECT_EQ(begun[pid], getpid());
    ASSERT_TRUE(ended.contains(pid)) << pid;
    EXPECT_EQ(ended[pid], status);
  }
}

}  // namespace
}  // namespace headrace::probes
