#include "base/cpu.h"

#include <sched.h>
#include <unistd.h>
#if defined(__x86_64__)
#include <cpuid.h>
#endif

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <string_view>

#include "base/cgroup.h"

namespace headrace {
namespace {

// First word of a file as text, empty when it cannot be read.
std::string FirstLine(const std::string& path) {
  std::ifstream in(path);
  std::string line;
  std::getline(in, line);
  return line;
}

std::string Contents(const std::string& path) {
  std::ifstream in(path);
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

// Calls visit(folder) for the process's group of `controller` ("": the unified hierarchy) and each
// of those above it: every level's limit holds.
template <typename Visit>
void ForEachCgroup(const std::string& root, const char* controller, Visit visit) {
  const CgroupMounts mounts(Contents(root + "/proc/self/mountinfo"));
  auto group = mounts.Find(Contents(root + "/proc/self/cgroup"), controller);
  for (; group; group = Parent(*group)) visit(root + group->folder);
}

void Lower(double cores, const char* bound_by, CoreBudget* budget) {
  if (cores > 0 && cores < budget->cores) *budget = {cores, bound_by};
}

void Lower(uint64_t bytes, const char* bound_by, MemoryBudget* budget) {
  if (bytes > 0 && bytes < budget->bytes) *budget = {bytes, bound_by};
}

}  // namespace

CoreBudget ReadCoreBudget(const std::string& root) {
  cpu_set_t set;
  CoreBudget budget{static_cast<double>(sysconf(_SC_NPROCESSORS_ONLN)), "online processors"};
  if (sched_getaffinity(0, sizeof set, &set) == 0)
    budget = {static_cast<double>(CPU_COUNT(&set)), "affinity"};
  ForEachCgroup(root, "", [&](const std::string& folder) {  // "200000 100000" or "max 100000"
    std::istringstream text(FirstLine(folder + "/cpu.max"));
    double quota = 0, period = 0;
    if (text >> quota >> period && period > 0) Lower(quota / period, "cgroup quota", &budget);
  });
  ForEachCgroup(root, "cpu", [&](const std::string& folder) {  // -1: no quota
    const double quota = std::atof(FirstLine(folder + "/cpu.cfs_quota_us").c_str());
    const double period = std::atof(FirstLine(folder + "/cpu.cfs_period_us").c_str());
    if (period > 0) Lower(quota / period, "cgroup quota", &budget);
  });
  if (const char* slurm = std::getenv("SLURM_CPUS_PER_TASK")) {
    Lower(std::atof(slurm), "scheduler (SLURM_CPUS_PER_TASK)", &budget);
  }
  return budget;
}

MemoryBudget ReadMemoryBudget(const std::string& root) {
  MemoryBudget budget{
      static_cast<uint64_t>(sysconf(_SC_PHYS_PAGES)) * static_cast<uint64_t>(sysconf(_SC_PAGESIZE)),
      "physical memory"};
  // "max", or v1's largest number of pages, is above any machine's memory, or no number.
  const auto lower = [&](const std::string& file) {
    Lower(std::strtoull(FirstLine(file).c_str(), nullptr, 10), "cgroup limit", &budget);
  };
  ForEachCgroup(root, "", [&](const std::string& folder) {
    lower(folder + "/memory.max");
    lower(folder + "/memory.high");  // above it the kernel slows the group down
  });
  ForEachCgroup(root, "memory",
                [&](const std::string& folder) { lower(folder + "/memory.limit_in_bytes"); });
  return budget;
}

#if defined(__x86_64__)
// Clang's __builtin_cpu_supports does not know it.
static bool HasLzcnt() {
  unsigned a = 0, b = 0, c = 0, d = 0;
  constexpr unsigned kExtended = 0x80000001, kLzcnt = 1U << 5;
  return __get_cpuid(kExtended, &a, &b, &c, &d) != 0 && (c & kLzcnt) != 0;
}
#endif

InstructionSet BestInstructionSet() {
  static const InstructionSet best = [] {
    InstructionSet set = InstructionSet::kScalar;
#if defined(__x86_64__)
    __builtin_cpu_init();
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
        __builtin_cpu_supports("bmi") && __builtin_cpu_supports("bmi2") &&
        __builtin_cpu_supports("popcnt") && HasLzcnt())
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
