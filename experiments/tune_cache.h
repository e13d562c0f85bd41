// headrace tune --cache: whether to keep a stage's output between epochs, once threads and queues
// are set. A cache cannot be put into a running pipeline: the pipeline is started again with it, in
// a process of its own, goes on from the checkpoint where there is one, fills the cache in one
// epoch and is then compared with what it was before. Where filling takes too long for that, the
// decision is stated with its settings, and takes effect at the next start.
#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "analysis/tuning/tuned_target.h"
#include "experiments/cache_options.h"

namespace headrace::experiments {

struct CacheTuning {
  CacheOptions cache;  // epoch_rows 0: as many as the run's splits had
  analysis::Budget budget;
  std::string database, pipeline, name;
  int64_t run_id = 0;                 // of the tuned pipeline
  std::vector<std::string> settings;  // KEY=VALUE it was started with
  analysis::KnobValues start, knobs;  // as it was started, as they are now
  std::string checkpoint;             // to go on from; "": begins anew
  int64_t most_verify_ns = 0;         // of a restarted run; 0: none is made
  int first_decision = 0;             // number of the decision
};

struct CacheTuned {
  analysis::Decision decision;
  std::optional<int64_t> run_id;  // of the restarted run
};

// Every state of the decision goes to every sink. Throws Error kInconclusive where the run says too
// little, kUsage for tiers that cannot be, and what the restarted run failed with.
CacheTuned TuneCache(const CacheTuning& what, const std::vector<analysis::DecisionSink*>& sinks);

// Windows of `run` after its first `rows` rows, as rates in batches per second: a cache that one
// epoch fills is full there. Empty: it did not come so far.
std::vector<double> RatesAfterRows(const analysis::RunView& run, double rows);

// Rows of one epoch by the rows of the splits that `run` fetched; none: it does not say.
std::optional<double> EpochRows(const analysis::RunView& run);

}  // namespace headrace::experiments
