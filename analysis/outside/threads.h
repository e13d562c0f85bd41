// What a recording from outside has seen of threads: when they computed, why they waited, and who
// ended the waits.
#pragma once
#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace headrace::analysis {

// Why a thread was off the CPU, as the off-CPU probe says it.
enum class WaitCause : uint8_t {
  kStorage,
  kNetwork,
  kLock,
  kSleep,
  kPipe,
  kPoll,
  kChild,
  kFault,
  kOther,
  kStopped  // by a signal or a debugger
};
inline constexpr size_t kNumWaitCauses = 10;
const char* WaitCauseName(WaitCause cause);  // "storage", ...
// kOther for a word it does not know.
WaitCause WaitCauseOf(const std::string& name);
inline size_t Index(WaitCause cause) { return static_cast<size_t>(cause); }

// Waits that another thread ends; the others end by themselves or by a device.
bool EndedByThreads(WaitCause cause);

// A thread that a Java virtual machine has for itself, by the first 15 characters of its name.
bool IsOfJava(std::string_view thread);

// One of these that collects garbage while the program's own threads stand still, and else sleeps.
bool StopsForGarbage(std::string_view thread);

// A thread by which a library exchanges gradients with other ranks (Gloo, NCCL, UCX, MPI, Horovod).
bool IsOfRanks(std::string_view thread);

// Ending of the name that probes give to a group of threads if they are the first threads of their
// processes.
inline constexpr const char* kMainSuffix = " (main)";
bool IsMainThread(const std::string& thread);
// The name of a first thread without what marks it as one; other names as they are.
std::string WithoutMain(const std::string& thread);

// Time of threads, in seconds, summed over them.
struct ThreadTimes {
  double on_cpu_s = 0, runnable_s = 0;
  std::array<double, kNumWaitCauses> blocked_s{};
  double timed_out_s = 0;  // of these: in polls that their time limits ended

  double blocked() const;
  double total() const { return on_cpu_s + runnable_s + blocked(); }
};

// Processes of one name with parents of one kind.
struct ProcessKind {
  std::string name;
  std::vector<int64_t> process_ids, pids;
  std::optional<size_t> parent;
  bool is_service = false;  // a library's own, which makes nothing (base/library_processes.h)
};

// Threads of one name in the processes of one kind.
struct ThreadGroup {
  size_t kind = 0;
  std::string thread;
  bool main = false;
  ThreadTimes time;
  double threads_count = 0;  // mean number alive, from the sum of their times
};

// The waits of thread group `wakee` that group `waker` ended.
struct WakeEdge {
  std::optional<size_t> waker;  // empty: a thread outside the recorded tree
  size_t wakee = 0;
  WaitCause cause = WaitCause::kOther;
  int64_t wakeups_count = 0;
  // Measured; else the wakee's blocked time for this cause, divided by the share of wake-ups.
  double wait_s = 0;
};

// How much is known about the threads; it decides what can be said.
enum class OutsideKnowledge : uint8_t {
  kNothing,  // no thread times
  kCpu,      // time on CPU and runnable only
  kCauses,   // + causes of waits
  kCounts,   // + who ended how many waits
  kWakers    // + how long those waits were
};

struct SeenThreads {
  OutsideKnowledge knowledge = OutsideKnowledge::kNothing;
  std::vector<ProcessKind> kinds;
  std::vector<ThreadGroup> groups;  // most time on CPU first
  std::vector<WakeEdge> edges;      // longest first
};

// Whether processes of the kind are Java virtual machines.
bool IsJava(const SeenThreads& seen, size_t kind);

}  // namespace headrace::analysis
