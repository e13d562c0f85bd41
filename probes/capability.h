// Capability: what this machine lets a profiler see, found by trying it (a failing call and its
// errno), never by version or name. Covers what every run builds on, and every registered probe.
// `headrace doctor` prints them.
#pragma once
#include <string>
#include <vector>

#include "probes/host.h"
#include "probes/probe.h"

namespace headrace::probes {

// "ok", "degraded", "unavailable".
const char* StateName(Availability::State state);

struct Capability {
  std::string name;     // "operator accounts", "off-CPU time"
  std::string summary;  // what it measures
  std::string affects;  // what the pages lack without it
  int level = 0;        // least accounting level that uses it
  bool deep_only = false;
  // `reason` is never empty: if all is well it says what was found.
  Availability availability;
};

// Accounts and clocks first, then the registered probes by level and name. A check that throws is
// an unavailable probe. Loads and unloads BPF programs, opens and closes descriptors; changes
// nothing; takes about a second.
std::vector<Capability> CheckCapabilities(const Host& host);

}  // namespace headrace::probes
