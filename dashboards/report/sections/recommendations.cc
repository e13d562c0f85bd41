// What to change and what to leave: the recommendations that fire, by gain, with their effect on
// storage, reader and trainer; the others in one line each for what was measured and what was not.
#include "analysis/advice/recommendations.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "analysis/advice/recommendations/outside.h"
#include "base/units.h"
#include "dashboards/render/table_layout.h"
#include "dashboards/report/report.h"
#include "dashboards/report/wording.h"

namespace headrace::dashboards {
namespace {

using analysis::Advice;
using analysis::Effect;
using analysis::Effects;
using analysis::Recommendation;

constexpr size_t kInFull = 3;  // the others that fire have one line

std::string GainText(const Recommendation& one) {
  if (!one.outcome) return "";
  const double percent = 100 * one.outcome->gain;
  return fmt::format("{:+.{}f} %", percent, std::abs(percent) < 10 ? 1 : 0);
}

// "2.48 KiB -> 4.96 KiB", "2.48 KiB -> unknown (reason)"; empty where it stays as it is.
std::string EffectText(const Effect& effect, const std::string& what, double scale) {
  const Quantity &now = effect.now, &then = effect.then;
  if (now.available() && then.available() && now.value() == then.value()) return "";
  if (!now.available() && !then.available() && now.reason() == then.reason()) return "";
  if (!now.available() && !then.available())
    return fmt::format("{} unknown ({})", what, now.reason());
  const auto figure = [&](const Quantity& quantity) -> std::string {
    if (!quantity.available()) return "unknown";
    Quantity scaled = Quantity::Of(quantity.value() * scale, quantity.unit(), quantity.source());
    if (quantity.has_interval()) {
      scaled = scaled.WithInterval(quantity.low() * scale, quantity.high() * scale);
    }
    return CellText(scaled);
  };
  std::string text = fmt::format("{} {} -> {}", what, figure(now), figure(then));
  if (!then.available()) text += fmt::format(" ({})", then.reason());
  return text;
}

std::string TierText(const char* tier, const std::vector<std::string>& effects) {
  std::string text;
  for (const std::string& effect : effects) {
    if (!effect.empty()) text += (text.empty() ? "" : ", ") + effect;
  }
  return fmt::format("{}: {}", tier, text.empty() ? "as now" : text);
}

std::string EffectsText(const Effects& effects) {
  return TierText("storage",
                  {EffectText(effects.storage_bytes, "bytes a row", 1),
                   EffectText(effects.storage_requests, "requests per 1000 rows", 1000)}) +
         " | " +
         TierText("reader", {EffectText(effects.reader_cpu, "CPU a row", 1),
                             EffectText(effects.reader_memory, "memory", 1)}) +
         " | " + TierText("trainer", {EffectText(effects.trainer_stall, "stall", 1)});
}

void AddInFull(const Recommendation& one, bool outside, Section* section) {
  std::string head = one.title;
  if (one.outcome) {
    head += fmt::format(": {} {} predicted", GainText(one),
                        PercentInterval(one.outcome->gain_interval));
    if (!one.outcome->over.empty()) head += fmt::format(" over {}", one.outcome->over);
    if (one.outcome->between) head += ", between the least and the most that it can do";
  }
  section->sentences.push_back({one.id, head});
  section->sentences.push_back({"because", one.why});
  section->sentences.push_back({"do", one.act});
  // The verdict block has the plan's command already.
  if (!one.command.empty() && one.id != "R2") section->sentences.push_back({"", one.command, true});
  if (!one.only_if.empty()) section->sentences.push_back({"only if", one.only_if});
  // Seen from outside nothing tells what becomes of storage, reader and trainer.
  if (!outside) section->sentences.push_back({"effect", EffectsText(one.effects)});
  if (!one.published.empty())
    section->sentences.push_back({"reported", "elsewhere, no prediction: " + one.published});
}

// Those that do not fire, nearest first, and how many could not be judged.
void AddOthers(const std::vector<Recommendation>& all, Section* section) {
  constexpr double kWorthTelling = 0.0005;
  constexpr size_t kMostTold = 4;
  std::vector<const Recommendation*> near;
  size_t silent = 0;
  std::string unknown;
  for (const Recommendation& one : all) {
    if (one.advice == Advice::kFires || one.advice == Advice::kTry) continue;
    if (one.advice == Advice::kCannotSay) {
      unknown += (unknown.empty() ? "" : ", ") + one.id;
      continue;
    }
    ++silent;
    if (one.outcome && one.outcome->gain >= kWorthTelling) near.push_back(&one);
  }
  std::stable_sort(near.begin(), near.end(), [](const auto* a, const auto* b) {
    return a->outcome->gain > b->outcome->gain;
  });
  if (near.size() > kMostTold) near.resize(kMostTold);
  std::string text;
  for (const Recommendation* one : near) {
    text +=
        fmt::format("{}{} {} ({})", text.empty() ? "" : ", ", one->id, one->title, GainText(*one));
  }
  const size_t rest = silent - near.size();
  if (rest > 0) {
    text += fmt::format("{}{}{} {} not worth it, or not for such a run", text.empty() ? "" : "; ",
                        rest, near.empty() ? "" : " more", rest == 1 ? "is" : "are");
  }
  if (!unknown.empty()) {
    text += fmt::format("{}not measured: {}", text.empty() ? "" : "; ", unknown);
  }
  if (text.empty()) return;
  section->sentences.push_back({"not", text + "; --format md has each with its reason"});
}

Table All(const std::vector<Recommendation>& all) {
  Table table{"recommendations",
              "All recommendations",
              {{"id", "id"},
               {"title", "what"},
               {"advice", "says"},
               {"gain_ratio", "gain"},
               {"why", "because"},
               {"record", "needs"},
               {"do", "do"},
               {"command", "command"},
               {"only_if", "only if"},
               {"predicted_batches_per_second", "then"},
               {"then_limited_by", "next limit"},
               {"storage_bytes_per_row", "read a row"},
               {"storage_bytes_per_row_then", "then"},
               {"storage_requests_per_row", "requests a row"},
               {"storage_requests_per_row_then", "then"},
               {"reader_cpu_seconds_per_row", "CPU a row"},
               {"reader_cpu_seconds_per_row_then", "then"},
               {"reader_memory_bytes", "memory"},
               {"reader_memory_bytes_then", "then"},
               {"trainer_stall_ratio", "stall"},
               {"trainer_stall_ratio_then", "then"},
               {"published", "reported by others"},
               {"gain_over", "gain over"}},
              {}};
  table.not_in_text = true;
  table.page_columns = 9;  // sentences have the effects of those that fire
  for (const Recommendation& one : all) {
    const std::string none = one.advice == Advice::kCannotSay
                                 ? one.why
                                 : "does not affect the rate, or is not predicted";
    Quantity gain = Quantity::Unavailable(none, Unit::kRatio);
    Quantity rate = Quantity::Unavailable(none, Unit::kPerSecond);
    std::string limited_by;
    if (one.outcome) {
      gain = Quantity::Of(one.outcome->gain, Unit::kRatio, Source::kEstimate)
                 .WithInterval(one.outcome->gain_interval.low, one.outcome->gain_interval.high);
      rate = Quantity::Of(one.outcome->rate, Unit::kPerSecond, Source::kEstimate)
                 .WithInterval(one.outcome->rate_interval.low, one.outcome->rate_interval.high);
      limited_by = one.outcome->limited_by.name;
    }
    std::vector<Value> row = {one.id,  one.title,   AdviceName(one.advice),
                              gain,    one.why,     one.record,
                              one.act, one.command, one.only_if,
                              rate,    limited_by};
    for (const Effect& effect :
         {one.effects.storage_bytes, one.effects.storage_requests, one.effects.reader_cpu,
          one.effects.reader_memory, one.effects.trainer_stall}) {
      // A rule that proposes nothing has no effects to show.
      const bool told = one.outcome || one.advice == Advice::kFires;
      row.push_back(told ? effect.now : Quantity::Unavailable(none));
      row.push_back(told ? effect.then : Quantity::Unavailable(none));
    }
    row.push_back(one.published);
    row.push_back(!one.outcome                ? std::string()
                  : one.outcome->over.empty() ? std::string("the present rate")
                                              : one.outcome->over);
    table.rows.push_back(std::move(row));
  }
  return table;
}

std::optional<Section> Recommendations(const analysis::RunView& run,
                                       const analysis::Statements& statements) {
  Section section{"advice", "Recommendations (gain in rate, interval of 90 % or more)", {}, {}, {}};
  std::vector<Recommendation> all = analysis::Recommend(run, statements);
  const bool outside = all.empty() && statements.outside.has_value();
  if (outside) {
    all = analysis::RecommendFromOutside(run, *statements.outside);
    section.title = "Recommendations (seen from outside; there is no model to predict gains by)";
  }
  if (all.empty()) {
    section.title.clear();
    section.facts.push_back({"unavailable", statements.withheld.empty()
                                                ? std::string("there is no model of this run")
                                                : statements.withheld});
    return section;
  }
  size_t fired = 0;
  for (const Recommendation& one : all) {
    if (one.advice != Advice::kFires) continue;
    if (++fired <= kInFull) {
      AddInFull(one, outside, &section);
    } else {
      section.sentences.push_back(
          {one.id,
           fmt::format("{}{}{}{}: {}", one.title, one.outcome ? ": " : "", GainText(one),
                       one.outcome && !one.outcome->over.empty() ? " over " + one.outcome->over
                                                                 : std::string(),
                       one.act)});
    }
  }
  if (fired == 0) {
    section.sentences.push_back(
        {"none", outside ? "none of these rules calls for a change; the first page says what limits"
                         : "no recommendation is certain to gain in this run"});
  }
  for (const Recommendation& one : all) {
    if (one.advice != Advice::kTry) continue;
    section.sentences.push_back(
        {one.id, fmt::format("{} may gain or not, {} {}{}: {}; {} decides", one.title,
                             GainText(one), PercentInterval(one.outcome->gain_interval),
                             one.outcome->over.empty() ? "" : " over " + one.outcome->over, one.act,
                             one.record)});
  }
  AddOthers(all, &section);
  section.facts.push_back({"fired_count", Number(static_cast<double>(fired), Unit::kCount, "")});
  section.tables.push_back(All(all));
  return section;
}

HR_SECTION("recommendations", 6, Recommendations);

}  // namespace
}  // namespace headrace::dashboards
