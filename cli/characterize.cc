// headrace characterize: the characterization study of a model on this host, in one command
// (experiments/study.h).
#include <fmt/format.h>

#include <memory>
#include <optional>

#include "base/error.h"
#include "base/file.h"
#include "base/units.h"
#include "cli/command.h"
#include "cli/command_line.h"
#include "cli/page_output.h"
#include "dashboards/characterization.h"
#include "dashboards/render/render.h"
#include "experiments/study.h"
#include "experiments/study_work.h"
#include "workloads/generator.h"

namespace headrace::cli {
namespace {

void WriteFile(const std::string& path, const std::string& text) {
  AtomicFile file(path, true);
  file.Write(text);
  file.Commit();
}

int Characterize(const experiments::StudyOptions& options, const PageOutput& page) {
  const experiments::StudyEnd study = experiments::RunStudy(options, ShellWord(ProgramName()));
  const analysis::Characterization& found = study.found;
  const dashboards::Report report = dashboards::MakeCharacterizationReport(found);
  const std::string json = dashboards::CharacterizationJson(found);
  WriteFile(options.folder + "/characterization.json", json);
  WriteFile(options.folder + "/characterization.md", dashboards::RenderMarkdown(report));
  WriteFile(options.folder + "/characterization.html", dashboards::RenderHtml(report));
  WritePage(page, report, [&] { return json; });
  std::fflush(stdout);
  if (!options.quiet)
    fmt::print(stderr,
               "also as {0}/characterization.md, .html and .json; its runs: {1} runs --db {2}\n",
               options.folder, ShellWord(ProgramName()), ShellWord(study.database));
  if (found.ladder && found.ladder->opposite) return static_cast<int>(ExitCode::kGateFailed);
  return static_cast<int>(report.decided ? ExitCode::kOk : ExitCode::kInconclusive);
}

HR_COMMAND(
    "characterize",
    {.summary = "studies a model on this host, and shows its figures beside the published ones",
     .examples =
         "  headrace characterize rm1 rm2 rm3                  # three published models, about 7 "
         "minutes\n"
         "  headrace characterize rm1 --quick                  # small and short: wide intervals\n"
         "  headrace characterize TABLE --pipeline train.toml --coread jobs.jsonl   # your own\n"
         "  headrace characterize rm2 --json | jq '.workloads[0].limit'\n",
     .exit_codes =
         "0 ok, 2 a mistake in an option, 3 a rung of the ladder moves against the published "
         "sign, 4 a limit is undecided, 5 damaged table, 7 no "
         "room, 130 interrupted (the same command goes on)",
     .next = "headrace plan RUN --db characterization/runs.db",
     .configure = [](CommandLine& command_line) -> std::function<int()> {
       auto options = std::make_shared<experiments::StudyOptions>();
       auto page = std::make_shared<PageOutput>();
       command_line
           .AddOption("TARGET", options->targets,
                      "Characterize these: rm1, rm2, rm3, a spec file; or one table of yours")
           ->TypeName("TABLE")
           ->Default("rm1 rm2 rm3");
       command_line.Group("What is studied");
       command_line
           .AddOption("--pipeline", options->pipeline, "Read your table as this pipeline file says")
           ->Default("TABLE/pipeline.toml");
       command_line
           .AddOption("--coread", options->coread,
                      "Take the popularity of your features from this log of jobs")
           ->TypeName("FILE");
       command_line.Group("How it is made");
       command_line
           .AddOption("-o,--output", options->folder,
                      "Keep tables, runs, results and pages in this folder; a study that was "
                      "interrupted goes on from it")
           ->TypeName("FOLDER")
           ->ShowDefault();
       command_line.AddFlag("--fresh", options->fresh, "Ignore earlier results in the folder");
       AddFormatOptions(&command_line, page.get(),
                        "Print JSON (schema headrace.characterization/1)");
       command_line.AddFlag("--quick", options->quick, "Make small tables and short runs");
       auto* only = command_line.AddFlag(
           "--ladder-only", options->ladder_only,
           "Climb the optimisation ladder of the first workload, nothing else");
       command_line.AddFlag("--no-ladder", options->no_ladder, "Leave the ladder out")
           ->Excludes(only);
       command_line
           .AddOption("--pairs", options->pairs, "Run this many pairs for each rung of the ladder")
           ->Check(InRange(size_t{2}, size_t{1000}))
           ->Default("6");
       command_line.AddOption("--rows", options->rows, "Generate this many rows")
           ->Check(InRange(uint64_t{1}, uint64_t{1} << 32));
       command_line
           .AddOption("--features", options->features,
                      "Scale the published feature counts by this fraction")
           ->Default("0.125");
       command_line.AddOption("--seed", options->seed, "Start all random draws here")
           ->ShowDefault();
       command_line.AddOption("-d,--duration", options->duration, "Run a worker this long")
           ->Default("8s");
       command_line
           .AddOption("--set", options->set, "Change one knob of every run but the ladder's")
           ->OneValueEach();
       command_line.Group("Machine and prices");
       command_line
           .AddOption("--nic-rate", options->nic_rate,
                      "Model a NIC of this rate between storage and worker: 400MB/s")
           ->TypeName("RATE")
           ->Default("for workloads scaled by rm1, for tables none");
       command_line.AddOption("--memory", options->memory, "Give the worker this much memory")
           ->TypeName("SIZE");
       command_line
           .AddOption("--core-hour-price", options->prices.core_hour,
                      "Say what a million rows cost at this price of a core for an hour")
           ->TypeName("P")
           ->Check(NotNegative());
       command_line
           .AddOption("--watts-per-core", options->prices.watts_per_core,
                      "Estimate energy by this power of a busy core, where no counter can be read")
           ->TypeName("W")
           ->Check(NotNegative());
       command_line
           .AddOption("--kwh-price", options->prices.energy_kwh, "Price energy at this for a kWh")
           ->TypeName("P")
           ->Check(NotNegative());
       command_line.AddFlag("-q,--quiet", options->quiet, "Print no progress");
       return [options, page] { return Characterize(*options, *page); };
     }});

}  // namespace
}  // namespace headrace::cli
