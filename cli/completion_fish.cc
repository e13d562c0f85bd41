// Completion in fish.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "cli/completion.h"

namespace headrace::cli {
namespace {

// In single quotes fish knows \' and \\ only.
std::string FishQuoted(const std::string& text) {
  std::string out = "'";
  for (const char c : text) {
    if (c == '\'' || c == '\\') out += '\\';
    out += c;
  }
  return out + "'";
}

// The words of `complete` that say what stands there.
std::string FishOffer(const OptionDescription& option) {
  const std::string runs = fmt::format("'({} 2> /dev/null)'", kListRuns);
  switch (CompletedBy(option)) {
    case CompletionKind::kWords:
      return "-a " + FishQuoted(fmt::format("{}", fmt::join(option.choices, " ")));
    case CompletionKind::kFiles:
      return "-F";
    case CompletionKind::kFolders:
      return "-a '(__fish_complete_directories)'";
    case CompletionKind::kRuns:
      return "-a " + runs;
    case CompletionKind::kRunsAndFiles:
      return "-F -a " + runs;
    case CompletionKind::kWordsAndFiles:
      return "-F -a " + FishQuoted(fmt::format("{}", fmt::join(option.choices, " ")));
    case CompletionKind::kNothing:
      return "";
  }
  return "";
}

std::string FishCommand(const CommandDescription& command) {
  const std::string line =
      fmt::format("complete -c headrace -n '__fish_seen_subcommand_from {}'", CommandWord(command));
  std::string text;
  for (const OptionDescription& option : AllOptions(command)) {
    text += line;
    for (const std::string& name : option.names) {
      text += name.starts_with("--") ? " -l " + name.substr(2) : " -s " + name.substr(1);
    }
    if (!option.value.empty()) {
      const std::string offer = FishOffer(option);
      text += offer.starts_with("-F") ? " -r " + offer : offer.empty() ? " -x" : " -x " + offer;
    }
    text += " -d " + FishQuoted(Short(option.help)) + "\n";
  }
  for (const CommandDescription& subcommand : command.subcommands) {
    text += fmt::format("{} -a {} -d {}\n", line, subcommand.name, FishQuoted(subcommand.purpose));
  }
  for (const OptionDescription& argument : AllArguments(command)) {
    const std::string offer = FishOffer(argument);
    if (!offer.empty()) text += line + " " + offer + "\n";
  }
  if (command.takes_command) text += line + " -F\n";
  return text;
}

std::string FishScript(const std::vector<CommandDescription>& commands) {
  std::string text =
      "# Completion of headrace in fish, made by 'headrace completion fish'.\n"
      "complete -c headrace -f\n"
      "complete -c headrace -n __fish_use_subcommand -l help -d 'List the commands'\n"
      "complete -c headrace -n __fish_use_subcommand -l version -d 'Say what this build is'\n";
  for (const CommandDescription& command : commands) {
    text += fmt::format("complete -c headrace -n __fish_use_subcommand -a {} -d {}\n",
                        CommandWord(command), FishQuoted(command.purpose));
  }
  for (const CommandDescription& command : commands) text += FishCommand(command);
  return text;
}

HR_COMPLETION("fish",
              {.install = "share/fish/vendor_completions.d/headrace.fish", .script = FishScript});

}  // namespace
}  // namespace headrace::cli
