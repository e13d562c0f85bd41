// Capability: what this machine lets a profiler see, found by trying it (a failing call and its
// errno), never by version or name. `headrace doctor` prints them; a run stores those that matter
// to it.
#pragma once
#include <functional>
#include <string>
#include <vector>

namespace headrace::probes {

enum class CapabilityState { kOk, kDegraded, kUnavailable };
const char* CapabilityStateName(CapabilityState state);  // "ok", "degraded", "unavailable"

struct Capability {
  std::string name;  // "hardware counters"
  CapabilityState state = CapabilityState::kUnavailable;
  std::string detail;   // what was found, or the failing call and its error
  std::string fix;      // what would change it; empty when ok
  std::string affects;  // which answers need it; empty when ok
};

// The outside world a check reads: folders holding proc/ and sys/ and the calls that can be
// refused. The default is this machine; tests pass fixture folders and refusing calls.
struct CapabilityHost {
  std::string root = "";  // "" or a folder with proc/, sys/, dev/ below it
  std::function<int(unsigned type, unsigned long long config)> open_perf_event;  // 0, or errno
  static CapabilityHost ThisMachine();
};

// All checks, in the order they are printed. Opens and closes a few descriptors; changes nothing.
std::vector<Capability> CheckCapabilities(const CapabilityHost& host);

}  // namespace headrace::probes
