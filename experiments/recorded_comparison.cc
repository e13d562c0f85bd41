#include "experiments/recorded_comparison.h"

#include <fmt/format.h>

#include <cmath>
#include <optional>
#include <utility>
#include <vector>

#include "analysis/advice/next_step.h"
#include "analysis/comparison/comparison.h"
#include "analysis/run/run_view.h"
#include "analysis/run/settings.h"
#include "base/units.h"
#include "experiments/compared_runs.h"

namespace headrace::experiments {
namespace {

// What would compare the pipelines or the programs of two recorded runs, interleaved; empty where
// one cannot be started again, or both are the same.
std::string RunAgainCommand(const RecordedOptions& options, const analysis::RunRow& a,
                            const analysis::RunRow& b) {
  if (a.pipeline_path.empty() && b.pipeline_path.empty()) {
    const std::string first = analysis::CommandWords(a), second = analysis::CommandWords(b);
    if (first.empty() || second.empty() || first == second) return "";
    return fmt::format("{} compare --a-cmd '{}' --b-cmd '{}'{}", options.program, first, second,
                       options.database_option);
  }
  if (a.pipeline_path.empty() || b.pipeline_path.empty()) return "";
  return fmt::format("{} compare {} {}{}{}{}", options.program, analysis::PipelineWord(a),
                     analysis::PipelineWord(b), analysis::RecordedOptions(a, "--a"),
                     analysis::RecordedOptions(b, "--b"), options.database_option);
}

// What would show the later of two parts of a run.
std::string LookCommand(const RecordedOptions& options, const dashboards::ComparedRuns& runs) {
  const auto begins = [](const std::optional<analysis::RunTimes>& times) {
    return times ? times->start_ns : 0;
  };
  const auto& later = begins(runs.a_times) > begins(runs.b_times) ? runs.a_times : runs.b_times;
  // Rounded outwards: an interval that begins or ends there belongs to it.
  constexpr double kMillisecond = 1e6, kThousand = 1e3;
  return fmt::format("{} report {} --since {:.3f}s --until {:.3f}s{}", options.program,
                     runs.a[0].run.run_id,
                     std::floor(static_cast<double>(begins(later)) / kMillisecond) / kThousand,
                     std::ceil(static_cast<double>(later->end_ns) / kMillisecond) / kThousand,
                     options.database_option);
}

}  // namespace

dashboards::ComparisonPage CompareRecorded(const dashboards::ComparedRuns& runs,
                                           const RecordedOptions& options) {
  const std::vector<analysis::RunView>&a = runs.a, &b = runs.b;
  const bool blocks = a.size() == 1 && b.size() == 1;
  analysis::ComparisonInput input;
  input.unit = blocks ? analysis::ComparedUnit::kBlock : analysis::ComparedUnit::kRun;
  const int64_t block_ns = blocks ? BlockLength(runs) : 0;
  input.a = ComparedSideOf("A", options.a, a, runs.a_times, block_ns);
  input.b = ComparedSideOf("B", options.b, b, runs.b_times, block_ns);
  input.margin = options.terms.margin;
  input.seed = options.seed;
  dashboards::ComparisonNotes notes;
  notes.name = options.name;
  if (runs.of_one_run()) {
    notes.look = LookCommand(options, runs);
  } else {
    notes.repeat = RunAgainCommand(options, a[0].run, b[0].run);
  }
  CheckConditions(options.terms, runs, {}, &notes);
  return MakeComparisonPage(options.terms, input, analysis::Compare(input), runs, std::move(notes));
}

}  // namespace headrace::experiments
