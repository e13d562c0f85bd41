// The machine: pressure, steal, interfaces, accelerators, energy.
#include <fmt/format.h>

#include <algorithm>
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

// Rows of the machine about one subject: an interface, a processor package.
Wanted OfMachineSubject(const std::string& subject) {
  return [subject](const MeasurementRow& row) { return OfMachine(row) && row.subject == subject; };
}

std::set<std::string> SubjectsOf(const RunView& run, const std::string& metric) {
  std::set<std::string> subjects;
  for (const MeasurementRow& row : run.measurements) {
    if (OfMachine(row) && row.metric == metric) subjects.insert(row.subject);
  }
  return subjects;
}

void AddPressure(const RunView& run, Section* section) {
  // Pressure is counted from before the run on: its share is of the time it was counted.
  double counted_ns = static_cast<double>(run.run.duration_ns);
  for (const MeasurementRow& row : run.measurements) {
    if (row.metric == "pressure_window_ns" && row.last_value) {
      counted_ns = std::max(counted_ns, *row.last_value);
    }
  }
  std::string text;
  for (const char* cause : {"cpu some", "io some", "io full", "memory some", "memory full"}) {
    const auto sum = SumOf(run, "pressure_ns", [&](const MeasurementRow& row) {
      return OfMachine(row) && row.cause == cause && row.subject.empty();
    });
    std::optional<double> ratio;
    if (sum && counted_ns > 0) ratio = std::min(1.0, *sum / counted_ns);
    std::string key = std::string("pressure_") + cause + "_ratio";
    std::replace(key.begin(), key.end(), ' ', '_');
    section->facts.push_back({key, Ratio(ratio, WhyNot(run, {"pressure"}))});
    if (ratio && *ratio >= 0.001) {
      text += fmt::format("{}{} {}", text.empty() ? "" : ", ", cause, FormatPercent(*ratio));
    }
  }
  if (!text.empty()) section->sentences.push_back({"pressure", text + " of the time"});
}

void AddSteal(const RunView& run, Section* section) {
  std::optional<double> cores;
  const auto steal_ns = SumOf(run, "steal_ns", OfMachine);
  if (steal_ns && run.run.duration_ns > 0) {
    cores = *steal_ns / static_cast<double>(run.run.duration_ns);
  }
  section->facts.push_back({"steal_cores", Number(cores, Unit::kCores, WhyNot(run, {"cpu"}))});
  if (cores && *cores >= 0.01) {
    section->sentences.push_back(
        {"steal", fmt::format("{:.2f} cores taken by the hypervisor", *cores)});
  }
}

void AddInterfaces(const RunView& run, Section* section) {
  Table table{"interfaces",
              "",
              {{"interface", "interface"},
               {"received_bytes_per_second", "received"},
               {"sent_bytes_per_second", "sent"},
               {"use_ratio", "of its speed"},
               {"drops_count", "drops"}},
              {}};
  table.text_rows = 4;
  for (const std::string& name : SubjectsOf(run, "nic_received_bytes")) {
    const auto rate = [&](const char* metric) {
      const auto bytes = PerSecond(run, SumOf(run, metric, OfMachineSubject(name)));
      return Number(bytes, Unit::kBytesPerSecond, "not counted");
    };
    std::optional<double> use;
    for (const MeasurementRow& row : run.measurements) {
      if (row.metric == "nic_use_ratio" && row.subject == name && row.value) {
        use = std::max(use.value_or(0), *row.value);
      }
    }
    table.rows.push_back({name, rate("nic_received_bytes"), rate("nic_sent_bytes"),
                          Ratio(use, "the driver does not report the link's speed"),
                          Number(SumOf(run, "nic_drops_count", OfMachineSubject(name)),
                                 Unit::kCount, "not counted")});
  }
  if (!table.rows.empty()) section->tables.push_back(std::move(table));
}

void AddEnergy(const RunView& run, const analysis::Statements& statements, Section* section) {
  const std::set<std::string> domains = SubjectsOf(run, "energy_joules");
  if (domains.empty()) {
    section->facts.push_back({"energy_unavailable", WhyNot(run, {"energy"})});
    return;
  }
  double joules = 0;  // of the packages; other domains are parts of them
  for (const std::string& name : domains) {
    const double value = SumOf(run, "energy_joules", OfMachineSubject(name)).value_or(0);
    section->facts.push_back({"energy_joules." + name, Number(value, Unit::kCount, "")});
    if (name.find("package") != std::string::npos) joules += value;
  }
  std::string text = fmt::format("{:.1f} J, {:.1f} W in the processor packages", joules,
                                 PerSecond(run, joules).value_or(0));
  if (run.steps.rows_count > 0 && statements.doubts.steps.empty()) {
    text +=
        fmt::format("; {:.3g} mJ a row", 1000 * joules / static_cast<double>(run.steps.rows_count));
  }
  section->sentences.push_back({"energy", text});
}

std::optional<Section> Machine(const RunView& run, const analysis::Statements& statements) {
  Section section{"machine", "", {}, {}, {}};
  AddPressure(run, &section);
  AddSteal(run, &section);
  AddInterfaces(run, &section);
  AddAcceleratorTable(run, statements, &section);
  AddEnergy(run, statements, &section);
  if (!section.sentences.empty() || !section.tables.empty()) section.title = "Machine";
  return section;
}

HR_SECTION("machine", 33, Machine);

}  // namespace
}  // namespace headrace::dashboards
