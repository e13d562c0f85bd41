#include "collectors/split_bounds.h"

#include <algorithm>

namespace headrace::collectors {

Bounds CpuBounds(const ThreadsTime& threads, int64_t busy_ns) {
  const int64_t rest_ns = std::max<int64_t>(0, threads.lifetime_ns - busy_ns);
  const int64_t high_ns = std::max<int64_t>(0, std::min(busy_ns, threads.on_cpu_ns));
  return {std::clamp<int64_t>(threads.on_cpu_ns - rest_ns, 0, high_ns), high_ns};
}

Bounds RunnableBounds(const ThreadsTime& threads, int64_t busy_ns, const Bounds& cpu) {
  const int64_t off_low_ns = std::max<int64_t>(0, busy_ns - cpu.high_ns);
  const int64_t off_high_ns = std::max<int64_t>(0, busy_ns - cpu.low_ns);
  if (!threads.runnable_ns) return {0, off_high_ns};
  const int64_t high_ns = std::min(off_high_ns, *threads.runnable_ns);
  const int64_t off_all_ns = std::max<int64_t>(0, threads.lifetime_ns - threads.on_cpu_ns);
  const int64_t rest_ns = std::max<int64_t>(0, off_all_ns - off_low_ns);
  return {std::clamp<int64_t>(*threads.runnable_ns - rest_ns, 0, high_ns), high_ns};
}

}  // namespace headrace::collectors
