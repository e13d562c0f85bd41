#include "analysis/run/recorded_settings.h"

#include <fmt/format.h>

#include <sstream>

#include "analysis/run/pipeline_setting.h"
#include "base/units.h"

namespace headrace::analysis {

std::vector<std::string> RecordedSettings(const RunRow& run) {
  std::vector<std::string> settings;
  std::istringstream lines(run.settings_text.value_or(""));
  for (std::string line; std::getline(lines, line);) {
    if (!line.empty()) settings.push_back(line);
  }
  return settings;
}

std::string SettingInForce(const RunRow& run, const std::string& key) {
  // settings_text has all that the command and a plan set.
  RunRow without = run;
  without.command.clear();
  std::string value = SettingOf(without, key).value_or("");
  for (const std::string& setting : RecordedSettings(run)) {
    if (setting.starts_with(key + "=")) value = setting.substr(key.size() + 1);
  }
  std::erase_if(value, [](char c) { return c == '"' || c == '\''; });
  return value;
}

std::string RecordedOptions(const RunRow& run, const char* option) {
  std::string text;
  for (const std::string& setting : RecordedSettings(run)) {
    text += fmt::format(" {} {}", option, ShellWord(setting));
  }
  return text;
}

std::string PipelineArguments(const RunRow& run) {
  return ShellWord(run.pipeline_path) + RecordedOptions(run);
}

}  // namespace headrace::analysis
