#include "experiments/decision_text.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "analysis/run/read_run.h"
#include "base/error.h"
#include "base/units.h"
#include "experiments/json_fault.h"

namespace headrace::experiments {
namespace {

constexpr size_t kMostBytes = 1 << 20;
constexpr int kMostLevels = 16;

std::string Range(const analysis::Real& low, const analysis::Real& high) {
  return low && high ? fmt::format(" [{}, {}]", FormatCount(*low), FormatCount(*high))
                     : std::string();
}

std::string ObservedWords(const analysis::DecisionRow& decision, const DecisionDetail& detail) {
  std::string words = FormatRate(*decision.observed_rate, "batches") +
                      Range(decision.observed_low, decision.observed_high);
  if (!detail.effect) return words;
  words += fmt::format(", {:+.1f} %", 100 * *detail.effect);
  if (detail.effect_low && detail.effect_high)
    words += fmt::format(" [{:.1f}, {:.1f}]", 100 * *detail.effect_low, 100 * *detail.effect_high);
  return words + (detail.pairs > 0 ? fmt::format(", {:.0f} pairs of blocks", detail.pairs)
                                   : std::string(", before against after"));
}

}  // namespace

DecisionDetail ReadDetail(const std::string& detail_json) {
  DecisionDetail detail;
  if (detail_json.size() > kMostBytes || FindJsonFault(detail_json, kMostLevels)) return detail;
  const nlohmann::json json = nlohmann::json::parse(detail_json);
  detail.whole = json.is_object();
  if (!detail.whole) return detail;
  detail.effect = NumberOf(json, "effect_ratio");
  if (const auto interval = json.find("effect_interval"); interval != json.end()) {
    detail.effect_low = NumberOf(*interval, "low");
    detail.effect_high = NumberOf(*interval, "high");
  }
  detail.pairs = NumberOf(json, "pairs_count").value_or(0);
  const auto then = json.find("then_limited_by");
  if (then != json.end() && then->is_string()) detail.then_limited_by = then->get<std::string>();
  return detail;
}

std::string DecisionText(const analysis::DecisionRow& decision) {
  std::string what;
  for (const auto& change : decision.changes) {
    what += fmt::format("{}{} {} -> {}", what.empty() ? " " : ", ", Printable(change.knob),
                        Printable(change.from_text), Printable(change.to_text));
  }
  // In the store decisions are counted from 0; any program may have put the largest number there.
  std::string text = fmt::format(
      "{:>3}  at {:<7} {}{}\n", static_cast<uint64_t>(decision.index) + 1,
      FormatDuration(static_cast<double>(decision.at_ns)),
      Printable(decision.action == "scale_down" ? "scale down" : decision.action), what);
  const auto line = [&](const char* label, const std::string& words) {
    if (!words.empty()) text += fmt::format("     {:<10} {}\n", label, words);
  };
  if (!decision.limited_by.empty()) {
    const bool named = decision.limited_by_kind == decision.limited_by;
    line("limited by", named ? "the " + Printable(decision.limited_by)
                             : fmt::format("{} {}", Printable(decision.limited_by_kind),
                                           Printable(decision.limited_by)));
  }
  if (decision.now_rate) line("now", FormatRate(*decision.now_rate, "batches"));
  const DecisionDetail detail = ReadDetail(decision.detail_json);
  if (decision.predicted_rate) {
    std::string words = FormatRate(*decision.predicted_rate, "batches") +
                        Range(decision.predicted_low, decision.predicted_high);
    if (!detail.then_limited_by.empty())
      words += ", then limited by " + Printable(detail.then_limited_by);
    line("predicted", words);
  }
  if (decision.observed_rate) line("observed", ObservedWords(decision, detail));
  line("verdict", Printable(decision.verdict));
  line("why", Printable(decision.reason, 1000));
  return text;
}

}  // namespace headrace::experiments
