// Where the CPU time goes: by part of the pipeline, by class of transform and by transform; and the
// cores that the consumer takes and would take.
#include "analysis/model/work_split.h"

#include <fmt/format.h>

#include "base/units.h"
#include "dashboards/render/table_layout.h"
#include "dashboards/report/report.h"

namespace headrace::dashboards {
namespace {

using analysis::WorkShare;

Table Split(const std::string& key, const std::string& title, const std::string& first,
            const std::string& of, const std::vector<WorkShare>& shares, bool with_class) {
  Table table{key, title, {{"name", first}}, {}};
  if (with_class) table.columns.push_back({"class", "class"});
  table.columns.push_back({"cpu_ratio", "CPU, of " + of});
  table.columns.push_back({"cpu_seconds_per_row", "CPU a row"});
  table.columns.push_back({"busy_seconds_per_row", "thread time a row"});
  for (const WorkShare& share : shares) {
    std::vector<Value> row = {share.name};
    if (with_class) row.push_back(std::string(analysis::OperatorClassName(share.cls)));
    row.push_back(share.cpu_share);
    row.push_back(share.cpu_per_row);
    row.push_back(share.busy_per_row);
    table.rows.push_back(std::move(row));
  }
  return table;
}

std::optional<Section> WorkSplit(const analysis::RunView& run,
                                 const analysis::Statements& statements) {
  if (!statements.model) return std::nullopt;
  const analysis::PipelineModel& model = *statements.model;
  Section section{"work", "Where the CPU time goes (90 % interval)", {}, {}, {}};
  const analysis::CpuToConsumer cpu = analysis::CpuToConsumerOf(model);
  section.facts = {{"cores_used", cpu.cores_used}, {"cores_wanted", cpu.cores_wanted}};
  if (cpu.cores_used.available()) {
    std::string text = fmt::format("{:.2f} cores for one trainer", cpu.cores_used.value());
    text += cpu.cores_wanted.available()
                ? fmt::format(
                      "; {} would keep it busy without a wait (estimate: CPU a batch times "
                      "the rate that it can take)",
                      CellText(cpu.cores_wanted))
                : "; " + cpu.cores_wanted.reason();
    const analysis::CoreBudget budget = analysis::CoreBudgetOf(run, model.cores_used());
    if (budget.cores) text += fmt::format("; {:.2f} are available", *budget.cores);
    section.sentences.push_back({"cores", text});
  }
  section.tables.push_back(
      Split("stage_split", "", "part", "all", analysis::StageSplit(model), false));
  const std::vector<WorkShare> classes = analysis::TransformClasses(model);
  if (classes.empty()) {
    section.facts.push_back(
        {"transform_split_unavailable", "no operator of the kind \"transform\" in this run"});
    return section;
  }
  section.tables.push_back(
      Split("transform_classes", "Transforms by class", "class", "the transforms", classes, false));
  Table transforms = Split("transform_split", "Transforms", "transform", "the transforms",
                           analysis::Transforms(model), true);
  transforms.text_rows = 6;
  section.tables.push_back(std::move(transforms));
  return section;
}

HR_SECTION("work split", 9, WorkSplit);

}  // namespace
}  // namespace headrace::dashboards
