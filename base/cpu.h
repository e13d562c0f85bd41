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

CoreBudget ReadCoreBudget();
MemoryBudget ReadMemoryBudget();

// Instruction sets the kernels choose among, best last. HEADRACE_ISA=scalar|avx2|avx512 caps it,
// for tests.
enum class InstructionSet : uint8_t { kScalar, kAvx2, kAvx512 };
InstructionSet BestInstructionSet();
const char* InstructionSetName(InstructionSet set);

std::string CpuModelName();

}  // namespace headrace
