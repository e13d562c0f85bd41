// TCP of the target's network namespace: segments, retransmissions and what else slows it.
#include <fmt/format.h>

#include <map>
#include <span>

#include "probes/host/host_probe.h"

namespace headrace::probes {
namespace {

// Pairs of lines "Tcp: name name ..." and "Tcp: value value ...".
std::map<std::string, int64_t, std::less<>> ReadPairs(std::string_view text,
                                                      std::string_view title) {
  std::map<std::string, int64_t, std::less<>> values;
  std::vector<std::string_view> names;
  for (std::string_view line; NextLine(&text, &line);) {
    const auto fields = Fields(line, 512);
    if (fields.empty() || fields[0] != title) continue;
    if (names.empty()) {
      names = fields;
      continue;
    }
    if (fields.size() != names.size()) break;
    for (size_t i = 1; i < fields.size(); i++) {
      if (const auto value = Count(fields[i])) values[std::string(names[i])] = *value;
    }
    break;
  }
  return values;
}

struct NamedMetric {
  const char* name;
  const char* metric;
  const char* cause;
};
constexpr NamedMetric kTcp[] = {
    {"InSegs", "host_tcp_segments_count", "received"},
    {"OutSegs", "host_tcp_segments_count", "sent"},
    {"RetransSegs", "host_tcp_retransmits_count", ""},
    {"InErrs", "host_tcp_events_count", "bad segment"},
};
constexpr NamedMetric kTcpMore[] = {
    {"TCPFastRetrans", "host_tcp_events_count", "fast retransmit"},
    {"TCPTimeouts", "host_tcp_events_count", "timeout"},
    {"TCPLossProbes", "host_tcp_events_count", "loss probe"},
    {"TCPSpuriousRTOs", "host_tcp_events_count", "spurious timeout"},
    {"TCPRcvCollapsed", "host_tcp_events_count", "receive queue collapsed"},
    {"PruneCalled", "host_tcp_events_count", "receive queue pruned"},
    {"RcvPruned", "host_tcp_events_count", "received data dropped"},
    {"TCPBacklogDrop", "host_tcp_events_count", "backlog drop"},
    {"TCPOFOQueue", "host_tcp_events_count", "out of order"},
    {"TCPToZeroWindowAdv", "host_tcp_events_count", "window closed"},
    {"TCPFromZeroWindowAdv", "host_tcp_events_count", "window opened"},
    {"TCPMemoryPressures", "host_tcp_events_count", "memory pressure"},
    {"ListenDrops", "host_tcp_events_count", "listen drop"},
};

class Tcp : public HostProbe {
  void Sample(const Host& host, const Target& target, Reading& out) override {
    const auto add = [&](const std::string& name, std::string_view title,
                         std::span<const NamedMetric> metrics) {
      std::string path = fmt::format("/proc/{}/net/{}", target.root_pid, name);
      auto text = host.Read(path);
      if (!text) {
        path = "/proc/net/" + name;
        text = host.Read(path);
      }
      const std::string fix = "a kernel with TCP, and /proc mounted";
      if (!text) {
        out.MissingFile(path, fix);
        return;
      }
      const auto values = ReadPairs(*text, title);
      if (values.empty()) out.Missing(path + ": content not understood", fix);
      for (const NamedMetric& m : metrics) {
        const auto it = values.find(m.name);
        if (it != values.end()) {
          out.Counter(m.metric, Cause(m.cause), static_cast<double>(it->second));
        }
      }
    };
    add("snmp", "Tcp:", kTcp);
    add("netstat", "TcpExt:", kTcpMore);
  }
};

HR_PROBE("tcp", {.summary = "TCP segments, retransmissions and queue overruns",
                 .affects = "whether a slow network read is loss or the sender",
                 .level = 1,
                 .period_ns = kSecondNs,
                 .check = CheckHostProbe<Tcp>,
                 .make = MakeProbe<Tcp>});

}  // namespace
}  // namespace headrace::probes
