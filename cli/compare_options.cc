#include "cli/compare_options.h"

#include <fmt/format.h>

#include <cstdlib>

#include "base/error.h"
#include "base/units.h"
#include "cli/command_line.h"
#include "cli/verdict.h"

namespace headrace::cli {
namespace {

void AddComparedSides(CommandLine* command_line, CompareOptions* options) {
  command_line
      ->AddOption("SIDES", options->sides,
                  "One or two pipeline files, or two runs (id, name), or two tag:NAME, or parts of "
                  "runs: 3@10s-20s")
      ->TypeName("SIDE");
  command_line->Group("What is compared");
  command_line->AddOption("--a", options->a, "Set this on side A: decode.parallelism=1")
      ->TypeName("KEY=VALUE")
      ->OneValueEach();
  command_line->AddOption("--b", options->b, "Set this on side B")
      ->TypeName("KEY=VALUE")
      ->OneValueEach();
  command_line->AddOption("--set", options->set, "Set this on both sides")->OneValueEach();
  command_line
      ->AddOption("--split", options->split,
                  "Compare one run before this time with the same run after it: 30s")
      ->TypeName("TIME")
      ->Check(NotEmpty());
  command_line->AddOption("--a-cmd", options->a_command, "Compare this shell command ...")
      ->TypeName("CMD");
  command_line->AddOption("--b-cmd", options->b_command, "... with this one")->TypeName("CMD");
}

void AddComparedRuns(CommandLine* command_line, CompareOptions* options) {
  command_line->Group("How it is run");
  command_line->AddOption("--pairs", options->pairs, "Run at most this many pairs")
      ->Check(InRange(size_t{1}, analysis::kMostPairs))
      ->Default("12");
  command_line->AddOption("-d,--duration", options->duration, "Run each time this long")
      ->Default("2s");
  command_line->AddOption("--time", options->time, "Start no pair that would end later than this")
      ->TypeName("DURATION");
  command_line
      ->AddOption("--margin", options->margin,
                  "Treat a smaller change as none: same within this much")
      ->TypeName("SHARE")
      ->ShowDefault();
  command_line
      ->AddOption("--seed", options->seed,
                  "Seed the order of runs and the resampling with it (printed)")
      ->Check(InRange(uint64_t{0}, uint64_t{1} << 53))
      ->TypeName("N");
  command_line->AddFlag("--cold", options->cold,
                        "Drop the pipeline's own table from the page cache before each run");
  command_line
      ->AddOption("--warmup", options->warmup, "Run each side this many times first, uncounted")
      ->Check(InRange(size_t{0}, size_t{1000}))
      ->TypeName("N");
  command_line
      ->AddOption("--level", options->level,
                  "Measure up to this level (run --level): 2 begins a run half a second sooner")
      ->Check(InRange(0, 4));
  command_line->AddOption("--prepare", options->prepare, "Run this shell command before each run")
      ->TypeName("CMD");
  command_line->AddFlag("--no-early-stop", options->no_early_stop,
                        "Run all pairs, even when the answer is clear earlier");
}

void AddComparedPage(CommandLine* command_line, CompareOptions* options) {
  command_line->Group("Verdict and database");
  command_line
      ->AddFlag("--force", options->force,
                "Compare sides that are not comparable; the page is marked")
      ->Group("What is compared");
  command_line
      ->AddOption("--fail-on", options->fail_on,
                  "Exit 3 if this is certainly true, 4 if it may be: 'rows_per_s<-3%'")
      ->OneValueEach()
      ->TypeName("GATE");
  AddFormatOptions(command_line, &options->page,
                   "Write one JSON object (schema headrace.compare/1)");
  command_line->AddOption("-o,--output", options->page.file,
                          "Write to this file, complete or not at all");
  command_line->AddFlag("--overwrite", options->page.replace,
                        "Replace the output file if it exists");
  auto* list =
      command_line->AddFlag("--list", options->list, "List the comparisons of the database");
  command_line->AddOption("--show", options->show, "Print a comparison of the database again")
      ->TypeName("ID")
      ->Excludes(list);
  command_line->AddOption("--name", options->name, "Name the comparison and its runs")
      ->Default("date and time");
  command_line->AddOption("--db", options->database, "Record into, or read, this database");
  command_line->AddFlag("-q,--quiet", options->quiet, "No progress");
}

}  // namespace

void AddCompareOptions(CommandLine* command_line, CompareOptions* options) {
  AddComparedSides(command_line, options);
  AddComparedRuns(command_line, options);
  AddComparedPage(command_line, options);
}

double ParseMargin(const std::string& text) {
  std::string number = text;
  const bool percent = !number.empty() && number.back() == '%';
  if (percent) number.pop_back();
  char* end = nullptr;
  const double value = std::strtod(number.c_str(), &end) / (percent ? 100 : 1);
  if (number.empty() || *end != '\0' || !(value > 0) || !(value < 1)) {
    throw Error(ExitCode::kUsage,
                fmt::format("'{}' is not a share above 0 and below 1", Printable(text, 60)),
                "--margin", "as in 3% or 0.03");
  }
  return value;
}

std::vector<analysis::Gate> ParseGates(const CompareOptions& options) {
  std::vector<analysis::Gate> gates;
  for (const std::string& text : options.fail_on)
    gates.push_back(analysis::ParseGate(text, "--fail-on"));
  return gates;
}

void RefuseRunning(const CompareOptions& options, const char* why, const char* fix) {
  const auto refuse = [&](bool given, const char* option) {
    if (given) throw Error(ExitCode::kUsage, why, option, fix);
  };
  refuse(!options.a.empty(), "--a");
  refuse(!options.b.empty(), "--b");
  refuse(!options.set.empty(), "--set");
  refuse(options.pairs.has_value(), "--pairs");
  refuse(!options.duration.empty(), "--duration");
  refuse(!options.time.empty(), "--time");
  refuse(options.cold, "--cold");
  refuse(!options.prepare.empty(), "--prepare");
  refuse(options.warmup > 0, "--warmup");
  refuse(options.level >= 0, "--level");
  refuse(options.no_early_stop, "--no-early-stop");
}

std::string RepeatCommand(const CompareOptions& options) {
  std::string text = ShellWord(ProgramName()) + " compare";
  for (const std::string& side : options.sides) text += " " + ShellWord(side);
  const auto add = [&](const char* option, const std::vector<std::string>& values) {
    for (const std::string& value : values) text += fmt::format(" {} {}", option, ShellWord(value));
  };
  add("--set", options.set);
  add("--a", options.a);
  add("--b", options.b);
  if (!options.a_command.empty()) {
    add("--a-cmd", {options.a_command});
    add("--b-cmd", {options.b_command});
  }
  if (!options.duration.empty()) add("--duration", {options.duration});
  if (options.margin != "3%") add("--margin", {options.margin});
  if (!options.prepare.empty()) add("--prepare", {options.prepare});
  add("--fail-on", options.fail_on);
  if (options.level >= 0) text += fmt::format(" --level {}", options.level);
  if (options.cold) text += " --cold";
  return text + DatabaseOption(options.database);
}

}  // namespace headrace::cli
