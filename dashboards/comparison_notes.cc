#include "dashboards/comparison_notes.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <initializer_list>
#include <set>

#include "analysis/advice/statements.h"
#include "analysis/comparison/attribution.h"
#include "analysis/run/outliers.h"
#include "dashboards/attribution.h"
#include "dashboards/report/first_page.h"
#include "dashboards/report/limit_words.h"

namespace headrace::dashboards {
namespace {

using analysis::ComparedSample;
using analysis::ComparedUnit;
using analysis::ComparisonInput;

// Cores that others used in a part of a run, by the figures that SliceOf made for it.
analysis::Real OthersInPart(const analysis::RunView& part) {
  const analysis::HostRow* busy = part.FindHost("host_busy_cores");
  const analysis::HostRow* own = part.FindHost("process_cpu_ns");
  const auto part_ns = static_cast<double>(part.run.duration_ns);
  if (busy == nullptr || !busy->mean_value || own == nullptr || !own->last_value || part_ns <= 0)
    return std::nullopt;
  const analysis::HostRow* collector = part.FindHost("collector_cpu_ns");
  const double recorded_ns = collector == nullptr ? 0 : collector->last_value.value_or(0);
  return std::max(0.0, *busy->mean_value - (*own->last_value + recorded_ns) / part_ns);
}

std::string LimitOf(const analysis::RunView& run) {
  const analysis::Statements statements = analysis::MakeStatements(run);
  if (statements.outside && statements.outside->withheld.empty())
    return "seen from outside: 'headrace report' names it";
  if (statements.model == nullptr || !statements.bottleneck)
    return statements.withheld.empty() ? "unknown" : "unknown: " + statements.withheld;
  return LimitLine(*statements.model, *statements.bottleneck);
}

}  // namespace

bool ComparedRuns::of_one_run() const {
  return a.size() == 1 && b.size() == 1 && a[0].run.run_id == b[0].run.run_id;
}

void NoteGates(const std::vector<analysis::Gate>& gates, const analysis::Comparison& comparison,
               ComparisonNotes* notes) {
  for (const analysis::Gate& gate : gates) {
    const analysis::GateResult result = analysis::Judge(gate, comparison);
    notes->gates.push_back({gate.text,
                            result.state == analysis::GateState::kFails    ? "fails"
                            : result.state == analysis::GateState::kPasses ? "passes"
                                                                           : "undecided",
                            result.why});
  }
}

void NoteConditions(const analysis::Comparability& found, const ComparedRuns& views,
                    ComparisonNotes* notes) {
  notes->forced = found.refused();
  notes->differences.clear();
  notes->same.clear();
  std::set<std::string> differing;
  for (const analysis::ConditionDifference& difference : found.differences) {
    differing.insert(difference.what);
    // These are the sides themselves.
    if (difference.what == "settings" || difference.what == "pipeline" ||
        difference.what == "program") {
      continue;
    }
    notes->differences.push_back(difference.text);
  }
  const auto same = [&](std::initializer_list<const char*> whats) {
    return std::none_of(whats.begin(), whats.end(),
                        [&](const char* what) { return differing.contains(what); });
  };
  if (same({"cpu", "cores", "memory", "kernel", "host"})) notes->same.emplace_back("machine");
  if (same({"table"}) && !views.a.empty() && !views.a[0].run.table_text.empty())
    notes->same.emplace_back("data");
}

void NoteOutliers(const ComparisonInput& input, const analysis::Comparison& comparison,
                  const ComparedRuns& views, ComparisonNotes* notes) {
  notes->outliers.clear();
  if (input.unit != ComparedUnit::kPair) return;
  const analysis::Figure figure = comparison.metrics[0].figure;
  std::vector<analysis::OutlierPair> pairs;
  for (size_t i = 0; i < std::min(views.a.size(), views.b.size()); ++i) {
    const auto run = [&](const ComparedSample& sample, const analysis::RunView& view) {
      const bool counts = comparison.left_out_a[i].empty();
      return analysis::OutlierRun{
          &view, counts ? sample.figures.Of(figure).value_or(std::nan("")) : std::nan("")};
    };
    pairs.push_back({run(input.a.samples[i], views.a[i]), run(input.b.samples[i], views.b[i])});
  }
  const analysis::FigureInfo& info = analysis::InfoOf(figure);
  for (const analysis::Outlier& outlier :
       analysis::FindOutliers(pairs, {info.title, info.higher_is_better})) {
    notes->outliers.push_back(outlier.text);
  }
}

void NoteOtherLoad(const ComparedRuns& views, ComparedUnit unit,
                   const analysis::ComparedMetric& first, ComparisonNotes* notes) {
  constexpr double kMuch = 0.2;  // share of the machine's cores
  notes->machine.clear();
  double cores = 0;
  const auto usual = [&](const std::vector<analysis::RunView>& runs) {
    std::vector<double> used;
    for (const analysis::RunView& run : runs) {
      const analysis::HostRow* host = run.FindHost("host_cores");
      if (host != nullptr) cores = std::max(cores, host->last_value.value_or(0));
      const analysis::Real others =
          views.of_one_run() ? OthersInPart(run) : analysis::CoresOfOthers(run);
      if (others) used.push_back(*others);
    }
    return used.empty() ? std::nan("") : analysis::Quantile(used, 0.5);
  };
  const double a = usual(views.a), b = usual(views.b);
  const double most = std::isnan(a) ? b : std::isnan(b) ? a : std::max(a, b);
  if (!(most > kMuch * cores)) return;
  const std::string used =
      unit == ComparedUnit::kPair || std::isnan(a) || std::isnan(b)
          ? fmt::format("other processes used {:.2f} of {:.0f} cores while it ran", most, cores)
          : fmt::format(
                "other processes used {:.2f} of {:.0f} cores while A ran, {:.2f} while B ran", a,
                cores, b);
  notes->machine = used;
  if (views.of_one_run()) {
    notes->machine += ": part of the change may be theirs";
  } else if (unit != ComparedUnit::kPair) {
    notes->machine +=
        ": part of the change may be theirs; 'compare' on pipelines or commands runs both sides in "
        "turn";
  } else if (!first.detectable || *first.detectable > first.margin) {
    notes->machine += ": the machine is too noisy for small changes";
  }
}

void NoteLimits(const ComparedRuns& views, ComparisonNotes* notes) {
  if (views.a.size() != 1 || views.b.size() != 1) return;
  notes->a_limit = LimitOf(views.a[0]);
  notes->b_limit = LimitOf(views.b[0]);
}

std::optional<Section> NoteWhy(const analysis::Comparison& comparison, const ComparedRuns& views,
                               ComparedUnit unit, ComparisonNotes* notes) {
  const analysis::ComparedMetric& first = comparison.metrics[0];
  notes->why.clear();
  if (first.verdict == analysis::ChangeVerdict::kCannotTell || first.identical) {
    notes->no_why = "no change is proven";
    return std::nullopt;
  }
  const auto counting = [&](const std::vector<analysis::RunView>& all,
                            const std::vector<std::string>& left_out) {
    std::vector<analysis::RunView> views_that_count;
    for (size_t i = 0; i < all.size(); ++i) {
      if (unit == ComparedUnit::kBlock || left_out[i].empty()) views_that_count.push_back(all[i]);
    }
    return views_that_count;
  };
  const std::vector<analysis::RunView> a = counting(views.a, comparison.left_out_a);
  const std::vector<analysis::RunView> b = counting(views.b, comparison.left_out_b);
  // The change of the verdict, so that both say the same number.
  analysis::AttributionOptions asked;
  if (first.figure == analysis::Figure::kRowsPerSecond) asked.log_ratio = *first.change;
  if (first.figure == analysis::Figure::kElapsed) asked.log_ratio = -*first.change;
  asked.outside = comparison.steadyless > 0 ? "start, fill and end" : "how runs are averaged";
  const analysis::Attribution attribution = analysis::Attribute(a, b, asked);
  if (!attribution.unavailable.empty()) {
    notes->no_why = attribution.unavailable;
    return std::nullopt;
  }
  if (first.verdict != analysis::ChangeVerdict::kSame)
    notes->why = AttributionSentence(attribution);
  notes->no_why = notes->why.empty() ? "no part carries a change that is proven" : "";
  return MakeAttributionSection(attribution);
}

}  // namespace headrace::dashboards
