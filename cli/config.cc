// headrace config: the settings in force and where each comes from.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "cli/command.h"
#include "cli/command_line.h"
#include "cli/configuration.h"
#include "cli/environment.h"
#include "cli/help_text.h"
#include "dashboards/terminal/terminal.h"

namespace headrace::cli {
namespace {

std::string Shown(const ConfiguredOption& option) {
  const std::string key =
      (option.command.empty() ? "" : option.command + ".") + option.option.substr(2);
  return fmt::format("{} = {}", Printable(key),
                     Printable(fmt::format("{}", fmt::join(option.values, ", "))));
}

void PrintSettingsText(const ConfigurationFile& file) {
  fmt::print(
      "configuration file: {}{}\n", file.path.empty() ? "none" : Printable(file.path),
      file.path.empty() || file.exists ? "" : " (not there; docs/cli.md says what it may hold)");
  for (const ConfiguredOption& option : file.options) {
    if (option.option.empty()) continue;
    const EnvironmentVariable* variable = VariableOf(option.option);
    fmt::print("  {}{}\n", Shown(option),
               variable == nullptr ? "" : fmt::format("   (${} decides instead)", variable->name));
  }
  fmt::print("\ndatabase: {}\n\nenvironment:\n", Printable(DefaultDatabase()));
  size_t column = 0;
  for (const EnvironmentVariable& variable : EnvironmentVariables()) {
    column = std::max(column, std::string(variable.name).size());
  }
  const int indent = static_cast<int>(column) + 4;
  const int width = HelpWidth(dashboards::TerminalWidth(1)) - indent;
  for (const EnvironmentVariable& variable : EnvironmentVariables()) {
    const std::string value = EnvironmentValue(variable.name);
    const std::string set = value.empty()     ? ""
                            : variable.secret ? " [set]"
                                              : " [now: " + Printable(value) + "]";
    fmt::print("  {:<{}}  {}\n", variable.name, column,
               Wrapped(variable.meaning + set, width, indent));
  }
  fmt::print(
      "\nAn option on the command line overrides the environment, which overrides the file.\n");
}

void PrintSettingsJson(const ConfigurationFile& file) {
  using Json = nlohmann::ordered_json;
  Json options = Json::array(), environment = Json::array();
  for (const ConfiguredOption& option : file.options) {
    if (option.option.empty()) continue;
    const EnvironmentVariable* variable = VariableOf(option.option);
    options.push_back({{"command", option.command.empty() ? Json() : Json(option.command)},
                       {"option", option.option},
                       {"values", option.values},
                       {"line", option.line},
                       {"decided_by", variable == nullptr ? "file" : variable->name}});
  }
  for (const EnvironmentVariable& variable : EnvironmentVariables()) {
    const std::string value = EnvironmentValue(variable.name);
    Json json = {
        {"name", variable.name}, {"meaning", variable.meaning}, {"is_set", !value.empty()}};
    if (!variable.secret) json["value"] = value.empty() ? Json() : Json(value);
    environment.push_back(std::move(json));
  }
  const Json out = {
      {"schema", "headrace.config/1"}, {"file", file.path.empty() ? Json() : Json(file.path)},
      {"file_exists", file.exists},    {"database", DefaultDatabase()},
      {"options", std::move(options)}, {"environment", std::move(environment)}};
  fmt::print("{}\n", out.dump(2, ' ', false, Json::error_handler_t::replace));
}

HR_COMMAND(
    "config",
    {.summary = "lists the settings of the configuration file and the environment",
     .examples = "  headrace config                        # what is set, and what may be\n"
                 "  headrace config --json | jq -r .file   # where the configuration file is\n",
     .exit_codes = "0 ok, 2 a mistake in the configuration file",
     .next = "docs/cli.md has an example of the file",
     .configure = [](CommandLine& command_line) -> std::function<int()> {
       auto json = std::make_shared<bool>(false);
       command_line.AddFlag("--json", *json, "Print one JSON object (schema headrace.config/1)");
       return [json] {
         RestoreConfigurationVariable();  // to list it as the user has it
         if (*json) {
           PrintSettingsJson(Configuration());
         } else {
           PrintSettingsText(Configuration());
         }
         return 0;
       };
     }});

}  // namespace
}  // namespace headrace::cli
