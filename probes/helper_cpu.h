// CPU time of the programs that probes run beside the recorder. It is part of what recording costs.
#pragma once
#include <atomic>
#include <cstdint>

namespace headrace::probes {

// Nanoseconds since this process began. Probes add to it; it never falls.
inline std::atomic<int64_t>& HelperCpuNs() {
  static std::atomic<int64_t> ns = 0;
  return ns;
}

}  // namespace headrace::probes
