// What the tuner sets next: changes that a plan proposes, or the consumer's need, to knobs that may
// be turned, within the budget.
#pragma once
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "analysis/model/prediction.h"
#include "analysis/thresholds.h"
#include "analysis/tuning/tuned_target.h"
#include "analysis/tuning/tuner_options.h"

namespace headrace::analysis {

struct Proposal {
  std::vector<Change> changes;  // empty: nothing to change
  bool fewer_threads = false;   // because the consumer or the target needs no more
  bool forced = false;          // the present settings do not fit the memory
  double now = 0;               // batches per second
  double predicted = 0;
  Interval predicted_interval;  // 90 %
  Interval gain_interval;       // 90 %, of predicted / now - 1
  Limit limited_by;             // now
  Limit then;                   // the limit predicted with the changes
  std::optional<double> memory_bytes;
  std::string reason;
};

// Convert between Settings of `model` and knobs by name; knobs that Settings do not have are
// ignored.
KnobValues KnobsOf(const PipelineModel& model, const Settings& settings);
Settings SettingsOf(const PipelineModel& model, const KnobValues& knobs);
std::vector<Change> ChangesBetween(const KnobValues& from, const KnobValues& to);

// Bytes of the process beside what its queues and threads hold, at the end of the run: its size
// less the elements that it held in the last window. Empty where sizes were not recorded.
std::optional<double> RestOfProcess(const RunView& run);

struct ProposeQuestion {
  TunerOptions budget;
  std::set<std::string> turnable;    // names of the knobs that may be turned
  std::optional<double> rest_bytes;  // bytes of the process beside queues and threads
  // Settings that were tried and taken back. If the plan is one of them, a part of its step is
  // proposed, if that gains anything.
  std::vector<KnobValues> tried;
  double least_gain = kWorthwhileGain;  // of a proposal
  bool sure = false;                    // its 90 % interval must be above 0 as well
};

// Throws Error kInconclusive where no settings satisfy the budget.
Proposal Propose(const PipelineModel& model, const ProposeQuestion& question);

}  // namespace headrace::analysis
