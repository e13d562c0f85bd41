// The phases of a run: how its time went, what the ends of epochs cost, and what changed for good
// while it ran.
#include "analysis/run/phases.h"

#include <fmt/format.h>

#include <cmath>

#include "base/units.h"
#include "dashboards/report/report.h"
#include "dashboards/report/wording.h"

namespace headrace::dashboards {
namespace {

using analysis::EpochEdges;
using analysis::Phase;
using analysis::PhaseKind;
using analysis::Phases;

std::string Rows(double rows) { return fmt::format("{:.0f}", rows); }

void AddEdges(const Phases& phases, Section* section) {
  const EpochEdges& edges = phases.edges;
  if (!edges.unknown.empty()) {
    section->facts.push_back(
        {"epoch_edge_lost_rows", Quantity::Unavailable(edges.unknown, Unit::kCount)});
    return;
  }
  section->facts.push_back(
      {"epoch_edges_count", Number(static_cast<double>(edges.edges), Unit::kCount, "")});
  section->facts.push_back({"epoch_edge_lost_rows",
                            Quantity::Of(edges.lost_rows, Unit::kCount, Source::kEstimate)
                                .WithInterval(edges.lost_interval.low, edges.lost_interval.high)});
  section->facts.push_back(
      {"epoch_edge_lost_ratio", Quantity::Of(edges.lost_ratio, Unit::kRatio, Source::kEstimate)});
  if (!edges.separated) {
    section->sentences.push_back(
        {"epochs", fmt::format("{} ends of epochs have no measurable cost: {} rows each [{}, {}]",
                               edges.edges, Rows(edges.lost_rows), Rows(edges.lost_interval.low),
                               Rows(edges.lost_interval.high))});
    return;
  }
  section->sentences.push_back(
      {"epochs",
       fmt::format(
           "each of {} ends of an epoch costs {} rows [{}, {}] relative to the rate between "
           "them, in all {} of the steady rows; no other statement counts them",
           edges.edges, Rows(edges.lost_rows), Rows(edges.lost_interval.low),
           Rows(edges.lost_interval.high), FormatPercent(edges.lost_ratio))});
  section->sentences.push_back(
      {"do", fmt::format("read the next epoch's first splits before the last batches of this one "
                         "are taken: {:.0f} batches more in the queue before the trainer "
                         "(pipeline.prefetch) bridge such an end",
                         std::ceil(std::max(1.0, edges.lost_steps)))});
}

std::optional<Section> PhasesSection(const analysis::RunView& /*run*/,
                                     const analysis::Statements& statements) {
  if (!statements.model) return std::nullopt;
  const Phases& phases = statements.model->phases();
  if (phases.phases.empty()) return std::nullopt;
  Section section{"phases", "Phases (statements are of the steady one)", {}, {}, {}};
  if (const std::string drift = DriftText(phases); !drift.empty()) {
    section.sentences.push_back({"change", drift});
    section.facts.push_back({"change", drift});
    section.facts.push_back(
        {"change_seconds", Quantity::Of(static_cast<double>(phases.drift->at_ns),
                                        Unit::kNanoseconds, Source::kAccount)});
  }
  AddEdges(phases, &section);
  Table table{"run_phases",
              "",
              {{"phase", "phase"},
               {"from_seconds", "from"},
               {"to_seconds", "to"},
               {"time_ratio", "of the time"},
               {"batches_per_second", "rate"}},
              {}};
  int64_t all_ns = 0;
  for (const Phase& phase : phases.phases) all_ns += phase.time_ns;
  const auto instant = [](int64_t ns) {
    return Quantity::Of(static_cast<double>(ns), Unit::kNanoseconds, Source::kAccount);
  };
  for (const Phase& phase : phases.phases) {
    const double seconds = static_cast<double>(phase.time_ns) * 1e-9;
    table.rows.push_back(
        {std::string(analysis::PhaseKindName(phase.kind)), instant(phase.start_ns),
         instant(phase.end_ns),
         Ratio(all_ns > 0 ? std::optional<double>(static_cast<double>(phase.time_ns) /
                                                  static_cast<double>(all_ns))
                          : std::nullopt,
               "no time"),
         Number(seconds > 0
                    ? std::optional<double>(static_cast<double>(phase.steps_count) / seconds)
                    : std::nullopt,
                Unit::kPerSecond, "no time")});
  }
  section.tables.push_back(std::move(table));
  return section;
}

HR_SECTION("phases", 21, PhasesSection);

}  // namespace
}  // namespace headrace::dashboards
