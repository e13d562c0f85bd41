// NUMA nodes: memory free and allocations that went to another node than wanted.
#include <fmt/format.h>

#include "probes/host/host_probe.h"

namespace headrace::probes {
namespace {

struct NodeCounter {
  const char* key;
  const char* metric;
};
constexpr NodeCounter kNodeCounters[] = {
    {"numa_hit", "numa_hit_count"},         {"numa_miss", "numa_miss_count"},
    {"numa_foreign", "numa_foreign_count"}, {"interleave_hit", "numa_interleave_count"},
    {"local_node", "numa_local_count"},     {"other_node", "numa_other_count"},
};
struct NodeMemory {
  const char* key;
  const char* cause;
};
constexpr NodeMemory kNodeMemory[] = {{"MemTotal", "total"},
                                      {"MemFree", "free"},
                                      {"FilePages", "page cache"},
                                      {"AnonPages", "anonymous"}};

class Numa : public HostProbe {
  void Sample(const Host& host, const Target&, Reading& out) override {
    const std::string folder = "/sys/devices/system/node";
    const std::string fix = "a kernel built with CONFIG_NUMA, and /sys mounted";
    for (const std::string& name : host.List(folder)) {
      if (!NumberAfter(name, "node")) continue;
      const std::string path = folder + "/" + name;
      if (const auto text = host.Read(path + "/numastat", 65536)) {
        for (const NodeCounter& m : kNodeCounters) {
          if (const auto count = KeyedCount(*text, m.key)) {
            out.Counter(m.metric, Subject(name), static_cast<double>(*count));
          }
        }
      } else {
        out.MissingFile(path + "/numastat", fix);
      }
      if (const auto text = host.Read(path + "/meminfo", 65536)) {
        // Lines "Node 0 MemTotal:       12282060 kB".
        const std::string prefix = fmt::format("Node {} ", name.substr(4));
        for (const NodeMemory& m : kNodeMemory) {
          if (const auto kib = KeyedCount(*text, prefix + m.key)) {
            out.Gauge("numa_memory_bytes", Subject(name, m.cause),
                      static_cast<double>(*kib) * 1024);
          }
        }
      } else {
        out.MissingFile(path + "/meminfo", fix);
      }
    }
    if (out.empty()) out.Missing("no NUMA node to read in " + folder, fix);
  }
};

HR_PROBE("numa", {.summary = "memory and misplaced allocations of each NUMA node",
                  .affects = "remote memory as a cause of slow operators",
                  .level = 1,
                  .period_ns = kSecondNs,
                  .check = CheckHostProbe<Numa>,
                  .make = MakeProbe<Numa>});

}  // namespace
}  // namespace headrace::probes
