// Completion in bash; no other package is needed.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "cli/completion.h"

namespace headrace::cli {
namespace {

constexpr const char* kBashBegin =
    R"sh(# Completion of headrace in bash, made by 'headrace completion bash'.

_headrace_words() {  # WORDS: those that begin like the word at the cursor
  mapfile -t COMPREPLY < <(compgen -W "$1" -- "$cur")
}
_headrace_lines() {  # LINES: as words, but each line is one
  local line
  while IFS= read -r line; do
    [[ $line == "$cur"* ]] && COMPREPLY+=("$(printf %q "$line")")
  done <<< "$1"
}
_headrace_files() { compopt -o default 2> /dev/null; COMPREPLY=(); }
_headrace_folders() { compopt -o dirnames 2> /dev/null; COMPREPLY=(); }
_headrace_runs() { _headrace_lines "$()sh";

constexpr const char* kBashWords = R"sh( 2> /dev/null)"; }

_headrace() {
  local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD - 1]} command= i
  COMPREPLY=()
  for ((i = 1; i < COMP_CWORD; i++)); do
    case ${COMP_WORDS[i]} in
      --) _headrace_files; return ;;
      -*) ;;
      *) [[ -n $command ]] || command=${COMP_WORDS[i]} ;;
    esac
  done
  [[ $command != help || $COMP_CWORD -gt 2 ]] || command=
)sh";

// What is offered where a value of the option or argument stands.
std::string BashOffer(const OptionDescription& option) {
  switch (CompletedBy(option)) {
    case CompletionKind::kWords:
      return fmt::format("_headrace_words {}",
                         SingleQuoted(fmt::format("{}", fmt::join(option.choices, " "))));
    case CompletionKind::kFiles:
      return "_headrace_files";
    case CompletionKind::kFolders:
      return "_headrace_folders";
    case CompletionKind::kRuns:
      return "_headrace_runs";
    case CompletionKind::kRunsAndFiles:
      return "_headrace_files; _headrace_runs";
    case CompletionKind::kWordsAndFiles:
      return fmt::format("_headrace_files; _headrace_words {}",
                         SingleQuoted(fmt::format("{}", fmt::join(option.choices, " "))));
    case CompletionKind::kNothing:
      return ":";
  }
  return ":";
}

std::string BashCommand(const CommandDescription& command) {
  std::string values, names, arguments;
  for (const OptionDescription& option : AllOptions(command)) {
    names += fmt::format("{}{}", names.empty() ? "" : " ", fmt::join(option.names, " "));
    if (!option.value.empty())
      values += fmt::format("        {}) {}; return ;;\n", fmt::join(option.names, "|"),
                            BashOffer(option));
  }
  for (const CommandDescription& subcommand : command.subcommands) {
    names += " " + subcommand.name;
  }
  const std::vector<OptionDescription> all = AllArguments(command);
  for (const OptionDescription& argument : all) {
    const std::string offer = BashOffer(argument);
    if (offer != ":" && arguments.empty()) arguments = offer;
  }
  std::string text = fmt::format("    {})\n", CommandWord(command));
  if (!values.empty()) text += "      case $prev in\n" + values + "      esac\n";
  text += fmt::format("      [[ $cur == -* ]] && {{ _headrace_words {}; return; }}\n",
                      SingleQuoted(names));
  if (!command.subcommands.empty())
    text += fmt::format("      [[ $prev == {} ]] && {{ _headrace_words {}; return; }}\n",
                        CommandWord(command), SingleQuoted(names));
  return text + "      " + (arguments.empty() ? ":" : arguments) + " ;;\n";
}

std::string BashScript(const std::vector<CommandDescription>& commands) {
  std::string names = "help --help --version", cases;
  for (const CommandDescription& command : commands) {
    names += " " + CommandWord(command);
    cases += BashCommand(command);
  }
  return fmt::format(
      "{}{}{}  if [[ -z $command ]]; then\n    _headrace_words {}\n    return\n  fi\n"
      "  case $command in\n{}  esac\n}}\ncomplete -F _headrace headrace\n",
      kBashBegin, kListRuns, kBashWords, SingleQuoted(names), cases);
}

HR_COMPLETION("bash",
              {.install = "share/bash-completion/completions/headrace", .script = BashScript});

}  // namespace
}  // namespace headrace::cli
