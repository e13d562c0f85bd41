#include "cli/configuration.h"

#include <fmt/format.h>
#include <toml++/toml.h>

#include <cstdlib>
#include <filesystem>
#include <optional>

#include "base/file.h"
#include "base/toml_depth.h"
#include "cli/environment.h"

namespace headrace::cli {
namespace {

constexpr uint64_t kMostConfigurationBytes = 1 << 20;

Error FaultAt(const std::string& path, const toml::source_region& at, const std::string& what,
              const std::string& fix = "") {
  return {ExitCode::kUsage, what, fmt::format("{}:{}:{}", path, at.begin.line, at.begin.column),
          fix};
}

// "~/x" is below the home folder, as a shell would have it.
std::string WithHome(const std::string& text) {
  if (!text.starts_with("~/")) return text;
  const std::string home = EnvironmentValue("HOME");
  return home.empty() ? text : home + text.substr(1);
}

// A number, a text, true or false, as it would be written after the option.
std::string ValueText(const toml::node& node, const std::string& key, const std::string& path) {
  if (const auto* text = node.as_string()) return WithHome(text->get());
  if (const auto* integer = node.as_integer()) return std::to_string(integer->get());
  if (const auto* real = node.as_floating_point()) return fmt::format("{}", real->get());
  if (const auto* flag = node.as_boolean()) return flag->get() ? "true" : "false";
  throw FaultAt(path, node.source(),
                fmt::format("'{}' is not a text, a number, true or false", Printable(key, 60)),
                "a date is written as a text");
}

ConfiguredOption ParseOption(const std::string& command, const std::string& key,
                             const toml::node& node, const std::string& path) {
  ConfiguredOption option{command, "--" + key, {}, static_cast<int>(node.source().begin.line)};
  if (const auto* list = node.as_array()) {
    for (const toml::node& value : *list) option.values.push_back(ValueText(value, key, path));
    if (option.values.empty())
      throw FaultAt(path, node.source(), fmt::format("'{}' is empty", Printable(key, 60)),
                    "leave it out");
  } else {
    option.values.push_back(ValueText(node, key, path));
  }
  return option;
}

// Where the file is; `named`: $HEADRACE_CONFIG says so.
std::string ConfigurationPath(bool* named) {
  const char* own = std::getenv("HEADRACE_CONFIG");
  *named = own != nullptr;
  if (*named) return own;
  std::string folder = EnvironmentValue("XDG_CONFIG_HOME");
  if (folder.empty() || folder[0] != '/') {  // the specification ignores relative ones
    const std::string home = EnvironmentValue("HOME");
    if (home.empty()) return "";
    folder = home + "/.config";
  }
  return folder + "/headrace/config.toml";
}

ConfigurationFile ReadConfiguration() {
  bool named = false;
  ConfigurationFile file;
  file.path = ConfigurationPath(&named);
  if (file.path.empty()) return file;
  std::error_code failed;
  file.exists = std::filesystem::exists(file.path, failed);
  if (!file.exists && !named) return file;
  std::string text;
  try {
    text = ReadWholeFile(file.path, kMostConfigurationBytes);
  } catch (const Error& error) {
    throw Error(
        ExitCode::kUsage, error.fact(), error.where(),
        named ? "correct HEADRACE_CONFIG; empty, it names no file" : "HEADRACE_CONFIG= reads none");
  }
  file.options = ParseConfiguration(text, file.path);
  return file;
}

}  // namespace

std::vector<ConfiguredOption> ParseConfiguration(std::string_view text, const std::string& path) {
  CheckTomlDepth(text, path, ExitCode::kUsage);
  toml::table root;
  try {
    root = toml::parse(text, path);
  } catch (const toml::parse_error& error) {
    throw FaultAt(path, error.source(), std::string(error.description()));
  }
  std::vector<ConfiguredOption> options;
  for (const auto& [key, node] : root) {
    const toml::table* table = node.as_table();
    if (table == nullptr) {
      options.push_back(ParseOption("", std::string(key.str()), node, path));
      continue;
    }
    for (const auto& [option, value] : *table) {
      if (value.is_table())
        throw FaultAt(
            path, value.source(),
            fmt::format("'{}' is a table in a table", Printable(std::string(option.str()), 60)),
            "a table is a command, and holds its options");
      options.push_back(
          ParseOption(std::string(key.str()), std::string(option.str()), value, path));
    }
    if (table->empty())
      options.push_back(
          {std::string(key.str()), "", {}, static_cast<int>(node.source().begin.line)});
  }
  return options;
}

std::string ConfigurationFile::Place(const ConfiguredOption& option) const {
  return fmt::format("{}:{}", path, option.line);
}

const ConfigurationFile& Configuration() {
  static const ConfigurationFile file = ReadConfiguration();
  return file;
}

namespace {
// $HEADRACE_CONFIG as the user has it, once it is hidden.
struct UsersVariable {
  bool hidden = false;
  std::optional<std::string> value;
};
UsersVariable& HiddenVariable() {
  static UsersVariable variable;
  return variable;
}
}  // namespace

void HideConfiguration() {
  UsersVariable& variable = HiddenVariable();
  if (!variable.hidden) {
    const char* value = std::getenv("HEADRACE_CONFIG");
    if (value != nullptr) variable.value = value;
    variable.hidden = true;
  }
  setenv("HEADRACE_CONFIG", "", 1);
}

void RestoreConfigurationVariable() {
  const UsersVariable& variable = HiddenVariable();
  if (!variable.hidden) return;
  if (variable.value) {
    setenv("HEADRACE_CONFIG", variable.value->c_str(), 1);
  } else {
    unsetenv("HEADRACE_CONFIG");
  }
}

const ConfiguredOption* FindConfigured(const ConfigurationFile& file, const std::string& command,
                                       const std::string& option) {
  const ConfiguredOption* found = nullptr;
  for (const ConfiguredOption& one : file.options) {
    if (one.option != option) continue;
    if (one.command == command) return &one;
    if (one.command.empty()) found = &one;
  }
  return found;
}

}  // namespace headrace::cli
