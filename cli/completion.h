// Scripts that complete command lines of headrace in a shell, made from the same definitions as
// --help. A shell is one file that ends in HR_COMPLETION.
#pragma once
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/registry.h"
#include "cli/command_description.h"

namespace headrace::cli {

struct CompletionShell {
  std::string install;  // where its script lies below a prefix
  // The script, for the commands that --help lists.
  std::function<std::string(const std::vector<CommandDescription>& commands)> script;
};

#define HR_COMPLETION(name, ...)                    \
  [[maybe_unused]] static const bool HR_REGISTRAR = \
      ::headrace::Registry<::headrace::cli::CompletionShell>::Global().Add(name, __VA_ARGS__)

// What a shell offers for the value of an option or argument.
enum class CompletionKind : uint8_t {
  kNothing,
  kWords,
  kFiles,
  kFolders,
  kRuns,
  kRunsAndFiles,
  kWordsAndFiles
};
CompletionKind CompletedBy(const OptionDescription& option);

// "run" of "headrace run".
std::string CommandWord(const CommandDescription& command);

// The options of a command and of its subcommands, each once; without positional arguments.
std::vector<OptionDescription> AllOptions(const CommandDescription& command);
// Its positional arguments, and those of its subcommands.
std::vector<OptionDescription> AllArguments(const CommandDescription& command);

// `text` in single quotes of sh.
std::string SingleQuoted(const std::string& text);

// What a help text says first, for lists beside other words.
std::string Short(const std::string& help);

// Prints the names and ids of the newest runs of the default database, one a line.
inline constexpr const char* kListRuns = "headrace completion --runs";

}  // namespace headrace::cli
