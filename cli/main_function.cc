// Finds the command, parses its options, runs it, and turns an Error into one line on stderr and an
// exit code.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cerrno>
#include <cmath>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <string_view>
#include <system_error>

#include "base/error.h"
#include "cli/command.h"
#include "cli/guarded_output.h"
#include "cli/main.h"
#include "cli/version.h"

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

// The option names of `app`, for suggestions: "--limit", "-o".
std::vector<std::string> OptionNames(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::Option* option : app.get_options()) {
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
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

// What went wrong in parsing, in one line, with the nearest option where one was mistyped.
std::string Explain(const CLI::App& app, const CLI::ParseError& error,
                    const std::vector<std::string>& arguments) {
  if (dynamic_cast<const CLI::ExtrasError*>(&error) != nullptr) {
    for (const std::string& argument : arguments) {
      if (argument.rfind("--", 0) != 0) continue;
      const std::string name = argument.substr(0, argument.find('='));
      const std::vector<std::string> names = OptionNames(app);
      if (std::find(names.begin(), names.end(), name) != names.end()) continue;
      const std::string nearest = NearestName(name, names);
      return fmt::format("unknown option '{}'{}", Printable(name),
                         nearest.empty() ? "" : fmt::format(". Did you mean '{}'?", nearest));
    }
  }
  std::string text = error.what();
  for (char& c : text) {
    if (c == '\n') c = ' ';
  }
  return Printable(text, 300);
}

// The library turns "-5" into 2^64 - 5 and words its refusals for programmers: every option that
// takes a number is checked here first.
void CheckNumbers(CLI::App* app) {
  for (CLI::Option* option : app->get_options()) {
    const std::string type = option->get_type_name();
    const bool natural = type.rfind("UINT", 0) == 0;
    const bool whole = natural || type.rfind("INT", 0) == 0;
    if (!whole && type.rfind("FLOAT", 0) != 0) continue;
    option->check([natural, whole](const std::string& text) -> std::string {
      const std::string shown = "'" + Printable(text, 60) + "' ";
      errno = 0;
      char* end = nullptr;
      if (!whole) {
        const double value = std::strtod(text.c_str(), &end);
        return text.empty() || *end != '\0' || !std::isfinite(value) ? shown + "is not a number"
                                                                     : "";
      }
      std::strtoll(text.c_str(), &end, 10);
      if (text.empty() || *end != '\0' || text[0] == ' ') return shown + "is not a whole number";
      if (natural && text[0] == '-') return shown + "is negative";
      if (errno != ERANGE) return "";
      errno = 0;
      std::strtoull(text.c_str(), &end, 10);
      return natural && errno != ERANGE ? "" : shown + "is too large";
    });
  }
}

int RunCommand(const std::string& name, const Command& command, int argc, char** argv) {
  CLI::App app(fmt::format("headrace {}: {}", name, command.summary), "headrace " + name);
  app.footer(Footer(command));
  app.get_formatter()->column_width(30);
  const std::function<int()> run = command.configure(app);
  std::string color = "auto";
  app.add_option("--color", color, "Colour the output: auto, always or never")
      ->check(CLI::IsMember({"auto", "always", "never"}))
      ->type_name("WHEN");
  CheckNumbers(&app);
  std::vector<std::string> arguments(argv + 2, argv + argc);
  try {
    std::vector<std::string> reversed(arguments.rbegin(), arguments.rend());
    app.parse(reversed);
  } catch (const CLI::CallForHelp&) {
    std::fputs(app.help().c_str(), stdout);
    return 0;
  } catch (const CLI::ParseError& error) {
    return UsageError(name, Explain(app, error, arguments));
  }
  SetColorMode(color == "always"  ? ColorMode::kAlways
               : color == "never" ? ColorMode::kNever
                                  : ColorMode::kAuto);
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
