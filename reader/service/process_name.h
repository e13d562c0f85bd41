// What a process of a job says of itself: the machine, and a number that tells it from any process
// before or after it.
#pragma once
#include <unistd.h>

#include <cstdint>
#include <random>
#include <string>

namespace headrace::reader::service {

// Random, not 0.
inline uint64_t RandomInstance() {
  std::random_device draw;
  const uint64_t low = draw();
  return low | uint64_t{draw()} << 32 | 1;
}

// Cut at 255 bytes; empty when the system does not say.
inline std::string HostName() {
  char name[256] = {};
  if (gethostname(name, sizeof name - 1) != 0) return "";
  return name;
}

}  // namespace headrace::reader::service
