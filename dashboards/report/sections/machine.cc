// The machine: pressure, steal, interfaces, accelerators, energy.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "base/units.h"
#include "dashboards/report/accelerator_words.h"
#include "dashboards/report/measured.h"
#include "dashboards/report/report.h"
#include "dashboards/report/wording.h"

namespace headrace::dashboards {
namespace {

using analysis::MeasurementRow;
using analysis::RunView;

bool OfMachine(const MeasurementRow& row) { return !row.process_id && !row.bucket; }

std::optional<Section> Machine(const RunView& run, const analysis::Statements& statements) {
  Section section{"machine", "", {}, {}, {}};
  const double ns = static_cast<double>(run.run.duration_ns);
  const double seconds = ns * 1e-9;
  const auto share = [&](const char* metric, const Wanted& wanted) -> std::optional<double> {
    const auto sum = SumOf(run, metric, wanted);
    return sum && ns > 0 ? std::optional<double>(*sum / ns) : std::nullopt;
  };
  // Pressure is counted from before the run on: its share is of the time it was counted.
  double pressure_ns = ns;
  for (const MeasurementRow& row : run.measurements) {
    if (row.metric == "pressure_window_ns" && row.last_value) {
      pressure_ns = std::max(pressure_ns, *row.last_value);
    }
  }
  std::string pressure;
  for (const char* cause : {"cpu some", "io some", "io full", "memory some", "memory full"}) {
    const auto sum = SumOf(run, "pressure_ns", [&](const MeasurementRow& row) {
      return OfMachine(row) && row.cause == cause && row.subject.empty();
    });
    std::optional<double> ratio;
    if (sum && pressure_ns > 0) ratio = std::min(1.0, *sum / pressure_ns);
    std::string key = std::string("pressure_") + cause + "_ratio";
    std::replace(key.begin(), key.end(), ' ', '_');
    section.facts.push_back({key, Ratio(ratio, WhyNot(run, {"pressure"}))});
    if (ratio && *ratio >= 0.001) {
      pressure +=
          fmt::format("{}{} {}", pressure.empty() ? "" : ", ", cause, FormatPercent(*ratio));
    }
  }
  if (!pressure.empty()) section.sentences.push_back({"pressure", pressure + " of the time"});
  const auto steal = share("steal_ns", OfMachine);
  section.facts.push_back({"steal_cores", Number(steal, Unit::kCores, WhyNot(run, {"cpu"}))});
  if (steal && *steal >= 0.01) {
    section.sentences.push_back(
        {"steal", fmt::format("{:.2f} cores taken by the hypervisor", *steal)});
  }

  std::set<std::string> interfaces, packages;
  for (const MeasurementRow& row : run.measurements) {
    if (!OfMachine(row)) continue;
    if (row.metric == "nic_received_bytes") interfaces.insert(row.subject);
    if (row.metric == "energy_joules") packages.insert(row.subject);
  }
  const auto of = [](const std::string& subject, const std::string& cause = "") {
    return [=](const MeasurementRow& row) {
      return OfMachine(row) && row.subject == subject && (cause.empty() || row.cause == cause);
    };
  };
  if (!interfaces.empty()) {
    Table table{"interfaces",
                "",
                {{"interface", "interface"},
                 {"received_bytes_per_second", "received"},
                 {"sent_bytes_per_second", "sent"},
                 {"use_ratio", "of its speed"},
                 {"drops_count", "drops"}},
                {}};
    table.text_rows = 4;
    for (const std::string& name : interfaces) {
      const auto rate = [&](const char* metric) {
        const auto bytes = SumOf(run, metric, of(name));
        return bytes && seconds > 0 ? std::optional<double>(*bytes / seconds) : std::nullopt;
      };
      std::optional<double> use;
      for (const MeasurementRow& row : run.measurements) {
        if (row.metric == "nic_use_ratio" && row.subject == name && row.value) {
          use = std::max(use.value_or(0), *row.value);
        }
      }
      table.rows.push_back(
          {name, Number(rate("nic_received_bytes"), Unit::kBytesPerSecond, "not counted"),
           Number(rate("nic_sent_bytes"), Unit::kBytesPerSecond, "not counted"),
           Ratio(use, "the driver does not report the link's speed"),
           Number(SumOf(run, "nic_drops_count", of(name)), Unit::kCount, "not counted")});
    }
    section.tables.push_back(std::move(table));
  }
  AddAcceleratorTable(run, statements, &section);
  if (packages.empty()) {
    section.facts.push_back({"energy_unavailable", WhyNot(run, {"energy"})});
  } else {
    double joules = 0;
    for (const std::string& name : packages) {
      const double value = SumOf(run, "energy_joules", of(name)).value_or(0);
      section.facts.push_back({"energy_joules." + name, Number(value, Unit::kCount, "")});
      if (name.find("package") != std::string::npos) joules += value;
    }
    std::string text = fmt::format("{:.1f} J, {:.1f} W in the processor packages", joules,
                                   seconds > 0 ? joules / seconds : 0);
    if (run.steps.rows_count > 0 && statements.doubts.steps.empty()) {
      text += fmt::format("; {:.3g} mJ a row",
                          1000 * joules / static_cast<double>(run.steps.rows_count));
    }
    section.sentences.push_back({"energy", text});
  }
  if (!section.sentences.empty() || !section.tables.empty()) section.title = "Machine";
  return section;
}

HR_SECTION("machine", 33, Machine);

}  // namespace
}  // namespace headrace::dashboards
