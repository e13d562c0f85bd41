#include "analysis/run/settings.h"

#include <fmt/format.h>

#include <charconv>
#include <filesystem>
#include <sstream>

#include "base/error.h"
#include "base/units.h"

namespace headrace::analysis {

std::optional<std::string> SettingOf(const RunRow& run, const std::string& key) {
  const auto found = run.settings.find(key);
  if (found == run.settings.end()) return std::nullopt;
  return found->second;
}

std::optional<double> BytesSettingOf(const RunRow& run, const std::string& key) {
  std::optional<std::string> text = SettingOf(run, key);
  if (!text) return std::nullopt;
  if (text->ends_with("/s")) text->resize(text->size() - 2);
  try {
    return static_cast<double>(ParseBytes(*text, key));
  } catch (const Error&) {
    return std::nullopt;
  }
}

std::vector<std::string> TransformsOf(const RunRow& run) {
  std::vector<std::string> ops;
  while (const auto op = SettingOf(run, fmt::format("transform[{}].op", ops.size()))) {
    ops.push_back(*op);
  }
  return ops;
}

std::optional<int> EpochsOf(const RunRow& run) {
  const auto text = SettingOf(run, "source.epochs");
  if (!text) return std::nullopt;
  int epochs = 0;
  const auto [end, error] = std::from_chars(text->data(), text->data() + text->size(), epochs);
  if (error != std::errc() || epochs < 0) return std::nullopt;
  return epochs;
}

std::vector<std::string> RecordedSettings(const RunRow& run) {
  std::vector<std::string> settings;
  std::istringstream lines(run.settings_text.value_or(""));
  for (std::string line; std::getline(lines, line);) {
    if (!line.empty()) settings.push_back(line);
  }
  return settings;
}

std::string RecordedOptions(const RunRow& run, const char* option) {
  std::string text;
  for (const std::string& setting : RecordedSettings(run)) {
    text += fmt::format(" {} {}", option, ShellWord(setting));
  }
  return text;
}

std::string PipelineWord(const RunRow& run) {
  std::error_code error;
  const std::string here = std::filesystem::current_path(error).string();
  const bool below = !error && here.size() > 1 && run.pipeline_path.starts_with(here + "/");
  return ShellWord(below ? run.pipeline_path.substr(here.size() + 1) : run.pipeline_path);
}

std::string PipelineArguments(const RunRow& run) {
  return PipelineWord(run) + RecordedOptions(run);
}

std::string RunCommand(const RunView& run, const std::vector<std::string>& settings) {
  std::string text = fmt::format("{} run {}", run.program, PipelineArguments(run.run));
  for (const std::string& setting : settings) text += " --set " + ShellWord(setting);
  return text + run.database_option;
}

}  // namespace headrace::analysis
