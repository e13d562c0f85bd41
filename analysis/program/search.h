// Search: improves the integer program's answer by predictions, which know more than the program:
// which of its changes pay, and what longer queues and a few more threads gain where costs vary.
// Every step must fit the memory.
#pragma once
#include <functional>
#include <vector>

#include "analysis/model/prediction.h"

namespace headrace::analysis {

// The longest queue that costs which vary ask for.
inline constexpr int kMaxCapacity = 32;
// The same where it is to last over a pause.
inline constexpr int kMostOverPauses = 128;
// Places of an ordered queue for each thread that fills it.
inline constexpr int kOrderedPlaces = 4;

// Whether no stage has more threads than that.
bool WithinMost(const std::vector<int>& most, const Settings& settings);

class Search {
 public:
  // `most`: the most threads of each stage. All arguments but `target` and `scales` must outlive
  // it.
  Search(const PipelineModel& model, const Predictor& predictor, const std::vector<int>& most,
         std::vector<Scale> scales, std::function<bool(const Settings&)> fits, double target);

  const Settings& plan() const { return plan_; }
  double rate() const { return rate_; }

  // Searches from `start` for the best settings; takes back changes against `current` that gain
  // next to nothing.
  void Run(const Settings& start, const Settings& current);

 private:
  void Undo(const Settings& current);
  void Narrow(size_t s, const Settings& current, double needed);
  void Deepen();
  void Climb();
  double RateOver(const Settings& settings, double floor) const;
  int Places(size_t s) const;
  bool MakeFit(Settings* settings) const;
  void AddSteps(size_t s, std::vector<std::pair<double, Settings>>* steps) const;
  std::vector<Settings> Steps() const;

  const PipelineModel& model_;
  const Predictor& predictor_;
  const std::vector<int>& most_;
  std::vector<Scale> scales_;
  Demands demands_;
  std::function<bool(const Settings&)> fits_;
  double target_;
  Settings plan_;
  double rate_ = 0;
};

}  // namespace headrace::analysis
