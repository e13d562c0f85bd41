// Hypothetical settings: which there are, and what the pipeline would do with others. The answer is
// that of `headrace plan --what-if`.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "analysis/model/limits/limit_kind.h"
#include "analysis/model/what_if.h"
#include "analysis/run/settings.h"
#include "base/error.h"
#include "base/terminal_text.h"
#include "base/units.h"
#include "dashboards/json_number.h"
#include "dashboards/pages/page_run.h"
#include "dashboards/pages/short_number.h"
#include "dashboards/report/page_words.h"
#include "dashboards/what_if_page.h"

namespace headrace::dashboards {
namespace {

using Json = nlohmann::ordered_json;

constexpr size_t kMostSettings = 200;  // that one question may change

// A slider of the page.
struct Setting {
  std::string key, title, unit;
  double value = 1, least = 1, most = 1;
};

const analysis::PipelineModel& ModelOf(const LoadedRun& loaded) {
  if (loaded.statements.model == nullptr || loaded.statements.predictor == nullptr) {
    throw Error(ExitCode::kInconclusive,
                "there is no model of this run: " + loaded.statements.withheld,
                fmt::format("run {}", loaded.run.run.run_id),
                "record a run with instrumentation: headrace run, or headrace profile");
  }
  if (loaded.run.run.kind == "ceiling") {
    throw Error(ExitCode::kInconclusive,
                "this run repeated one batch to measure the trainer alone, so it has no settings",
                fmt::format("run {}", loaded.run.run.run_id), "choose the run of the pipeline");
  }
  return *loaded.statements.model;
}

std::vector<Setting> SettingsOf(const analysis::PipelineModel& model) {
  std::vector<Setting> settings;
  const analysis::Settings current = model.current();
  for (size_t s = 0; s < model.stages().size(); ++s) {
    const analysis::StageModel& stage = model.stages()[s];
    const int threads = current.parallelism[s];
    if (stage.max_parallelism != 1 && threads > 0) {
      int most = std::max({8, 2 * threads, static_cast<int>(2 * model.cores_budget())});
      if (stage.max_parallelism > 0) most = std::min(most, stage.max_parallelism);
      settings.push_back({stage.name + ".parallelism", stage.name + " threads", "threads",
                          static_cast<double>(threads), 1, static_cast<double>(most)});
    }
  }
  for (size_t s = 0; s < model.stages().size(); ++s) {
    const int capacity = current.queue_capacity[s];
    if (!model.stages()[s].queue || capacity < 1) continue;
    settings.push_back({model.stages()[s].name + ".queue", model.stages()[s].name + " queue",
                        "elements", static_cast<double>(capacity), 1,
                        static_cast<double>(std::max(16, 4 * capacity))});
  }
  if (model.cores_known()) {
    const double cores = model.cores_budget();
    settings.push_back({"cores", "CPU cores", "cores", cores, 1, std::max(8.0, 4 * cores)});
  }
  return settings;
}

std::string SettingsAnswer(const PageRun& page, const PageQuery&) {
  const analysis::PipelineModel& model = ModelOf(page.loaded());
  Json list = Json::array();
  for (const Setting& setting : SettingsOf(model)) {
    list.push_back({{"key", setting.key},
                    {"title", setting.title},
                    {"unit", setting.unit},
                    {"value", ShortNumber(setting.value)},
                    {"min", ShortNumber(setting.least)},
                    {"max", ShortNumber(setting.most)}});
  }
  const Json root = {{"schema", "headrace.settings/1"}, {"settings", std::move(list)}};
  return root.dump();
}

// {"set": {KEY: NUMBER}} or {"best": true}, as words of ParseWhatIf.
std::vector<std::string> WordsOf(const std::string& body, const LoadedRun& loaded) {
  const Json asked = Json::parse(body, nullptr, false);
  const auto refuse = [](const std::string& what) {
    return Error(ExitCode::kUsage, what, "the question",
                 "send {\"set\": {\"fetch.parallelism\": 2}} or {\"best\": true}");
  };
  if (!asked.is_object()) throw refuse("this is no JSON object");
  std::vector<std::string> words;
  const auto best = asked.find("best");
  if (best != asked.end() && best->is_boolean() && best->get<bool>()) {
    if (!loaded.statements.allocation) return words;
    for (const analysis::Change& change : loaded.statements.allocation->changes) {
      words.push_back(fmt::format("{}={}", change.knob, change.to));
    }
    return words;
  }
  const auto set = asked.find("set");
  if (set == asked.end() || !set->is_object()) throw refuse("it names no settings");
  if (set->size() > kMostSettings) throw refuse("it names too many settings");
  for (const auto& [key, value] : set->items()) {
    if (!value.is_number()) throw refuse("'" + Printable(key, 60) + "' is not a number");
    words.push_back(fmt::format("{}={:.15g}", key, value.get<double>()));
  }
  return words;
}

// The comparison that would decide it; empty where there is nothing to compare or no pipeline file.
std::string CommandFor(const LoadedRun& loaded, const std::vector<std::string>& words,
                       const std::vector<Setting>& settings) {
  if (loaded.run.run.pipeline_path.empty()) return "";
  std::string sides;
  for (const std::string& word : words) {
    const size_t equals = word.find('=');
    const std::string key = word.substr(0, equals);
    const auto now = std::find_if(settings.begin(), settings.end(),
                                  [&](const Setting& setting) { return setting.key == key; });
    if (now == settings.end() || key == "cores") continue;
    const std::string value = fmt::format("{:.15g}", now->value);
    if (value == word.substr(equals + 1)) continue;
    sides += fmt::format(" --a {}={} --b {}", key, value, ShellWord(word));
  }
  if (sides.empty()) return "";
  return fmt::format("{} compare {}{}{}", loaded.run.program,
                     analysis::PipelineArguments(loaded.run.run), sides,
                     loaded.run.database_option);
}

std::string WhatIfAnswer(const PageRun& page, const PageQuery& query) {
  const LoadedRun& loaded = page.loaded();
  const analysis::PipelineModel& model = ModelOf(loaded);
  const std::vector<std::string> words = WordsOf(query.body, loaded);
  const std::lock_guard lock(loaded.predicting);
  const analysis::Predictor& predictor = *loaded.statements.predictor;
  const analysis::Variant what = analysis::ParseWhatIf(model, words);
  const analysis::Prediction prediction = predictor.Predict(what);
  if (!std::isfinite(prediction.rate)) {
    throw Error(ExitCode::kInconclusive, "nothing that was recorded limits the rate then",
                "the settings", "leave some cost to the pipeline");
  }
  const double now = model.demands().rate;
  const analysis::Interval gain =
      predictor.Gain({model.current(), {}}, what, prediction.rate / now - 1);
  const std::vector<analysis::Worth> none;
  Json root = Json::parse(WhatIfJson({loaded.run, words, now, model.demands().rows, prediction,
                                      predictor.contention(), gain, none}));
  root.erase("worth_of_more");
  Json set = Json::object();
  for (const std::string& word : words) {
    const size_t equals = word.find('=');
    set[word.substr(0, equals)] = std::strtod(word.c_str() + equals + 1, nullptr);
  }
  root["set"] = std::move(set);
  const std::string rate = FormatRate(prediction.rate, "batches");
  root["text"] =
      words.empty()
          ? fmt::format("As recorded: {}.", FormatRate(now, "batches"))
          : fmt::format("{} [{}, {}] predicted: {:+.0f} % [{:.0f}, {:.0f}]. {} would limit it.",
                        rate, FormatCount(prediction.interval.low),
                        FormatCount(prediction.interval.high), 100 * (prediction.rate / now - 1),
                        100 * gain.low, 100 * gain.high,
                        SentenceStart(prediction.limits[prediction.binding]));
  root["command"] = CommandFor(loaded, words, SettingsOf(model));
  return root.dump(-1, ' ', false, Json::error_handler_t::replace);
}

HR_PAGE_ANSWER("settings", {.make = SettingsAnswer, .of_report = true});
HR_PAGE_ANSWER("whatif", {.make = WhatIfAnswer, .takes_body = true, .of_report = true});

}  // namespace
}  // namespace headrace::dashboards
