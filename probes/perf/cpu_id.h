// CpuId: which processor this is, in its maker's numbers.
#pragma once
#include <cstdint>
#include <string>

#include "probes/host.h"

namespace headrace::probes::perf {

struct CpuId {
  enum class Vendor : uint8_t { kUnknown, kIntel, kAmd, kArm };
  Vendor vendor = Vendor::kUnknown;
  int family = 0, model = 0;      // x86; the extended ones, as /proc/cpuinfo shows them
  int stepping = 0;               // Arm: variant * 16 + revision, so r0p3 is 0x03
  int implementer = 0, part = 0;  // Arm: of MIDR_EL1; Arm Ltd. is implementer 0x41
  std::string name;               // the name that the machine gives; "" if none

  bool operator==(const CpuId&) const = default;
};

// Identifies the first processor, from /proc/cpuinfo, and on Arm from /sys/.../midr_el1 where
// cpuinfo does not say. What cannot be read stays unknown. Chinese and other makers of x86 and Arm
// cores (Hygon, Ampere, ...) are unknown vendors: their counters are not those of the catalogue.
CpuId ReadCpuId(const Host& host);

}  // namespace headrace::probes::perf
