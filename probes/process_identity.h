// The identity of a process: its users, its namespaces and its pid in them, what it has mapped.
// `root` replaces "/proc" (a fixture in tests). Everything that cannot be read is absent.
#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace headrace::probes {

struct ProcessIds {
  uint32_t real_uid = 0, effective_uid = 0;
  int64_t own_pid = 0;  // its own pid, in the innermost of its pid namespaces
};
std::optional<ProcessIds> ReadProcessIds(int64_t pid, const std::string& root = "/proc");

// Threads of the process: their ids in its own pid namespace -> their ids in ours.
std::map<int64_t, int64_t> ReadOwnTids(int64_t pid, const std::string& root = "/proc");

// Inode of a namespace ("pid", "mnt") of the process. Needs the right to trace it.
std::optional<uint64_t> ReadNamespace(int64_t pid, const std::string& kind,
                                      const std::string& root = "/proc");

// A variable of the environment that the process was started with. Needs the right to trace it.
std::optional<std::string> ReadEnvironment(int64_t pid, const std::string& name,
                                           const std::string& root = "/proc");

// The address at which the process has mapped the beginning of the file that we have open as `fd`;
// 0: it has not. Absent without the right to trace it, and if it has nothing mapped at all, because
// then it is ending.
std::optional<uint64_t> ReadMappedAt(int64_t pid, int fd, const std::string& root = "/proc");

// Whether the process ignores a signal.
bool IgnoresSignal(int64_t pid, int number, const std::string& root = "/proc");

// Start ticks of a process (ProcessStat) on CLOCK_MONOTONIC; good to one tick, 10 ms.
int64_t StartedMonotonicNs(int64_t start_ticks);

// Pids of all visible processes, ascending; in the folder "task" of one, its threads.
std::vector<int64_t> ListProcesses(const std::string& root = "/proc");

}  // namespace headrace::probes
