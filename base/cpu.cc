#include "base/cpu.h"

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <string_view>

namespace headrace {
namespace {

// First word of a file as text, empty when it cannot be read.
std::string FirstLine(const std::string& path) {
  std::ifstream in(path);
  std::string line;
  std::getline(in, line);
  return line;
}

// The process's cgroup v2 path below /sys/fs/cgroup, from /proc/self/cgroup ("0::/path"); "/" when
// unknown.
std::string CgroupPath() {
  std::ifstream in("/proc/self/cgroup");
  for (std::string line; std::getline(in, line);) {
    if (line.rfind("0::", 0) == 0) return line.substr(3);
  }
  return "/";
}

// Calls visit(directory) for the process's cgroup and each of its ancestors: every level's limit
// holds.
template <typename Visit>
void ForEachCgroup(Visit visit) {
  for (std::string path = CgroupPath();;) {
    visit("/sys/fs/cgroup" + (path == "/" ? std::string() : path));
    if (path.empty() || path == "/") break;
    path.resize(path.rfind('/'));
  }
}

}  // namespace

CoreBudget ReadCoreBudget() {
  cpu_set_t set;
  CoreBudget budget{static_cast<double>(sysconf(_SC_NPROCESSORS_ONLN)), "online processors"};
  if (sched_getaffinity(0, sizeof set, &set) == 0)
    budget = {static_cast<double>(CPU_COUNT(&set)), "affinity"};
  ForEachCgroup([&](const std::string& directory) {
    std::istringstream text(FirstLine(directory + "/cpu.max"));
    std::string quota;
    double period = 0;
    if (text >> quota >> period && quota != "max" && period > 0) {
      const double cores = std::atof(quota.c_str()) / period;
      if (cores > 0 && cores < budget.cores) budget = {cores, "cgroup quota"};
    }
  });
  if (const char* slurm = std::getenv("SLURM_CPUS_PER_TASK")) {
    const double cores = std::atof(slurm);
    if (cores > 0 && cores < budget.cores) budget = {cores, "scheduler (SLURM_CPUS_PER_TASK)"};
  }
  return budget;
}

MemoryBudget ReadMemoryBudget() {
  MemoryBudget budget{
      static_cast<uint64_t>(sysconf(_SC_PHYS_PAGES)) * static_cast<uint64_t>(sysconf(_SC_PAGESIZE)),
      "physical memory"};
  ForEachCgroup([&](const std::string& directory) {
    const std::string text = FirstLine(directory + "/memory.max");
    if (text.empty() || text == "max") return;
    const uint64_t bytes = std::strtoull(text.c_str(), nullptr, 10);
    if (bytes > 0 && bytes < budget.bytes) budget = {bytes, "cgroup limit"};
  });
  return budget;
}

InstructionSet BestInstructionSet() {
  static const InstructionSet best = [] {
    InstructionSet set = InstructionSet::kScalar;
#if defined(__x86_64__)
    __builtin_cpu_init();
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
        __builtin_cpu_supports("bmi") && __builtin_cpu_supports("bmi2"))
      set = InstructionSet::kAvx2;
    if (set == InstructionSet::kAvx2 && __builtin_cpu_supports("avx512f") &&
        __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") &&
        __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512vbmi") &&
        __builtin_cpu_supports("avx512vbmi2")) {
      set = InstructionSet::kAvx512;
    }
#endif
    const char* cap = std::getenv("HEADRACE_ISA");
    if (cap != nullptr && std::string_view(cap) == "scalar") set = InstructionSet::kScalar;
    if (cap != nullptr && std::string_view(cap) == "avx2")
      set = std::min(set, InstructionSet::kAvx2);
    return set;
  }();
  return best;
}

const char* InstructionSetName(InstructionSet set) {
  switch (set) {
    case InstructionSet::kScalar:
      return "scalar";
    case InstructionSet::kAvx2:
      return "avx2";
    case InstructionSet::kAvx512:
      return "avx512";
  }
  return "";
}

std::string CpuModelName() {
  std::ifstream in("/proc/cpuinfo");
  for (std::string line; std::getline(in, line);) {
    if (line.rfind("model name", 0) == 0) return line.substr(line.find(':') + 2);
  }
  return "unknown";
}

}  // namespace headrace
