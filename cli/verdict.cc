#include "cli/verdict.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>

#include "analysis/advice/statements.h"
#include "analysis/run/read_run.h"
#include "analysis/run/run_view.h"
#include "base/error.h"
#include "base/units.h"
#include "cli/command.h"
#include "cli/command_line.h"
#include "cli/common_options.h"
#include "collectors/probe_runner.h"
#include "dashboards/render/render.h"
#include "dashboards/report/make_report.h"
#include "dashboards/terminal/terminal.h"
#include "probes/bpf/limits.h"

namespace headrace::cli {

bool AsciiOnly() {
  for (const char* name : {"LC_ALL", "LC_CTYPE", "LANG"}) {
    const char* value = std::getenv(name);
    if (value == nullptr || *value == '\0') continue;
    return std::strcmp(value, "C") == 0 || std::strcmp(value, "POSIX") == 0;
  }
  return true;
}

std::string DatabaseOption(const std::string& database) {
  return database == DefaultDatabase() ? "" : " --db " + ShellWord(database);
}

dashboards::TextOptions TextFor(int descriptor) {
  dashboards::TextOptions options;
  options.width = dashboards::TerminalWidth(descriptor);
  options.ascii = AsciiOnly();
  options.color = dashboards::UseColor(descriptor);
  return options;
}

std::string FirstPageOf(const std::string& database, int64_t run_id, int descriptor) {
  try {
    analysis::RunView view = analysis::LoadRun(database, std::to_string(run_id));
    view.program = ShellWord(ProgramName());
    view.database_option = DatabaseOption(database);
    dashboards::TextOptions options = TextFor(descriptor);
    options.first_only = true;
    return dashboards::RenderText(dashboards::MakeReport(view, analysis::MakeStatements(view)),
                                  options);
  } catch (const std::exception& error) {
    return fmt::format("no verdict: {}\n", Printable(error.what(), 500));
  }
}

collectors::Retention MakeRetention(const std::string& older_than, int64_t keep,
                                    const std::string& max_size) {
  collectors::Retention retention;
  if (!older_than.empty()) {
    retention.older_than_ns = ParseDuration(older_than, "--older-than");
  }
  if (keep >= 0) retention.keep = keep;
  if (!max_size.empty()) {
    retention.max_bytes = static_cast<int64_t>(ParseBytes(max_size, "--max-size"));
  }
  return retention;
}

void MeasureOptions::AddTo(CommandLine* command_line) {
  const std::string before = command_line->Group(kMeasuring);
  command_line
      ->AddOption("--level", level,
                  "Measure up to this level: 0 outside, 1 instrumentation and /proc, 2 CPU clock, "
                  "3 eBPF, 4 hardware counters")
      ->Check(InRange(0, collectors::kMostLevel))
      ->Default("all that works");
  command_line->AddFlag("--deep", deep, "Measure also what costs more: system calls, BPF run time");
  command_line->AddOption("--without", without, "Leave a probe out; headrace doctor names them")
      ->TypeName("PROBE")
      ->OneValueEach();
  command_line
      ->AddOption("--ring", ring, "Keep full detail only this long before and after the trigger")
      ->TypeName("DURATION")
      ->Default("with --trigger 30s");
  command_line
      ->AddOption("--trigger", trigger,
                  "Keep detail when this happens: 'step > 1s', 'queue:ready < 10%'")
      ->TypeName("CONDITION")
      ->Default("with --ring 'stall > 200ms'");
  command_line->Group(before);
}

void MeasureOptions::Apply(collectors::RecorderOptions* options) const {
  probes::bpf::CheckLimits();
  if (level >= 0) options->level = level;
  options->deep = deep;
  collectors::CheckProbeNames(without, "--without");
  options->without = without;
  collectors::SetFlightRecorder(ring, trigger, options);
}

void MeasureOptions::SetEnvironment() const {
  if (level == 0 || level == 1) setenv("HEADRACE_ACCOUNT_LEVEL", "1", 0);
}

std::vector<std::string> MeasureOptions::Arguments() const {
  collectors::RecorderOptions checked;
  Apply(&checked);
  std::vector<std::string> arguments;
  if (level >= 0) arguments = {"--level", std::to_string(level)};
  if (deep) arguments.push_back("--deep");
  for (const std::string& probe : without) {
    arguments.insert(arguments.end(), {"--without", probe});
  }
  if (!ring.empty()) arguments.insert(arguments.end(), {"--ring", ring});
  if (!trigger.empty()) arguments.insert(arguments.end(), {"--trigger", trigger});
  return arguments;
}

}  // namespace headrace::cli
