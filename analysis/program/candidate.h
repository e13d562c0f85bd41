// Candidate: a plan as predicted: the integer program's answer, searched further.
#pragma once
#include <optional>
#include <vector>

#include "analysis/model/prediction.h"
#include "analysis/program/budget.h"
#include "analysis/program/host_program.h"
#include "analysis/program/memory_budget.h"
#include "analysis/program/model_program.h"

namespace headrace::analysis {

// An output that the plan keeps between epochs.
struct PlannedCache {
  size_t stage = 0, tier = 0;  // of the model, of the question
  double share = 0;            // of the elements
  double bytes = 0;            // of the tier
  // What it may grow to if elements come out larger: within the tier, and in memory within what
  // the memory budget leaves beside the rest of the plan.
  double most_bytes = 0;
};

struct Candidate {
  HostSolution solution;  // of the program, before the search
  HostReport report;
  std::vector<PlannedCache> caches;
  Settings settings;
  // What the caches make of the pipeline's costs from the second epoch on, and in the first.
  std::vector<Scale> warm, fill;
  double rate = 0, fill_rate = 0;
  double average_s = 0;  // a batch, over all epochs: what is compared
};

class Planner {
 public:
  // All must outlive it. `base`: the settings that a plan starts from; `same_cores`: it may use as
  // many as the run had.
  Planner(const PipelineModel& model, const Predictor& predictor, const Budget& budget,
          const MemoryBudget& memory, const Settings& base, bool same_cores);

  // The best; without a cache where that is as good. Throws Error kInconclusive where no settings
  // satisfy all budgets.
  Candidate Best() const;
  // Threads of each stage.
  const std::vector<int>& most() const { return program_.most; }

 private:
  std::optional<Candidate> CandidateOf(HostProblem problem) const;
  double AddCaches(const HostProblem& problem, Candidate* candidate) const;
  Settings StartOf(const HostProblem& problem, const HostSolution& solution) const;
  void AddFill(Candidate* candidate) const;
  void GiveRoom(Candidate* candidate) const;

  const PipelineModel& model_;
  const Predictor& predictor_;
  const Budget& budget_;
  const MemoryBudget& memory_;
  const Settings& base_;
  bool same_cores_;
  ModelProgram program_;
};

}  // namespace headrace::analysis
