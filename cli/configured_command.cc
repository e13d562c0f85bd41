#include "cli/configured_command.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>

#include "base/error.h"
#include "base/registry.h"
#include "cli/common_options.h"
#include "cli/environment.h"
#include "cli/help_text.h"
#include "dashboards/terminal/terminal.h"

namespace headrace::cli {
namespace {

// What --help ends with. Examples are for pasting and stay as they are.
std::string Footer(const Command& command) {
  const int width = HelpWidth(dashboards::TerminalWidth(STDOUT_FILENO));
  std::string text;
  if (!command.examples.empty()) text += "examples:\n" + command.examples;
  if (!text.empty() && text.back() != '\n') text += "\n";
  constexpr int kIndent = 6;  // of "exit: "
  if (!command.exit_codes.empty())
    text += "exit: " + Wrapped(command.exit_codes, width - kIndent, kIndent) + "\n";
  if (!command.next.empty()) text += "next: " + command.next + "\n";
  return text;
}

}  // namespace

ConfiguredCommand::ConfiguredCommand(const std::string& name, const Command& command)
    : command_(command),
      color_(std::make_unique<std::string>("auto")),
      line_(std::make_unique<CommandLine>("headrace " + name, command.summary, Footer(command))) {
  run_ = command.configure(*line_);
  line_->AddOption("--color", *color_, "Colour the output")
      ->Check(OneOf({"auto", "always", "never"}))
      ->ShowDefault();
  // Two names of one thing.
  if (line_->Has("--json") && line_->Has("--format"))
    line_->Find("--json")->Excludes(line_->Find("--format"));
}

int ConfiguredCommand::Run(const std::vector<std::string>& words) const {
  if (!line_->Parse(words)) return 0;
  using dashboards::ColorMode;
  dashboards::SetColorMode(*color_ == "always"  ? ColorMode::kAlways
                           : *color_ == "never" ? ColorMode::kNever
                                                : ColorMode::kAuto);
  return run_();
}

namespace {

// Whether the command's own table has an option that this one, from the top of the file, cannot
// stand beside.
bool TableExcludes(const ConfigurationFile& file, const ConfiguredOption& one,
                   const std::string& command, const CommandLine& line) {
  if (!one.command.empty()) return false;
  const std::vector<std::string> others = line.ExcludedBy(one.option);
  return std::any_of(others.begin(), others.end(), [&](const std::string& other) {
    const ConfiguredOption* configured = FindConfigured(file, command, other);
    return configured != nullptr && !configured->command.empty();
  });
}

}  // namespace

void ApplyConfiguration(const std::string& command, const CommandLine& asked, CommandLine* line) {
  const ConfigurationFile& file = Configuration();
  HideConfiguration();
  CheckNames(file);
  for (const ConfiguredOption& one : file.options) {
    if (!line->Has(one.option) || FindConfigured(file, command, one.option) != &one) continue;
    if (VariableOf(one.option) != nullptr) continue;
    if (asked.IsExcluded(one.option) || TableExcludes(file, one, command, *line)) continue;
    try {
      line->SetDefault(one.option, one.values);
    } catch (const UsageFault& fault) {
      throw Error(ExitCode::kUsage, fault.what, file.Place(one),
                  fmt::format("'headrace {} --help' says what it takes", command));
    }
  }
}

namespace {

// The option, which its command must have; or, above all tables, one that means the same in every
// command.
void CheckOption(const ConfigurationFile& file, const ConfiguredOption& one) {
  const CommonOptionEntry* common = CommonOption(one.option);
  if (common != nullptr && common->scope == Scope::kCall)
    throw Error(ExitCode::kUsage, fmt::format("{} is for each call to say", one.option),
                file.Place(one), "remove it here");
  std::vector<std::string> options;
  if (one.command.empty()) {
    for (const CommonOptionEntry& entry : CommonOptions()) {
      if (entry.scope == Scope::kEverywhere) options.emplace_back(entry.name);
    }
  } else {
    const ConfiguredCommand command(one.command, *Registry<Command>::Global().Find(one.command));
    options = command.line().LongNames();
    std::erase_if(options, [](const std::string& name) {  // none to suggest
      const CommonOptionEntry* entry = CommonOption(name);
      return entry != nullptr && entry->scope == Scope::kCall;
    });
  }
  if (std::find(options.begin(), options.end(), one.option) != options.end()) return;
  const std::string nearest = NearestName(one.option, options);
  const std::string name = Printable(one.option.substr(2), 60);
  throw Error(ExitCode::kUsage,
              one.command.empty()
                  ? fmt::format("'{}' is not an option that means the same in all commands", name)
                  : fmt::format("headrace {} has no option '{}'", one.command, name),
              file.Place(one),
              !nearest.empty()      ? fmt::format("did you mean '{}'?", nearest.substr(2))
              : one.command.empty() ? "put it below the command that has it: [run]"
                                    : fmt::format("'headrace {} --help' lists them", one.command));
}

}  // namespace

void CheckNames(const ConfigurationFile& file) {
  std::vector<std::string> commands;
  for (const auto& [name, command] : Registry<Command>::Global().entries()) {
    if (!command.hidden) commands.push_back(name);
  }
  for (const ConfiguredOption& one : file.options) {
    const bool known = std::find(commands.begin(), commands.end(), one.command) != commands.end();
    if (!one.command.empty() && !known) {
      const std::string nearest = NearestName(one.command, commands);
      throw Error(ExitCode::kUsage,
                  fmt::format("there is no command '{}'", Printable(one.command, 60)),
                  file.Place(one),
                  nearest.empty() ? "'headrace --help' lists them"
                                  : fmt::format("did you mean '{}'?", nearest));
    }
    if (!one.option.empty()) CheckOption(file, one);
  }
}

}  // namespace headrace::cli
