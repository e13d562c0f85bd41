// PMUs outside the cores (memory controllers, data fabric, energy), as the kernel describes them
// under /sys/bus/event_source/devices: their type number, the CPUs on which they are counted, how
// an event's fields are packed, and named events with scale and unit. Anything damaged is absent.
#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "probes/host.h"
#include "probes/perf/availability.h"
#include "probes/perf/backend.h"
#include "probes/perf/group.h"

namespace headrace::probes::perf {

struct SysfsEvent {
  std::string terms;  // "event=0x04,umask=0x03"
  double scale = 1;   // of one count, in `unit`
  std::string unit;   // "MiB", "Joules"; "" for a plain count
};

struct SysfsPmu {
  std::string name;       // "uncore_imc_0"
  uint32_t type = 0;      // for EventCode
  std::vector<int> cpus;  // from `cpumask`: one for each of its units, usually one per socket
  std::map<std::string, std::string, std::less<>> formats;  // field -> "config:0-7,32-35"
  std::map<std::string, SysfsEvent, std::less<>> events;
};

// Names of all PMUs, sorted; at most 1024.
std::vector<std::string> PmuNames(const Host& host);
// Nothing if it has no usable type.
std::optional<SysfsPmu> ReadPmu(const Host& host, const std::string& name);

// Parses "0-3,8": CPUs in order, each once; nothing if it is not such a list. At most 8192 CPUs.
std::optional<std::vector<int>> ParseCpuList(std::string_view text);

// An event's code from its terms and the PMU's formats; a term without value is 1. Nothing if a
// field is unknown or a value does not fit.
std::optional<EventCode> Encode(const SysfsPmu& pmu, std::string_view terms);

// Bytes that one count stands for, by scale and unit; nothing if the unit is not one of bytes.
std::optional<double> BytesOfCount(const SysfsEvent& event);

// "socket 0", by the topology of the CPU; "CPU 7" if that is not known.
std::string SocketOfCpu(const Host& host, int cpu);

// Events of one unit, counted on one CPU for everything that runs. Not thread safe.
class UncoreCounters {
 public:
  UncoreCounters(PerfBackend& backend, int cpu, bool uncore, std::vector<EventCode> codes);

  // Opens the events as one group if the PMU can, else each on its own. Returns 0 or an errno;
  // after an errno nothing is open.
  int Open();
  // Adds what was counted since the last call. What a group counted while it was on the PMU is
  // scaled to all the time since it was last there.
  void Read();
  void Close() { groups_.clear(); }

  // Count of one event since Open; nothing until it has counted.
  std::optional<double> count(size_t event) const;
  // Time in which the events were counted, and in which they should have been.
  double running_ns() const { return running_ns_; }
  double enabled_ns() const { return enabled_ns_; }
  // Whether an event no longer counts because reading it fails.
  bool failed() const { return failed_; }

 private:
  PerfBackend* backend_;
  OpenRequest where_;
  std::vector<EventCode> codes_;
  struct Group {
    CounterGroup group;
    size_t first;           // index into codes_
    double waiting_ns = 0;  // since it last was on the PMU
  };
  std::vector<Group> groups_;
  std::vector<double> counts_;
  std::vector<bool> known_;
  double running_ns_ = 0, enabled_ns_ = 0;
  bool failed_ = false;
};

}  // namespace headrace::probes::perf
