#include "probes/perf/energy_counters.h"

#include <fmt/format.h>

#include "base/registry.h"
#include "probes/host/text.h"
#include "probes/perf/availability.h"

namespace headrace::probes::perf {
namespace {

constexpr int64_t kEnergyPeriodNs = 1'000'000'000;
constexpr size_t kMaxZones = 64, kMaxDomains = 256;

// Events of the PMU and what the power capping interface calls the same domain.
struct NamedDomain {
  std::string_view event, name;
};
constexpr NamedDomain kDomains[] = {{"energy-pkg", ""},
                                    {"energy-ram", "dram"},
                                    {"energy-cores", "core"},
                                    {"energy-gpu", "uncore"},
                                    {"energy-psys", "psys"}};

}  // namespace

bool PowercapGivesEnergy(const Host& host) {
  const std::string folder = "/sys/class/powercap";
  size_t zones = 0;
  for (const std::string& zone : host.List(folder)) {
    if (!zone.starts_with("intel-rapl:") || ++zones > kMaxZones) continue;
    if (ReadCount(host, folder + "/" + zone + "/energy_uj")) return true;
  }
  return false;
}

Availability EnergyCountersProbe::Start(const Host& host, const Target&) {
  domains_.clear();
  if (PowercapGivesEnergy(host)) {
    return Availability::Ok("not needed: the probe \"energy\" reads the same registers");
  }
  const auto pmu = ReadPmu(host, "power");
  if (!pmu || pmu->events.empty() || pmu->cpus.empty()) {
    return Availability::Unavailable(
        "no PMU \"power\" in /sys/bus/event_source/devices (usual in a virtual machine)",
        "bare metal with the driver rapl (CONFIG_PERF_EVENTS_INTEL_RAPL)");
  }
  if (!backend_ && !host.is_this_machine()) {
    return Availability::Unavailable("no running machine to count on", "a live host");
  }
  PerfBackend& backend = backend_ ? *backend_ : kernel_;
  Availability refused;
  for (const NamedDomain& domain : kDomains) {
    const auto event = pmu->events.find(domain.event);
    if (event == pmu->events.end() || event->second.unit != "Joules") continue;
    const auto code = Encode(*pmu, event->second.terms);
    if (!code) continue;
    for (const int cpu : pmu->cpus) {
      if (domains_.size() >= kMaxDomains) break;
      UncoreCounters counters(backend, cpu, true, {*code});
      if (const int error = counters.Open()) {
        if (refused.reason.empty()) {
          const CounterAvailability why =
              ExplainOpen(error, fmt::format("power/{}/ on all of CPU {}", domain.event, cpu),
                          Role::kAlone, true, LookAround(host));
          refused = Availability::Unavailable(why.reason, why.fix);
        }
        continue;
      }
      const auto package = ReadCount(
          host, fmt::format("/sys/devices/system/cpu/cpu{}/topology/physical_package_id", cpu));
      std::string subject =
          package ? fmt::format("package-{}", *package) : fmt::format("package of CPU {}", cpu);
      if (domain.name == "psys") {
        subject = domain.name;  // of the whole board
      } else if (!domain.name.empty()) {
        subject += fmt::format(" {}", domain.name);
      }
      domains_.push_back({std::move(subject), event->second.scale, std::move(counters)});
    }
  }
  if (domains_.empty()) {
    if (!refused.reason.empty()) return refused;
    return Availability::Unavailable("the PMU \"power\" has no energy event that is understood",
                                     "a newer version of headrace");
  }
  if (!refused.reason.empty()) return Availability::Degraded(refused.reason, refused.fix);
  return Availability::Ok();
}

void EnergyCountersProbe::Read(Sink& sink) {
  for (Domain& domain : domains_) {
    domain.counters.Read();
    const auto count = domain.counters.count(0);
    if (!count || domain.counters.failed()) continue;
    Measurement m;
    m.metric = "energy_joules";
    m.value = *count * domain.joules;
    m.labels.subject = domain.subject;
    sink.Add(m);
  }
}

HR_PROBE("energy counters",
         {.summary = "energy of processor packages and memory (RAPL by perf_event_open), where the "
                     "power capping interface cannot be read",
          .affects = "joules per row, and plans for least power",
          .level = 1,
          .period_ns = kEnergyPeriodNs,
          .check =
              [](const Host& host) {
                EnergyCountersProbe probe;
                const Target target;
                const Availability found = probe.Start(host, target);
                if (found.usable()) probe.Stop();
                return found;
              },
          .make = [] { return std::make_unique<EnergyCountersProbe>(); }});

}  // namespace headrace::probes::perf
