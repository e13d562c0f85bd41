// Statements: all that analysis says about one run, computed once and shared by report and plan.
#pragma once
#include <memory>
#include <optional>
#include <string>

#include "analysis/advice/differential.h"
#include "analysis/model/bottleneck.h"
#include "analysis/outside/outside.h"
#include "analysis/program/allocation.h"
#include "analysis/run/accelerator_use.h"
#include "analysis/run/plausibility.h"
#include "analysis/run/ranks.h"

namespace headrace::analysis {

// The rate that the run's plan predicted, and the rate that was observed. Both are for the steady
// phase; the observed one is the rate that the verdict uses.
struct PlannedRate {
  double predicted = 0;  // batches per second
  Real low, high;        // 90 %
  double observed = 0;
  double error_ratio() const { return predicted / observed - 1; }
};

// What limited a part of the run that the other statements are not about: its slower beginning, or
// what was before a lasting change.
struct EarlierLimit {
  PhaseKind kind = PhaseKind::kCold;
  Limit limit;
  double probability = 0;
};

struct Statements {
  std::unique_ptr<PipelineModel> model;  // null when there is none; then `withheld` says why
  std::unique_ptr<Predictor> predictor;  // of the model
  std::optional<Bottleneck> bottleneck;
  std::optional<Differential> differential;  // the third opinion; of a run with a bottleneck
  std::optional<Allocation> allocation;      // with the run's own budgets
  std::optional<EarlierLimit> earlier;       // empty: no such part, or none that tells
  std::optional<PlannedRate> planned;        // of a run that was started with a plan
  std::string withheld;                      // "too short for a verdict (...)"
  // Of a run without operators, or of one whose operators do not tell: then `withheld` says why.
  std::optional<Outside> outside;
  std::optional<SlowRank> slow_rank;         // of a run with a bottleneck
  std::optional<PythonTime> slow_rank_time;  // where its functions were sampled
  std::optional<Accelerators> accelerators;  // of a run with a verdict whose devices told
  // Of a trainer that limits: what share of its own time goes into loading beside its loader, and
  // where; where that is most of it.
  std::optional<PythonPlace> own_loading;
  Doubts doubts;  // figures of the accounts that cannot be true
};

// `run` must outlive the result. Never throws for a run that is merely too short, has no accounts,
// or accounts that are not to be believed.
Statements MakeStatements(const RunView& run);

// Whether the devices of the trainer are the limit, so that what its thread waits is none of the
// input's doing.
bool DevicesLimit(const Statements& statements);

// Share of each step that the job waits for batches: of its slowest rank where ranks step together,
// else of all; where its devices are the limit, at most what they idle. Of a run with a model.
double JobStall(const Statements& statements);

// Share of each step that loading takes: those waits, and what the trainer loads by itself.
double LoadingRatio(const Statements& statements);

}  // namespace headrace::analysis
