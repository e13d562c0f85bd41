#include "dashboards/report/make_report.h"

#include <fmt/format.h>

#include <algorithm>

#include "analysis/model/bottleneck.h"
#include "base/error.h"
#include "base/units.h"
#include "dashboards/report/first_page.h"

namespace headrace::dashboards {
namespace {

// Every page says at its top how much could be seen, and what kept it from being more.
std::string TitleOf(const analysis::RunView& run) {
  std::string title = fmt::format("run {} '{}', ", run.run.run_id, run.run.name);
  title += run.run.accounting_level == 0
               ? "seen from outside"
               : fmt::format("measurement level {}", run.run.accounting_level);
  if (run.run.level_asked) return title + fmt::format(" (--level {})", *run.run.level_asked);
  if (run.run.accounting_level >= 3) return title;
  for (const analysis::ProbeRow& probe : run.probes) {
    if (probe.probe == "off-CPU time" && probe.state == "unavailable") {
      return title + fmt::format("; no eBPF: {}", probe.reason);
    }
  }
  return title;
}

std::vector<std::pair<std::string, const SectionEntry*>> OrderedSections() {
  std::vector<std::pair<std::string, const SectionEntry*>> order;
  for (const auto& [name, entry] : Registry<SectionEntry>::Global().entries()) {
    order.push_back({name, &entry});
  }
  std::stable_sort(order.begin(), order.end(),
                   [](const auto& a, const auto& b) { return a.second->order < b.second->order; });
  return order;
}

const Quantity* FactOf(const Section& section, const std::string& key) {
  for (const Fact& fact : section.facts) {
    if (fact.key == key) return std::get_if<Quantity>(&fact.value);
  }
  return nullptr;
}

// Whether the recorder measured less from some instant on, since recording took too much.
bool SteppedDown(const analysis::RunView& run) {
  return std::any_of(run.probes.begin(), run.probes.end(),
                     [](const analysis::ProbeRow& probe) { return probe.is_stopped_for_cost(); });
}

// "recording took 1.3 % of the machine; no events lost", from the section that has it whole.
void AddCost(const analysis::RunView& run, const std::vector<Section>& sections, FirstPage* page) {
  for (const Section& section : sections) {
    if (section.key != "cost") continue;
    const Quantity* share = FactOf(section, "machine_ratio");
    const Quantity* of_core = FactOf(section, "collector_cpu_ratio");
    std::string text = "the cost of recording is unknown";
    if (share != nullptr && share->available()) {
      text = fmt::format("recording took {} of the machine", FormatPercent(share->value()));
    } else if (of_core != nullptr && of_core->available()) {
      text = fmt::format("recording took {} of one core", FormatPercent(of_core->value()));
    }
    const Quantity* lost = FactOf(section, "events_lost_count");
    if (lost != nullptr && lost->available()) {
      text += lost->value() < 1 ? "; no events lost"
                                : fmt::format("; {:.0f} event{} lost (section cost)", lost->value(),
                                              lost->value() < 1.5 ? "" : "s");
    }
    if (SteppedDown(run))
      text += "; some probes were stopped because they cost too much (section probes)";
    page->lines.push_back({"cost", text});
    return;
  }
}

void AddMore(const analysis::RunView& run, FirstPage* page) {
  const std::string report =
      fmt::format("{} report {}{}", run.program, run.run.run_id, run.database_option);
  page->lines.push_back({"more", fmt::format("{} --full", report), true});
}

}  // namespace

std::vector<std::string> SectionNames() {
  std::vector<std::string> names;
  for (const auto& [name, entry] : OrderedSections()) {
    names.push_back(name);
    std::replace(names.back().begin(), names.back().end(), ' ', '-');
  }
  return names;
}

Report OnlySections(Report report, const std::vector<std::string>& names) {
  Report only;
  only.title = std::move(report.title);
  only.decided = report.decided;
  const std::vector<std::string> known = SectionNames();
  for (std::string name : names) {
    std::replace(name.begin(), name.end(), ' ', '-');
    if (std::find(known.begin(), known.end(), name) == known.end()) {
      const std::string nearest = NearestName(name, known);
      std::string list;
      for (const std::string& each : known) list += (list.empty() ? "" : ", ") + each;
      throw Error(ExitCode::kUsage,
                  fmt::format("no section is called '{}'{}", Printable(name, 60),
                              nearest.empty() ? "" : fmt::format(". Did you mean '{}'?", nearest)),
                  "", "sections: " + list);
    }
    const auto found = std::find_if(report.sections.begin(), report.sections.end(),
                                    [&](const Section& section) { return section.name == name; });
    if (found == report.sections.end()) {
      throw Error(ExitCode::kInconclusive, fmt::format("this run has nothing to say on '{}'", name),
                  "", "'headrace doctor' says what can be measured here");
    }
    only.sections.push_back(*found);
  }
  return only;
}

Report MakeReport(const analysis::RunView& run, const analysis::Statements& statements) {
  Report report;
  report.title = TitleOf(run);
  report.first = MakeFirstPage(run, statements);
  for (const auto& [name, entry] : OrderedSections()) {
    if (std::optional<Section> section = entry->make(run, statements)) {
      section->name = name;
      std::replace(section->name.begin(), section->name.end(), ' ', '-');
      report.sections.push_back(std::move(*section));
    }
  }
  AddCost(run, report.sections, &report.first);
  AddMore(run, &report.first);
  report.decided = statements.bottleneck.has_value()
                       ? statements.bottleneck->verdict != analysis::Verdict::kUndecided
                       : statements.outside.has_value() && statements.outside->decided;
  return report;
}

}  // namespace headrace::dashboards
