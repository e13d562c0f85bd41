// Temperatures (thermal zones, hwmon) and how often processors slowed down because of heat.
#include <fmt/format.h>

#include <map>

#include "base/error.h"
#include "probes/host/host_probe.h"

namespace headrace::probes {
namespace {

constexpr size_t kMaxSensors = 128;

void AddTemperature(const Host& host, const std::string& path, const std::string& subject,
                    Reading& out) {
  const auto millidegrees = ReadInteger(host, path);
  if (!millidegrees || *millidegrees < -100'000 || *millidegrees > 300'000) return;
  out.Gauge("temperature_celsius", Subject(subject), static_cast<double>(*millidegrees) / 1e3);
}

void AddThermalZones(const Host& host, Reading& out) {
  const std::string folder = "/sys/class/thermal";
  size_t zones = 0;
  for (const std::string& name : host.List(folder)) {
    if (!NumberAfter(name, "thermal_zone") || ++zones > kMaxSensors) continue;
    const auto type = ReadWord(host, fmt::format("{}/{}/type", folder, name));
    AddTemperature(host, fmt::format("{}/{}/temp", folder, name),
                   type ? fmt::format("{} {}", name, Printable(*type, 64)) : name, out);
  }
}

void AddHardwareMonitors(const Host& host, Reading& out) {
  const std::string folder = "/sys/class/hwmon";
  size_t sensors = 0;
  for (const std::string& name : host.List(folder)) {
    const std::string chip = folder + "/" + name;
    const auto chip_name = ReadWord(host, chip + "/name");
    for (const std::string& file : host.List(chip)) {
      if (!file.starts_with("temp") || !file.ends_with("_input") || ++sensors > kMaxSensors)
        continue;
      const std::string sensor = file.substr(0, file.size() - 6);
      const auto label = ReadWord(host, fmt::format("{}/{}_label", chip, sensor));
      AddTemperature(host, chip + "/" + file,
                     fmt::format("{} {} {}", name, Printable(chip_name.value_or(""), 64),
                                 label ? Printable(*label, 64) : sensor),
                     out);
    }
  }
}

// A package's count is repeated by each of its CPUs.
void AddThrottles(const Host& host, Reading& out) {
  std::map<int64_t, int64_t> packages;
  for (const std::string& name : host.List("/sys/devices/system/cpu")) {
    if (!NumberAfter(name, "cpu")) continue;
    const std::string cpu = "/sys/devices/system/cpu/" + name;
    const auto package = ReadCount(host, cpu + "/topology/physical_package_id");
    const auto count = ReadCount(host, cpu + "/thermal_throttle/package_throttle_count");
    if (package && count) packages[*package] = *count;
  }
  for (const auto& [package, count] : packages) {
    out.Counter("thermal_throttles_count", Subject(fmt::format("package-{}", package)),
                static_cast<double>(count));
  }
}

class Temperature : public HostProbe {
  void Sample(const Host& host, const Target&, Reading& out) override {
    AddThermalZones(host, out);
    AddHardwareMonitors(host, out);
    AddThrottles(host, out);
    if (out.empty()) {
      out.Missing(
          "no sensor in /sys/class/thermal and /sys/class/hwmon (usual in a virtual machine)",
          "bare metal with the sensors' drivers loaded (coretemp, k10temp)");
    }
  }
};

HR_PROBE("temperature", {.summary = "temperatures, and slowing because of heat",
                         .affects = "slowing because of heat goes unnoticed",
                         .level = 1,
                         .period_ns = kSecondNs,
                         .check = CheckHostProbe<Temperature>,
                         .make = MakeProbe<Temperature>});

}  // namespace
}  // namespace headrace::probes
