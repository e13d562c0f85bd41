// Block devices of the machine, from /proc/diskstats: requests, bytes, time busy, queue.
#include <set>

#include "probes/host/host_probe.h"

namespace headrace::probes {
namespace {

// A field of /proc/diskstats, counted from the device's name as 2 (Documentation/admin-guide/
// iostats.rst counts from there too).
struct DiskField {
  size_t index;
  const char* metric;
  const char* cause;
  double factor;
};
constexpr double kSector = 512, kMillisecond = 1e6;
constexpr DiskField kFields[] = {
    {3, "disk_requests_count", "read", 1},
    {4, "disk_merges_count", "read", 1},
    {5, "disk_bytes", "read", kSector},
    {6, "disk_request_ns", "read", kMillisecond},
    {7, "disk_requests_count", "write", 1},
    {8, "disk_merges_count", "write", 1},
    {9, "disk_bytes", "write", kSector},
    {10, "disk_request_ns", "write", kMillisecond},
    {12, "disk_busy_ns", "", kMillisecond},
    {13, "disk_queue_ns", "", kMillisecond},
    {14, "disk_requests_count", "discard", 1},
    {16, "disk_bytes", "discard", kSector},
    {17, "disk_request_ns", "discard", kMillisecond},
    {18, "disk_requests_count", "flush", 1},
    {19, "disk_request_ns", "flush", kMillisecond},
};
constexpr size_t kInFlight = 11, kLeastFields = 14;

class Disk : public HostProbe {
  void Sample(const Host& host, const Target&, Reading& out) override {
    const std::string path = "/proc/diskstats";
    const std::string fix = "run where /proc/diskstats of the host is visible";
    const auto text = host.Read(path);
    if (!text) {
      out.MissingFile(path, fix);
      return;
    }
    const auto names = host.List("/sys/block");  // whole devices; without it partitions count too
    const std::set<std::string, std::less<>> whole(names.begin(), names.end());
    std::string_view rest = *text;
    for (std::string_view line; NextLine(&rest, &line);) {
      const auto fields = Fields(line);
      if (fields.size() < kLeastFields) continue;
      std::string name(fields[2]);
      if (!whole.empty() && !whole.contains(name)) continue;
      const auto requests = Count(fields[3]), writes = Count(fields[7]);
      if (!requests || !writes || (*requests == 0 && *writes == 0)) continue;  // never used
      for (const DiskField& f : kFields) {
        if (f.index >= fields.size()) break;
        if (const auto value = Count(fields[f.index])) {
          out.Counter(f.metric, Subject(name, f.cause), static_cast<double>(*value) * f.factor);
        }
      }
      if (const auto depth = Count(fields[kInFlight])) {
        out.Gauge("disk_queue_count", Subject(name), static_cast<double>(*depth));
      }
    }
    if (out.empty()) out.Missing("no block device in /proc/diskstats has been used", fix);
  }
};

HR_PROBE("disk", {.summary = "requests, bytes and busy time of every block device",
                  .affects = "device busy shares; verdicts on storage fall back to process figures",
                  .level = 1,
                  .period_ns = kSecondNs,
                  .check = CheckHostProbe<Disk>,
                  .make = MakeProbe<Disk>});

}  // namespace
}  // namespace headrace::probes
