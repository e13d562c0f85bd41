#include "experiments/cache_options.h"

#include <fmt/format.h>

#include <cmath>

#include "analysis/program/reader_cache.h"
#include "base/error.h"
#include "base/units.h"

namespace headrace::experiments {
namespace {

[[noreturn]] void RefuseTier(const std::string& text, const std::string& fix) {
  throw Error(ExitCode::kUsage, fmt::format("'{}' is not a tier", Printable(text)), "--cache", fix);
}

// "memory=8GiB", "disk=200GiB@1.5GB/s"
analysis::CacheTier ParseTier(const std::string& text) {
  const size_t equals = text.find('='), at = text.find('@');
  const std::string name = text.substr(0, equals);
  if (equals == std::string::npos || (name != "memory" && name != "disk")) {
    RefuseTier(text, "try memory=8GiB or disk=200GiB@1.5GB/s");
  }
  analysis::CacheTier tier;
  tier.name = name;
  const std::string budget =
      text.substr(equals + 1, at == std::string::npos ? at : at - equals - 1);
  tier.budget_bytes = static_cast<double>(ParseBytes(budget, "--cache"));
  if (at != std::string::npos) {
    std::string rate = text.substr(at + 1);
    if (rate.ends_with("/s")) rate.resize(rate.size() - 2);
    tier.read_bytes_per_second = static_cast<double>(ParseBytes(rate, "--cache"));
    if (tier.read_bytes_per_second <= 0) RefuseTier(text, "give a rate over 0");
  } else if (name == "memory") {
    tier.read_bytes_per_second = analysis::kMemoryCacheBytesPerSecond;
    tier.rate_assumed = true;
  } else {
    RefuseTier(text,
               "say what the disk reads: disk=200GiB@1.5GB/s (measured by 'headrace doctor "
               "--calibrate')");
  }
  if (tier.budget_bytes <= 0) RefuseTier(text, "give a budget over 0");
  tier.write_bytes_per_second = tier.read_bytes_per_second;
  tier.shared = name == "disk";
  tier.uses_cpu = name == "memory";
  return tier;
}

}  // namespace

void CheckCacheTiers(const CacheOptions& options) {
  for (const std::string& tier : options.tiers) ParseTier(tier);
}

analysis::CacheQuestion CacheQuestionOf(const analysis::PipelineModel& model,
                                        const CacheOptions& options) {
  analysis::CacheQuestion question;
  for (const std::string& tier : options.tiers) question.tiers.push_back(ParseTier(tier));
  constexpr double kMostRows = 1e15, kMostEpochs = 1e6;
  if (options.epoch_rows > kMostRows) {
    throw Error(ExitCode::kUsage, "no epoch has that many rows", "--epoch-rows",
                fmt::format("give at most {:g}", kMostRows));
  }
  if (options.epochs > kMostEpochs || options.epochs != std::floor(options.epochs)) {
    throw Error(ExitCode::kUsage, fmt::format("{:g} is not a number of epochs", options.epochs),
                "--epochs", fmt::format("give a whole number up to {:g}", kMostEpochs));
  }
  if (options.epoch_rows <= 0 || model.demands().rows <= 0) {
    throw Error(options.epoch_rows <= 0 ? ExitCode::kUsage : ExitCode::kInconclusive,
                options.epoch_rows <= 0 ? "how large a cache is depends on the rows of an epoch"
                                        : "the run recorded no rows per batch",
                "--cache", "give --epoch-rows N, and record rows (docs/accounts.md)");
  }
  question.epoch_batches = options.epoch_rows / model.demands().rows;
  question.epochs = options.epochs;
  if (analysis::IsReader(model)) {
    for (size_t s = 0; s < model.stages().size(); ++s) {
      question.allowed.push_back(!analysis::CacheAfter(model, s).empty());
    }
  }
  return question;
}

}  // namespace headrace::experiments
