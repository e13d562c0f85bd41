#include "probes/perf/availability.h"

#include <fmt/format.h>
#include <linux/capability.h>
#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "probes/perf/group.h"

namespace headrace::probes::perf {
namespace {

#ifndef CAP_PERFMON
constexpr int CAP_PERFMON = 38;
#endif
constexpr int kAttempts = 3;
constexpr double kMostIpc = 10;
constexpr double kLoopTolerance = 0.02;

constexpr char kNoGuestPmu[] =
    "bare metal, or a virtual PMU from the hypervisor (QEMU/KVM: -cpu host,pmu=on; VMware: "
    "\"virtualized CPU performance counters\"; clouds: metal or whole-socket instances)";

bool Contains(const std::optional<std::string>& text, std::string_view part) {
  return text && text->find(part) != std::string::npos;
}

std::string FirstLine(const std::optional<std::string>& text) {
  if (!text) return "";
  std::string line = text->substr(0, text->find('\n'));
  line.erase(
      std::remove_if(line.begin(), line.end(), [](unsigned char c) { return c < 32 || c > 126; }),
      line.end());
  return line.substr(0, 60);
}

std::string Failing(int error, std::string_view what) {
  return fmt::format("perf_event_open({}): {}", what, std::strerror(error));
}

}  // namespace

std::string_view CounterStateName(CounterState state) {
  switch (state) {
    case CounterState::kOk:
      return "ok";
    case CounterState::kNoPmu:
      return "no_pmu";
    case CounterState::kNoSuchEvent:
      return "no_such_event";
    case CounterState::kDenied:
      return "denied";
    case CounterState::kBusy:
      return "busy";
    case CounterState::kTooMany:
      return "too_many";
    case CounterState::kNoDescriptors:
      return "no_descriptors";
    case CounterState::kNoSystemCall:
      return "no_system_call";
    case CounterState::kRefused:
      return "refused";
    case CounterState::kSilent:
      return "opens_but_silent";
    case CounterState::kImplausible:
      return "implausible";
    case CounterState::kNotScheduled:
      return "not_scheduled";
  }
  return "";
}

Surroundings LookAround(const Host& host) {
  Surroundings around;
  around.paranoid = host.ReadInteger("/proc/sys/kernel/perf_event_paranoid");
  around.has_perfmon = host.HasCapability(CAP_PERFMON).value_or(false);
  around.seccomp = Contains(host.Read("/proc/self/status"), "\nSeccomp:\t2");
  around.container = host.Read("/.dockerenv", 1) || host.Read("/run/.containerenv", 1) ||
                     Contains(host.Read("/proc/1/environ"), "container=");
  around.lockdown = Contains(host.Read("/sys/kernel/security/lockdown"), "[confidentiality]");
  around.nmi_watchdog = host.ReadInteger("/proc/sys/kernel/nmi_watchdog").value_or(0) > 0;
  const std::string type = FirstLine(host.Read("/sys/hypervisor/type"));
  const auto cpus = host.Read("/proc/cpuinfo", 1 << 16);
  const size_t flags = cpus ? cpus->find("\nflags") : std::string::npos;
  const bool flagged =
      flags != std::string::npos &&
      Contains(cpus->substr(flags, cpus->find('\n', flags + 1) - flags) + " ", " hypervisor ");
  if (!type.empty()) {
    around.hypervisor = type;
  } else if (flagged || host.Read("/proc/device-tree/hypervisor/compatible") ||
             Contains(host.Read("/sys/class/dmi/id/product_name"), "Virtual")) {
    const std::string vendor = FirstLine(host.Read("/sys/class/dmi/id/sys_vendor"));
    around.hypervisor = vendor.empty() ? "a hypervisor" : vendor;
  }
  return around;
}

CounterAvailability ExplainOpen(int error, std::string_view what, Role role, bool others_count,
                                const Surroundings& around) {
  const std::string failing = Failing(error, what);
  switch (error) {
    case 0:
      return {};
    case ENOENT:
    case ENODEV:
    case ENXIO:
    case EOPNOTSUPP:
      if (others_count) {
        return {CounterState::kNoSuchEvent, failing + ": this PMU does not count it",
                "a CPU whose PMU has the event"};
      }
      if (!around.hypervisor.empty()) {
        return {CounterState::kNoPmu,
                fmt::format("{}: {} shows this guest no PMU", failing, around.hypervisor),
                kNoGuestPmu};
      }
      return {CounterState::kNoPmu, failing + ": this kernel knows no PMU of this CPU",
              fmt::format("a kernel with the PMU driver of this CPU; in a virtual machine: {}",
                          kNoGuestPmu)};
    case EACCES:
    case EPERM: {
      if (around.lockdown) {
        return {CounterState::kDenied, failing + ": kernel lockdown=confidentiality forbids it",
                "boot with lockdown=integrity or none"};
      }
      const bool strict = around.paranoid.value_or(2) > 2 && !around.has_perfmon;
      if (strict && error == EACCES) {
        return {CounterState::kDenied,
                fmt::format("{}: kernel.perf_event_paranoid={}", failing, *around.paranoid),
                "CAP_PERFMON, or sysctl kernel.perf_event_paranoid=2 or less"};
      }
      if (error == EPERM && (around.seccomp || around.container)) {
        return {CounterState::kDenied,
                fmt::format("{}: {} refuses it", failing,
                            around.seccomp ? "a seccomp filter" : "the container"),
                "container: --cap-add PERFMON, and --security-opt seccomp=PROFILE that allows "
                "perf_event_open"};
      }
      return {CounterState::kDenied,
              around.paranoid
                  ? fmt::format("{}: kernel.perf_event_paranoid={}, {} CAP_PERFMON", failing,
                                *around.paranoid, around.has_perfmon ? "with" : "without")
                  : failing,
              "run as root or with CAP_PERFMON, or as the target's own user with sysctl "
              "kernel.perf_event_paranoid=2 or less (system-wide counting: 0)"};
    }
    case EBUSY:
      return {CounterState::kBusy, failing + ": another program holds the counters",
              around.nmi_watchdog ? "sysctl kernel.nmi_watchdog=0 frees one; end other profilers"
                                  : "end other profilers"};
    case EINVAL:
    case ENOSPC:
      if (role == Role::kMember) {
        return {CounterState::kTooMany, failing + ": more events than the PMU counts at a time",
                around.nmi_watchdog ? "sysctl kernel.nmi_watchdog=0 frees one" : ""};
      }
      return {CounterState::kRefused, failing + ": this kernel does not know the event",
              "a newer kernel"};
    case EMFILE:
    case ENFILE:
      return {CounterState::kNoDescriptors, failing,
              error == EMFILE ? "a higher limit of open files (ulimit -n, LimitNOFILE=)"
                              : "sysctl fs.file-max"};
    case ENOSYS:
      return {CounterState::kNoSystemCall, failing + ": the kernel or its sandbox has no such call",
              "a kernel with CONFIG_PERF_EVENTS; outside sandboxes such as gVisor"};
    default:
      return {CounterState::kRefused, failing, ""};
  }
}

void RunKnownLoop(uint64_t iterations) {
  if (iterations == 0) return;
#if defined(__aarch64__)
  asm volatile(
      "1: subs %0, %0, #1\n"
      "   b.ne 1b"
      : "+r"(iterations)
      :
      : "cc");
#elif defined(__x86_64__)
  asm volatile(
      "1: dec %0\n"
      "   jnz 1b"
      : "+r"(iterations)
      :
      : "cc");
#else
#error "a loop of known length is needed for this processor"
#endif
}

void RunWorkout() {
  constexpr size_t kLine = 64, kPage = 4096, kBytes = 1 << 20, kPages = 2048;
  const auto map = [](size_t bytes, int rights) {
    void* memory = mmap(nullptr, bytes, rights, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return memory == MAP_FAILED ? nullptr : static_cast<char*>(memory);
  };
  uint64_t sum = 0;
  if (char* lines = map(kBytes, PROT_READ | PROT_WRITE)) {
    for (size_t at = 0; at < kBytes; at += kLine) lines[at] = static_cast<char>(at >> 6);
    for (size_t at = 0; at < kBytes; at += kLine) {  // out of every cache
#if defined(__aarch64__)
      asm volatile("dc civac, %0" : : "r"(lines + at) : "memory");
#elif defined(__x86_64__)
      asm volatile("clflush (%0)" : : "r"(lines + at) : "memory");
#endif
    }
    // Each address hangs on the load before, and the order is not a stride that is fetched ahead.
    size_t at = 0;
    for (size_t i = 0; i < kBytes / kLine; ++i) {
      const auto value = static_cast<unsigned char>(*const_cast<volatile char*>(lines + at));
      sum += value;
      at = (at + 7919 * kLine + (value & 0)) % kBytes;
    }
    munmap(lines, kBytes);
  }
  // Pages of zeros: address space, no memory.
  if (char* pages = map(kPages * kPage, PROT_READ)) {
    madvise(pages, kPages * kPage, MADV_NOHUGEPAGE);
    for (int round = 0; round < 2; ++round) {
      for (size_t i = 0; i < kPages; ++i) {
        const size_t page = i * 1021 % kPages;
        sum += static_cast<unsigned char>(*const_cast<volatile char*>(pages + page * kPage));
      }
    }
    munmap(pages, kPages * kPage);
  }
  uint64_t random = 88172645463325252ull + (sum & 1);
  for (int i = 0; i < 20'000; ++i) {
    random ^= random << 13;
    random ^= random >> 7;
    random ^= random << 17;
    if (random & 1)
      asm volatile("" : "+r"(sum));  // a branch that nobody can predict
    else
      asm volatile("" : "+r"(random));
  }
  asm volatile("" : : "r"(sum));
  RunKnownLoop(100'000);
}

namespace {

class Prover {
 public:
  Prover(PerfBackend& backend, const ProofOptions& options)
      : backend_(backend), options_(options) {}

  EventPlan Prove(const WishedGroup& base, const std::vector<WishedGroup>& rotated) {
    plan_.base = ProveBase(base);
    if (!plan_.base.ok()) return std::move(plan_);
    AddGroup(base.events);
    if (options_.want_inherit) ProveInherit();
    CounterGroup pinned(backend_);  // the others must fit beside it
    OpenRequest request;
    request.pinned = true;
    if (pinned.Open(request, plan_.groups[0].codes).ok()) pinned.Enable();
    for (const WishedGroup& group : rotated) {
      if (group.whole) {
        ProveWhole(group.events);
        continue;
      }
      std::vector<WishedEvent> open = group.events;
      while (!open.empty()) open = ProveGroup(std::move(open));
    }
    return std::move(plan_);
  }

 private:
  CounterAvailability ProveBase(const WishedGroup& base) {
    std::vector<EventCode> codes;
    for (const WishedEvent& event : base.events) codes.push_back(event.code);
    CounterAvailability last;
    for (int attempt = 0; attempt < kAttempts; ++attempt) {
      CounterGroup group(backend_);
      OpenRequest request;
      request.pinned = true;
      if (const auto opened = group.Open(request, codes); !opened.ok()) {
        return ExplainOpen(opened.error, base.events[opened.refused].name,
                           opened.refused == 0 ? Role::kAlone : Role::kMember, opened.refused > 0,
                           options_.around);
      }
      if (const int error = group.Enable(); error != 0) {
        return {CounterState::kRefused,
                fmt::format("ioctl(PERF_EVENT_IOC_ENABLE): {}", std::strerror(-error)), ""};
      }
      options_.known_loop(options_.iterations);
      group.Disable();
      const GroupDelta delta = group.Read();
      last = Judge(delta);
      if (last.ok()) return last;
    }
    return last;
  }

  CounterAvailability Judge(const GroupDelta& delta) const {
    const char* watchdog = options_.around.nmi_watchdog
                               ? "sysctl kernel.nmi_watchdog=0 frees a counter; end other profilers"
                               : "end other profilers";
    switch (delta.status) {
      case GroupDelta::Status::kCounted:
        break;
      case GroupDelta::Status::kLost:
        return {CounterState::kBusy,
                "read of a pinned counter gives 0 bytes: others hold the counters", watchdog};
      case GroupDelta::Status::kNotScheduled:
        return {CounterState::kNotScheduled,
                "cycles and instructions open but are never on the PMU", watchdog};
      case GroupDelta::Status::kFailed:
        return {CounterState::kRefused,
                fmt::format("read of the counters: {}", std::strerror(delta.error)), ""};
      case GroupDelta::Status::kDamaged:
        return {CounterState::kImplausible, "what the counters say makes no sense", ""};
    }
    const auto done = static_cast<double>(kLoopInstructions * options_.iterations);
    const double scale =
        static_cast<double>(delta.enabled_ns) / static_cast<double>(delta.running_ns);
    const auto cycles = static_cast<double>(delta.counts[0]) * scale;
    const double instructions =
        delta.counts.size() > 1 ? static_cast<double>(delta.counts[1]) * scale : 0;
    if (cycles == 0 || instructions == 0) {
      return {CounterState::kSilent,
              fmt::format("{} opens and counts 0 in a loop of {:.0f} instructions",
                          cycles == 0 ? "cycles" : "instructions", done),
              "a hypervisor whose virtual PMU counts"};
    }
    if (instructions < done || instructions > done * (1 + kLoopTolerance) + 1e4) {
      return {CounterState::kImplausible,
              fmt::format("{:.0f} instructions counted in a loop of {:.0f}", instructions, done),
              "a machine whose PMU counts; this one's figures are not used"};
    }
    if (instructions / cycles > kMostIpc) {
      return {CounterState::kImplausible,
              fmt::format("{:.0f} instructions in {:.0f} cycles", instructions, cycles),
              "a machine whose PMU counts; this one's figures are not used"};
    }
    return {};
  }

  void ProveInherit() {
    CounterGroup group(backend_);
    OpenRequest request;
    request.pinned = true;
    request.inherit = request.threads_only = true;
    if (!group.Open(request, plan_.groups[0].codes).ok()) return;
    group.Enable();
    options_.known_loop(options_.iterations / 10);
    group.Disable();
    plan_.inherit = group.Read().status == GroupDelta::Status::kCounted;
  }

  // All of it or nothing.
  void ProveWhole(const std::vector<WishedEvent>& events) {
    const size_t num_groups = plan_.groups.size();
    const size_t num_missing = plan_.missing.size();
    const auto rest = ProveGroup(events);
    if (rest.empty() && plan_.groups.size() > num_groups &&
        plan_.groups.back().codes.size() == events.size()) {
      return;
    }
    plan_.groups.resize(num_groups);
    const CounterAvailability why =
        plan_.missing.size() > num_missing
            ? plan_.missing.back().second
            : CounterAvailability{CounterState::kTooMany,
                                  fmt::format("{} and {} others need more counters at a time than "
                                              "the PMU has free",
                                              events[0].name, events.size() - 1),
                                  options_.around.nmi_watchdog
                                      ? "sysctl kernel.nmi_watchdog=0 frees one"
                                      : "end other profilers"};
    for (const WishedEvent& event : events) Miss(event.name, why);
  }

  // Proves one group, and returns what must be tried in a group of its own. The first event is what
  // the others are set against (instructions, slots): every part begins with it.
  std::vector<WishedEvent> ProveGroup(std::vector<WishedEvent> events) {
    std::vector<WishedEvent> rest;
    const auto move_from = [&](size_t first) {
      rest.insert(rest.begin(), events.begin() + static_cast<std::ptrdiff_t>(first), events.end());
      events.resize(first);
    };
    while (!events.empty()) {
      CounterGroup group(backend_);
      OpenRequest request;
      request.inherit = request.threads_only = plan_.inherit;
      std::vector<EventCode> codes;
      for (const WishedEvent& event : events) codes.push_back(event.code);
      const auto opened = group.Open(request, codes);
      if (!opened.ok()) {
        const size_t bad = opened.refused;
        const bool full = opened.error == EINVAL || opened.error == ENOSPC;
        if (full && bad >= 2) {
          move_from(bad);
          continue;
        }
        // With one other event, or alone: then it is this event that is refused.
        Miss(events[bad].name,
             ExplainOpen(opened.error, events[bad].name, bad == 0 ? Role::kAlone : Role::kMember,
                         true, options_.around));
        events.erase(events.begin() + static_cast<std::ptrdiff_t>(bad));
        continue;
      }
      group.Enable();
      options_.workout();
      group.Disable();
      const GroupDelta delta = group.Read();
      if (delta.status != GroupDelta::Status::kCounted) {
        if (events.size() > 2) {
          move_from(events.size() - (events.size() - 1) / 2);
          continue;
        }
        MissUnscheduled(events);
        break;
      }
      KeepCounting(events, delta);
      if (!rest.empty()) rest.insert(rest.begin(), events[0]);
      return rest;
    }
    return rest;
  }

  // A group of one event, or of one beside the first, that opened and was never on the PMU.
  void MissUnscheduled(const std::vector<WishedEvent>& events) {
    for (const WishedEvent& event : events) {
      if (events.size() == 2 && &event == &events[0]) continue;
      Miss(event.name,
           {CounterState::kNotScheduled,
            fmt::format("{} opens but is never on the PMU beside cycles and instructions",
                        event.name),
            options_.around.nmi_watchdog ? "sysctl kernel.nmi_watchdog=0 frees a counter"
                                         : "end other profilers"});
    }
  }

  // A group of those that counted in the work-out, unless that is the first alone. The others are
  // missing, as silent.
  void KeepCounting(const std::vector<WishedEvent>& events, const GroupDelta& delta) {
    std::vector<WishedEvent> counting;
    for (size_t i = 0; i < events.size(); ++i) {
      if (delta.counts[i] != 0) {
        counting.push_back(events[i]);
      } else {
        Miss(events[i].name,
             {CounterState::kSilent,
              fmt::format("{} opens and counts 0 during work that has it", events[i].name),
              "a CPU or a hypervisor that counts it"});
      }
    }
    const bool alone =
        counting.size() == 1 && events.size() > 1 && counting[0].name == events[0].name;
    if (!counting.empty() && !alone) AddGroup(counting);
  }

  void Miss(const std::string& name, CounterAvailability why) {
    const bool known = std::any_of(plan_.missing.begin(), plan_.missing.end(),
                                   [&](const auto& entry) { return entry.first == name; });
    if (!known) plan_.missing.emplace_back(name, std::move(why));
  }

  void AddGroup(const std::vector<WishedEvent>& events) {
    EventPlan::Group group;
    for (const WishedEvent& event : events) {
      group.names.push_back(event.name);
      group.codes.push_back(event.code);
    }
    plan_.groups.push_back(std::move(group));
  }

  PerfBackend& backend_;
  const ProofOptions& options_;
  EventPlan plan_;
};

}  // namespace

EventPlan ProveEvents(PerfBackend& backend, const WishedGroup& base,
                      const std::vector<WishedGroup>& rotated, const ProofOptions& options) {
  return Prover(backend, options).Prove(base, rotated);
}

}  // namespace headrace::probes::perf
