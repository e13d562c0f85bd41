// Cache choice: what keeping a stage's output between epochs would gain, what it costs, and after
// how many epochs the cache has paid for its filling.
//
// From the second epoch on a share h of the elements is read back instead of made: every operator
// up to the cache costs 1 - h of itself, and h times the reading is added. h is 1 where all
// elements fit, else the share that the budget holds. Elements are never evicted, as with any other
// policy a scan would find none of them again. The filling epoch pays for writing. With rates X
// (none), F (filling) and W (warm) and N batches an epoch, E epochs take N / F + (E - 1) N / W; the
// cache has paid after E* = (1/F - 1/W) / (1/X - 1/W) epochs. Options are compared by total time.
// Cachew (ATC '22) compares compute with cache-read throughput; this also counts the filling and
// the limits of the rest of the pipeline, and looks at every stage.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "analysis/model/prediction.h"

namespace headrace::analysis {

// Default rate at which each thread reads or writes a cache in memory: copying, and verifying a
// checksum.
inline constexpr double kMemoryCacheBytesPerSecond = 3e9;

struct CacheTier {
  std::string name;         // "memory", "disk"
  double budget_bytes = 0;  // for the cache
  // Rates of one thread where `shared` is false (memory), of all threads together where it is true
  // (a disk).
  double read_bytes_per_second = 0, write_bytes_per_second = 0;
  bool shared = false;
  bool uses_cpu = true;       // true: reading back takes CPU time (copies); false: it blocks
  bool rate_assumed = false;  // nobody gave the rates: they are a default
};

struct CacheQuestion {
  double epoch_batches = 0;
  double epochs = 0;  // 0: not known
  std::vector<CacheTier> tiers;
  std::vector<bool> allowed = {};  // stages whose output can be kept; empty: all
};

struct CacheOption {
  size_t stage = 0, tier = 0;  // indices into the model's stages and the question's tiers
  double stored_bytes = 0;     // one epoch of the stage's output
  double share = 0;            // share of these bytes that is kept
  double fill_rate = 0;        // batches per second
  double warm_rate = 0;
  Interval warm_gain;                       // 90 %, of warm_rate over the present rate, less 1
  std::optional<double> break_even_epochs;  // none: it never pays, or may not
  std::optional<double> total_s;            // for all epochs of the question
  Limit then;                               // what limits the warm rate
  std::vector<Scale> warm;  // how it changes the pipeline's costs from the second epoch on
  bool allowed = true;      // whether the question allows it; else it is never chosen
  // Operators before the cache that draw at random, by their name or kind: the cache would repeat
  // their draws.
  std::vector<std::string> random;
};

struct CacheChoice {
  double rate = 0;                   // without a cache
  std::optional<double> total_s;     // without a cache
  std::vector<CacheOption> options;  // by total time; by warm rate where epochs are not known
  // Index of the option worth having; none: no cache. An option that would repeat random draws is
  // never chosen.
  std::optional<size_t> best;
  // Stages whose elements' size the run did not record.
  std::vector<size_t> unknown;
};

// Names of the operators up to and in `stage` that draw at random, by their name or kind.
std::vector<std::string> RandomBefore(const PipelineModel& model, size_t stage);

// How a cache behind `stage` changes costs: all operators up to it keep the share `left` of their
// cost; `added_s` seconds per batch are added to the last of them, and to the tier (number
// `tier_index`) if it is shared.
std::vector<Scale> CacheScales(const PipelineModel& model, size_t stage, double left,
                               double added_s, const CacheTier& tier, size_t tier_index);

// Throws Error kUsage when the question has no batches an epoch or no tier.
CacheChoice ChooseCache(const PipelineModel& model, const Predictor& predictor,
                        const CacheQuestion& question);

}  // namespace headrace::analysis
