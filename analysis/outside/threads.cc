#include "analysis/outside/threads.h"

#include <algorithm>

#include "base/starts_with_any.h"

namespace headrace::analysis {
namespace {

constexpr const char* kCauseNames[kNumWaitCauses] = {
    "storage", "network", "lock", "sleep", "pipe", "poll", "child", "fault", "other", "stopped"};

}  // namespace

const char* WaitCauseName(WaitCause cause) { return kCauseNames[Index(cause)]; }

WaitCause WaitCauseOf(const std::string& name) {
  for (size_t i = 0; i < kNumWaitCauses; ++i) {
    if (name == kCauseNames[i]) return static_cast<WaitCause>(i);
  }
  return WaitCause::kOther;
}

bool IsMainThread(const std::string& thread) { return thread.ends_with(kMainSuffix); }

double ThreadTimes::blocked() const {
  double sum = 0;
  for (const double seconds : blocked_s) sum += seconds;
  return sum;
}

bool EndedByThreads(WaitCause cause) {
  return cause == WaitCause::kLock || cause == WaitCause::kPipe || cause == WaitCause::kPoll ||
         cause == WaitCause::kNetwork || cause == WaitCause::kOther;
}

bool IsOfJava(std::string_view thread) {
  // Those of HotSpot that show in a thread dump without any of the program's.
  constexpr std::string_view kNames[] = {"VM Periodic Tas", "G1 ",
                                         "C1 CompilerThre", "C2 CompilerThre",
                                         "Sweeper thread",  "Signal Dispatch",
                                         "Service Thread",  "Monitor Deflati",
                                         "Reference Handl", "Finalizer",
                                         "Common-Cleaner",  "Notification Th"};
  return StartsWithAny(thread, kNames) || StopsForGarbage(thread);
}

bool IsJava(const SeenThreads& seen, size_t kind) {
  return std::any_of(seen.groups.begin(), seen.groups.end(), [&](const ThreadGroup& group) {
    return group.kind == kind && group.thread == "VM Thread";
  });
}

bool StopsForGarbage(std::string_view thread) {
  constexpr std::string_view kNames[] = {"GC Thread", "GC task thread", "ParGC", "VM Thread"};
  return StartsWithAny(thread, kNames);
}

bool IsOfRanks(std::string_view thread) {
  constexpr std::string_view kNames[] = {"gloo", "pt_gloo", "nccl",    "NCCL", "pt_nccl",
                                         "ucx",  "ucp_",    "horovod", "mpi_", "orte_"};
  return StartsWithAny(thread, kNames);
}

std::string WithoutMain(const std::string& thread) {
  return IsMainThread(thread) ? thread.substr(0, thread.size() - std::string(kMainSuffix).size())
                              : thread;
}

}  // namespace headrace::analysis
