// Finds the command, parses its options, runs it, and turns an Error into one line on stderr and an
// exit code.
#include <fmt/format.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <optional>
#include <string_view>
#include <system_error>

#include "base/error.h"
#include "cli/command.h"
#include "cli/command_line.h"
#include "cli/guarded_output.h"
#include "cli/main.h"
#include "cli/version.h"
#include "dashboards/terminal/terminal.h"

namespace headrace::cli {
namespace {

constexpr const char* kExitCodes =
    "0 ok, 1 failure, 2 usage, 3 gate failed, 4 inconclusive or infeasible, 5 bad input data,\n"
    "  6 privilege or kernel feature missing, 7 out of disk or memory, 130 interrupted";

std::string Overview() {
  std::string text =
      "headrace: shows why a training pipeline waits for data, and what to change.\n"
      "usage: headrace COMMAND [OPTIONS]\n\ncommands:\n";
  for (const auto& [name, command] : Registry<Command>::Global().entries()) {
    if (!command.hidden) text += fmt::format("  {:<13} {}\n", name, command.summary);
  }
  text +=
      "\nexamples:\n"
      "  headrace demo                                # a small table, a real run, a verdict\n"
      "  headrace generate rm1 -o rm1                 # a table like a ranking model's, and a "
      "pipeline to read it\n"
      "  headrace run rm1/pipeline.toml               # run and record it\n"
      "  headrace report latest                       # what limits it, what to change, what that "
      "gains\n\n"
      "'headrace COMMAND --help' explains one command; 'headrace --version' says what this build "
      "is.\n"
      "exit codes: ";
  return text + kExitCodes + "\n";
}

std::vector<std::string> CommandNames() {
  std::vector<std::string> names;
  for (const auto& [name, command] : Registry<Command>::Global().entries()) {
    if (!command.hidden) names.push_back(name);
  }
  return names;
}

std::string Footer(const Command& command) {
  std::string text;
  if (!command.examples.empty()) text += "examples:\n" + command.examples;
  if (!text.empty() && text.back() != '\n') text += "\n";
  if (!command.exit_codes.empty()) text += "exit: " + command.exit_codes + "\n";
  if (!command.next.empty()) text += "next: " + command.next + "\n";
  return text;
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

int RunCommand(const std::string& name, const Command& command, int argc, char** argv) {
  CommandLine command_line(fmt::format("headrace {}: {}", name, command.summary),
                           "headrace " + name, Footer(command));
  const std::function<int()> run = command.configure(command_line);
  std::string color = "auto";
  command_line.AddOption("--color", color, "Colour the output: auto, always or never")
      ->Check(OneOf({"auto", "always", "never"}))
      ->TypeName("WHEN");
  try {
    if (!command_line.Parse({argv + 2, argv + argc})) return 0;
  } catch (const UsageFault& fault) {
    return UsageError(name, fault.what);
  }
  dashboards::SetColorMode(color == "always"  ? dashboards::ColorMode::kAlways
                           : color == "never" ? dashboards::ColorMode::kNever
                                              : dashboards::ColorMode::kAuto);
  return run();
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
  if (name == "--help" || name == "-h" || name == "help") {
    const Command* command = argc > 2 ? Registry<Command>::Global().Find(argv[2]) : nullptr;
    if (command == nullptr && argc > 2 && argv[2][0] != '-') return UnknownCommand(argv[2]);
    if (command == nullptr) {
      std::fputs(Overview().c_str(), stdout);
      return 0;
    }
    char help[] = "--help";
    char* arguments[] = {argv[0], argv[2], help};
    return RunCommand(argv[2], *command, 3, arguments);
  }
  if (name == "--version" || name == "version") {
    const bool json = argc > 2 && std::string_view(argv[2]) == "--json";
    if (argc > (json ? 3 : 2)) {
      std::fputs(fmt::format("headrace --version: unknown argument '{}'; it takes --json\n",
                             Printable(argv[json ? 3 : 2]))
                     .c_str(),
                 stderr);
      return static_cast<int>(ExitCode::kUsage);
    }
    PrintVersion(json);
    return 0;
  }
  const Command* command = Registry<Command>::Global().Find(name);
  if (command == nullptr) {
    return UnknownCommand(name);
  }
  int code = 0;
  const std::optional<Error> failure = ErrorOf([&] {
    try {
      code = RunCommand(name, *command, argc, argv);
    } catch (const std::system_error& error) {
      // fmt's, of a page that is longer than the stream's buffer.
      if (!std::string_view(error.what()).starts_with("cannot write to file")) throw;
      if (error.code().value() != EPIPE)
        throw ErrnoError(error.code().value(), "write", "standard output");
    }
    // A reader that has seen enough is no failure.
    if ((std::fflush(stdout) != 0 || std::fflush(DataOutput()) != 0) && errno != EPIPE)
      throw ErrnoError(errno, "write", "standard output");
  });
  if (!failure) return code;
  std::fflush(stdout);
  std::fputs(fmt::format("headrace {}: {}\n", name, failure->what()).c_str(), stderr);
  return static_cast<int>(failure->code());
}

}  // namespace headrace::cli
