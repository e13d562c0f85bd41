#include "analysis/program/cache_choice.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <string_view>

#include "analysis/thresholds.h"
#include "base/error.h"

namespace headrace::analysis {
namespace {

constexpr std::array<std::string_view, 4> kRandomKinds = {"sampling", "random_crop", "shuffle",
                                                          "augment"};

// The stage and all that it takes from.
std::vector<size_t> UpTo(const PipelineModel& model, size_t stage) {
  std::vector<size_t> found{stage};
  for (size_t i = 0; i < found.size(); ++i) {
    for (size_t input : model.stages()[found[i]].inputs) {
      if (std::find(found.begin(), found.end(), input) == found.end()) found.push_back(input);
    }
  }
  return found;
}

// The stage's output in that tier, in the present settings: how fast it would be warm and while it
// is filled, and what that saves. Absent where the tier has no room for any of it.
std::optional<CacheOption> OptionOf(const PipelineModel& model, const Predictor& predictor,
                                    const CacheQuestion& question, double rate_now, size_t stage,
                                    size_t tier_index) {
  const CacheTier& tier = question.tiers[tier_index];
  const StageModel& of = model.stages()[stage];
  const double batch_bytes = *of.element_bytes * of.elements, batches = question.epoch_batches;
  CacheOption option;
  option.stage = stage;
  option.tier = tier_index;
  option.random = RandomBefore(model, stage);
  option.allowed = question.allowed.empty() || question.allowed[stage];
  option.stored_bytes = batch_bytes * batches;
  option.share = std::min(1.0, tier.budget_bytes / option.stored_bytes);
  if (!(option.share > 0)) return std::nullopt;
  const Settings now = model.current();
  const double kept_bytes = option.share * batch_bytes;
  const auto variant_of = [&](double left, double bytes_per_second) {
    return Variant{
        now, CacheScales(model, stage, left, kept_bytes / bytes_per_second, tier, tier_index)};
  };
  const Variant warm = variant_of(1 - option.share, tier.read_bytes_per_second);
  const Prediction said = predictor.Predict(warm);
  option.warm_rate = said.rate;
  option.warm_gain = predictor.Gain({now, {}}, warm, said.rate / rate_now - 1);
  option.then = said.limits[said.binding];
  option.warm = warm.scales;
  option.fill_rate = std::min(rate_now, predictor.Rate(variant_of(1, tier.write_bytes_per_second)));
  // A gain that may be none pays nothing back.
  if (option.warm_rate > rate_now && option.warm_gain.low > 0) {
    option.break_even_epochs =
        (1 / option.fill_rate - 1 / option.warm_rate) / (1 / rate_now - 1 / option.warm_rate);
  }
  if (question.epochs > 0) {
    option.total_s =
        batches / option.fill_rate + (question.epochs - 1) * batches / option.warm_rate;
  }
  return option;
}

// The first of the sorted options that may be had, if it pays: the others are no better.
std::optional<size_t> BestOf(const CacheChoice& choice) {
  for (size_t i = 0; i < choice.options.size(); ++i) {
    const CacheOption& option = choice.options[i];
    if (!option.random.empty() || !option.allowed) continue;
    const bool pays = option.warm_gain.low <= 0 ? false
                      : choice.total_s ? *option.total_s < *choice.total_s * (1 - kWorthwhileGain)
                                       : option.warm_rate > choice.rate * (1 + kWorthwhileGain);
    return pays ? std::optional<size_t>(i) : std::nullopt;
  }
  return std::nullopt;
}

}  // namespace

std::vector<std::string> RandomBefore(const PipelineModel& model, size_t stage) {
  std::vector<std::string> random;
  for (size_t from : UpTo(model, stage)) {
    for (size_t op : model.stages()[from].operators) {
      const OperatorModel& found = model.operators()[op];
      const bool draws = std::any_of(
          kRandomKinds.begin(), kRandomKinds.end(),
          [&](std::string_view word) { return found.kind == word || found.name == word; });
      if (draws) random.push_back(found.name);
    }
  }
  return random;
}

std::vector<Scale> CacheScales(const PipelineModel& model, size_t stage, double left,
                               double added_s, const CacheTier& tier, size_t tier_index) {
  std::vector<Scale> scales;
  for (size_t from : UpTo(model, stage)) scales.push_back({Scaled::kStage, from, left});
  Scale added{Scaled::kAdded, model.stages()[stage].last, added_s};
  added.cpu = tier.uses_cpu;
  scales.push_back(added);
  if (tier.shared && added_s > 0) scales.push_back({Scaled::kCacheDisk, tier_index, added_s});
  return scales;
}

CacheChoice ChooseCache(const PipelineModel& model, const Predictor& predictor,
                        const CacheQuestion& question) {
  if (!(question.epoch_batches > 0) || question.tiers.empty()) {
    throw Error(ExitCode::kUsage, "a cache needs to know the batches of an epoch, and a tier",
                "cache", "give --epoch-rows N and --cache memory=8GiB");
  }
  CacheChoice choice;
  choice.rate = model.demands().rate;
  const bool counted = question.epochs > 0;
  if (counted) choice.total_s = question.epochs * question.epoch_batches / choice.rate;
  for (size_t s = 0; s < model.stages().size(); ++s) {
    const StageModel& stage = model.stages()[s];
    if (!stage.element_bytes || *stage.element_bytes <= 0) {
      choice.unknown.push_back(s);
      continue;
    }
    for (size_t t = 0; t < question.tiers.size(); ++t) {
      if (auto option = OptionOf(model, predictor, question, choice.rate, s, t)) {
        choice.options.push_back(std::move(*option));
      }
    }
  }
  std::stable_sort(choice.options.begin(), choice.options.end(),
                   [&](const CacheOption& a, const CacheOption& b) {
                     if (counted) return *a.total_s < *b.total_s;
                     return a.warm_rate > b.warm_rate;
                   });
  choice.best = BestOf(choice);
  return choice;
}

}  // namespace headrace::analysis
