#include "cli/plan_fleet.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>
#include <optional>
#include <string>

#include "analysis/fleet/fleet.h"
#include "analysis/fleet/fleet_scenarios.h"
#include "analysis/fleet/plan_check.h"
#include "base/error.h"
#include "base/file.h"
#include "base/units.h"
#include "cli/command_line.h"
#include "cli/verdict.h"
#include "dashboards/fleet.h"
#include "dashboards/fleet_json.h"
#include "dashboards/render/render.h"

namespace headrace::cli {
namespace {

void WriteFile(const std::string& path, bool force, const std::string& text) {
  AtomicFile file(path, force);
  file.Write(text);
  file.Commit();
  fmt::print(stderr, "wrote {}\n", Printable(path));
}

// Nothing where the run is of no job. What is wrong with the job's tables is no reason to print no
// plan.
std::optional<analysis::PlanCheck> CheckOfRun(const std::string& database, int64_t run_id,
                                              const analysis::NodesFile& nodes,
                                              const analysis::FleetPlan& plan) {
  analysis::PlanCheck check;
  try {
    const auto job_id = analysis::JobOfRun(database, run_id);
    if (!job_id) return std::nullopt;
    check.job = fmt::format("{}", *job_id);
    return analysis::CheckPlan(analysis::LoadJob(database, *job_id), nodes, plan);
  } catch (const Error& error) {
    check.unavailable = error.what();
    check.fix = "record the job again";
    return check;
  }
}

}  // namespace

void AddFleetOptions(CommandLine* command_line, std::string* nodes, std::string* format) {
  CommandOption* file = command_line->AddOption(
      "--nodes", *nodes,
      "Size a fleet of these nodes for the target, or for what its clients demand (docs/fleet.md)");
  file->TypeName("FILE");
  for (const char* other : {"--cores", "--memory", "--max-threads", "--what-if",
                            "--price-per-core-hour", "--watts-per-core"}) {
    file->Excludes(command_line->Find(other));
  }
  command_line->AddOption("--format", *format, "Print the page like this")
      ->Check(OneOf({"text", "md", "json"}))
      ->ShowDefault()
      ->Needs(file);
}

int PlanFleet(const analysis::RunView& view, const analysis::PipelineModel& model,
              const FleetOptions& options) {
  const analysis::NodesFile nodes = analysis::LoadNodes(options.nodes);
  const analysis::RowCost cost = analysis::RowCostOf(model);
  const analysis::FleetPlan plan = analysis::PlanFleet(cost, nodes, options.target_rows);
  if (!options.lp.empty()) WriteFile(options.lp, options.force, plan.lp);
  std::optional<analysis::FleetSimulation> simulation;
  if (options.simulate) simulation = analysis::SimulatePlan(cost, nodes, plan);
  const auto check = CheckOfRun(options.database, view.run.run_id, nodes, plan);
  const dashboards::FleetPage about{
      view, cost, nodes, plan, simulation ? &*simulation : nullptr, check ? &*check : nullptr};
  const std::string json = dashboards::FleetJson(about);
  if (!options.output.empty()) WriteFile(options.output, options.force, json);
  if (options.format == "json") {
    std::fputs(json.c_str(), stdout);
  } else {
    const dashboards::Report report = dashboards::MakeFleetReport(about);
    const std::string page = options.format == "md"
                                 ? dashboards::RenderMarkdown(report)
                                 : dashboards::RenderText(report, TextFor(STDOUT_FILENO));
    std::fputs(page.c_str(), stdout);
    if (options.explain) fmt::print("\nprogram:\n{}", plan.program);
  }
  if (!plan.shortage) return static_cast<int>(ExitCode::kOk);
  std::fflush(stdout);
  throw Error(
      ExitCode::kInconclusive,
      fmt::format("no fleet reaches {}: {}", FormatRate(plan.target, "rows"), plan.shortage->text),
      options.nodes, plan.shortage->fix);
}

}  // namespace headrace::cli
