// Candidate: a plan with its predicted rate: the integer program's answer, improved by the search.
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
  size_t stage = 0, tier = 0;  // indices into the model's stages and the question's tiers
  double share = 0;            // share of the elements that is kept
  double bytes = 0;            // bytes that it takes of the tier
  // Bytes that it may grow to if elements turn out larger: limited by the tier and, for a cache in
  // memory, by what the rest of the plan leaves of the memory budget.
  double most_bytes = 0;
};

struct Candidate {
  HostSolution solution;  // the program's, before the search
  HostReport report;
  std::vector<PlannedCache> caches;
  Settings settings;
  // How the caches change the pipeline's costs from the second epoch on (`warm`) and in the first
  // (`fill`).
  std::vector<Scale> warm, fill;
  double rate = 0, fill_rate = 0;
  double average_s = 0;  // seconds per batch over all epochs; candidates are compared by it
};

class Planner {
 public:
  // All references must outlive it. `base`: the settings that a plan starts from. `same_cores`: the
  // plan may use as many cores as the run had.
  Planner(const PipelineModel& model, const Predictor& predictor, const Budget& budget,
          const MemoryBudget& memory, const Settings& base, bool same_cores);

  // The best candidate; one without a cache if it is as good. Throws Error kInconclusive where no
  // settings satisfy all budgets.
  Candidate Best() const;
  // The most threads of each stage.
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
