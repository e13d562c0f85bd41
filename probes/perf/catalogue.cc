#include "probes/perf/catalogue.h"

#include <fmt/format.h>
#include <linux/perf_event.h>

#include <algorithm>

#include "probes/host/text.h"
#include "probes/metric.h"
#include "probes/perf/cpu_families.h"

namespace headrace::probes::perf {
namespace {

struct WordMetric {
  std::string_view word, metric;
};
constexpr WordMetric kWordMetrics[] = {
    {"cycles", "cycles_count"},
    {"instructions", "instructions_count"},
    {"branches", "branches_count"},
    {"branch_misses", "branch_misses_count"},
    {"llc_references", "llc_references_count"},
    {"llc_misses", "llc_misses_count"},
    {"dtlb_misses", "dtlb_misses_count"},
    {"stalls_frontend", "stalls_frontend_count"},
    {"stalls_backend", "stalls_backend_count"},
    {"stalls_memory", "stalls_memory_count"},
};

// The events, groups and formulas of a family.
void AppendFamily(const CpuFamily& family, std::string* text) {
  *text += fmt::format("\n## {}\n\n", family.name);
  if (!family.note.empty()) *text += fmt::format("Note: {}.\n\n", family.note);
  if (family.slots_per_cycle > 0) {
    *text += fmt::format("Slots per cycle: {}.\n\n", family.slots_per_cycle);
  }
  *text += "| word | code | in libpfm4 | note |\n| --- | --- | --- | --- |\n";
  for (const CatalogueEvent& e : family.events) {
    const char* type = e.code.type == PERF_TYPE_HARDWARE   ? "generic "
                       : e.code.type == PERF_TYPE_HW_CACHE ? "generic cache "
                                                           : "";
    const bool known = !family.libpfm.empty() && !e.libpfm.empty();
    *text += fmt::format("| {} | {}{:#x} | {} | {} |\n", e.word, type, e.code.config,
                         known ? fmt::format("`{}::{}`", family.libpfm, e.libpfm) : "", e.note);
  }
  *text += "\n| group | events | gives | formula |\n| --- | --- | --- | --- |\n";
  for (const CatalogueGroup& group : family.groups) {
    std::string words;
    for (const std::string_view word : group.words) {
      if (!family.Find(word)) continue;
      words += fmt::format("{}{}", words.empty() ? "" : ", ", word);
    }
    if (group.formulas.empty()) *text += fmt::format("| {} | {} | | |\n", group.name, words);
    for (const Formula& f : group.formulas) {
      *text += fmt::format("| {} | {} | `{}` | `{}`{} |\n", group.name, words, f.metric,
                           f.expression.text(), f.note.empty() ? "" : fmt::format("; {}", f.note));
    }
  }
}

}  // namespace

std::optional<std::string_view> MetricOfWord(std::string_view word) {
  for (const WordMetric& m : kWordMetrics) {
    if (m.word == word) return m.metric;
  }
  return std::nullopt;
}

const std::vector<CpuFamily>& Catalogue() {
  static const std::vector<CpuFamily> catalogue = CpuFamilies();
  return catalogue;
}

const CpuFamily& FindFamily(const CpuId& id) {
  const auto& all = Catalogue();
  return *std::find_if(all.begin(), all.end(), [&](const CpuFamily& f) { return f.matches(id); });
}

std::optional<double> SlotsPerCycle(const CpuFamily& family, const Host& host) {
  if (family.slots_per_cycle > 0) return family.slots_per_cycle;
  const std::string devices = "/sys/bus/event_source/devices";
  for (const std::string& device : host.List(devices)) {
    if (!device.starts_with("armv8") && !device.starts_with("armv9")) continue;
    const auto word = ReadWord(host, devices + "/" + device + "/caps/slots");
    if (!word || !word->starts_with("0x")) continue;
    const auto slots = Count(std::string_view(*word).substr(2), 16);
    if (slots && *slots > 0 && *slots <= 64) return static_cast<double>(*slots);
  }
  return std::nullopt;
}

std::string CatalogueDocument() {
  std::string out =
      "# Hardware events\n"
      "\n"
      "Written from the event catalogue (`probes/perf/cpu_families.cc`) by a test, which fails "
      "when "
      "the two differ.\n"
      "Codes are what `perf_event_open` is given as `config`; type `raw` unless said otherwise. "
      "Each was checked against a second table,\n"
      "and every test run compares them with libpfm4's. Events of one group are always counted "
      "together; the base group counts all the time,\n"
      "the others take turns. A ratio is computed only from events of one group and of the base "
      "group.\n"
      "\n"
      "Memory bandwidth and energy are at the end: their events come from the kernel (sysfs).\n"
      "\n"
      "## What is counted\n"
      "\n"
      "| word | metric | meaning |\n"
      "| --- | --- | --- |\n";
  for (const WordMetric& m : kWordMetrics) {
    const Metric* metric = FindMetric(m.metric);
    out += fmt::format("| {} | `{}` | {} |\n", m.word, m.metric, metric ? metric->help : "");
  }
  for (const CpuFamily& family : Catalogue()) AppendFamily(family, &out);
  out += R"(
## Memory bandwidth and energy

Counted for everything that runs, by the PMUs that `/sys/bus/event_source/devices` describes (type, CPUs, packing of fields,
named events with scale and unit), which takes root or CAP_PERFMON. The best that works is used; the label `cause` says which.

| cause | where | events | bytes of a count | source |
| --- | --- | --- | --- | --- |
| memory controllers | Intel: `uncore_imc*` | `cas_count_read*`, `cas_count_write*`; desktops: `data_read`, `data_write` | scale and unit; else 64 | counter |
| memory controllers | AMD, Linux 6.7 and later: `amd_umc_*` | `event=0x0a`, `rdwrmask` 0x1 read, 0x2 written | 64 | counter |
| data fabric | AMD Zen 2 and 3: `amd_df` | `event=0x07` + 0x40 a channel (8), `umask=0x38`: both directions | 64 | counter |
| data fabric | AMD Zen 4: `amd_df` | `event=0x1f` + 0x40 a channel (12), `umask` 0x7fe read, 0x7ff written; for the other socket 0xbfe, 0xbff | 64 | counter |
| SoC fabric | NVIDIA: `nvidia_scf_pmu_*` | `cmem_rd_data`, `cmem_wr_total_bytes` | 32, 1 | estimate |
| SoC fabric | Arm's mesh: `arm_cmn_*` | `hnf_mc_reqs` | 64 | estimate |
| resctrl | `/sys/fs/resctrl`, by last-level cache | `mbm_total_bytes` | 1 | counter |
| LLC misses | every core | `llc_misses` of the tables above; no write-backs, no DMA | 64 | estimate |

Without any of these, reports take the LLC misses of the run's own processes, else the bytes that operators accounted for, and say so.
Energy (`energy_joules`) comes from the power capping interface; where that cannot be read, from the PMU `power`
(`energy-pkg`, `energy-ram`, `energy-cores`, `energy-gpu`, `energy-psys`), never from both.
)";
  return out;
}

}  // namespace headrace::probes::perf
