#include "probes/capability.h"

#include <fmt/format.h>
#include <linux/perf_event.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <optional>
#include <sstream>

namespace headrace::probes {
namespace {

// Nothing when the file cannot be read; a readable empty file gives "".
std::optional<std::string> ReadText(const std::string& path) {
  std::ifstream in(path);
  if (!in) return std::nullopt;
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

bool Exists(const std::string& path) {
  struct stat info;
  return stat(path.c_str(), &info) == 0;
}

std::string FirstLine(const std::string& text) { return text.substr(0, text.find('\n')); }

// Effective capability set of this process, from /proc/self/status; 0 when it cannot be read.
uint64_t EffectiveCapabilities(const CapabilityHost& host) {
  std::istringstream status(ReadText(host.root + "/proc/self/status").value_or(""));
  for (std::string line; std::getline(status, line);) {
    if (line.rfind("CapEff:", 0) == 0) return std::strtoull(line.c_str() + 7, nullptr, 16);
  }
  return 0;
}
constexpr int kCapSysAdmin = 21, kCapPerfmon = 38, kCapBpf = 39;
bool Has(uint64_t capabilities, int bit) {
  return capabilities >> bit & 1 || capabilities >> kCapSysAdmin & 1;
}

Capability OperatorAccounts(const CapabilityHost& host) {
  Capability c{"operator accounts", CapabilityState::kOk, "", "", ""};
  const std::string folder = host.root + "/dev/shm";
  if (access(folder.c_str(), W_OK) == 0) {
    c.detail = "/dev/shm is writable: pipelines can publish their accounts";
  } else {
    c.state = CapabilityState::kUnavailable;
    c.detail = fmt::format("/dev/shm: {}", std::strerror(errno));
    c.fix =
        "mount a tmpfs on /dev/shm, or set HEADRACE_ACCOUNT_DIR to a writable folder for both "
        "sides";
    c.affects = "per-operator times, queues, steps";
  }
  return c;
}

Capability ThreadSchedule(const CapabilityHost& host) {
  Capability c{"thread scheduling", CapabilityState::kOk, "", "", ""};
  const auto text = ReadText(host.root + "/proc/self/schedstat");
  unsigned long long on_cpu = 0, waited = 0;
  if (text && std::sscanf(text->c_str(), "%llu %llu", &on_cpu, &waited) == 2) {
    c.detail = "/proc/PID/task/TID/schedstat gives on-CPU and run-queue time";
  } else {
    c.state = CapabilityState::kUnavailable;
    c.detail = text ? "/proc/self/schedstat has an unknown form"
                    : fmt::format("/proc/self/schedstat: {}", std::strerror(errno));
    c.fix = "a kernel built with CONFIG_SCHED_INFO";
    c.affects = "time runnable but not running (q) is then counted as blocked";
  }
  return c;
}

Capability HardwareCounters(const CapabilityHost& host) {
  Capability c{"hardware counters", CapabilityState::kOk, "cycles can be counted", "", ""};
  const int error = host.open_perf_event(PERF_TYPE_HARDWARE, PERF_COUNT_HW_CPU_CYCLES);
  if (error == 0) return c;
  c.state = CapabilityState::kUnavailable;
  c.detail = fmt::format("perf_event_open(cycles): {}", std::strerror(error));
  c.affects = "IPC, cache misses, memory bandwidth by counter";
  const bool denied = error == EACCES || error == EPERM;
  if (denied) {
    const auto paranoid = ReadText(host.root + "/proc/sys/kernel/perf_event_paranoid");
    c.fix = fmt::format("CAP_PERFMON, or sysctl kernel.perf_event_paranoid=1 (now {})",
                        paranoid ? FirstLine(*paranoid) : "unreadable");
  } else {
    c.detail += " (no PMU is visible: usual in a virtual machine)";
    c.fix = "bare metal, or a virtual PMU switched on by the hypervisor";
  }
  return c;
}

Capability SoftwareEvents(const CapabilityHost& host) {
  Capability c{"software events", CapabilityState::kOk,
               "page faults and context switches can be counted", "", ""};
  const int error = host.open_perf_event(PERF_TYPE_SOFTWARE, PERF_COUNT_SW_TASK_CLOCK);
  if (error == 0) return c;
  c.state = CapabilityState::kUnavailable;
  c.detail = fmt::format("perf_event_open(task-clock): {}", std::strerror(error));
  c.fix = "CAP_PERFMON, or sysctl kernel.perf_event_paranoid=2 or lower";
  c.affects = "stack sampling";
  return c;
}

Capability Tracepoints(const CapabilityHost& host) {
  Capability c{"tracepoints", CapabilityState::kOk, "", "", ""};
  for (const char* folder : {"/sys/kernel/tracing", "/sys/kernel/debug/tracing"}) {
    if (ReadText(host.root + folder + "/events/sched/sched_switch/id")) {
      c.detail = fmt::format("{}/events is readable", folder);
      return c;
    }
  }
  c.state = CapabilityState::kUnavailable;
  c.detail =
      fmt::format("/sys/kernel/tracing/events/sched/sched_switch/id: {}", std::strerror(errno));
  c.fix = "run as root, and mount -t tracefs tracefs /sys/kernel/tracing";
  c.affects = "exact blocked and runnable time, block IO by operator";
  return c;
}

Capability Bpf(const CapabilityHost& host) {
  Capability c{"eBPF", CapabilityState::kOk, "BTF and CAP_BPF are there", "", ""};
  const uint64_t capabilities = EffectiveCapabilities(host);
  if (!Exists(host.root + "/sys/kernel/btf/vmlinux")) {
    c.detail = "/sys/kernel/btf/vmlinux is absent";
    c.fix = "a kernel built with CONFIG_DEBUG_INFO_BTF";
  } else if (!Has(capabilities, kCapBpf) || !Has(capabilities, kCapPerfmon)) {
    c.detail = "this process lacks CAP_BPF or CAP_PERFMON";
    c.fix = "run as root, or in a container: --cap-add BPF --cap-add PERFMON";
  } else {
    return c;
  }
  c.state = CapabilityState::kUnavailable;
  c.affects = "exact blocked and runnable time, block IO by operator";
  return c;
}

Capability Pressure(const CapabilityHost& host) {
  Capability c{"pressure (PSI)", CapabilityState::kOk, "/proc/pressure is readable", "", ""};
  if (ReadText(host.root + "/proc/pressure/cpu")) return c;
  c.state = CapabilityState::kUnavailable;
  c.detail = fmt::format("/proc/pressure/cpu: {}", std::strerror(errno));
  c.fix = "a kernel built with CONFIG_PSI, booted with psi=1";
  c.affects = "system-wide waiting for cpu, io and memory";
  return c;
}

Capability Clock(const CapabilityHost& host) {
  Capability c{"clock", CapabilityState::kOk, "", "", ""};
  const auto text =
      ReadText(host.root + "/sys/devices/system/clocksource/clocksource0/current_clocksource");
  const std::string source = text ? FirstLine(*text) : "unknown";
  c.detail = "clock source " + source;
  if (source == "tsc" || source == "arch_sys_counter" || source == "kvm-clock") return c;
  c.state = CapabilityState::kDegraded;
  c.fix = "boot with clocksource=tsc where the processor's counter is invariant";
  c.affects = "the cost of an operator border rises from nanoseconds to a system call";
  return c;
}

}  // namespace

const char* CapabilityStateName(CapabilityState state) {
  switch (state) {
    case CapabilityState::kOk:
      return "ok";
    case CapabilityState::kDegraded:
      return "degraded";
    case CapabilityState::kUnavailable:
      return "unavailable";
  }
  return "";
}

CapabilityHost CapabilityHost::ThisMachine() {
  CapabilityHost host;
  host.open_perf_event = [](unsigned type, unsigned long long config) {
    perf_event_attr attributes = {};
    attributes.size = sizeof attributes;
    attributes.type = type;
    attributes.config = config;
    attributes.disabled = 1;
    attributes.exclude_kernel = 1;
    attributes.exclude_hv = 1;
    const long fd = syscall(SYS_perf_event_open, &attributes, 0, -1, -1, PERF_FLAG_FD_CLOEXEC);
    if (fd < 0) return errno;
    close(static_cast<int>(fd));
    return 0;
  };
  return host;
}

std::vector<Capability> CheckCapabilities(const CapabilityHost& host) {
  return {OperatorAccounts(host), ThreadSchedule(host), Clock(host),   Tracepoints(host), Bpf(host),
          HardwareCounters(host), SoftwareEvents(host), Pressure(host)};
}

}  // namespace headrace::probes
