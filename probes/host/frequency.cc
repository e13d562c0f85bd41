// Clock frequency of the CPUs: the mean, lowest and highest of them.
#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "probes/host/host_probe.h"

namespace headrace::probes {
namespace {

constexpr size_t kMaxCpus = 256;  // reading one can interrupt that CPU: evenly spread ones suffice

std::vector<double> ReadScalingFrequencies(const Host& host) {
  std::vector<std::string> cpus;
  for (const std::string& name : host.List("/sys/devices/system/cpu")) {
    if (NumberAfter(name, "cpu")) cpus.push_back(name);
  }
  std::vector<double> hertz;
  const size_t step = cpus.size() / kMaxCpus + 1;
  for (size_t i = 0; i < cpus.size(); i += step) {
    const auto khz = ReadCount(
        host, fmt::format("/sys/devices/system/cpu/{}/cpufreq/scaling_cur_freq", cpus[i]));
    if (khz && *khz > 0) hertz.push_back(static_cast<double>(*khz) * 1e3);
  }
  return hertz;
}

// "cpu MHz" of /proc/cpuinfo, which is measured only where the processor counts its own cycles
// (aperfmperf); elsewhere it is the nominal figure and says nothing.
std::vector<double> ReadCountedFrequencies(const Host& host) {
  std::vector<double> hertz;
  const auto text = host.Read("/proc/cpuinfo", 1 << 22);
  if (!text || text->find(" aperfmperf") == std::string::npos) return hertz;
  std::string_view rest = *text;
  for (std::string_view line; NextLine(&rest, &line);) {
    const size_t colon = line.find(": ");
    if (!line.starts_with("cpu MHz") || colon == std::string_view::npos) continue;
    const std::string_view value = line.substr(colon + 2);  // "2596.123"
    const size_t dot = value.find('.');
    const auto whole = Count(value.substr(0, dot));
    if (whole && *whole > 0 && *whole < 1'000'000)
      hertz.push_back(static_cast<double>(*whole) * 1e6);
  }
  return hertz;
}

class Frequency : public HostProbe {
  void Sample(const Host& host, const Target&, Reading& out) override {
    std::vector<double> hertz = ReadScalingFrequencies(host);
    if (hertz.empty()) hertz = ReadCountedFrequencies(host);
    if (hertz.empty()) {
      out.Missing(
          "no cpufreq in /sys/devices/system/cpu, and no aperfmperf in /proc/cpuinfo: this kernel "
          "does not see the frequency (usual in a virtual machine)",
          "bare metal with a cpufreq driver, or a hypervisor that passes APERF/MPERF through");
      return;
    }
    double sum = 0;
    for (const double h : hertz) sum += h;
    out.Gauge("cpu_frequency_hertz", Cause("mean"), sum / static_cast<double>(hertz.size()));
    out.Gauge("cpu_frequency_hertz", Cause("lowest"),
              *std::min_element(hertz.begin(), hertz.end()));
    out.Gauge("cpu_frequency_hertz", Cause("highest"),
              *std::max_element(hertz.begin(), hertz.end()));
  }
};

HR_PROBE("frequency", {.summary = "clock frequency of the CPUs",
                       .affects = "slowing by power or heat limits goes unnoticed",
                       .level = 1,
                       .period_ns = kSecondNs,
                       .check = CheckHostProbe<Frequency>,
                       .make = MakeProbe<Frequency>});

}  // namespace
}  // namespace headrace::probes
