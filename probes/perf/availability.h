// Whether a counter is available, and if not, why: as a word for programs and a sentence for
// people. A counter exists when it was opened, counted work of known size, and gave a plausible
// value; a name that resolves proves nothing.
#pragma once
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "probes/host.h"
#include "probes/perf/backend.h"

namespace headrace::probes::perf {

enum class CounterState : uint8_t {
  kOk,
  kNoPmu,          // no counters of this kind on the machine, or none shown to this guest
  kNoSuchEvent,    // there are counters, but not this one
  kDenied,         // perf_event_paranoid, seccomp, lockdown
  kBusy,           // other programs hold the counters
  kTooMany,        // the group has more events than the PMU has counters
  kNoDescriptors,  // too many open files
  kNoSystemCall,   // this kernel has no perf_event_open
  kRefused,        // any other errno
  kSilent,         // opens, and counts 0 for ever
  kImplausible,    // counts, but not the work that was done
  kNotScheduled,   // opens, and is never on the PMU
};
// "ok", "no_pmu", "no_such_event", ...
std::string_view CounterStateName(CounterState state);

struct CounterAvailability {
  CounterState state = CounterState::kOk;
  std::string reason, fix;  // in words, "" if all is well
  bool ok() const { return state == CounterState::kOk; }
};

// Facts about the machine that may explain a refusal.
struct Surroundings {
  std::optional<int64_t> paranoid;  // kernel.perf_event_paranoid
  bool has_perfmon = false;         // CAP_PERFMON or CAP_SYS_ADMIN
  bool seccomp = false;             // a filter of system calls is on this process
  bool container = false;
  bool lockdown = false;  // kernel lockdown=confidentiality
  bool nmi_watchdog = false;
  std::string hypervisor;  // its name or "a hypervisor"; "" on bare metal
};
Surroundings LookAround(const Host& host);

enum class Role : uint8_t { kAlone, kMember };
// Explains an errno of perf_event_open. `what`: the event in words ("cycles"). `others_count`:
// another event of the same PMU was opened, so the PMU exists.
CounterAvailability ExplainOpen(int error, std::string_view what, Role role, bool others_count,
                                const Surroundings& around);

// Executes 2 instructions `iterations` times, and less than a hundred others.
void RunKnownLoop(uint64_t iterations);
constexpr uint64_t kLoopInstructions = 2;  // per iteration

// Does a few milliseconds of work that makes counters count: misses of every cache and TLB,
// branches, mispredictions, stalls. Takes 2 MiB of memory meanwhile.
void RunWorkout();

// An event to count, and a group of events that must be counted together.
struct WishedEvent {
  std::string name;  // in words, for reasons
  EventCode code;
};
struct WishedGroup {
  std::vector<WishedEvent> events;
  bool whole = false;  // useless unless all of its events count, so never split
};

// Which of the wished events count here, and in which groups. Group 0 is the base: always on.
struct EventPlan {
  struct Group {
    std::vector<std::string> names;
    std::vector<EventCode> codes;
  };
  std::vector<Group> groups;
  CounterAvailability base;  // of the base group; without it there is no plan
  // Wished for, but not available.
  std::vector<std::pair<std::string, CounterAvailability>> missing;
  bool inherit = false;  // new threads can be counted automatically (inherit)
};

struct ProofOptions {
  Surroundings around;
  std::function<void(uint64_t)> known_loop = RunKnownLoop;
  std::function<void()> workout = RunWorkout;
  uint64_t iterations = 1'000'000;
  bool want_inherit = true;
};

// Tries out the wished groups on the calling thread. `base` is {cycles, instructions}. A group that
// the PMU refuses or never schedules beside the base is split.
EventPlan ProveEvents(PerfBackend& backend, const WishedGroup& base,
                      const std::vector<WishedGroup>& rotated, const ProofOptions& options);

}  // namespace headrace::probes::perf
