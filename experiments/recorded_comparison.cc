#include "experiments/recorded_comparison.h"

#include <fmt/format.h>

#include <utility>
#include <vector>

#include "analysis/comparison/comparison.h"
#include "analysis/run/run_view.h"
#include "analysis/run/settings.h"
#include "base/units.h"
#include "experiments/compared_runs.h"

namespace headrace::experiments {
namespace {

// What would compare the pipelines of two recorded runs, interleaved; empty where a run has no
// pipeline file.
std::string RunAgainCommand(const RecordedOptions& options, const analysis::RunRow& a,
                            const analysis::RunRow& b) {
  if (a.pipeline_path.empty() || b.pipeline_path.empty()) return "";
  return fmt::format("{} compare {} {}{}{}{}", options.program, analysis::PipelineWord(a),
                     analysis::PipelineWord(b), analysis::RecordedOptions(a, "--a"),
                     analysis::RecordedOptions(b, "--b"), options.database_option);
}

}  // namespace

dashboards::ComparisonPage CompareRecorded(const dashboards::ComparedRuns& runs,
                                           const RecordedOptions& options) {
  const std::vector<analysis::RunView>&a = runs.a, &b = runs.b;
  const bool blocks = a.size() == 1 && b.size() == 1;
  analysis::ComparisonInput input;
  input.unit = blocks ? analysis::ComparedUnit::kBlock : analysis::ComparedUnit::kRun;
  input.a = ComparedSideOf("A", options.a, a, blocks);
  input.b = ComparedSideOf("B", options.b, b, blocks);
  input.margin = options.terms.margin;
  input.seed = options.seed;
  dashboards::ComparisonNotes notes;
  notes.name = options.name;
  notes.repeat = RunAgainCommand(options, a[0].run, b[0].run);
  CheckConditions(options.terms, runs, {}, &notes);
  return MakeComparisonPage(options.terms, input, analysis::Compare(input), runs, std::move(notes));
}

}  // namespace headrace::experiments
