// What recording cost, what was lost, and which measurements were not to be had.
#include <fmt/format.h>

#include "base/units.h"
#include "dashboards/report/report.h"
#include "dashboards/report/wording.h"

namespace headrace::dashboards {
namespace {

std::optional<Section> Cost(const analysis::RunView& run, const analysis::Statements&) {
  Section section{"cost", "", {}, {}, {}};
  const analysis::HostRow* cpu = run.FindHost("collector_cpu_ns");
  const analysis::HostRow* rss = run.FindHost("collector_rss_bytes");
  std::optional<double> cpu_ratio, bytes;
  if (cpu != nullptr && cpu->last_value && run.run.duration_ns > 0) {
    cpu_ratio = *cpu->last_value / static_cast<double>(run.run.duration_ns);
  }
  if (rss != nullptr) bytes = rss->maximum_value;
  int64_t lost = 0, total = 0;
  for (const analysis::LossRow& loss : run.losses) {
    lost += loss.lost_count;
    total += loss.total_count.value_or(0);
  }
  section.facts = {
      {"collector_cpu_ratio", Ratio(cpu_ratio, "the collector's CPU time was not recorded")},
      {"collector_rss_bytes", Bytes(bytes, "the collector's memory was not recorded")},
      {"events_lost_count", Number(static_cast<double>(lost), Unit::kCount, "")}};
  std::string text = cpu_ratio
                         ? fmt::format("recording used {} of one core", FormatPercent(*cpu_ratio))
                         : std::string("recording cost unavailable (not recorded)");
  if (bytes) text += ", " + FormatBytes(*bytes);
  text += total > 0 ? fmt::format("; {} of {} events lost", lost, total)
                    : fmt::format("; {} events lost", lost);
  section.sentences.push_back({"COST", text});
  if (lost > 0 && total > 0 && lost * 100 > total) {
    section.sentences.push_back(
        {"WARNING", "more than 1 % of the events are missing: figures are low"});
  }
  return section;
}

std::optional<Section> Probes(const analysis::RunView& run,
                              const analysis::Statements& statements) {
  Section section{"measurements", "Measurements", {}, {}, {}};
  section.facts = {
      {"accounting_level", Number(static_cast<double>(run.run.accounting_level), Unit::kCount, "")},
      {"accounting_note", run.run.accounting_note}};
  if (statements.model) {
    const analysis::PipelineModel& model = *statements.model;
    section.sentences.push_back(
        {"phase", fmt::format("steady from {} to {} of {}",
                              FormatDuration(static_cast<double>(model.steady_first_ns())),
                              FormatDuration(static_cast<double>(model.steady_last_ns())),
                              FormatDuration(static_cast<double>(run.run.duration_ns)))});
    section.sentences.push_back(
        {"level",
         fmt::format("accounting level {}; c from {}", run.run.accounting_level,
                     model.splits_cpu() ? model.split_source()
                                        : std::string("nothing: not split from b and q"))});
  }
  Table table{"probes",
              "",
              {{"probe", "probe"}, {"state", "state"}, {"reason", "reason"}, {"fix", "fix"}},
              {}};
  for (const analysis::ProbeRow& probe : run.probes) {
    table.rows.push_back({probe.probe, probe.state, probe.reason, probe.fix});
  }
  if (!table.rows.empty()) section.tables.push_back(std::move(table));
  return section;
}

HR_SECTION("cost", 5, Cost);
[[maybe_unused]] const bool probes_registered =
    Registry<SectionEntry>::Global().Add("probes", {40, Probes});

}  // namespace
}  // namespace headrace::dashboards
