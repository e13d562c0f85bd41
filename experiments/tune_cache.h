// headrace tune --cache: whether to keep a stage's output between epochs, once threads and queues
// are set. A cache cannot be put into a running pipeline: the pipeline is started again with it in
// a process of its own, continues from the checkpoint where there is one, fills the cache in one
// epoch, and is then compared with its rate before. Where filling would take too long for that, the
// decision and its settings are only reported, and take effect at the next start.
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
  CacheOptions cache;  // epoch_rows 0: the rows of the run's splits
  analysis::Budget budget;
  std::string database, pipeline, name;
  int64_t run_id = 0;                 // run of the tuned pipeline
  std::vector<std::string> settings;  // KEY=VALUE that it was started with
  analysis::KnobValues start, knobs;  // values at its start, present values
  std::string checkpoint;             // to continue from; "": begin anew
  int64_t most_verify_ns = 0;         // longest duration of the restarted run; 0: no restart
  int first_decision = 0;             // index of the first decision
};

struct CacheTuned {
  analysis::Decision decision;
  std::optional<int64_t> run_id;  // of the restarted run
};

// Passes every state of the decision to every sink. Throws Error kInconclusive where the run says
// too little, kUsage for impossible tiers, and the Error of a restarted run that failed.
CacheTuned TuneCache(const CacheTuning& what, const std::vector<analysis::DecisionSink*>& sinks);

// Rates (batches per second) of the windows of `run` after its first `rows` rows, where a cache
// that one epoch fills is full. Empty: the run did not get that far.
std::vector<double> RatesAfterRows(const analysis::RunView& run, double rows);

// Rows of one epoch, estimated from the mean rows of the splits that `run` fetched; none: not
// known.
std::optional<double> EpochRows(const analysis::RunView& run);

}  // namespace headrace::experiments
