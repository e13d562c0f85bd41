// headrace compare: two sides against one another: pipelines or commands that it runs in
// interleaved pairs, or runs recorded before.
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "analysis/comparison/comparison.h"
#include "base/error.h"
#include "base/file.h"
#include "base/units.h"
#include "cli/command.h"
#include "cli/command_line.h"
#include "cli/compare_options.h"
#include "cli/page_output.h"
#include "cli/verdict.h"
#include "dashboards/comparison.h"
#include "dashboards/comparison_json.h"
#include "dashboards/comparison_list.h"
#include "dashboards/comparison_notes.h"
#include "experiments/compared_runs.h"
#include "experiments/compared_sides.h"
#include "experiments/paired_comparison.h"
#include "experiments/recorded_comparison.h"
#include "experiments/stored_comparison.h"

namespace headrace::cli {
namespace {

constexpr int64_t kDefaultRunNs = 2'000'000'000;

bool IsPipeline(const std::string& text) {
  if (text.ends_with(".toml")) return true;
  std::error_code ignored;
  return text.find('/') != std::string::npos && std::filesystem::is_regular_file(text, ignored);
}

// Prints the page, or writes it. Returns the exit code by the gates, else by the verdict.
int Print(const CompareOptions& options, const dashboards::ComparisonPage& page) {
  const dashboards::Report report = dashboards::MakeComparisonReport(page);
  WritePage(options.page, report, [&] { return dashboards::ComparisonJson(page); });
  bool undecided = false;
  for (const dashboards::ComparisonNotes::GateSaid& gate : page.notes.gates) {
    if (gate.state == "fails") return static_cast<int>(ExitCode::kGateFailed);
    undecided = undecided || gate.state == "undecided";
  }
  if (!page.notes.gates.empty()) {
    return static_cast<int>(undecided ? ExitCode::kInconclusive : ExitCode::kOk);
  }
  return static_cast<int>(report.decided ? ExitCode::kOk : ExitCode::kInconclusive);
}

experiments::ComparedSides SidesOfPipelines(const CompareOptions& options) {
  if (options.sides.size() == 1 && options.a.empty() && options.b.empty()) {
    throw Error(ExitCode::kUsage, "does not say what differs between the sides", options.sides[0],
                "give --a KEY=VALUE and --b KEY=VALUE, a second pipeline, or the same file twice "
                "to see what differs by chance");
  }
  return experiments::PipelineSides(options.sides[0], options.sides.back(),
                                    {options.set, options.a, options.b}, options.cold);
}

experiments::ComparedSides SidesOfCommands(const CompareOptions& options) {
  if (options.a_command.empty() || options.b_command.empty()) {
    throw Error(ExitCode::kUsage, "two commands are compared",
                options.a_command.empty() ? "--b-cmd" : "--a-cmd",
                options.a_command.empty() ? "give --a-cmd CMD too" : "give --b-cmd CMD too");
  }
  const auto refuse = [](bool given, const char* option, const char* why) {
    if (given) throw Error(ExitCode::kUsage, why, option, "leave it out for commands");
  };
  refuse(!options.sides.empty(), "--a-cmd", "takes no pipeline or run beside it");
  refuse(!options.a.empty() || !options.b.empty() || !options.set.empty(), "--a",
         "a command has no settings of a pipeline");
  refuse(!options.duration.empty(), "--duration", "a command ends by itself");
  refuse(options.cold, "--cold", "only a pipeline knows which files are its own");
  return experiments::CommandSides(options.a_command, options.b_command);
}

// How the sides are run.
experiments::AbOptions RunsOf(const CompareOptions& options) {
  experiments::AbOptions runs;
  runs.database = options.database;
  runs.name = experiments::PairsName(options.name);
  runs.seed = options.seed.value_or(experiments::SeedFromClock());
  runs.prepare = options.prepare;
  runs.warmup = options.warmup;
  runs.quiet = options.quiet;
  if (options.a_command.empty()) {
    runs.duration_ns =
        options.duration.empty() ? kDefaultRunNs : ParseDuration(options.duration, "--duration");
    if (runs.duration_ns <= 0)
      throw Error(ExitCode::kUsage, "must be longer than 0", "--duration", "try 2s, 10s, 1m");
  }
  if (!options.time.empty()) {
    runs.budget_ns = ParseDuration(options.time, "--time");
    if (runs.budget_ns <= 0)
      throw Error(ExitCode::kUsage, "must be longer than 0", "--time", "try 60s, 5m");
  }
  if (options.pairs) {
    runs.pairs = *options.pairs;
  } else if (runs.budget_ns > 0) {
    runs.pairs = experiments::PairsWithin(runs.budget_ns, runs.duration_ns);
  }
  return runs;
}

int RunSides(const CompareOptions& options, const experiments::ComparedSides& sides) {
  experiments::PairedOptions paired;
  paired.sides = sides;
  if (options.level >= 0) {
    for (experiments::AbSide* side : {&paired.sides.a, &paired.sides.b})
      side->arguments.insert(side->arguments.end(), {"--level", std::to_string(options.level)});
  }
  paired.terms.gates = ParseGates(options);
  // A page that cannot be written shows before the runs, not after them.
  if (!options.page.file.empty()) AtomicFile::Check(options.page.file, options.page.replace);
  paired.runs = RunsOf(options);
  paired.terms.margin = ParseMargin(options.margin);
  paired.terms.force = options.force;
  paired.early_stop = !options.no_early_stop;
  paired.repeat = RepeatCommand(options);
  const experiments::PairedEnd end = experiments::ComparePairs(paired);
  if (end.page) return Print(options, *end.page);
  const std::string next =
      end.pairs == 0
          ? ""
          : fmt::format("; next: {0} compare tag:{1}-A tag:{1}-B{2}", ShellWord(ProgramName()),
                        paired.runs.name, DatabaseOption(options.database));
  fmt::print(stderr, "stopped after {} of {} pairs; what ran is in {}{}\n", end.pairs,
             paired.runs.pairs, options.database, next);
  return static_cast<int>(ExitCode::kInterrupted);
}

// --split: the parts of one run before and after a time.
CompareOptions SplitRun(CompareOptions options) {
  if (options.sides.size() != 1 || !options.a_command.empty() || !options.b_command.empty() ||
      IsPipeline(options.sides[0]) || options.sides[0].starts_with("tag:"))
    throw Error(ExitCode::kUsage, "takes one recorded run", "--split",
                "as in compare latest --split 30s; 'headrace runs' lists the runs");
  if (ParseDuration(options.split, "--split") <= 0)
    throw Error(ExitCode::kUsage, "must be longer than 0", "--split",
                "give a time since the run began: 30s");
  const std::string run = options.sides[0];
  options.sides = {run + "@-" + options.split, run + "@" + options.split + "-"};
  return options;
}

int CompareRuns(const CompareOptions& options) {
  experiments::RecordedOptions recorded;
  recorded.terms.gates = ParseGates(options);
  RefuseRunning(options, "recorded runs are not run again",
                "leave it out, or give a pipeline file");
  if (options.sides.size() < 2) {
    throw Error(ExitCode::kUsage, "is compared with nothing", options.sides[0],
                "give a second run, or a second tag:NAME, or --split TIME to compare this run "
                "before and after a time");
  }
  recorded.a = options.sides[0];
  recorded.b = options.sides[1];
  const dashboards::ComparedRuns runs =
      experiments::LoadSides(options.database, recorded.a, recorded.b);
  recorded.terms.margin = ParseMargin(options.margin);
  recorded.terms.force = options.force;
  recorded.name = options.name;
  recorded.seed = options.seed.value_or(1);
  recorded.program = ShellWord(ProgramName());
  recorded.database_option = DatabaseOption(options.database);
  return Print(options, experiments::CompareRecorded(runs, recorded));
}

int ListComparisons(const CompareOptions& options) {
  const std::vector<dashboards::ListedComparison> list =
      experiments::ListComparisons(options.database);
  if (options.page.json) {
    fmt::print("{}", dashboards::ComparisonListJson(list));
  } else if (list.empty()) {
    fmt::print(stderr, "no comparisons in {} yet; 'headrace compare --help' says how to make one\n",
               options.database);
  } else {
    fmt::print("{}", dashboards::ComparisonListText(list));
  }
  return static_cast<int>(ExitCode::kOk);
}

// The page once more, of what was kept.
int ShowComparison(const CompareOptions& options) {
  dashboards::ComparisonPage page = experiments::LoadComparison(options.database, *options.show);
  if (!options.fail_on.empty()) {
    page.notes.gates.clear();
    dashboards::NoteGates(ParseGates(options), page.comparison, &page.notes);
  }
  return Print(options, page);
}

int Compare(const CompareOptions& options) {
  if (options.list || options.show) {
    if (!options.sides.empty() || !options.a_command.empty() || !options.b_command.empty() ||
        !options.split.empty()) {
      throw Error(ExitCode::kUsage, "takes no sides to compare", options.list ? "--list" : "--show",
                  "leave them out");
    }
    RefuseRunning(options, "a comparison of the database is shown as it was made", "leave it out");
    return options.list ? ListComparisons(options) : ShowComparison(options);
  }
  if (!options.split.empty()) return CompareRuns(SplitRun(options));
  if (!options.a_command.empty() || !options.b_command.empty())
    return RunSides(options, SidesOfCommands(options));
  if (options.sides.size() > 2) {
    throw Error(ExitCode::kUsage, fmt::format("{} sides", options.sides.size()), options.sides[2],
                "give two at most; several runs of a side: tag:NAME");
  }
  if (options.sides.empty()) {
    throw Error(ExitCode::kUsage, "does not say what to compare", "",
                "give a pipeline file with --a and --b, two of them, two runs, two tag:NAME, or "
                "--a-cmd and --b-cmd");
  }
  for (const std::string& side : options.sides) {
    std::error_code ignored;
    if (std::filesystem::is_directory(side, ignored))
      throw Error(ExitCode::kUsage, "is a folder", side,
                  "name the pipeline file in it, as in " +
                      Printable((std::filesystem::path(side) / "pipeline.toml").string()));
    if (!side.ends_with(".py") || !std::filesystem::is_regular_file(side, ignored)) continue;
    throw Error(ExitCode::kUsage, "is a program, neither a pipeline file nor a recorded run", side,
                "compare commands: --a-cmd 'python " + Printable(options.sides[0]) +
                    "' --b-cmd 'python " +
                    (options.sides.size() > 1 ? Printable(options.sides[1]) : "OTHER") + "'");
  }
  const auto pipelines =
      static_cast<size_t>(std::count_if(options.sides.begin(), options.sides.end(), IsPipeline));
  if (pipelines == options.sides.size()) return RunSides(options, SidesOfPipelines(options));
  if (pipelines > 0) {
    throw Error(ExitCode::kUsage, "a pipeline file and a recorded run",
                options.sides[0] + " and " + options.sides[1],
                "run the pipeline first, or give two of one kind");
  }
  return CompareRuns(options);
}

HR_COMMAND(
    "compare",
    {.summary = "says which of two sides is faster, by how much, how sure that is, and why",
     .examples =
         "  headrace compare p.toml --a decode.parallelism=1 --b decode.parallelism=2\n"
         "  headrace compare before.toml after.toml --pairs 20 --duration 5s\n"
         "  headrace compare --a-cmd 'python old.py' --b-cmd 'python new.py' --pairs 10\n"
         "  headrace compare 3 4                       # two runs recorded before\n"
         "  headrace compare tag:before tag:after      # two sets of them\n"
         "  headrace compare latest --split 30s        # one run, before and after a time\n"
         "  headrace compare 3@10s-20s 3@40s-50s       # two parts of a run\n"
         "  headrace compare base.toml new.toml --fail-on 'rows_per_s<-3%' --format md -o pr.md\n",
     .exit_codes = "0 ok, 1 a side failed, 2 usage, 3 --fail-on holds, 4 cannot tell, 5 no such "
                   "run or not comparable, 7 out of disk, 130 interrupted",
     .next = "headrace report RUN",
     .configure = [](CommandLine& command_line) -> std::function<int()> {
       auto options = std::make_shared<CompareOptions>();
       AddCompareOptions(&command_line, options.get());
       return [options] { return Compare(*options); };
     }});

}  // namespace
}  // namespace headrace::cli
