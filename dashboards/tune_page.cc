#include "dashboards/tune_page.h"

#include <fmt/format.h>

#include <charconv>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "base/error.h"
#include "base/units.h"
#include "dashboards/json_number.h"
#include "dashboards/rates.h"

namespace headrace::dashboards {
namespace {

using analysis::TuneResult;
using Json = nlohmann::ordered_json;

constexpr double kEffectLevel = 0.95;  // of intervals of measured effects

// A knob that ends elsewhere than it started.
struct TurnedKnob {
  std::string knob;
  int from = 0, to = 0;
};

// What `run --set` or --plan sets to come from the start to the end.
std::vector<TurnedKnob> TurnedKnobs(const TuneResult& result) {
  std::vector<TurnedKnob> found;
  for (const auto& [knob, value] : result.end) {
    const auto start = result.start.find(knob);
    if (start != result.start.end() && start->second != value)
      found.push_back({knob, start->second, value});
  }
  return found;
}

// The settings as options of `run`, or as words for whoever turns the knobs of a foreign process;
// each with a blank before it.
std::string SettingsText(const TunePage& page) {
  std::string set;
  for (const TurnedKnob& turned : TurnedKnobs(page.result)) {
    set +=
        (page.foreign ? " " : " --set ") + ShellWord(fmt::format("{}={}", turned.knob, turned.to));
  }
  for (const auto& [key, value] : page.start_settings)
    set += " --set " + ShellWord(key + "=" + value);
  return set;
}

std::string EffectText(const TunePage& page) {
  const TuneResult& result = page.result;
  if (!result.effect) return fmt::format("not verified: {}\n", result.effect_note);
  return fmt::format(
      "{}: {:+.1f} % [{:.1f}, {:.1f}] against the start, {}; now {}\n",
      result.shown ? "verified" : "not shown", 100 * *result.effect,
      100 * result.effect_interval.low, 100 * result.effect_interval.high,
      result.pairs > 0 ? fmt::format("{} pairs of blocks", result.pairs)
                       : std::string("before against after, not interleaved"),
      result.rate ? RatesText(*result.rate, page.rows_per_batch) : std::string("unknown"));
}

Json KnobsJson(const analysis::KnobValues& knobs) {
  Json out = Json::object();
  for (const auto& [knob, value] : knobs) out[knob] = value;
  return out;
}

Json DecisionsJson(const std::vector<std::string>& decisions) {
  Json out = Json::array();
  for (const std::string& decision : decisions) out.push_back(Json::parse(decision));
  return out;
}

// A number where the text is a whole number.
Json SettingValueJson(const std::string& text) {
  int number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  const bool whole = error == std::errc() && end == text.data() + text.size();
  return whole ? Json(number) : Json(text);
}

void PutTunedSettings(const TunePage& page, Json* out) {
  Json& settings = (*out)["settings"] = Json::object();
  Json changes = Json::array();
  for (const TurnedKnob& turned : TurnedKnobs(page.result)) {
    settings[turned.knob] = turned.to;
    changes.push_back({{"knob", turned.knob},
                       {"from", turned.from},
                       {"to", turned.to},
                       {"why", "found by headrace tune"},
                       {"gain_ratio", nullptr},
                       {"memory_change_bytes", nullptr}});
  }
  for (const auto& [key, value] : page.start_settings) settings[key] = SettingValueJson(value);
  (*out)["changes"] = std::move(changes);
}

// The rates at the start and at the end, where a plan has those of now and of its prediction.
void PutTunedRates(const TunePage& page, Json* out) {
  const TuneResult& result = page.result;
  std::optional<double> start_rate, low, high, effect_low, effect_high;
  if (result.effect) {
    effect_low = result.effect_interval.low;
    effect_high = result.effect_interval.high;
  }
  if (result.rate && result.effect) {
    start_rate = *result.rate / (1 + *result.effect);
    low = *start_rate * (1 + *effect_low);
    high = *start_rate * (1 + *effect_high);
  }
  (*out)["now"] = RatesJson(start_rate ? start_rate : result.rate, page.rows_per_batch);
  Json& predicted = (*out)["predicted"] = RatesJson(result.rate, page.rows_per_batch);
  predicted["low"] = NumberOrNull(low);
  predicted["high"] = NumberOrNull(high);
  predicted["level_ratio"] = kEffectLevel;
  (*out)["gain_ratio"] = NumberOrNull(result.effect);
  (*out)["gain_interval"] = {{"low", NumberOrNull(effect_low)},
                             {"high", NumberOrNull(effect_high)},
                             {"level_ratio", kEffectLevel}};
  (*out)["verified"] = {{"pairs_count", result.pairs}, {"note", result.effect_note}};
}

}  // namespace

std::string TuneText(const TunePage& page) {
  std::string text = fmt::format("stopped: {}\n", Printable(page.result.why, 500));
  text += EffectText(page);
  const std::string set = SettingsText(page);
  text += fmt::format("settings:{}\n", set.empty() ? " as they were" : set);
  text += fmt::format("recorded as run {} in {}; next: {} tune --explain {}{}\n", page.run_id,
                      page.database, page.program, page.run_id, page.database_option);
  if (!set.empty() && !page.foreign) {
    text += fmt::format("next: {} run {}{}{}\n", page.program, ShellWord(page.file),
                        page.database_option,
                        page.output.empty() ? set : " --plan " + ShellWord(page.output));
  }
  return text;
}

std::string TuneJson(const TunePage& page) {
  const TuneResult& result = page.result;
  Json out;
  out["schema"] = "headrace.tune/1";
  out["run"] = page.run_id;
  out["pipeline"] = page.pipeline;
  out["start"] = KnobsJson(result.start);
  out["end"] = KnobsJson(result.end);
  out["rate"] = RatesJson(result.rate, page.rows_per_batch);
  out["effect_ratio"] = NumberOrNull(result.effect);
  out["effect_interval"] =
      result.effect ? IntervalJson(result.effect_interval, kEffectLevel) : Json(nullptr);
  out["pairs_count"] = result.pairs;
  out["effect_note"] = result.effect_note;
  out["converged"] = result.converged;
  out["applied_count"] = result.applied;
  out["stopped"] = result.why;
  out["start_settings"] = Json::object();
  for (const auto& [key, value] : page.start_settings) out["start_settings"][key] = value;
  out["decisions"] = DecisionsJson(page.decisions);
  return out.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

std::string TunedPlanJson(const TunePage& page) {
  Json out;
  out["schema"] = "headrace.plan/1";
  out["run"] = page.run_id;
  out["run_name"] = page.name;
  out["pipeline"] = page.pipeline;
  out["cores"] = nullptr;
  PutTunedSettings(page, &out);
  out["caches"] = Json::array();
  PutTunedRates(page, &out);
  out["promise"] = {{"batches_per_second", nullptr}, {"probability", 0.9}};
  out["risk"] = {{"slower_probability", nullptr}};
  out["then_limited_by"] = page.then_limited_by;
  for (const char* unknown :
       {"then_limited_by_kind", "memory_bytes", "memory_change_bytes", "solver"})
    out[unknown] = nullptr;
  out["objectives"] = Json::array();
  out["cores_used"] = nullptr;
  out["watts"] = nullptr;
  out["worth_of_more"] = Json::array();
  return out.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

std::string TuneDecisionsJson(const std::vector<std::string>& decisions) {
  Json out;
  out["schema"] = "headrace.tune_decisions/1";
  out["decisions"] = DecisionsJson(decisions);
  return out.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace headrace::dashboards
