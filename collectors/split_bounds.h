// Bounds of an operator's c and q, where one reading of a clock covers several operators: from a
// thread's CPU clock if the accounts keep bounds, else from what the kernel says about all threads
// of a stage.
#pragma once
#include <cstdint>
#include <optional>

namespace headrace::collectors {

struct Bounds {
  int64_t low_ns = 0, high_ns = 0;
};

// Times of the threads that an operator runs on, summed over an interval.
struct ThreadsTime {
  int64_t lifetime_ns = 0;
  int64_t on_cpu_ns = 0;
  std::optional<int64_t> runnable_ns;
};

// Bounds of c for an operator that was busy for `busy_ns` of its threads' lifetime. c is at least
// the CPU time that does not fit into the rest of their lifetime, and at most their CPU time and
// `busy_ns`.
Bounds CpuBounds(const ThreadsTime& threads, int64_t busy_ns);

// Bounds of q for that operator, whose c is within `cpu`. q is at most its time off the CPU, and at
// least the run-queue time that does not fit into its threads' other time off the CPU. Without the
// threads' run-queue time the bounds are as wide as possible.
Bounds RunnableBounds(const ThreadsTime& threads, int64_t busy_ns, const Bounds& cpu);

}  // namespace headrace::collectors
