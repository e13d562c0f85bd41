#include "experiments/paired_comparison.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <ctime>
#include <utility>

#include "analysis/comparison/comparison.h"
#include "analysis/statistics/sequential.h"
#include "base/clock.h"
#include "dashboards/comparison_json.h"
#include "experiments/compared_runs.h"
#include "experiments/comparison_record.h"

namespace headrace::experiments {
namespace {

// What a run takes beside its duration, until the first has been seen: probes have to be loaded.
constexpr int64_t kOverheadNs = 1'000'000'000;

const char* StopWords(analysis::StopReason why) {
  switch (why) {
    case analysis::StopReason::kDifference:
    case analysis::StopReason::kSame:
      return "the answer is sure";
    case analysis::StopReason::kFutile:
      return "more pairs would probably not decide it";
    case analysis::StopReason::kNone:
    case analysis::StopReason::kMaximum:
      break;
  }
  return "no more pairs were planned";
}

// What is known of the comparison before any pair has run.
analysis::ComparisonInput EmptyInput(const PairedOptions& options) {
  analysis::ComparisonInput input;
  input.a = {"A", options.sides.a_what, {}};
  input.b = {"B", options.sides.b_what, {}};
  input.margin = options.terms.margin;
  input.seed = options.runs.seed;
  // A gate has a bound of its own: the end that is right for the verdict may leave it open. One
  // pair cannot end early.
  const bool early_stop = options.early_stop && options.terms.gates.empty();
  if (early_stop && options.runs.pairs >= 2) input.planned_pairs = options.runs.pairs;
  input.cold = options.sides.cold;
  return input;
}

// Why there are fewer pairs than planned; empty: there are not. `plan`: of the end that was sure
// before; null: there was none to be had.
std::string EndText(const AbResult& result, size_t planned, const analysis::ComparisonInput& input,
                    const analysis::SequentialPlan* plan) {
  const size_t pairs = result.pairs.size();
  if (result.end == AbEnd::kBudget)
    return fmt::format("--time was used up after {} of {} pairs", pairs, planned);
  if (result.end != AbEnd::kStopped || pairs >= planned) return "";
  return fmt::format("stopped after {} of {} pairs: {}", pairs, planned,
                     StopWords(analysis::Replay(input, *plan).step().why));
}

// The runs of the pairs that count.
dashboards::ComparedRuns RunsThatCount(const dashboards::ComparedRuns& runs,
                                       const analysis::Comparison& comparison) {
  dashboards::ComparedRuns counting;
  for (size_t i = 0; i < runs.a.size(); ++i) {
    if (!comparison.left_out_a[i].empty()) continue;
    counting.a.push_back(runs.a[i]);
    counting.b.push_back(runs.b[i]);
  }
  return counting;
}

}  // namespace

size_t PairsWithin(int64_t budget_ns, int64_t duration_ns) {
  const int64_t pair_ns = 2 * (duration_ns + kOverheadNs);
  return static_cast<size_t>(std::clamp<int64_t>(budget_ns / pair_ns, 1, 1000));
}

std::string PairsName(const std::string& asked) {
  std::string name = asked;
  if (name.empty()) {
    const std::time_t now = std::time(nullptr);
    std::tm local{};
    localtime_r(&now, &local);
    char text[32];
    std::strftime(text, sizeof text, "cmp-%m%d-%H%M%S", &local);
    name = text;
  }
  // Tags are words.
  std::replace_if(
      name.begin(), name.end(), [](unsigned char c) { return std::isspace(c) != 0; }, '-');
  return name;
}

uint64_t SeedFromClock() {
  // Small enough to be read out, and the same in JSON and in every language.
  return static_cast<uint64_t>(RealtimeNs() / 1'000'000) % 1'000'000;
}

PairedEnd ComparePairs(const PairedOptions& options) {
  const ComparedSides& sides = options.sides;
  AbOptions runs = options.runs;
  runs.a = sides.a;
  runs.b = sides.b;
  analysis::ComparisonInput input = EmptyInput(options);
  std::optional<analysis::SequentialPlan> plan;
  if (input.planned_pairs > 0) plan = analysis::PlanSequential(input.planned_pairs, input.alpha);
  ComparisonRecord record(runs.database, runs.name, sides.a_what, sides.b_what, runs.seed);
  dashboards::ComparisonNotes notes;
  runs.finished = [&](const AbPair& pair) {
    record.Add(pair);
    AddPair(pair, &input);
    // Whether it makes sense is known after the first pair.
    if (pair.index == 0)
      CheckConditions(options.terms, LoadRuns(runs.database, input), sides.intended, &notes);
    return !plan || !analysis::Replay(input, *plan).step().stop;
  };
  const AbResult result = RunPairs(runs);
  if (result.end == AbEnd::kInterrupted) {
    record.Finish(collectors::ComparisonState::kInterrupted, "", "");
    return {result.pairs.size(), std::nullopt};
  }
  const analysis::SequentialPlan* planned = plan ? &*plan : nullptr;
  notes.comparison_id = record.id();
  notes.name = runs.name;
  notes.wall_ns = result.wall_ns;
  notes.repeat = options.repeat;
  notes.end = EndText(result, runs.pairs, input, planned);
  const analysis::Comparison comparison = analysis::Compare(input, planned);
  const dashboards::ComparedRuns all = LoadRuns(runs.database, input);
  const dashboards::ComparedRuns counting = RunsThatCount(all, comparison);
  if (!counting.a.empty()) CheckConditions(options.terms, counting, sides.intended, &notes);
  dashboards::ComparisonPage page =
      MakeComparisonPage(options.terms, input, comparison, all, std::move(notes));
  for (size_t i = 0; i < result.pairs.size(); ++i) {
    if (!comparison.left_out_a[i].empty())
      record.LeaveOut(result.pairs[i], comparison.left_out_a[i]);
  }
  record.Finish(collectors::ComparisonState::kComplete, dashboards::VerdictKey(comparison),
                dashboards::ComparisonJson(page));
  return {result.pairs.size(), std::move(page)};
}

}  // namespace headrace::experiments
