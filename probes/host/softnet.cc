// Receive processing of the kernel per CPU, summed: packets taken, dropped because the backlog was
// full, and polls that ran out of time or budget with work left.
#include "probes/host/host_probe.h"

namespace headrace::probes {
namespace {

class Softnet : public HostProbe {
  void Sample(const Host& host, const Target&, Reading& out) override {
    const std::string path = "/proc/net/softnet_stat";
    const std::string fix = "a kernel with networking, and /proc mounted";
    const auto text = host.Read(path);
    if (!text) {
      out.MissingFile(path, fix);
      return;
    }
    constexpr const char* kMetrics[] = {"softnet_processed_count", "softnet_dropped_count",
                                        "softnet_time_squeezes_count"};
    double sums[3] = {};
    bool any = false, all = text->ends_with('\n');
    std::string_view rest = *text;
    for (std::string_view line; NextLine(&rest, &line);) {  // one line a CPU, hexadecimal
      const auto fields = Fields(line);
      if (fields.size() < 3) {
        all = false;
        continue;
      }
      for (size_t i = 0; i < 3; i++) {
        const auto value = fields[i].size() == 8 ? Count(fields[i], 16) : std::nullopt;
        all = all && value.has_value();
        sums[i] += static_cast<double>(value.value_or(0));
      }
      any = true;
    }
    if (!any || !all) {  // a sum over some of the CPUs would be another figure
      out.Missing(path + ": content not understood", fix);
      return;
    }
    for (size_t i = 0; i < 3; i++) out.Counter(kMetrics[i], {}, sums[i]);
  }
};

HR_PROBE("softnet", {.summary = "packets processed, dropped and delayed by the kernel",
                     .affects = "packet drops before the socket, of which TCP shows only slowness",
                     .level = 1,
                     .period_ns = kSecondNs,
                     .check = CheckHostProbe<Softnet>,
                     .make = MakeProbe<Softnet>});

}  // namespace
}  // namespace headrace::probes
