// What this process may use: cores and memory, each with the limit that bound it.
#pragma once
#include <cstdint>
#include <string>

namespace headrace {

struct CoreBudget {
  double cores;          // may be fractional under a cgroup quota
  std::string bound_by;  // "affinity", "cgroup quota", "scheduler (SLURM_CPUS_PER_TASK)"
};
struct MemoryBudget {
  uint64_t bytes;
  std::string bound_by;  // "physical memory", "cgroup limit"
};

// The least of what this process's affinity, its control groups (v1 and v2, those above included)
// and its scheduler leave it. `root` stands in front of /proc and /sys: a fixture, in tests.
CoreBudget ReadCoreBudget(const std::string& root = "");
MemoryBudget ReadMemoryBudget(const std::string& root = "");

// Instruction sets the kernels choose among, best last. HEADRACE_ISA=scalar|avx2|avx512 caps it,
// for tests.
enum class InstructionSet : uint8_t { kScalar, kAvx2, kAvx512 };
InstructionSet BestInstructionSet();
const char* InstructionSetName(InstructionSet set);

std::string CpuModelName();

}  // namespace headrace
