// Energy of processor packages and memory, from the power capping interface (RAPL).
#include <fmt/format.h>

#include <map>

#include "probes/host/host_probe.h"

namespace headrace::probes {
namespace {

constexpr size_t kMaxZones = 64;

class Energy : public HostProbe {
  void Sample(const Host& host, const Target&, Reading& out) override {
    const std::string folder = "/sys/class/powercap";
    size_t zones = 0;
    for (const std::string& zone : host.List(folder)) {  // intel-rapl:0 and intel-rapl:0:1 in it
      if (!zone.starts_with("intel-rapl:") || ++zones > kMaxZones) continue;
      const std::string path = folder + "/" + zone;
      auto name = ReadWord(host, path + "/name");  // "package-0", "dram"
      if (!name) continue;
      const size_t second_colon = zone.find(':', 11);
      if (second_colon != std::string::npos) {
        const auto parent = ReadWord(host, folder + "/" + zone.substr(0, second_colon) + "/name");
        if (!parent) continue;
        name = fmt::format("{} {}", *parent, *name);
      }
      const auto energy = ReadCount(host, path + "/energy_uj");
      if (!energy) {
        out.MissingFile(path + "/energy_uj", "run as root: the kernel hides this file from others");
        continue;
      }
      const auto range = ReadCount(host, path + "/max_energy_range_uj");
      const auto [it, is_new] = zones_.try_emplace(zone, Zone{*energy, 0});
      Zone& state = it->second;
      if (*energy < state.last && range && state.last <= *range) {
        state.grown += *range - state.last + *energy;  // the counter wrapped
      } else if (*energy >= state.last) {
        state.grown += *energy - state.last;
      }
      state.last = *energy;
      out.Total("energy_joules", Subject(*name), static_cast<double>(state.grown) * 1e-6);
    }
    if (out.empty()) {
      out.Missing("no RAPL zone in /sys/class/powercap (usual in a virtual machine)",
                  "bare metal with the driver intel_rapl_msr (AMD: kernel 5.8 or later)");
    }
  }

  struct Zone {
    int64_t last = 0, grown = 0;  // microjoules
  };
  std::map<std::string, Zone> zones_;
};

HR_PROBE("energy", {.summary = "energy of processor packages and memory (RAPL)",
                    .affects = "joules per row, and plans for least power",
                    .level = 1,
                    .period_ns = kSecondNs,
                    .check = CheckHostProbe<Energy>,
                    .make = MakeProbe<Energy>});

}  // namespace
}  // namespace headrace::probes
