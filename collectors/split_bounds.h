// What c and q of an operator lie between, where one reading of a clock covers several operators:
// by a thread's CPU clock if the accounts keep bounds, else by what the kernel says of all threads
// of a stage.
#pragma once
#include <cstdint>
#include <optional>

namespace headrace::collectors {

struct Bounds {
  int64_t low_ns = 0, high_ns = 0;
};

// The threads an operator runs on, over an interval.
struct ThreadsTime {
  int64_t lifetime_ns = 0;
  int64_t on_cpu_ns = 0;
  std::optional<int64_t> runnable_ns;
};

// c of an operator that was busy for `busy_ns` of its threads' lives: all that the rest of their
// lives has no room for, and no more than there was.
Bounds CpuBounds(const ThreadsTime& threads, int64_t busy_ns);

// q of that operator, whose c lies between `cpu`: no more than its time off the CPU, and what its
// threads' other time off the CPU has no room for. Without the threads' run-queue time: anything.
Bounds RunnableBounds(const ThreadsTime& threads, int64_t busy_ns, const Bounds& cpu);

}  // namespace headrace::collectors
