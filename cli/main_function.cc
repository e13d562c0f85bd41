// Finds the command, parses its options, runs it, and turns an Error into one line on stderr and an
// exit code.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>

#include "base/error.h"
#include "cli/command.h"
#include "cli/command_line.h"
#include "cli/configuration.h"
#include "cli/configured_command.h"
#include "cli/guarded_output.h"
#include "cli/help_text.h"
#include "cli/main.h"
#include "cli/overview.h"
#include "cli/version.h"
#include "dashboards/terminal/terminal.h"

namespace headrace::cli {
namespace {

std::string Overview() {
  constexpr int kNames = 16;  // columns
  const int width = HelpWidth(dashboards::TerminalWidth(STDOUT_FILENO));
  std::string text =
      "headrace: shows why a training pipeline waits for data, and what to change.\n"
      "usage: headrace COMMAND [OPTIONS]\n\ncommands:\n";
  for (const auto& [name, command] : Registry<Command>::Global().entries()) {
    if (!command.hidden) {
      text += fmt::format("  {:<13} {}\n", name, Wrapped(command.summary, width - kNames, kNames));
    }
  }
  return text + "\nexamples:\n" + kOverviewExamples + "\n" +
         Wrapped(
             "'headrace COMMAND --help' explains one command; 'headrace config' lists settings "
             "and the environment; 'headrace --version' says what this build is.",
             width, 0) +
         "\n" + Wrapped(std::string("exit codes: ") + kExitCodes, width - 2, 2) + "\n";
}

std::vector<std::string> CommandNames() {
  std::vector<std::string> names;
  for (const auto& [name, command] : Registry<Command>::Global().entries()) {
    if (!command.hidden) names.push_back(name);
  }
  return names;
}

int UsageError(const std::string& command, const std::string& message) {
  std::fputs(
      fmt::format("headrace {}: {}; try 'headrace {} --help'\n", command, message, command).c_str(),
      stderr);
  return static_cast<int>(ExitCode::kUsage);
}

int UnknownCommand(const std::string& name) {
  const std::string nearest = NearestName(name, CommandNames());
  std::fputs(fmt::format("headrace: unknown command '{}'.{} 'headrace --help' lists them\n",
                         Printable(name),
                         nearest.empty() ? "" : fmt::format(" Did you mean '{}'?", nearest))
                 .c_str(),
             stderr);
  return static_cast<int>(ExitCode::kUsage);
}

bool HasConfiguration() {
  try {
    return !Configuration().options.empty();
  } catch (const Error&) {
    return true;  // who applies it says what is wrong
  }
}

// What the configuration file says becomes what holds without the words. What explains commands
// works whatever the file says.
void TakeConfiguration(const std::string& name, const Command& command,
                       const std::vector<std::string>& words, CommandLine* line) {
  if (!HasConfiguration()) {
    HideConfiguration();
    return;
  }
  const ConfiguredCommand asked(name, command);
  const bool help = asked.line().AsksForHelp(words);
  try {
    ApplyConfiguration(name, asked.line(), line);
  } catch (const Error&) {
    if (!help && name != "man" && name != "completion") throw;
  }
}

int RunCommand(const std::string& name, const Command& command,
               const std::vector<std::string>& words) {
  // Internal roles are told everything by options.
  if (command.hidden) HideConfiguration();
  const ConfiguredCommand configured(name, command);
  if (!command.hidden) TakeConfiguration(name, command, words, &configured.line());
  try {
    return configured.Run(words);
  } catch (const UsageFault& fault) {
    return UsageError(name, fault.what);
  }
}

// What the words after `headrace` ask for; its exit code.
int Dispatch(const std::string& name, const std::vector<std::string>& words) {
  if (name == "--help" || name == "-h" || name == "help") {
    const std::string asked = words.empty() ? "" : words[0];
    const Command* command = Registry<Command>::Global().Find(asked);
    if (command != nullptr) return ConfiguredCommand(asked, *command).Run({"--help"});
    if (!asked.empty() && asked[0] != '-') return UnknownCommand(asked);
    std::fputs(Overview().c_str(), stdout);
    return 0;
  }
  if (name == "--version" || name == "version") {
    const bool json = !words.empty() && words[0] == "--json";
    if (words.size() > (json ? 1 : 0)) {
      std::fputs(fmt::format("headrace --version: unknown argument '{}'; it takes --json\n",
                             Printable(words[json ? 1 : 0]))
                     .c_str(),
                 stderr);
      return static_cast<int>(ExitCode::kUsage);
    }
    PrintVersion(json);
    return 0;
  }
  const Command* command = Registry<Command>::Global().Find(name);
  return command == nullptr ? UnknownCommand(name) : RunCommand(name, *command, words);
}

// What to do about a file that cannot be opened or made, where the error does not say it.
std::string WayOut(const Error& error) {
  // A pipeline file was wanted, as by 'headrace run train.py': FILE:LINE:COLUMN.
  if (const size_t end = error.where().find(".py:");
      end != std::string::npos && error.fix().empty() && error.code() == ExitCode::kUsage) {
    return fmt::format("; a Python program is recorded by 'headrace profile -- python {}'",
                       Printable(error.where().substr(0, end + 3)));
  }
  if (!error.fix().empty() || error.where().empty()) return "";
  // A mistake in a pipeline file, with or without a line and a column.
  if (error.code() == ExitCode::kUsage) {
    const bool pipeline =
        error.where().ends_with(".toml") || error.where().find(".toml:") != std::string::npos;
    return pipeline ? "; docs/pipeline.md describes the file" : "";
  }
  std::string where = error.where();
  if (const size_t context = where.find(": "); where.starts_with("side ") && context != where.npos)
    where = where.substr(context + 2);  // of a comparison
  for (const char* scheme : {"unix:", "shm:"}) {
    if (where.starts_with(scheme)) where = where.substr(std::strlen(scheme));
  }
  if (where.find(':') < where.find('/')) return "";  // another address, not a path
  if (error.code() == ExitCode::kPrivilege)
    return error.fact().starts_with("cannot ") ? "; check who may read and write it" : "";
  if (error.code() != ExitCode::kBadData) return "";
  const std::filesystem::path path(where);
  std::error_code ignored;
  if (std::filesystem::is_directory(path, ignored)) {
    const std::filesystem::path pipeline = path / "pipeline.toml";
    return std::filesystem::exists(pipeline, ignored)
               ? fmt::format("; name the file in it: {}", Printable(pipeline.string()))
               : "; it is a folder: name a file in it";
  }
  if (!error.fact().starts_with("cannot ") || std::filesystem::exists(path, ignored)) return "";
  const std::filesystem::path folder = path.parent_path();
  if (!folder.empty() && !std::filesystem::exists(folder, ignored))
    return fmt::format("; there is no folder {}", Printable(folder.string()));
  return path.extension() == ".toml" ? "; check the path; 'headrace generate rm1 -o rm1' makes a "
                                       "pipeline file and its table"
                                     : "; check the path";
}

}  // namespace

int Main(int argc, char** argv) {
  const OutputGuard guard;
  // A closed pipe is an ordinary end of output for the commands that print rows: they see EPIPE. A
  // file that may not grow (ulimit -f) is an error like a full disk: EFBIG.
  std::signal(SIGPIPE, SIG_IGN);
  std::signal(SIGXFSZ, SIG_IGN);
  if (argc > 0) SetProgramName(argv[0]);
  if (argc < 2) {
    std::fputs(Overview().c_str(), stderr);
    return static_cast<int>(ExitCode::kUsage);
  }
  const std::string name = argv[1];
  int code = 0;
  const std::optional<Error> failure = ErrorOf([&] {
    try {
      code = Dispatch(name, {argv + 2, argv + argc});
    } catch (const std::system_error& error) {
      // fmt's, of a page that is longer than the stream's buffer.
      if (!std::string_view(error.what()).starts_with("cannot write to file")) throw;
      if (error.code().value() != EPIPE)
        throw ErrnoError(error.code().value(), "write", "standard output");
    }
    // A reader that has seen enough is no failure.
    if ((std::fflush(stdout) != 0 || std::fflush(DataOutput()) != 0) && errno != EPIPE)
      throw ErrnoError(errno, "write", "standard output");
    // A write before the last may have failed, too, as that of a page longer than the buffer.
    const int failed = StandardOutputFailure();
    if (failed != 0 && failed != EPIPE) throw ErrnoError(failed, "write", "standard output");
  });
  if (!failure) return code;
  std::fflush(stdout);
  std::fputs(fmt::format("headrace {}: {}{}\n", name, failure->what(), WayOut(*failure)).c_str(),
             stderr);
  return static_cast<int>(failure->code());
}

}  // namespace headrace::cli
