// Completion in zsh.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "cli/completion.h"

namespace headrace::cli {
namespace {

// Text of a specification of _arguments: brackets and colons end its parts.
std::string ZshText(const std::string& text) {
  std::string out;
  for (const char c : text) {
    if (c == '[' || c == ']' || c == ':' || c == '\\') out += '\\';
    out += c;
  }
  return out;
}

std::string ZshOffer(const OptionDescription& option) {
  switch (CompletedBy(option)) {
    case CompletionKind::kWords:
      return fmt::format("({})", fmt::join(option.choices, " "));
    case CompletionKind::kFiles:
      return "_files";
    case CompletionKind::kFolders:
      return "_files -/";
    case CompletionKind::kRuns:
      return "_headrace_runs";
    case CompletionKind::kRunsAndFiles:
      return "_headrace_sides";
    case CompletionKind::kWordsAndFiles:
      return fmt::format("{{compadd {}; _files}}", fmt::join(option.choices, " "));
    case CompletionKind::kNothing:
      return " ";
  }
  return " ";
}

std::string ZshOption(const OptionDescription& option) {
  std::string rest = fmt::format("[{}]", ZshText(Short(option.help)));
  if (!option.value.empty()) rest += fmt::format(":{}:{}", ZshText(option.value), ZshOffer(option));
  if (option.names.size() == 1)
    return SingleQuoted((option.several ? "*" : "") + option.names[0] + rest);
  return fmt::format("'{}'{{{}}}{}",
                     option.several ? "*" : fmt::format("({})", fmt::join(option.names, " ")),
                     fmt::join(option.names, ","), SingleQuoted(rest));
}

std::string ZshCommand(const CommandDescription& command) {
  std::string text = fmt::format("        {})\n          _arguments -s", CommandWord(command));
  for (const OptionDescription& option : AllOptions(command)) {
    text += " \\\n            " + ZshOption(option);
  }
  if (!command.subcommands.empty()) {
    std::string words;
    for (const CommandDescription& subcommand : command.subcommands)
      words += (words.empty() ? "" : " ") + subcommand.name;
    text += fmt::format(
        " \\\n            '1:subcommand:({})' \\\n            '*:run:_headrace_runs'", words);
  } else {
    for (const OptionDescription& argument : AllArguments(command)) {
      text += " \\\n            " +
              SingleQuoted(fmt::format("{}:{}:{}", argument.several ? "*" : "",
                                       ZshText(argument.names[0]), ZshOffer(argument)));
    }
  }
  if (command.takes_command) text += " \\\n            '*::command:_normal'";
  return text + " ;;\n";
}

std::string ZshScript(const std::vector<CommandDescription>& commands) {
  std::string list, cases;
  for (const CommandDescription& command : commands) {
    list += fmt::format("    {}\n",
                        SingleQuoted(CommandWord(command) + ":" + ZshText(command.purpose)));
    cases += ZshCommand(command);
  }
  return fmt::format(
      "#compdef headrace\n# Completion of headrace in zsh, made by 'headrace completion zsh'.\n\n"
      "_headrace_runs() {{\n  local -a runs\n"
      "  runs=(${{(f)\"$({} 2> /dev/null)\"}})\n  compadd -a runs\n}}\n"
      "_headrace_sides() {{ _headrace_runs; _files }}\n\n"
      "_headrace() {{\n  local context state line\n  typeset -A opt_args\n  local -a commands\n"
      "  commands=(\n{}  )\n"
      "  _arguments -C '(-h --help)'{{-h,--help}}'[List the commands]' '--version[Say what this "
      "build "
      "is]' '1:command:->command' '*::argument:->argument'\n"
      "  case $state in\n    command) _describe -t commands command commands ;;\n"
      "    argument)\n      case $words[1] in\n{}      esac ;;\n  esac\n}}\n\n"
      "if [[ $funcstack[1] == _headrace ]]; then _headrace \"$@\"; else compdef _headrace "
      "headrace; fi\n",
      kListRuns, list, cases);
}

HR_COMPLETION("zsh", {.install = "share/zsh/vendor-completions/_headrace", .script = ZshScript});

}  // namespace
}  // namespace headrace::cli
