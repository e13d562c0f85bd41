#include "probes/capability.h"

#include <fmt/format.h>
#include <linux/perf_event.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <exception>

#include "probes/host/fork_events.h"

namespace headrace::probes {
namespace {

Availability CheckAccounts(const Host& host) {
  if (access(host.Path("/dev/shm").c_str(), W_OK) == 0) {
    return Availability::Ok("/dev/shm is writable: pipelines can publish their instrumentation");
  }
  return Availability::Unavailable(
      fmt::format("access /dev/shm: {}", std::strerror(errno)),
      "mount a tmpfs on /dev/shm, or set HEADRACE_ACCOUNT_DIR to a writable folder for both sides");
}

Availability CheckClock(const Host& host) {
  const std::string path = "/sys/devices/system/clocksource/clocksource0/current_clocksource";
  const std::string fix =
      "boot with clocksource=tsc where the processor's counter is invariant; in a container, mount "
      "/sys";
  const auto text = host.Read(path, 64);
  if (!text) {
    return Availability::Degraded(fmt::format("open {}: {}", path, std::strerror(errno)), fix);
  }
  const std::string source = text->substr(0, text->find('\n'));
  if (source == "tsc" || source == "arch_sys_counter" || source == "kvm-clock") {
    return Availability::Ok("clock source " + source);
  }
  return Availability::Degraded("clock source " + source, fix);
}

Availability CheckForkEvents(const Host& host) {
  ForkEvents events;
  return events.Start(host);
}

// Availability of the machine's PMU, used as long as no probe reports it more precisely.
Availability CheckHardwareCounters(const Host& host) {
  perf_event_attr attributes = {};
  attributes.size = sizeof attributes;
  attributes.type = PERF_TYPE_HARDWARE;
  attributes.config = PERF_COUNT_HW_CPU_CYCLES;
  attributes.disabled = 1;
  attributes.exclude_kernel = 1;
  attributes.exclude_hv = 1;
  if (!host.is_this_machine()) {
    return Availability::Unavailable("perf_event_open speaks of this machine only",
                                     "run on the machine itself");
  }
  const long fd = syscall(SYS_perf_event_open, &attributes, 0, -1, -1, PERF_FLAG_FD_CLOEXEC);
  if (fd >= 0) {
    close(static_cast<int>(fd));
    return Availability::Ok("cycles can be counted");
  }
  const int error = errno;
  const std::string why = fmt::format("perf_event_open(cycles): {}", std::strerror(error));
  if (error == EACCES || error == EPERM) {
    return Availability::Unavailable(why,
                                     "CAP_PERFMON, or sysctl kernel.perf_event_paranoid=1 or less");
  }
  return Availability::Unavailable(why + " (no PMU is visible: usual in a virtual machine)",
                                   "bare metal, or a virtual PMU switched on by the hypervisor");
}

Availability Guarded(const std::function<Availability(const Host&)>& check, const Host& host) {
  if (!check) return Availability::Unavailable("it has no check", "report this as a defect");
  try {
    return check(host);
  } catch (const std::exception& error) {
    return Availability::Unavailable(error.what(), "report this as a defect");
  }
}

}  // namespace

const char* StateName(Availability::State state) {
  switch (state) {
    case Availability::State::kOk:
      return "ok";
    case Availability::State::kDegraded:
      return "degraded";
    case Availability::State::kUnavailable:
      return "unavailable";
  }
  return "";
}

std::vector<Capability> CheckCapabilities(const Host& host) {
  std::vector<Capability> all = {
      {"operator accounts", "time, rows and bytes of each operator, queues and steps",
       "per-operator times, queues, steps and every verdict that names an operator", 1, false,
       CheckAccounts(host)},
      {"clock", "the time-stamp counter, which operators read at their start and end",
       "the cost of entering an operator rises from nanoseconds to that of a system call", 1, false,
       CheckClock(host)},
      {"fork events", "every process that begins or ends, as the kernel reports it",
       "children that live for less than a tick, where no BPF program follows forks", 1, false,
       CheckForkEvents(host)},
  };
  const auto& registered = Registry<ProbeInfo>::Global().entries();
  if (std::none_of(registered.begin(), registered.end(), [](const auto& entry) {
        return entry.first.starts_with("hardware counters");
      })) {
    all.push_back({"hardware counters", "cycles, instructions and cache misses",
                   "instructions per cycle, cache misses, memory bandwidth by counter", 4, false,
                   CheckHardwareCounters(host)});
  }
  const size_t num_own = all.size();
  for (const auto& [name, info] : registered) {
    all.push_back(
        {name, info.summary, info.affects, info.level, info.deep_only, Guarded(info.check, host)});
  }
  std::stable_sort(all.begin() + static_cast<std::ptrdiff_t>(num_own), all.end(),
                   [](const Capability& a, const Capability& b) { return a.level < b.level; });
  for (Capability& c : all) {
    Availability& a = c.availability;
    if (a.reason.empty()) {
      a.reason = a.state == Availability::State::kOk ? c.summary : "the probe gives no reason";
    }
  }
  return all;
}

}  // namespace headrace::probes
