// The target's control groups, v1 and v2: CPU quota and throttling, memory and its limits, what of
// it is page cache, out-of-memory events, IO by device. Groups above are read where they set a
// limit, for it binds the target as well.
#include "base/cgroup.h"

#include <fmt/format.h>

#include <set>

#include "probes/host/host_probe.h"

namespace headrace::probes {
namespace {

struct GroupCounter {
  const char* key;
  const char* metric;
  const char* cause;
  double factor;
};

// v1 has no limit when it says the largest number of pages.
constexpr int64_t kNoLimit = int64_t{1} << 62;

void AddCounters(const Host& host, const std::string& path, const std::string& subject,
                 std::initializer_list<GroupCounter> metrics, Reading& out) {
  const auto text = host.Read(path, 65536);
  if (!text) return;
  for (const GroupCounter& m : metrics) {
    if (const auto value = KeyedCount(*text, m.key)) {
      out.Counter(m.metric, Subject(subject, m.cause), static_cast<double>(*value) * m.factor);
    }
  }
}

void AddGauges(const Host& host, const std::string& path, const std::string& subject,
               std::initializer_list<GroupCounter> metrics, Reading& out) {
  const auto text = host.Read(path, 65536);
  if (!text) return;
  for (const GroupCounter& m : metrics) {
    if (const auto value = KeyedCount(*text, m.key)) {
      out.Gauge(m.metric, Subject(subject, m.cause), static_cast<double>(*value) * m.factor);
    }
  }
}

// True if the file holds a limit; "max" and v1's largest number are none.
bool AddLimit(const Host& host, const std::string& path, const std::string& subject,
              const char* metric, Reading& out) {
  const auto limit = ReadCount(host, path);
  if (!limit || *limit >= kNoLimit) return false;
  out.Gauge(metric, Subject(subject), static_cast<double>(*limit));
  return true;
}

bool AddQuota(std::optional<int64_t> quota, std::optional<int64_t> period,
              const std::string& subject, Reading& out) {
  if (!quota || !period || *quota <= 0 || *period <= 0) return false;
  out.Gauge("cgroup_cpu_quota_cores", Subject(subject),
            static_cast<double>(*quota) / static_cast<double>(*period));
  return true;
}

// "8:0" as /sys/block calls it, or as it is.
std::string DeviceName(const Host& host, std::string_view number) {
  const auto text = host.Read(fmt::format("/sys/dev/block/{}/uevent", number), 4096);
  if (text) {
    std::string_view rest = *text;
    for (std::string_view line; NextLine(&rest, &line);) {
      if (line.starts_with("DEVNAME=")) return std::string(line.substr(8));
    }
  }
  return std::string(number);
}

// Lines "259:0 rbytes=4096 wbytes=0 rios=1 wios=0 dbytes=0 dios=0".
void AddUnifiedIo(const Host& host, const Cgroup& group, Reading& out) {
  const auto text = host.Read(group.folder + "/io.stat", 65536);
  if (!text) return;
  std::string_view rest = *text;
  for (std::string_view line; NextLine(&rest, &line);) {
    const auto fields = Fields(line);
    if (fields.size() < 2 || fields[0].find(':') == std::string_view::npos) continue;
    const std::string device = DeviceName(host, fields[0]);
    for (const std::string_view field : fields) {
      const size_t equals = field.find('=');
      if (equals == std::string_view::npos) continue;
      const auto value = Count(field.substr(equals + 1));
      const std::string_view key = field.substr(0, equals);
      if (!value || key.size() < 4) continue;
      const char* cause = key[0] == 'r'   ? "read"
                          : key[0] == 'w' ? "write"
                          : key[0] == 'd' ? "discard"
                                          : nullptr;
      if (!cause) continue;
      if (key.substr(1) == "bytes") {
        out.Counter("cgroup_io_bytes", Subject(device, cause), static_cast<double>(*value));
      } else if (key.substr(1) == "ios") {
        out.Counter("cgroup_io_count", Subject(device, cause), static_cast<double>(*value));
      }
    }
  }
}

// Lines "8:0 Read 4096".
void AddFirstVersionIo(const Host& host, const Cgroup& group, const char* file, const char* metric,
                       Reading& out) {
  const auto text = host.Read(fmt::format("{}/{}", group.folder, file), 65536);
  if (!text) return;
  std::string_view rest = *text;
  for (std::string_view line; NextLine(&rest, &line);) {
    const auto fields = Fields(line);
    if (fields.size() != 3) continue;
    const auto value = Count(fields[2]);
    if (!value || (fields[1] != "Read" && fields[1] != "Write")) continue;
    out.Counter(metric,
                Subject(DeviceName(host, fields[0]), fields[1] == "Read" ? "read" : "write"),
                static_cast<double>(*value));
  }
}

// `with_cpu_time` is false where a v1 hierarchy accounts for CPU time.
void AddUnified(const Host& host, const Cgroup& group, bool with_cpu_time, Reading& out) {
  const std::string& folder = group.folder;
  const auto quota = [&](const Cgroup& of) {  // "200000 100000" or "max 100000"
    const auto word = ReadWord(host, of.folder + "/cpu.max");
    const auto fields = word ? Fields(*word) : std::vector<std::string_view>();
    return fields.size() == 2 && AddQuota(Count(fields[0]), Count(fields[1]), of.name, out);
  };
  const auto throttling = [&](const Cgroup& of) {
    AddCounters(host, of.folder + "/cpu.stat", of.name,
                {{"nr_periods", "cgroup_periods_count", "", 1},
                 {"nr_throttled", "cgroup_throttled_count", "", 1},
                 {"throttled_usec", "cgroup_throttled_ns", "", 1e3}},
                out);
  };
  const auto events = [&](const Cgroup& of) {
    AddCounters(host, of.folder + "/memory.events", of.name,
                {{"low", "cgroup_memory_events_count", "low", 1},
                 {"high", "cgroup_memory_events_count", "high", 1},
                 {"max", "cgroup_memory_events_count", "max", 1},
                 {"oom", "cgroup_memory_events_count", "oom", 1},
                 {"oom_kill", "cgroup_memory_events_count", "oom_kill", 1}},
                out);
  };
  const auto memory = [&](const Cgroup& of) {
    AddLimit(host, of.folder + "/memory.current", of.name, "cgroup_memory_bytes", out);
  };
  quota(group);
  throttling(group);
  if (with_cpu_time) {
    AddCounters(host, folder + "/cpu.stat", group.name,
                {{"usage_usec", "cgroup_cpu_ns", "", 1e3},
                 {"user_usec", "cgroup_cpu_ns", "user", 1e3},
                 {"system_usec", "cgroup_cpu_ns", "system", 1e3}},
                out);
  }
  memory(group);
  AddLimit(host, folder + "/memory.max", group.name, "cgroup_memory_limit_bytes", out);
  AddLimit(host, folder + "/memory.high", group.name, "cgroup_memory_high_bytes", out);
  AddGauges(host, folder + "/memory.stat", group.name,
            {{"anon", "cgroup_memory_use_bytes", "anonymous", 1},
             {"file", "cgroup_memory_use_bytes", "page cache", 1},
             {"shmem", "cgroup_memory_use_bytes", "shared memory", 1},
             {"file_dirty", "cgroup_memory_use_bytes", "dirty", 1},
             {"kernel", "cgroup_memory_use_bytes", "kernel", 1}},
            out);
  AddCounters(host, folder + "/memory.stat", group.name,
              {{"pgmajfault", "cgroup_page_faults_count", "major", 1},
               {"workingset_refault_file", "cgroup_refaults_count", "file", 1},
               {"workingset_refault_anon", "cgroup_refaults_count", "anonymous", 1}},
              out);
  events(group);
  AddUnifiedIo(host, group, out);
  for (auto above = Parent(group); above; above = Parent(*above)) {
    if (quota(*above)) throttling(*above);
    const bool most = AddLimit(host, above->folder + "/memory.max", above->name,
                               "cgroup_memory_limit_bytes", out);
    const bool high = AddLimit(host, above->folder + "/memory.high", above->name,
                               "cgroup_memory_high_bytes", out);
    if (most || high) {
      memory(*above);
      events(*above);
    }
  }
}

void AddFirstVersionCpu(const Host& host, const Cgroup& group, Reading& out) {
  for (auto of = std::optional<Cgroup>(group); of; of = Parent(*of)) {
    const bool limited =
        AddQuota(ReadInteger(host, of->folder + "/cpu.cfs_quota_us"),
                 ReadInteger(host, of->folder + "/cpu.cfs_period_us"), of->name, out);
    if (limited || of->folder == group.folder) {
      AddCounters(host, of->folder + "/cpu.stat", of->name,
                  {{"nr_periods", "cgroup_periods_count", "", 1},
                   {"nr_throttled", "cgroup_throttled_count", "", 1},
                   {"throttled_time", "cgroup_throttled_ns", "", 1}},
                  out);
    }
  }
}

void AddFirstVersionMemory(const Host& host, const Cgroup& group, Reading& out) {
  for (auto of = std::optional<Cgroup>(group); of; of = Parent(*of)) {
    const bool limited = AddLimit(host, of->folder + "/memory.limit_in_bytes", of->name,
                                  "cgroup_memory_limit_bytes", out);
    if (!limited && of->folder != group.folder) continue;
    AddLimit(host, of->folder + "/memory.usage_in_bytes", of->name, "cgroup_memory_bytes", out);
    if (const auto failures = ReadCount(host, of->folder + "/memory.failcnt")) {
      out.Counter("cgroup_memory_events_count", Subject(of->name, "max"),
                  static_cast<double>(*failures));
    }
    AddCounters(host, of->folder + "/memory.oom_control", of->name,
                {{"oom_kill", "cgroup_memory_events_count", "oom_kill", 1}}, out);
  }
  AddGauges(host, group.folder + "/memory.stat", group.name,
            {{"total_rss", "cgroup_memory_use_bytes", "anonymous", 1},
             {"total_cache", "cgroup_memory_use_bytes", "page cache", 1},
             {"total_shmem", "cgroup_memory_use_bytes", "shared memory", 1},
             {"total_dirty", "cgroup_memory_use_bytes", "dirty", 1}},
            out);
  AddCounters(host, group.folder + "/memory.stat", group.name,
              {{"total_pgmajfault", "cgroup_page_faults_count", "major", 1},
               {"total_workingset_refault_file", "cgroup_refaults_count", "file", 1},
               {"total_workingset_refault_anon", "cgroup_refaults_count", "anonymous", 1}},
              out);
}

class CgroupProbe : public HostProbe {
  void Sample(const Host& host, const Target& target, Reading& out) override {
    const std::string fix = "a kernel built with CONFIG_CGROUPS, and cgroupfs mounted";
    if (starting()) mounts_ = CgroupMounts(host.Read("/proc/self/mountinfo").value_or(""));
    std::set<std::string> texts;  // most processes of a target are in the same groups
    for (const int64_t pid : target.pids) {
      const std::string path = fmt::format("/proc/{}/cgroup", pid);
      auto text = host.Read(path, 65536);
      if (text) {
        texts.insert(std::move(*text));
      } else if (starting()) {
        out.MissingFile(path, fix);
      }
    }
    std::set<std::string> seen;
    for (const std::string& text : texts) {
      const auto once = [&](const std::string& controller, auto add) {
        const auto group = mounts_.Find(text, controller);
        if (group && seen.insert(controller + group->folder).second) add(host, *group, out);
      };
      const bool unified_time = !mounts_.Find(text, "cpuacct");
      once("", [&](const Host& h, const Cgroup& group, Reading& o) {
        AddUnified(h, group, unified_time, o);
      });
      once("cpu", AddFirstVersionCpu);
      once("cpuacct", [](const Host& h, const Cgroup& group, Reading& o) {
        if (const auto ns = ReadCount(h, group.folder + "/cpuacct.usage")) {
          o.Counter("cgroup_cpu_ns", Subject(group.name), static_cast<double>(*ns));
        }
      });
      once("memory", AddFirstVersionMemory);
      once("blkio", [](const Host& h, const Cgroup& group, Reading& o) {
        AddFirstVersionIo(h, group, "blkio.throttle.io_service_bytes_recursive", "cgroup_io_bytes",
                          o);
        AddFirstVersionIo(h, group, "blkio.throttle.io_serviced_recursive", "cgroup_io_count", o);
      });
    }
    if (out.empty()) out.Missing("no control group of the process is mounted and readable", fix);
  }

  CgroupMounts mounts_;
};

HR_PROBE("cgroup", {.summary = "CPU quota, throttling, memory and limits of the control group",
                    .affects = "verdicts on throttling by quota, memory limits and page cache",
                    .level = 1,
                    .period_ns = kSecondNs,
                    .check = CheckHostProbe<CgroupProbe>,
                    .make = MakeProbe<CgroupProbe>});

}  // namespace
}  // namespace headrace::probes
