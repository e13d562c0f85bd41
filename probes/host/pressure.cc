// Pressure stall information: time in which some or all tasks waited for a CPU, IO or memory, of
// the machine and of the target's control group.
#include <fmt/format.h>

#include "base/cgroup.h"
#include "base/clock.h"
#include "probes/host/host_probe.h"

namespace headrace::probes {
namespace {

constexpr const char* kResources[] = {"cpu", "io", "memory"};

// Lines "some avg10=0.75 avg60=0.20 avg300=0.04 total=2666742746", total in microseconds.
bool AddPressure(std::string_view text, const std::string& resource, const std::string& subject,
                 Reading& out) {
  bool any = false;
  for (std::string_view line; NextLine(&text, &line);) {
    const auto fields = Fields(line);
    if (fields.size() < 2 || (fields[0] != "some" && fields[0] != "full")) continue;
    for (const std::string_view field : fields) {
      if (!field.starts_with("total=")) continue;
      const auto total = Count(field.substr(6));
      if (!total) continue;
      out.Counter("pressure_ns", Subject(subject, fmt::format("{} {}", resource, fields[0])),
                  static_cast<double>(*total) * 1e3);
      any = true;
    }
  }
  return any;
}

class Pressure : public HostProbe {
  void Sample(const Host& host, const Target& target, Reading& out) override {
    if (starting()) begin_ns_ = MonotonicNs();
    const std::string fix = "a kernel built with CONFIG_PSI, booted with psi=1";
    for (const std::string resource : kResources) {
      const std::string path = "/proc/pressure/" + resource;
      const auto text = host.Read(path, 4096);
      if (!text) {
        out.MissingFile(path, fix);
      } else if (!AddPressure(*text, resource, "", out)) {
        out.Missing(path + ": content not understood", fix);
      }
    }
    // Its counters begin when the probe does, which is before the run: a share is of this time.
    if (!out.empty()) {
      out.Gauge("pressure_window_ns", {}, static_cast<double>(MonotonicNs() - begin_ns_));
    }
    if (starting()) mounts_ = CgroupMounts(host.Read("/proc/self/mountinfo").value_or(""));
    const auto groups = host.Read(fmt::format("/proc/{}/cgroup", target.root_pid), 65536);
    const auto group = groups ? mounts_.Find(*groups, "") : std::nullopt;
    if (!group || group->folder == group->mount) return;  // the top group is the machine
    for (const std::string resource : kResources) {
      const auto text = host.Read(fmt::format("{}/{}.pressure", group->folder, resource), 4096);
      if (text) AddPressure(*text, resource, group->name, out);
    }
  }

  CgroupMounts mounts_;
  int64_t begin_ns_ = 0;
};

HR_PROBE("pressure", {.summary = "waiting for cpu, io and memory (PSI)",
                      .affects = "the report's line on the machine being short of cpu, io, memory",
                      .level = 1,
                      .period_ns = kSecondNs,
                      .check = CheckHostProbe<Pressure>,
                      .make = MakeProbe<Pressure>});

}  // namespace
}  // namespace headrace::probes
