#include "base/cpu.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

namespace headrace {
namespace {

using Files = std::vector<std::pair<std::string, std::string>>;

const char* const kV2Mount = "30 23 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup rw\n";
const char* const kV1Mounts =
    "31 23 0:28 / /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct\n"
    "32 23 0:29 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n";

struct GroupsCase {
  const char* name;
  Files files;
  double cores;  // 0: as without groups
  uint64_t bytes;
};

const GroupsCase kGroupsCases[] = {
    {"v2, the group above binds",
     {{"/proc/self/mountinfo", kV2Mount},
      {"/proc/self/cgroup", "0::/job/step\n"},
      {"/sys/fs/cgroup/job/cpu.max", "30000 100000\n"},
      {"/sys/fs/cgroup/job/step/cpu.max", "max 100000\n"},
      {"/sys/fs/cgroup/job/step/memory.max", "1048576\n"}},
     0.3,
     1048576},
    {"v2, memory that may not be used freely",
     {{"/proc/self/mountinfo", kV2Mount},
      {"/proc/self/cgroup", "0::/job/step\n"},
      {"/sys/fs/cgroup/job/memory.high", "524288\n"},
      {"/sys/fs/cgroup/job/memory.max", "1048576\n"},
      {"/sys/fs/cgroup/job/step/memory.high", "max\n"}},
     0,
     524288},
    {"v1, the group above binds",
     {{"/proc/self/mountinfo", kV1Mounts},
      {"/proc/self/cgroup", "4:memory:/m\n1:cpu,cpuacct:/job/step\n"},
      {"/sys/fs/cgroup/cpu,cpuacct/job/cpu.cfs_quota_us", "60000\n"},
      {"/sys/fs/cgroup/cpu,cpuacct/job/cpu.cfs_period_us", "100000\n"},
      {"/sys/fs/cgroup/cpu,cpuacct/job/step/cpu.cfs_quota_us", "-1\n"},
      {"/sys/fs/cgroup/cpu,cpuacct/job/step/cpu.cfs_period_us", "100000\n"},
      {"/sys/fs/cgroup/memory/m/memory.limit_in_bytes", "2097152\n"}},
     0.6,
     2097152},
    {"v1 in a container, whose mount begins at its own group",
     {{"/proc/self/mountinfo",
       "31 23 0:28 /docker/6f2c /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu\n"},
      {"/proc/self/cgroup", "1:cpu:/docker/6f2c\n"},
      {"/sys/fs/cgroup/cpu/cpu.cfs_quota_us", "25000\n"},
      {"/sys/fs/cgroup/cpu/cpu.cfs_period_us", "50000\n"}},
     0.5,
     0},
    {"both, the smaller one binds",
     {{"/proc/self/mountinfo", std::string(kV1Mounts) + kV2Mount},
      {"/proc/self/cgroup", "1:cpu,cpuacct:/a\n0::/b\n"},
      {"/sys/fs/cgroup/cpu,cpuacct/a/cpu.cfs_quota_us", "80000\n"},
      {"/sys/fs/cgroup/cpu,cpuacct/a/cpu.cfs_period_us", "100000\n"},
      {"/sys/fs/cgroup/b/cpu.max", "40000 100000\n"}},
     0.4,
     0},
    {"v1 without limits",
     {{"/proc/self/mountinfo", kV1Mounts},
      {"/proc/self/cgroup", "4:memory:/\n1:cpu,cpuacct:/\n"},
      {"/sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us", "-1\n"},
      {"/sys/fs/cgroup/cpu,cpuacct/cpu.cfs_period_us", "100000\n"},
      {"/sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n"}},
     0,
     0},
    {"files that hold something else",
     {{"/proc/self/mountinfo", "no mounts\n - cgroup\n" + std::string(kV1Mounts)},
      {"/proc/self/cgroup", "1:cpu,cpuacct:/\n4:memory\n"},
      {"/sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us", "some\n"},
      {"/sys/fs/cgroup/cpu,cpuacct/cpu.cfs_period_us", "0\n"}},
     0,
     0},
};

TEST(Budgets, ControlGroupsOfBothVersionsBind) {
  const std::string empty = testing::TempDir() + "headrace-no-groups";
  const double all_cores = ReadCoreBudget(empty).cores;
  const uint64_t all_bytes = ReadMemoryBudget(empty).bytes;
  for (const GroupsCase& c : kGroupsCases) {
    SCOPED_TRACE(c.name);
    const std::filesystem::path root = testing::TempDir() + "headrace-groups";
    std::filesystem::remove_all(root);
    for (const auto& [path, text] : c.files) {
      std::filesystem::create_directories(
          (root.string() + path).substr(0, (root.string() + path).rfind('/')));
      std::ofstream(root.string() + path) << text;
    }
    const CoreBudget cores = ReadCoreBudget(root);
    EXPECT_DOUBLE_EQ(cores.cores, c.cores > 0 ? c.cores : all_cores);
    EXPECT_EQ(cores.bound_by == "cgroup quota", c.cores > 0);
    const MemoryBudget memory = ReadMemoryBudget(root);
    EXPECT_EQ(memory.bytes, c.bytes > 0 ? c.bytes : all_bytes);
    std::filesystem::remove_all(root);
  }
}

}  // namespace
}  // namespace headrace
