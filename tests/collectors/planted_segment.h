// A file that says it is the whole segment of a process, made by somebody else.
#pragma once
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdint>
#include <string>

#include "base/clock.h"
#include "probes/account/account.h"

namespace headrace::collectors {

constexpr uint32_t kNobody = 65534;

struct Planted {
  uint32_t user = 0;  // 0: ours
  mode_t mode = 0600;
  uint32_t state = HR_STATE_OPEN;
};

inline void PlantSegment(const std::string& path, int64_t pid, const Planted& planted = {}) {
  hr_header header = {};
  header.magic = HR_ACCOUNT_MAGIC;
  header.abi_version = HR_ACCOUNT_ABI;
  header.segment_size = sizeof(hr_segment);
  header.state = planted.state;
  header.pid = static_cast<uint32_t>(pid);
  header.pid_namespace = hr_pid_namespace_();
  header.level = 1;
  header.base_monotonic_ns = static_cast<uint64_t>(MonotonicNs());
  const int fd = open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, planted.mode);
  ASSERT_EQ(write(fd, &header, sizeof header), static_cast<ssize_t>(sizeof header));
  ASSERT_EQ(ftruncate(fd, sizeof(hr_segment)), 0);
  ASSERT_EQ(fchmod(fd, planted.mode), 0);
  ASSERT_TRUE(planted.user == 0 || fchown(fd, planted.user, planted.user) == 0);
  close(fd);
}

}  // namespace headrace::collectors
