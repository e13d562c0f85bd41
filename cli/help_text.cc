#include "cli/help_text.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "cli/common_options.h"
#include "dashboards/terminal/text_columns.h"

namespace headrace::cli {
namespace {

constexpr int kLeast = 40, kMost = 100;  // columns
constexpr const char* kUngrouped = "Options";

// Words of a choice that are as short as a name for them stand in the title.
constexpr size_t kShortChoice = 28;

std::string Choice(const OptionDescription& option) {
  return fmt::format("{}", fmt::join(option.choices, "|"));
}

// Names in a column on the left, what they do on the right; below each other where the column would
// take half of the line or more.
std::string Listed(const std::vector<const OptionDescription*>& options, int width) {
  constexpr int kIndent = 2, kGap = 2, kWidest = 30;
  int column = 0;
  for (const OptionDescription* option : options) {
    const int length = static_cast<int>(OptionTitle(*option).size());
    if (length <= kWidest) column = std::max(column, length);
  }
  const bool beside = column + kIndent + kGap <= width / 2;
  const int text_begin = beside ? kIndent + column + kGap : 5 * kIndent;
  std::string text;
  for (const OptionDescription* option : options) {
    const std::string title = OptionTitle(*option);
    std::string line = std::string(kIndent, ' ') + title;
    if (beside && static_cast<int>(title.size()) <= column) {
      line.resize(static_cast<size_t>(text_begin), ' ');
    } else {
      line += "\n" + std::string(static_cast<size_t>(text_begin), ' ');
    }
    text += line + Wrapped(OptionText(*option), width - text_begin, text_begin) + "\n";
  }
  return text;
}

int Rank(const std::string& heading) {
  if (heading == kMeasuring) return 1;
  if (heading == kRemoteStorage) return 2;
  return heading == kCommon ? 3 : 0;
}

}  // namespace

std::string Wrapped(const std::string& text, int width, int indent) {
  std::string out;
  for (const std::string& line : dashboards::WrapColumns(text, static_cast<size_t>(width))) {
    if (!out.empty()) out += "\n" + std::string(static_cast<size_t>(indent), ' ');
    out += line;
  }
  return out;
}

std::string OptionTitle(const OptionDescription& option) {
  std::string title;
  // Long names begin in one column, whether there is a short one or not.
  if (!option.positional && option.names.front().rfind("--", 0) == 0) title = "    ";
  title += fmt::format("{}", fmt::join(option.names, ", "));
  if (option.positional || option.value.empty()) return title;
  const std::string choice = Choice(option);
  return title + " " + (choice.empty() || choice.size() > kShortChoice ? option.value : choice);
}

std::string OptionText(const OptionDescription& option) {
  std::string text = option.help;
  std::vector<std::string> notes;
  if (Choice(option).size() > kShortChoice)
    notes.push_back(fmt::format("one of {}", fmt::join(option.choices, ", ")));
  if (!option.condition.empty()) notes.push_back(option.condition);
  if (option.several && !option.positional) notes.emplace_back("may be given several times");
  if (!option.needs.empty()) notes.push_back(fmt::format("with {}", fmt::join(option.needs, ", ")));
  if (!option.default_text.empty()) notes.push_back("default: " + option.default_text);
  return notes.empty() ? text : fmt::format("{} [{}]", text, fmt::join(notes, "; "));
}

std::string Usage(const CommandDescription& command) {
  std::string text = command.name + " [OPTIONS]";
  for (const OptionDescription& option : command.options) {
    if (!option.positional) continue;
    const std::string word = option.names[0] + (option.several ? "..." : "");
    text += option.required ? " " + word : " [" + word + "]";
  }
  if (!command.subcommands.empty()) text += " [SUBCOMMAND]";
  if (command.takes_command) text += " [-- COMMAND [ARGUMENT...]]";
  return text;
}

std::vector<OptionGroup> GroupsOf(const CommandDescription& command) {
  std::vector<OptionGroup> groups;
  for (const OptionDescription& option : command.options) {
    if (option.positional) continue;
    const std::string heading = option.group.empty() ? kUngrouped : option.group;
    auto group = std::find_if(groups.begin(), groups.end(),
                              [&](const OptionGroup& g) { return g.heading == heading; });
    if (group == groups.end()) group = groups.insert(groups.end(), {heading, {}});
    group->options.push_back(&option);
  }
  std::stable_sort(groups.begin(), groups.end(), [](const OptionGroup& a, const OptionGroup& b) {
    return Rank(a.heading) < Rank(b.heading);
  });
  return groups;
}

int HelpWidth(int width) { return std::clamp(width, kLeast, kMost); }

std::string HelpText(const CommandDescription& command, int terminal_width) {
  const int width = HelpWidth(terminal_width);
  std::string text = Wrapped(command.name + ": " + command.purpose, width - 2, 2) + "\n";
  text += Wrapped("usage: " + Usage(command), width - 7, 7) + "\n";
  std::vector<const OptionDescription*> arguments;
  for (const OptionDescription& option : command.options) {
    if (option.positional) arguments.push_back(&option);
  }
  if (!arguments.empty()) text += "\nArguments:\n" + Listed(arguments, width);
  for (const OptionGroup& group : GroupsOf(command)) {
    text += "\n" + group.heading + ":\n" + Listed(group.options, width);
  }
  for (const CommandDescription& subcommand : command.subcommands) {
    text += "\n" +
            Wrapped(fmt::format("{} {}: {}", command.name, Usage(subcommand), subcommand.purpose),
                    width - 2, 2) +
            "\n";
    std::vector<const OptionDescription*> own;
    for (const OptionDescription& option : subcommand.options) {
      if (option.names.back() != "--help") own.push_back(&option);
    }
    text += Listed(own, width);
  }
  return text + "\n";
}

}  // namespace headrace::cli
