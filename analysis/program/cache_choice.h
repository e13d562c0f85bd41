// Cache choice: what keeping a stage's output between epochs would gain, what it takes, and after
// how many epochs it has paid for its filling.
//
// From the second epoch on a share h of the elements is read back instead of made (h = 1 where all
// fit; else what the budget holds, kept and never evicted, as any other policy would read none of
// a scan back): every operator up to there costs 1 - h, and h of the reading is added. The filling
// epoch costs writing. With rates X (none), F (filling) and W (warm) and N batches an epoch, E
// epochs take N / F + (E - 1) N / W; the cache has paid after E* = (1/F - 1/W) / (1/X - 1/W)
// epochs. Compared by total time, as Cachew (ATC '22) compares compute with cache-read throughput,
// here with the filling, with what limits the rest of the pipeline, and for every stage.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "analysis/model/prediction.h"

namespace headrace::analysis {

// What a cache in memory is taken to read and write on each thread, where nobody says: copies, and
// a look at a checksum.
inline constexpr double kMemoryCacheBytesPerSecond = 3e9;

struct CacheTier {
  std::string name;         // "memory", "disk"
  double budget_bytes = 0;  // for the cache
  // Of one thread where `shared` is false (memory), of all together where true (a disk).
  double read_bytes_per_second = 0, write_bytes_per_second = 0;
  bool shared = false;
  bool uses_cpu = true;  // reading back computes (copies), else it blocks
};

struct CacheQuestion {
  double epoch_batches = 0;
  double epochs = 0;  // 0: not known
  std::vector<CacheTier> tiers;
  std::vector<bool> allowed = {};  // stages whose output can be kept; empty: all
};

struct CacheOption {
  size_t stage = 0, tier = 0;  // of the model, of the question
  double stored_bytes = 0;     // one epoch of the stage's output
  double share = 0;            // of it that is kept
  double fill_rate = 0;        // batches per second
  double warm_rate = 0;
  Interval warm_gain;                       // 90 %, of warm_rate over the present rate, less 1
  std::optional<double> break_even_epochs;  // none: it never pays, or may not
  std::optional<double> total_s;            // of the question's epochs
  Limit then;                               // what limits the warm rate
  std::vector<Scale> warm;  // what it makes of the pipeline's costs, from the second epoch on
  bool allowed = true;      // by the question; one that is not is never chosen
  // Operators before it whose name or kind says that they draw at random: their draws would be
  // kept.
  std::vector<std::string> random;
};

struct CacheChoice {
  double rate = 0;                   // without a cache
  std::optional<double> total_s;     // without a cache
  std::vector<CacheOption> options;  // by total time; by warm rate where epochs are not known
  // Index of the option that is worth having; none: no cache. An option that keeps random draws is
  // never chosen.
  std::optional<size_t> best;
  // Stages whose elements' size the run did not record.
  std::vector<size_t> unknown;
};

// Names of the operators up to and in the stage whose name or kind says that they draw at random.
std::vector<std::string> RandomBefore(const PipelineModel& model, size_t stage);

// What a cache behind `stage` does to costs: all operators up to it at `left` of their cost, and
// `added_s` a batch on the last of them and on the tier, number `tier_index`, if that is shared.
std::vector<Scale> CacheScales(const PipelineModel& model, size_t stage, double left,
                               double added_s, const CacheTier& tier, size_t tier_index);

// Throws Error kUsage when the question has no batches an epoch or no tier.
CacheChoice ChooseCache(const PipelineModel& model, const Predictor& predictor,
                        const CacheQuestion& question);

}  // namespace headrace::analysis
