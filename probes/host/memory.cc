// Memory of the machine: what it is used for, major faults, refaults of the page cache, huge pages
// that could not be had, reclaim and swap.
#include <unistd.h>

#include "probes/host/host_probe.h"

namespace headrace::probes {
namespace {

struct HostCounter {
  const char* key;
  const char* metric;
  const char* cause;
};
constexpr HostCounter kHostMemory[] = {
    {"MemTotal", "host_memory_bytes", "total"},
    {"MemFree", "host_memory_bytes", "free"},
    {"MemAvailable", "host_memory_bytes", "available"},
    {"Cached", "host_memory_bytes", "page cache"},
    {"Buffers", "host_memory_bytes", "buffers"},
    {"Dirty", "host_memory_bytes", "dirty"},
    {"Writeback", "host_memory_bytes", "writeback"},
    {"AnonPages", "host_memory_bytes", "anonymous"},
    {"AnonHugePages", "host_memory_bytes", "anonymous huge"},
    {"Shmem", "host_memory_bytes", "shared memory"},
    {"Slab", "host_memory_bytes", "slab"},
    {"SwapTotal", "host_memory_bytes", "swap total"},
    {"SwapFree", "host_memory_bytes", "swap free"},
};
constexpr HostCounter kEvents[] = {
    {"pgmajfault", "host_page_faults_count", "major"},
    {"workingset_refault_file", "host_refaults_count", "file"},
    {"workingset_refault_anon", "host_refaults_count", "anonymous"},
    {"thp_fault_alloc", "host_huge_pages_count", "given"},
    {"thp_fault_fallback", "host_huge_pages_count", "refused"},
    {"compact_stall", "host_compaction_stalls_count", ""},
    {"oom_kill", "host_oom_kills_count", ""},
};
constexpr HostCounter kPages[] = {
    {"pswpin", "host_swap_bytes", "in"},
    {"pswpout", "host_swap_bytes", "out"},
    {"pgsteal_direct", "host_reclaimed_bytes", "direct"},
    {"pgsteal_kswapd", "host_reclaimed_bytes", "background"},
};

class Memory : public HostProbe {
  void Sample(const Host& host, const Target&, Reading& out) override {
    const std::string fix = "run where the host's /proc is mounted";
    if (const auto text = host.Read("/proc/meminfo", 65536)) {
      for (const HostCounter& m : kHostMemory) {
        if (const auto kib = KeyedCount(*text, m.key)) {
          out.Gauge(m.metric, Cause(m.cause), static_cast<double>(*kib) * 1024);
        }
      }
      if (out.empty()) out.Missing("/proc/meminfo: content not understood", fix);
    } else {
      out.MissingFile("/proc/meminfo", fix);
    }
    const auto text = host.Read("/proc/vmstat", 65536);
    if (!text) {
      out.MissingFile("/proc/vmstat", fix);
      return;
    }
    for (const HostCounter& m : kEvents) {
      if (const auto count = KeyedCount(*text, m.key)) {
        out.Counter(m.metric, Cause(m.cause), static_cast<double>(*count));
      }
    }
    const auto faults = KeyedCount(*text, "pgfault"), major = KeyedCount(*text, "pgmajfault");
    if (faults && major && *faults >= *major) {
      out.Counter("host_page_faults_count", Cause("minor"), static_cast<double>(*faults - *major));
    }
    const auto page_bytes = static_cast<double>(sysconf(_SC_PAGESIZE));
    for (const HostCounter& m : kPages) {
      if (const auto pages = KeyedCount(*text, m.key)) {
        out.Counter(m.metric, Cause(m.cause), static_cast<double>(*pages) * page_bytes);
      }
    }
  }
};

HR_PROBE("memory", {.summary = "the machine's memory, faults, refaults, reclaim and swap",
                    .affects = "whether the page cache is too small for the data set",
                    .level = 1,
                    .period_ns = kSecondNs,
                    .check = CheckHostProbe<Memory>,
                    .make = MakeProbe<Memory>});

}  // namespace
}  // namespace headrace::probes
