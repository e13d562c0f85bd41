// Bytes between the processors and their memory. No one counter exists everywhere, so there is a
// ladder: the best rung that works is used, and every figure says which one it was (the label
// "cause") and whether it is a count or an estimate.
//
//   memory controllers   Intel integrated memory controllers, AMD unified memory controllers
//   data fabric          AMD before Linux 6.7: transfers between fabric and memory channels
//   SoC fabric           Arm: requests that left the mesh for memory (an estimate)
//   resctrl              the kernel's memory bandwidth monitoring, by last-level cache
//   LLC misses           64 bytes for each miss of a core: no write-backs, no DMA (an estimate)
//
// Below that, analysis compares the bytes in the accounts with the calibrated ceiling.
#pragma once
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "probes/perf/cpu_id.h"
#include "probes/perf/uncore.h"
#include "probes/probe.h"

namespace headrace::probes::perf {

enum class Direction : uint8_t { kRead, kWrite, kBoth };

// One rung that is counted by perf events.
struct BandwidthRung {
  std::string mechanism;  // "memory controllers"
  Source source = Source::kCounter;
  bool uncore = true;
  struct Event {
    EventCode code;
    double bytes = 64;  // bytes of one count
    Direction direction = Direction::kBoth;
  };
  struct Unit {  // one PMU on one CPU: events that share its counters
    std::string name;
    int cpu = 0;
    std::string socket;
    std::vector<Event> events;
  };
  std::vector<Unit> units;
};

// The rungs that this machine's files describe, best first. Opens no counter.
std::vector<BandwidthRung> BandwidthRungs(const Host& host, const CpuId& id);

// Total bytes by last-level cache, over all groups of resctrl; empty if there is no monitoring.
struct CacheBytes {
  int64_t cache = 0;
  double bytes = 0;
};
std::vector<CacheBytes> ReadResctrl(const Host& host);

class MemoryBandwidthProbe : public Probe {
 public:
  // Without a backend: the kernel's, and only on this machine.
  explicit MemoryBandwidthProbe(PerfBackend* backend = nullptr) : backend_(backend) {}

  Availability Start(const Host& host, const Target& target) override;
  void Read(Sink& sink) override;
  void Stop() override;

 private:
  struct Unit {
    const BandwidthRung::Unit* unit;
    UncoreCounters counters;
  };
  bool StartRung(PerfBackend& backend, const Host& host, BandwidthRung rung, Availability* refused);

  PerfBackend* backend_;
  KernelBackend kernel_;
  const Host* host_ = nullptr;
  BandwidthRung rung_;
  std::vector<Unit> units_;
  bool resctrl_ = false;
  std::vector<CacheBytes> last_, grown_;
};

}  // namespace headrace::probes::perf
