#include "workloads/trainer/kernels.h"

#include "base/cpu.h"

namespace headrace::workloads {

extern const Kernels kScalarKernels, kAvx2Kernels, kAvx512Kernels;

const Kernels& KernelsFor(InstructionSet set) {
  switch (set) {
    case InstructionSet::kAvx512:
      return kAvx512Kernels;
    case InstructionSet::kAvx2:
      return kAvx2Kernels;
    default:
      return kScalarKernels;
  }
}

}  // namespace headrace::workloads
