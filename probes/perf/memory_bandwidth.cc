#include "probes/perf/memory_bandwidth.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "base/registry.h"
#include "probes/host/text.h"
#include "probes/perf/availability.h"
#include "probes/perf/catalogue.h"

namespace headrace::probes::perf {
namespace {

constexpr double kCacheLine = 64;
constexpr size_t kMaxUnits = 512;
constexpr int64_t kTrafficPeriodNs = 200'000'000;
constexpr const char* kResctrl = "/sys/fs/resctrl";
constexpr size_t kMaxResctrlGroups = 128, kMaxCaches = 256;

using Event = BandwidthRung::Event;

// Adds the unit of `pmu` for each CPU it is counted on.
void AddUnits(const Host& host, const SysfsPmu& pmu, const std::vector<Event>& events,
              BandwidthRung* rung) {
  if (events.empty()) return;
  for (const int cpu : pmu.cpus) {
    if (rung->units.size() >= kMaxUnits) return;
    rung->units.push_back({pmu.name, cpu, SocketOfCpu(host, cpu), events});
  }
}

// The PMU's named events among `names`; a name that ends in '*' stands for all that begin so.
std::vector<Event> Named(const SysfsPmu& pmu, std::string_view name, Direction direction,
                         std::optional<double> bytes) {
  std::vector<Event> events;
  const bool prefix = name.ends_with('*');
  if (prefix) name.remove_suffix(1);
  for (const auto& [event, described] : pmu.events) {
    if (prefix ? !std::string_view(event).starts_with(name) : event != name) continue;
    const auto code = Encode(pmu, described.terms);
    // A scale without a unit of bytes is not understood.
    const auto each =
        described.unit.empty() && described.scale == 1 ? bytes : BytesOfCount(described);
    if (code && each) events.push_back({*code, *each, direction});
  }
  return events;
}

std::vector<Event> operator+(std::vector<Event> a, const std::vector<Event>& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

// Intel. Granite Rapids has a read and a write count for each half of a channel (sch0, sch1).
BandwidthRung IntelControllers(const Host& host, const std::vector<SysfsPmu>& pmus) {
  BandwidthRung rung{"memory controllers", Source::kCounter, true, {}};
  for (const SysfsPmu& pmu : pmus) {
    if (!pmu.name.starts_with("uncore_imc")) continue;
    AddUnits(host, pmu,
             Named(pmu, "cas_count_read*", Direction::kRead, kCacheLine) +
                 Named(pmu, "cas_count_write*", Direction::kWrite, kCacheLine),
             &rung);
  }
  if (!rung.units.empty()) return rung;
  // Desktop processors; the free-running counters need no slot of the PMU.
  for (const char* prefix : {"uncore_imc_free_running", "uncore_imc"}) {
    for (const SysfsPmu& pmu : pmus) {
      if (!pmu.name.starts_with(prefix)) continue;
      std::vector<Event> events;
      for (const auto& [read, write] : {std::pair{"data_read", "data_write"},
                                        {"data_reads", "data_writes"},
                                        {"read", "write"}}) {
        if (!events.empty()) break;
        events = Named(pmu, read, Direction::kRead, std::nullopt) +
                 Named(pmu, write, Direction::kWrite, std::nullopt);
      }
      AddUnits(host, pmu, events, &rung);
    }
    if (!rung.units.empty()) return rung;
  }
  return rung;
}

// AMD's memory controllers have no named events; CAS commands move 64 bytes.
BandwidthRung AmdControllers(const Host& host, const std::vector<SysfsPmu>& pmus) {
  BandwidthRung rung{"memory controllers", Source::kCounter, true, {}};
  for (const SysfsPmu& pmu : pmus) {
    if (!pmu.name.starts_with("amd_umc")) continue;
    const auto read = Encode(pmu, "event=0x0a,rdwrmask=0x1");
    const auto write = Encode(pmu, "event=0x0a,rdwrmask=0x2");
    if (!read || !write) continue;
    AddUnits(host, pmu,
             {{*read, kCacheLine, Direction::kRead}, {*write, kCacheLine, Direction::kWrite}},
             &rung);
  }
  return rung;
}

// AMD's data fabric: one event a memory channel, more than it has counters, so that the kernel
// counts them in turns. Event numbers of the next channel are 0x40 higher.
BandwidthRung AmdFabric(const Host& host, const std::vector<SysfsPmu>& pmus,
                        std::string_view family) {
  BandwidthRung rung{"data fabric", Source::kCounter, true, {}};
  const auto fabric = std::find_if(pmus.begin(), pmus.end(),
                                   [](const SysfsPmu& pmu) { return pmu.name == "amd_df"; });
  if (fabric == pmus.end()) return rung;
  struct Kind {
    int first, channels, mask;
    Direction direction;
  };
  std::vector<Kind> kinds;
  if (family == "AMD Zen 2" || family == "AMD Zen 3") {
    kinds = {{0x07, 8, 0x38, Direction::kBoth}};
  } else if (family == "AMD Zen 4") {
    // Asked by processors of this socket, and by those of the other.
    kinds = {{0x1f, 12, 0x7fe, Direction::kRead}, {0x1f, 12, 0x7ff, Direction::kWrite}};
    if (fabric->cpus.size() > 1) {
      kinds.push_back({0x1f, 12, 0xbfe, Direction::kRead});
      kinds.push_back({0x1f, 12, 0xbff, Direction::kWrite});
    }
  }
  for (const Kind& kind : kinds) {
    for (int channel = 0; channel < kind.channels; channel++) {
      const auto code = Encode(
          *fabric, fmt::format("event={:#x},umask={:#x}", kind.first + 0x40 * channel, kind.mask));
      if (code) AddUnits(host, *fabric, {{*code, kCacheLine, kind.direction}}, &rung);
    }
  }
  return rung;
}

// Arm. NVIDIA's fabric counts reads in beats of 32 bytes and writes in bytes; Arm's mesh counts
// requests to the memory controllers, of which each is taken to move a line.
BandwidthRung ArmFabric(const Host& host, const std::vector<SysfsPmu>& pmus) {
  BandwidthRung rung{"SoC fabric", Source::kEstimate, true, {}};
  for (const SysfsPmu& pmu : pmus) {
    if (pmu.name.starts_with("nvidia_scf_pmu")) {
      AddUnits(host, pmu,
               Named(pmu, "cmem_rd_data", Direction::kRead, 32) +
                   Named(pmu, "cmem_wr_total_bytes", Direction::kWrite, 1),
               &rung);
    } else if (pmu.name.starts_with("arm_cmn")) {
      AddUnits(host, pmu, Named(pmu, "hnf_mc_reqs", Direction::kBoth, kCacheLine), &rung);
    }
  }
  return rung;
}

BandwidthRung CacheMisses(const Host& host, const CpuFamily& family) {
  BandwidthRung rung{"LLC misses", Source::kEstimate, false, {}};
  const CatalogueEvent* misses = family.Find("llc_misses");
  const auto online = ReadWord(host, "/sys/devices/system/cpu/online");
  const auto cpus = online ? ParseCpuList(*online) : std::nullopt;
  if (!misses || !cpus || cpus->size() > kMaxUnits) return rung;
  for (const int cpu : *cpus) {
    rung.units.push_back({"LLC misses",
                          cpu,
                          SocketOfCpu(host, cpu),
                          {{misses->code, kCacheLine, Direction::kBoth}}});
  }
  return rung;
}

// Adds the bytes of each cache that can be read in one monitoring group.
void AddResctrlGroup(const Host& host, const std::string& group, std::map<int64_t, double>* sums) {
  for (const std::string& name : host.List(group + "/mon_data")) {
    const auto cache = NumberAfter(name, "mon_L3_");
    if (!cache || (sums->size() >= kMaxCaches && !sums->count(*cache))) continue;
    // "Unavailable" and "Error" are possible contents.
    const auto bytes = ReadCount(host, fmt::format("{}/mon_data/{}/mbm_total_bytes", group, name));
    if (bytes) (*sums)[*cache] += static_cast<double>(*bytes);
  }
}

std::string_view MetricOf(Direction direction) {
  switch (direction) {
    case Direction::kRead:
      return "memory_read_bytes";
    case Direction::kWrite:
      return "memory_write_bytes";
    case Direction::kBoth:
      break;
  }
  return "memory_bytes";
}

std::string WithNote(const BandwidthRung& rung) {
  if (rung.source == Source::kCounter) return rung.mechanism;
  return rung.mechanism + " (an estimate)";
}

}  // namespace

std::vector<BandwidthRung> BandwidthRungs(const Host& host, const CpuId& id) {
  const CpuFamily& family = FindFamily(id);
  std::vector<SysfsPmu> pmus;
  for (const std::string& name : PmuNames(host)) {
    if (!name.starts_with("uncore_imc") && !name.starts_with("amd_umc") && name != "amd_df" &&
        !name.starts_with("nvidia_scf_pmu") && !name.starts_with("arm_cmn")) {
      continue;
    }
    if (auto pmu = ReadPmu(host, name)) pmus.push_back(std::move(*pmu));
  }
  std::vector<BandwidthRung> rungs = {IntelControllers(host, pmus), AmdControllers(host, pmus),
                                      AmdFabric(host, pmus, family.name), ArmFabric(host, pmus),
                                      CacheMisses(host, family)};
  std::erase_if(rungs, [](const BandwidthRung& rung) { return rung.units.empty(); });
  return rungs;
}

std::vector<CacheBytes> ReadResctrl(const Host& host) {
  std::map<int64_t, double> sums;
  // A group counts its own tasks and those of the groups below its mon_groups; the root is one.
  AddResctrlGroup(host, kResctrl, &sums);
  size_t groups = 0;
  for (const std::string& name : host.List(kResctrl)) {
    if (name == "info" || name == "mon_data" || name == "mon_groups") continue;
    if (++groups > kMaxResctrlGroups) break;
    AddResctrlGroup(host, fmt::format("{}/{}", kResctrl, name), &sums);
  }
  std::vector<CacheBytes> caches;
  for (const auto& [cache, bytes] : sums) caches.push_back({cache, bytes});
  return caches;
}

bool MemoryBandwidthProbe::StartRung(PerfBackend& backend, const Host& host, BandwidthRung rung,
                                     Availability* refused) {
  rung_ = std::move(rung);
  units_.clear();
  for (const BandwidthRung::Unit& unit : rung_.units) {
    std::vector<EventCode> codes;
    for (const Event& event : unit.events) codes.push_back(event.code);
    UncoreCounters counters(backend, unit.cpu, rung_.uncore, std::move(codes));
    if (const int error = counters.Open()) {
      // A part of the units would be a part of the bytes: none is used.
      if (refused->reason.empty()) {
        const CounterAvailability why =
            ExplainOpen(error, fmt::format("{} on all of CPU {}", unit.name, unit.cpu),
                        Role::kAlone, rung_.uncore, LookAround(host));
        *refused = Availability::Unavailable(why.reason, why.fix);
      }
      units_.clear();
      return false;
    }
    units_.push_back({&unit, std::move(counters)});
  }
  return true;
}

Availability MemoryBandwidthProbe::Start(const Host& host, const Target&) {
  host_ = &host;
  const bool may_count = backend_ || host.is_this_machine();
  PerfBackend& backend = backend_ ? *backend_ : kernel_;
  Availability refused;
  const auto used = [&](const std::string& what, bool best) {
    if (refused.reason.empty() && best) return Availability::Ok("by " + what);
    if (refused.reason.empty()) {
      return Availability::Degraded(
          fmt::format("by {}; no memory controller shows counters", what),
          "bare metal, or a hypervisor that passes the memory controllers' counters on");
    }
    return Availability::Degraded(fmt::format("by {}; {}", what, refused.reason), refused.fix);
  };
  std::vector<BandwidthRung> rungs = BandwidthRungs(host, ReadCpuId(host));
  const auto try_rungs = [&](bool uncore) -> std::optional<Availability> {
    for (BandwidthRung& rung : rungs) {
      if (rung.uncore != uncore) continue;
      const std::string what = WithNote(rung);
      const bool counts = rung.source == Source::kCounter;
      if (StartRung(backend, host, std::move(rung), &refused)) {
        return used(fmt::format("{}, {} units", what, units_.size()), counts);
      }
    }
    return std::nullopt;
  };
  if (may_count) {
    if (const auto found = try_rungs(true)) return *found;
  }
  const bool uncore_refused = !refused.reason.empty();
  last_ = ReadResctrl(host);
  if (!last_.empty()) {
    resctrl_ = true;
    grown_.clear();
    for (const CacheBytes& cache : last_) grown_.push_back({cache.cache, 0});
    return used("resctrl", true);
  }
  if (may_count) {
    if (const auto found = try_rungs(false)) return *found;
  }
  constexpr const char* kInstead =
      "; reports compare the bytes that operators count with the calibrated ceiling instead";
  if (uncore_refused) return Availability::Unavailable(refused.reason + kInstead, refused.fix);
  std::string reason =
      "no memory controller, data fabric or SoC PMU in /sys/bus/event_source/devices, and no "
      "mon_data in /sys/fs/resctrl";
  std::string fix =
      "bare metal as root or with CAP_PERFMON; or, where the processor monitors it: mount -t "
      "resctrl resctrl /sys/fs/resctrl";
  if (!refused.reason.empty()) {
    reason += "; an estimate by LLC misses: " + refused.reason;
    fix += "; for the estimate: " + refused.fix;
  }
  return Availability::Unavailable(reason + kInstead, fix);
}

void MemoryBandwidthProbe::Read(Sink& sink) {
  if (resctrl_) {
    for (const CacheBytes& now : ReadResctrl(*host_)) {
      for (size_t i = 0; i < last_.size(); i++) {
        if (last_[i].cache != now.cache) continue;
        // A group that was removed takes its bytes with it: the sum falls, and is counted on.
        if (now.bytes >= last_[i].bytes) grown_[i].bytes += now.bytes - last_[i].bytes;
        last_[i].bytes = now.bytes;
        Measurement m;
        m.metric = MetricOf(Direction::kBoth);
        m.value = grown_[i].bytes;
        m.labels.subject = fmt::format("cache {}", now.cache);
        m.labels.cause = "resctrl";
        sink.Add(m);
      }
    }
    return;
  }
  struct Sum {
    double bytes = 0, running_ns = 0, enabled_ns = 0;
    bool complete = true;
  };
  std::map<std::pair<std::string, Direction>, Sum> sums;
  int64_t failed = 0;
  for (Unit& unit : units_) {
    unit.counters.Read();
    failed += unit.counters.failed();
    for (size_t i = 0; i < unit.unit->events.size(); i++) {
      const Event& event = unit.unit->events[i];
      Sum& sum = sums[{unit.unit->socket, event.direction}];
      const auto count = unit.counters.count(i);
      // Without one of its units a socket's bytes are not known.
      if (!count || unit.counters.failed()) sum.complete = false;
      sum.bytes += count.value_or(0) * event.bytes;
      sum.running_ns += unit.counters.running_ns();
      sum.enabled_ns += unit.counters.enabled_ns();
    }
  }
  for (const auto& [key, sum] : sums) {
    if (!sum.complete || sum.enabled_ns <= 0) continue;
    Measurement m;
    m.metric = MetricOf(key.second);
    m.value = sum.bytes;
    m.labels.subject = key.first;
    m.labels.cause = rung_.mechanism;
    m.source = rung_.source;
    m.running_ratio = sum.running_ns / sum.enabled_ns;
    sink.Add(m);
  }
  sink.Lost("memory bandwidth: units that stopped counting", failed,
            static_cast<int64_t>(units_.size()));
}

void MemoryBandwidthProbe::Stop() {
  units_.clear();
  resctrl_ = false;
}

HR_PROBE("memory bandwidth",
         {.summary = "bytes read from and written to memory, by socket",
          .affects = "memory bandwidth as a limit: without it accounted bytes against the "
                     "calibrated ceiling",
          .level = 1,
          .period_ns = kTrafficPeriodNs,
          .check =
              [](const Host& host) {
                MemoryBandwidthProbe probe;
                const Target target;
                const Availability found = probe.Start(host, target);
                if (found.usable()) probe.Stop();
                return found;
              },
          .make = [] { return std::make_unique<MemoryBandwidthProbe>(); }});

}  // namespace headrace::probes::perf
