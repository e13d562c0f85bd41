#include "cli/report_fleet.h"

#include <filesystem>

#include "analysis/fleet/job_findings.h"
#include "base/error.h"
#include "base/units.h"
#include "cli/command.h"
#include "cli/verdict.h"
#include "dashboards/job_report.h"
#include "experiments/service_fleet.h"

namespace headrace::cli {

int ReportFleet(const std::string& job, const std::string& database, const PageOutput& output) {
  std::error_code ignored;
  const bool is_file = std::filesystem::is_regular_file(job, ignored);
  const std::string& file = is_file ? job : database;
  if (!std::filesystem::exists(file, ignored))
    throw Error(ExitCode::kBadData, "no such fleet file", file,
                "go where the job's dispatcher was started, or give the file that it wrote: "
                "headrace report --fleet FILE");
  const analysis::JobView view = analysis::LoadJob(file, is_file ? "latest" : job);
  const analysis::JobFindings findings = analysis::JudgeJob(view);
  const dashboards::JobPage page{view, findings, ShellWord(ProgramName()),
                                 file == experiments::kFleetFile ? "" : " --db " + ShellWord(file)};
  WritePage(output, dashboards::MakeJobReport(page), [&] { return dashboards::JobJson(page); });
  return static_cast<int>(findings.undecided.empty() ? ExitCode::kOk : ExitCode::kInconclusive);
}

}  // namespace headrace::cli
