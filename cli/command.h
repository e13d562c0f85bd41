// Command: one subcommand of headrace, registered by its own file with HR_COMMAND.
#pragma once
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/registry.h"

namespace headrace::cli {

class CommandLine;

// A command adds its options to a command line and returns what runs after parsing. The returned
// function gives the exit code, or throws Error.
struct Command {
  std::string summary;   // one line, starts with a verb: "says what limits a recorded run, and what
                         // to change"
  std::string examples;  // lines "headrace report latest      # the verdict, then the evidence"
  std::string exit_codes;  // "0 ok, 4 undecided (says what to measure), 5 not a run file"
  std::string next;        // "headrace plan RUN"
  std::function<std::function<int()>(CommandLine&)> configure;
  bool hidden = false;  // internal roles such as `collect`
};

#define HR_COMMAND(name, ...)                       \
  [[maybe_unused]] static const bool HR_REGISTRAR = \
      ::headrace::Registry<::headrace::cli::Command>::Global().Add(name, __VA_ARGS__)

// How the user called this program: argv[0] when it names a path, else "headrace"; for commands
// printed to be pasted.
std::string ProgramName();
void SetProgramName(std::string argv0);

// $HEADRACE_DB, else db of the configuration file, else ./headrace.db. A configuration
// file with a fault is passed over here: who applies it says so.
std::string DefaultDatabase();

// Does `work` and returns what it threw, as the Error that a command would end with: an Error
// unchanged, kResources for lack of memory, kFailure "internal error: ..." for any other exception;
// nothing if it threw nothing. For threads, which no exception may leave.
std::optional<Error> ErrorOf(const std::function<void()>& work);

// A check for options that take a number above 0: returns the error message, or "".
std::string Positive(const std::string& text);

}  // namespace headrace::cli
