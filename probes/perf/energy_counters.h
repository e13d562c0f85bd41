// Energy of processor packages by the "power" PMU: for machines whose power capping interface
// cannot be read. Both read the same registers, so only one of the two probes may give figures.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "probes/perf/uncore.h"
#include "probes/probe.h"

namespace headrace::probes::perf {

// Whether the probe "energy" (power capping) gives this machine's energy; then no other probe may.
bool PowercapGivesEnergy(const Host& host);

class EnergyCountersProbe : public Probe {
 public:
  // Without a backend: the kernel's, and only on this machine.
  explicit EnergyCountersProbe(PerfBackend* backend = nullptr) : backend_(backend) {}

  Availability Start(const Host& host, const Target& target) override;
  void Read(Sink& sink) override;
  void Stop() override { domains_.clear(); }

 private:
  struct Domain {
    std::string subject;  // "package-0", "package-0 dram": as the power capping interface has it
    double joules;        // energy of one count
    UncoreCounters counters;
  };
  PerfBackend* backend_;
  KernelBackend kernel_;
  std::vector<Domain> domains_;
};

}  // namespace headrace::probes::perf
