// What /proc says about a process and its threads. `root` replaces "/proc" (a fixture in tests).
// Everything that cannot be read is absent, never 0.
#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace headrace::probes {

// Scheduler's account of one thread (schedstat), since it began.
struct TaskTime {
  int64_t on_cpu_ns = 0;
  int64_t runnable_ns = 0;  // ready to run, waiting for a CPU
};

struct ProcessStat {
  std::string name;  // at most 15 characters
  char state = '?';  // R, S, D, Z, ...
  int64_t parent_pid = 0;
  int64_t session_id = 0;  // pid of the process that began its session
  int64_t cpu_ns = 0;      // user + system, ended threads included; 10 ms steps
  // CPU time of its ended children and their children, once it has waited for them.
  int64_t reaped_cpu_ns = 0;
  int64_t num_threads = 0;
  int64_t start_ticks = 0;  // since boot; together with the pid it identifies a process uniquely
  int64_t rss_bytes = 0;
};

struct ProcessIo {
  int64_t read_bytes = 0;       // from devices
  int64_t written_bytes = 0;    // to devices
  int64_t read_call_bytes = 0;  // through read calls, page cache included
  int64_t written_call_bytes = 0;
};

// The name that measurements use for a thread's group: its name without digits at the end and a
// separator before them. A process's first thread has a group of its own, "NAME (main)": in most
// pipelines it takes the batches, and helper threads that inherited its name must not be mixed with
// it.
std::string ThreadGroupLabel(std::string_view name, bool first);

std::optional<TaskTime> ReadTaskTime(int64_t pid, int64_t tid, const std::string& root = "/proc");

// Reads the times of the same threads repeatedly at lower cost: it keeps their files in /proc open,
// for at most `most_open` threads, and at most 256 over all readers, so that descriptors are left
// for others. Other files are opened each time. One thread at a time.
class TaskTimeReader {
 public:
  explicit TaskTimeReader(int64_t pid, size_t most_open = 64);
  TaskTimeReader(TaskTimeReader&&) noexcept;
  TaskTimeReader& operator=(TaskTimeReader&&) = delete;
  ~TaskTimeReader();

  // Nothing when the thread has ended.
  std::optional<TaskTime> Read(int64_t tid);

 private:
  int64_t pid_;
  size_t most_open_;
  std::map<int64_t, int> files_;  // by thread
};
std::optional<ProcessStat> ReadProcessStat(int64_t pid, const std::string& root = "/proc");
std::optional<ProcessIo> ReadProcessIo(int64_t pid, const std::string& root = "/proc");
std::string ReadCommandLine(int64_t pid, const std::string& root = "/proc");  // blanks between
std::optional<uint32_t> ReadOwner(int64_t pid, const std::string& root = "/proc");  // user id

// Busy time of all CPUs together since boot (user, nice, system, irq, softirq, steal) and their
// number.
struct HostCpu {
  int64_t busy_ns = 0;
  int64_t num_cpus = 0;
};
std::optional<HostCpu> ReadHostCpu(const std::string& root = "/proc");

// True while the process exists and is no zombie; `start_ticks` (0: any) detects a reused pid.
bool IsAlive(int64_t pid, int64_t start_ticks = 0, const std::string& root = "/proc");

}  // namespace headrace::probes
