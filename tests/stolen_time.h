// Time that the hypervisor took from this machine's CPUs. A thread's clock may stand still in it
// while a CPU's clock goes on: tests that compare the two allow for as much.
#pragma once

#include <unistd.h>

#include <fstream>
#include <string>

namespace headrace {

// Nanoseconds since the machine started, of all CPUs, in steps of a tick; 0 where the kernel does
// not say.
inline double StolenNs() {
  std::ifstream stat("/proc/stat");
  std::string cpu;
  double ticks = 0;
  stat >> cpu;
  for (int column = 0; column < 8; ++column) stat >> ticks;
  return stat ? ticks * 1e9 / static_cast<double>(sysconf(_SC_CLK_TCK)) : 0;
}

// What was taken since `before`, a value of StolenNs(): up to one tick more than it was, if any.
inline double StolenNsSince(double before) {
  const double taken = StolenNs() - before;
  return taken > 0 ? taken + 1e9 / static_cast<double>(sysconf(_SC_CLK_TCK)) : 0;
}

}  // namespace headrace
