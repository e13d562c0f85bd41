#include "dashboards/cache_page.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <optional>

#include "analysis/program/reader_cache.h"
#include "base/error.h"
#include "base/units.h"
#include "dashboards/json_number.h"

namespace headrace::dashboards {
namespace {

using Json = nlohmann::ordered_json;

std::string Seconds(double seconds) { return FormatDuration(seconds * 1e9); }

// Epochs are whole.
std::optional<double> PaysAfter(const analysis::CacheOption& option) {
  if (!option.break_even_epochs) return std::nullopt;
  return std::max(2.0, std::floor(*option.break_even_epochs) + 1);
}

std::string WhyNoCache(const analysis::CacheChoice& choice) {
  if (choice.options.empty()) return "no stage's output has a size that the run recorded";
  const bool possible = std::any_of(
      choice.options.begin(), choice.options.end(),
      [](const analysis::CacheOption& option) { return option.allowed && option.random.empty(); });
  return possible ? "what it would gain beside the rest of the plan is under 3 %"
                  : "none of the stages is one whose output can be kept (see below)";
}

std::string KeptText(const CachePage& page) {
  std::string what;
  for (const analysis::PlannedCache& cache : page.plan.caches) {
    what += fmt::format(
        "{} what leaves {} in {} ({} of {}, with a budget of {})", what.empty() ? "keep" : ", and",
        Printable(page.model.stages()[cache.stage].name), page.question.tiers[cache.tier].name,
        FormatBytes(cache.bytes), FormatBytes(cache.bytes / cache.share),
        FormatBytes(static_cast<double>(analysis::CacheBudgetMiB(cache)) * 1048576));
  }
  return what;
}

// What goes into the pipeline file; empty where the reader cannot keep what was planned.
std::string PipelineFileText(const CachePage& page) {
  std::string text;
  for (const analysis::PlannedCache& cache : page.plan.caches) {
    const std::string after = analysis::CacheAfter(page.model, cache.stage);
    if (after.empty()) continue;
    const analysis::CacheTier& tier = page.question.tiers[cache.tier];
    text += fmt::format(
        "in the pipeline file:\n  [[cache]]\n  after = \"{}\"\n  tier = \"{}\"\n  budget = "
        "\"{}MiB\"\n{}",
        after, tier.name, analysis::CacheBudgetMiB(cache),
        tier.name == "disk" ? "  folder = \"...\"  # on that disk\n" : "");
  }
  return text;
}

// Why an option is never chosen, whatever it gains.
std::string NotChosenText(const analysis::CacheOption& option) {
  if (!option.allowed) return "; the reader keeps nothing there";
  if (option.random.empty()) return "";
  return fmt::format("; keeps the random draws of {}: not chosen",
                     Printable(fmt::format("{}", fmt::join(option.random, ", "))));
}

std::string OptionText(const CachePage& page, const analysis::CacheOption& option) {
  const std::optional<double> pays = PaysAfter(option);
  return fmt::format(
      "{:<16} {:<7} {:>10} {:>5.0f}% {:>9.4g} {:>9.4g} {:>6.0f}% {:>14} {:>10}  {}{}\n",
      Printable(page.model.stages()[option.stage].name), page.question.tiers[option.tier].name,
      FormatBytes(option.stored_bytes), 100 * option.share, option.fill_rate, option.warm_rate,
      100 * (option.warm_rate / page.choice.rate - 1),
      fmt::format("[{:.0f}, {:.0f}]", 100 * option.warm_gain.low, 100 * option.warm_gain.high),
      pays                                  ? fmt::format("{:.0f} epochs", *pays)
      : option.warm_rate > page.choice.rate ? std::string("not sure")
                                            : std::string("never"),
      Printable(option.then.name), NotChosenText(option));
}

Json OptionJson(const CachePage& page, const analysis::CacheOption& option) {
  Json out;
  out["after"] = page.model.stages()[option.stage].name;
  out["tier"] = page.question.tiers[option.tier].name;
  out["epoch_bytes"] = std::llround(option.stored_bytes);
  out["kept_ratio"] = option.share;
  out["fill_batches_per_second"] = option.fill_rate;
  out["warm_batches_per_second"] = option.warm_rate;
  out["warm_gain_interval"] = IntervalJson(option.warm_gain, 0.9);
  out["pays_after_epochs"] = NumberOrNull(PaysAfter(option));
  out["total_seconds"] = NumberOrNull(option.total_s);
  out["then_limited_by"] = option.then.name;
  out["random_operators"] = option.random;
  out["allowed"] = option.allowed;
  return out;
}

}  // namespace

std::string CacheVerdictText(const CachePage& page) {
  const analysis::Allocation& plan = page.plan;
  if (plan.caches.empty()) return fmt::format("no cache: {}\n\n", WhyNoCache(page.choice));
  std::string text = KeptText(page);
  if (plan.total_s) {
    text += fmt::format(": {:g} epochs take {} instead of {}\n", page.question.epochs,
                        Seconds(*plan.total_s), Seconds(*plan.now_total_s));
  } else {
    text += fmt::format(": {:+.0f} % [{:.0f}, {:.0f}] from the second epoch on\n",
                        100 * (plan.predicted / plan.now - 1), 100 * plan.gain_interval.low,
                        100 * plan.gain_interval.high);
  }
  return text + PipelineFileText(page) + "\n";
}

std::string CacheTableText(const CachePage& page) {
  std::string text =
      fmt::format("\ncaches one by one, the rest of the pipeline as it is: an epoch takes {} now\n",
                  Seconds(page.question.epoch_batches / page.choice.rate));
  text += fmt::format(
      "{:<16} {:<7} {:>10} {:>6} {:>9} {:>9} {:>7} {:>14} {:>10}  then limited by\n", "kept after",
      "tier", "an epoch", "kept", "filling", "warm", "gain", "90 %", "pays after");
  for (const analysis::CacheOption& option : page.choice.options) text += OptionText(page, option);
  for (const size_t stage : page.choice.unknown) {
    text += fmt::format("{:<16} unavailable: the run recorded no bytes of what leaves it\n",
                        Printable(page.model.stages()[stage].name));
  }
  text +=
      "\nfilling, warm: batches/s. A cache is taken to be filled by the first epoch and "
      "never to evict.\n";
  for (const analysis::CacheTier& tier : page.question.tiers) {
    text += fmt::format(
        "{} reads and writes {}{}{}\n", tier.name, FormatBytesRate(tier.read_bytes_per_second),
        tier.shared ? " in all" : " on each thread",
        tier.rate_assumed ? ", assumed; give it as " + tier.name + "=BUDGET@RATE" : std::string());
  }
  return text;
}

Json PlannedCachesJson(const CachePage& page) {
  Json out = Json::array();
  for (const analysis::PlannedCache& cache : page.plan.caches) {
    out.push_back({{"after", page.model.stages()[cache.stage].name},
                   {"tier", page.question.tiers[cache.tier].name},
                   {"kept_ratio", cache.share},
                   {"bytes", std::llround(cache.bytes)},
                   {"budget_bytes", analysis::CacheBudgetMiB(cache) << 20}});
  }
  return out;
}

void PutCacheSettings(const CachePage& page, Json* settings) {
  for (const analysis::PlannedCache& cache : page.plan.caches) {
    const std::string after = analysis::CacheAfter(page.model, cache.stage);
    // One on a disk needs a folder, which nobody has named.
    if (after.empty() || page.question.tiers[cache.tier].name != "memory") continue;
    (*settings)["cache.after"] = after;
    (*settings)["cache.tier"] = "memory";
    (*settings)["cache.budget"] = fmt::format("{}MiB", analysis::CacheBudgetMiB(cache));
  }
}

Json CacheJson(const CachePage& page) {
  const analysis::CacheChoice& choice = page.choice;
  const double epochs = page.question.epochs;
  Json out;
  out["epoch_rows"] = page.epoch_rows;
  out["epochs"] = epochs > 0 ? Json(epochs) : Json(nullptr);
  out["without"] = {{"batches_per_second", choice.rate},
                    {"total_seconds", NumberOrNull(choice.total_s)}};
  out["best"] = choice.best ? OptionJson(page, choice.options[*choice.best]) : Json(nullptr);
  out["options"] = Json::array();
  for (const analysis::CacheOption& option : choice.options)
    out["options"].push_back(OptionJson(page, option));
  out["unknown"] = Json::array();
  for (const size_t stage : choice.unknown)
    out["unknown"].push_back(page.model.stages()[stage].name);
  return out;
}

}  // namespace headrace::dashboards
