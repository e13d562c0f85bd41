// TunerState: what a Tuner knows and decides (tuner.h). tuner_state.cc measures, plans, watches and
// keeps the memory budget; tuner_trial.cc compares new settings with old ones.
#pragma once
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "analysis/statistics/block_comparison.h"
#include "analysis/tuning/seen_run.h"
#include "analysis/tuning/tuner_move.h"
#include "analysis/tuning/tuner_options.h"
#include "analysis/tuning/tuner_plan.h"

namespace headrace::analysis {

constexpr int kLeastBlock = 3;                       // windows
constexpr int64_t kFirstBackOffNs = 10'000'000'000;  // after settings could not be set

// Those that free memory first.
std::vector<Change> InOrder(std::vector<Change> changes);

struct Trial {  // of new settings against old ones
  KnobValues before, after;
  size_t decision = 0;
  bool fewer = false, forced = false, interleave = true;
  bool against_start = false;
  double predicted_gain = 0;
  int block = kLeastBlock;    // windows
  int64_t block_from_ns = 0;  // windows from here on are of the block
  std::optional<BlockComparison> blocks;
  std::vector<double> rates_before;  // of windows, where it is not interleaved
};

struct TunerState {
  enum class Phase : uint8_t { kMeasure, kTrial, kWatch, kDone };

  TunerState(TunerOptions o, const KnobValues& k)
      : options(o), start(k), incumbent(k), current(k), seen(k) {
    for (const auto& [knob, value] : current) turnable.insert(knob);
  }

  TunerOptions options;
  KnobValues start, incumbent, current;  // `current`: in force
  SeenRun seen;
  std::set<std::string> turnable;
  Phase phase = Phase::kMeasure;
  std::vector<Decision> decisions;
  std::vector<size_t> unheard;  // decisions that were made or judged since the last Move
  std::optional<Trial> trial;
  std::vector<KnobValues> tried;
  std::vector<Change> pending;  // set by the last Move, not yet applied
  std::optional<size_t> pending_decision;
  double content = 0;  // batches in the queues at most
  double rate = 0;     // lately
  int64_t guard_from_ns = 0;
  int taken_back = 0;  // plans, one after the other
  bool converged = false, after_drift = false;
  bool replanning = false;  // from a drift until the plan has stopped changing once more
  int applied = 0, kept = 0;
  bool start_allowed = true, kept_fewer = false;
  TuneResult result;
  std::string failed;
  int64_t back_off_ns = kFirstBackOffNs, resume_ns = 0;  // after settings could not be set

  void Read(const RunView& view);
  Move Next();
  Move End(bool runs_on);

  double Settling() const;
  Decision& Decide(TuneAction action, std::string reason);
  Move Out(Move move);
  Move Wait(double windows);
  Move Set(const KnobValues& knobs, double windows, std::optional<size_t> decision = {});
  Move Stop(std::string why, bool has_converged);
  Move Converge(const std::string& why);
  Move Measure();
  Move Plan(const std::vector<size_t>& windows);
  Move Begin(const Proposal& proposal, const std::vector<size_t>& windows);
  Move Watch();
  std::optional<Move> Guard();
  Move AfterFailure();

  // Comparing: tuner_trial.cc.
  void StartTrial(bool first_is_new, const std::vector<size_t>& windows);
  Move VerifyStart(const std::string& why);
  Move Compare();
  Move CompareOnce();
  bool Keeps(const Effect& effect, double observed) const;
  bool ReachesTarget(double observed) const;
  std::string Words(const Effect& effect) const;
  Move Judge(const Effect& effect, double observed, const std::vector<double>& rates);
  Move AfterVerify(const Effect& effect, double observed);
  Move Revert(const Trial& t, const Effect& effect);
};

}  // namespace headrace::analysis
