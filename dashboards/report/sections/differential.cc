// The differential stall table: what a batch costs without input, from memory, and from the device,
// by runs that are alike in every other condition that the store knows.
#include "analysis/advice/differential.h"

#include <fmt/format.h>

#include "base/units.h"
#include "dashboards/report/report.h"
#include "dashboards/report/wording.h"

namespace headrace::dashboards {
namespace {

using analysis::Differential;
using analysis::DifferentialRun;
using analysis::ReadState;
using analysis::Share;

constexpr double kSlowerStep = 1.05;  // worth a sentence

Quantity ShareQuantity(const std::optional<Share>& share, const std::string& missing) {
  if (!share) return Quantity::Unavailable(missing, Unit::kRatio);
  return Quantity::Of(share->value, Unit::kRatio, Source::kEstimate)
      .WithInterval(share->interval.low, share->interval.high);
}

void AddRow(const char* what, const char* stall, const std::optional<DifferentialRun>& run,
            const std::optional<Share>& share, const std::string& missing, Table* table) {
  if (!run) {
    table->rows.push_back({std::string(what), std::string(stall), std::string("-"),
                           Quantity::Unavailable(missing, Unit::kPerSecond),
                           Quantity::Unavailable(missing, Unit::kNanoseconds),
                           ShareQuantity({}, missing)});
    return;
  }
  table->rows.push_back({std::string(what), std::string(stall),
                         run->own ? std::string("this run") : fmt::format("run {}", run->run_id),
                         Quantity::Of(run->rate, Unit::kPerSecond, Source::kAccount)
                             .WithInterval(run->rate_interval.low, run->rate_interval.high),
                         Quantity::Of(1e9 / run->rate, Unit::kNanoseconds, Source::kAccount),
                         ShareQuantity(share, "the run before it in this table is missing")});
}

std::string StateText(const Differential& found) {
  switch (found.state) {
    case ReadState::kUnknown:
      return "whether this run read from memory or from the device was not counted";
    case ReadState::kNone:
      return "this run reads no table that a page cache here could hold: there is no fetch stall "
             "to find";
    case ReadState::kMixed:
      return fmt::format(
          "this run was neither warm nor cold, so it is not compared with such a run: devices "
          "delivered {} of the bytes it read",
          FormatPercent(*found.device_ratio));
    default:
      return fmt::format("this run was {}: devices delivered {} of the bytes it read",
                         analysis::ReadStateName(found.state), FormatPercent(*found.device_ratio));
  }
}

// Whether there are runs to compare with: otherwise the section only says what is missing.
bool IsCompared(const Differential& found) {
  return found.ceiling.has_value() || (found.warm.has_value() && found.cold.has_value());
}

std::vector<Fact> StallFacts(const Differential& found) {
  return {{"read_state", analysis::ReadStateName(found.state)},
          {"device_ratio", Ratio(found.device_ratio, "bytes from devices were not counted")},
          {"input_bound_ratio", ShareQuantity(found.input_bound, "no run without input")},
          {"prep_stall_ratio", ShareQuantity(found.prep, "a warm run or the ceiling is missing")},
          {"fetch_stall_ratio", ShareQuantity(found.fetch, "a warm or a cold run is missing")},
          {"opinion",
           found.opinion ? analysis::InputOpinionName(*found.opinion) : std::string("none")}};
}

void SayWhatDiffers(const Differential& found, Section* section) {
  section->sentences.push_back({"compares", StateText(found)});
  if (found.input_bound) {
    section->sentences.push_back(
        {"input", fmt::format("{} {} of this run's time goes into input: 1 - rate / ceiling",
                              FormatPercent(found.input_bound->value),
                              PercentInterval(found.input_bound->interval))});
  }
  if (found.step_slowdown && *found.step_slowdown > kSlowerStep) {
    section->sentences.push_back(
        {"steps", fmt::format("a step computes {:.2f} times as long beside the pipeline as without "
                              "it: they share the cores, so input costs more than the waits show",
                              *found.step_slowdown)});
  }
  if (found.opinion) {
    section->sentences.push_back(
        {"says",
         fmt::format("{} limits: {}", analysis::InputOpinionName(*found.opinion), found.because)});
  } else if (!found.because.empty()) {
    section->sentences.push_back({"says", "undecided: " + found.because});
  }
}

void SayMissingRuns(const Differential& found, Section* section) {
  if (found.missing.empty()) return;
  std::string what, command;
  for (const Differential::Missing& missing : found.missing) {
    what += (what.empty() ? "" : "; ") + missing.what;
    if (missing.command.empty()) continue;
    command += (command.empty() ? "" : " && ") + missing.command;
  }
  section->sentences.push_back(
      {"missing", fmt::format("{}{}", IsCompared(found) ? "" : "a third opinion needs ", what)});
  section->facts.push_back({"missing", what});
  if (command.empty()) return;
  section->sentences.push_back({"", command, true});
  section->facts.push_back({"missing_command", command});
}

Table StallTable(const Differential& found) {
  Table table{"differential_stalls",
              "",
              {{"run_kind", "the pipeline"},
               {"stall", "its share is"},
               {"run", "run"},
               {"batches_per_second", "rate"},
               {"batch_seconds", "a batch"},
               {"share_ratio", "of a batch"}},
              {}};
  table.machine_only = !IsCompared(found);
  AddRow("without input (one batch repeated)", "the trainer", found.ceiling, found.consumer,
         "no run with --ceiling", &table);
  AddRow("table in memory", "prep stall", found.warm, found.prep, "no warm run", &table);
  if (found.state != ReadState::kNone) {
    AddRow("table on the device", "fetch stall", found.cold, found.fetch, "no run with --cold",
           &table);
  }
  return table;
}

std::optional<Section> DifferentialStalls(const analysis::RunView& run,
                                          const analysis::Statements& statements) {
  if (!statements.differential) return std::nullopt;
  const Differential& found = *statements.differential;
  Section section{"differential", "", {}, {}, {}};
  if (run.run.pipeline_path.empty() || !run.run.settings_text) {
    section.facts.push_back({"unavailable",
                             "only runs made by 'headrace run' know their conditions, and so which "
                             "other runs differ from them in one thing"});
    return section;
  }
  section.title =
      "Differential stalls (the same pipeline without input, from memory, from the device; 90 % "
      "interval)";
  section.facts = StallFacts(found);
  if (IsCompared(found)) SayWhatDiffers(found, &section);
  SayMissingRuns(found, &section);
  section.tables.push_back(StallTable(found));
  return section;
}

HR_SECTION("stalls", 7, DifferentialStalls);

}  // namespace
}  // namespace headrace::dashboards
