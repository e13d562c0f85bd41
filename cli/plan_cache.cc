#include "cli/plan_cache.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "analysis/program/cache_choice.h"
#include "analysis/program/reader_cache.h"
#include "base/error.h"
#include "base/units.h"
#include "cli/command.h"
#include "cli/command_line.h"
#include "experiments/cache_options.h"

namespace headrace::cli {
namespace {

std::string Seconds(double seconds) { return FormatDuration(seconds * 1e9); }

nlohmann::ordered_json Number(const std::optional<double>& value) {
  return value && std::isfinite(*value) ? nlohmann::ordered_json(*value)
                                        : nlohmann::ordered_json(nullptr);
}

// Epochs are whole.
std::optional<double> PaysAfter(const analysis::CacheOption& option) {
  if (!option.break_even_epochs) return std::nullopt;
  return std::max(2.0, std::floor(*option.break_even_epochs) + 1);
}

}  // namespace

void AddCacheOptions(CommandLine* command_line, experiments::CacheOptions* options) {
  auto* cache = command_line
                    ->AddOption("--cache", options->tiers,
                                "Answer instead whether to keep a stage's output between epochs, "
                                "and where: memory=8GiB, disk=200GiB@1.5GB/s, or both")
                    ->TypeName("TIER=BUDGET[@RATE]...")
                    ->Excludes({"--what-if", "--nodes"});
  command_line->AddOption("--epoch-rows", options->epoch_rows, "Rows of one epoch, for --cache")
      ->Check(Positive)
      ->Needs(cache);
  command_line
      ->AddOption("--epochs", options->epochs,
                  "Epochs that the job makes, for --cache [says after how many it pays]")
      ->Check(Positive)
      ->Needs(cache);
}

void PrintCacheVerdict(const analysis::PipelineModel& model,
                       const analysis::CacheQuestion& question, const analysis::Allocation& plan,
                       const analysis::CacheChoice& choice) {
  if (plan.caches.empty()) {
    const bool possible = std::any_of(choice.options.begin(), choice.options.end(),
                                      [](const analysis::CacheOption& option) {
                                        return option.allowed && option.random.empty();
                                      });
    fmt::print("no cache: {}\n\n",
               choice.options.empty() ? "no stage's output has a size that the run recorded"
               : possible ? "what it would gain beside the rest of the plan is under 3 %"
                          : "none of the stages is one whose output can be kept (see below)");
    return;
  }
  std::string what;
  for (const analysis::PlannedCache& cache : plan.caches) {
    what += fmt::format(
        "{} what leaves {} in {} ({} of {}, with a budget of {})", what.empty() ? "keep" : ", and",
        Printable(model.stages()[cache.stage].name), question.tiers[cache.tier].name,
        FormatBytes(cache.bytes), FormatBytes(cache.bytes / cache.share),
        FormatBytes(static_cast<double>(analysis::CacheBudgetMiB(cache)) * 1048576));
  }
  if (plan.total_s) {
    fmt::print("{}: {:g} epochs take {} instead of {}\n", what, question.epochs,
               Seconds(*plan.total_s), Seconds(*plan.now_total_s));
  } else {
    fmt::print("{}: {:+.0f} % [{:.0f}, {:.0f}] from the second epoch on\n", what,
               100 * (plan.predicted / plan.now - 1), 100 * plan.gain_interval.low,
               100 * plan.gain_interval.high);
  }
  for (const analysis::PlannedCache& cache : plan.caches) {
    const std::string after = analysis::CacheAfter(model, cache.stage);
    if (after.empty()) continue;
    const analysis::CacheTier& tier = question.tiers[cache.tier];
    fmt::print(
        "in the pipeline file:\n  [[cache]]\n  after = \"{}\"\n  tier = \"{}\"\n  budget = "
        "\"{}MiB\"\n{}",
        after, tier.name, analysis::CacheBudgetMiB(cache),
        tier.name == "disk" ? "  folder = \"...\"  # on that disk\n" : "");
  }
  fmt::print("\n");
}

void PrintCacheTable(const analysis::PipelineModel& model, const experiments::CacheOptions& options,
                     const analysis::CacheQuestion& question, const analysis::CacheChoice& choice) {
  fmt::print("\ncaches one by one, the rest of the pipeline as it is: an epoch takes {} now\n",
             Seconds(question.epoch_batches / choice.rate));
  fmt::print("{:<16} {:<7} {:>10} {:>6} {:>9} {:>9} {:>7} {:>14} {:>10}  then limited by\n",
             "kept after", "tier", "an epoch", "kept", "filling", "warm", "gain", "90 %",
             "pays after");
  for (const analysis::CacheOption& option : choice.options) {
    const std::optional<double> pays = PaysAfter(option);
    fmt::print(
        "{:<16} {:<7} {:>10} {:>5.0f}% {:>9.4g} {:>9.4g} {:>6.0f}% {:>14} {:>10}  {}{}\n",
        Printable(model.stages()[option.stage].name), question.tiers[option.tier].name,
        FormatBytes(option.stored_bytes), 100 * option.share, option.fill_rate, option.warm_rate,
        100 * (option.warm_rate / choice.rate - 1),
        fmt::format("[{:.0f}, {:.0f}]", 100 * option.warm_gain.low, 100 * option.warm_gain.high),
        pays                             ? fmt::format("{:.0f} epochs", *pays)
        : option.warm_rate > choice.rate ? std::string("not sure")
                                         : std::string("never"),
        Printable(option.then.name),
        !option.allowed ? std::string("; the reader keeps nothing there")
        : option.random.empty()
            ? std::string()
            : fmt::format("; keeps the random draws of {}: not chosen",
                          Printable(fmt::format("{}", fmt::join(option.random, ", ")))));
  }
  for (size_t stage : choice.unknown) {
    fmt::print("{:<16} unavailable: the run recorded no bytes of what leaves it\n",
               Printable(model.stages()[stage].name));
  }
  fmt::print(
      "\nfilling, warm: batches/s. A cache is taken to be filled by the first epoch and "
      "never to evict.\n");
  for (size_t t = 0; t < question.tiers.size(); ++t) {
    const analysis::CacheTier& tier = question.tiers[t];
    const bool assumed = options.tiers[t].find('@') == std::string::npos;
    fmt::print("{} reads and writes {}{}{}\n", tier.name,
               FormatBytesRate(tier.read_bytes_per_second),
               tier.shared ? " in all" : " on each thread",
               assumed ? ", assumed; give it as " + tier.name + "=BUDGET@RATE" : "");
  }
}

std::string CacheJson(const analysis::PipelineModel& model,
                      const experiments::CacheOptions& options,
                      const analysis::CacheQuestion& question,
                      const analysis::CacheChoice& choice) {
  const auto option_json = [&](const analysis::CacheOption& option) {
    nlohmann::ordered_json out;
    out["after"] = model.stages()[option.stage].name;
    out["tier"] = question.tiers[option.tier].name;
    out["epoch_bytes"] = std::llround(option.stored_bytes);
    out["kept_ratio"] = option.share;
    out["fill_batches_per_second"] = option.fill_rate;
    out["warm_batches_per_second"] = option.warm_rate;
    out["warm_gain_interval"] = {
        {"low", option.warm_gain.low}, {"high", option.warm_gain.high}, {"level_ratio", 0.9}};
    out["pays_after_epochs"] = Number(PaysAfter(option));
    out["total_seconds"] = Number(option.total_s);
    out["then_limited_by"] = option.then.name;
    out["random_operators"] = option.random;
    out["allowed"] = option.allowed;
    return out;
  };
  nlohmann::ordered_json out;
  out["epoch_rows"] = options.epoch_rows;
  out["epochs"] = options.epochs > 0 ? nlohmann::ordered_json(options.epochs) : nullptr;
  out["without"] = {{"batches_per_second", choice.rate}, {"total_seconds", Number(choice.total_s)}};
  out["best"] = choice.best ? option_json(choice.options[*choice.best]) : nullptr;
  out["options"] = nlohmann::ordered_json::array();
  for (const analysis::CacheOption& option : choice.options) {
    out["options"].push_back(option_json(option));
  }
  out["unknown"] = nlohmann::ordered_json::array();
  for (size_t stage : choice.unknown) out["unknown"].push_back(model.stages()[stage].name);
  return out.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

}  // namespace headrace::cli
