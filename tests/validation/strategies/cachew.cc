// Cachew's autoscaling rule (Graur et al., ATC 2022): a worker more while the batch time improves
// by more than 7 %, a worker less while it loses less than 3 %. A worker runs the whole pipeline:
// here, a thread more for every stage that can have one.
#include <algorithm>

#include "tests/validation/strategy.h"

namespace headrace::validation {
namespace {

Choice Scale(const analysis::RunView& run, const Allowed& allowed, const Measure& measure) {
  const std::vector<StageCost> costs = CostsOf(run);
  Choice choice = AsRecorded(run);
  const auto with = [&](const Choice& from, int more) {
    Choice changed = from;
    for (size_t s = 0; s < costs.size(); ++s) {
      if (!costs[s].sequential) {
        changed.threads[s] = std::clamp(from.threads[s] + more, 1, allowed.most_threads);
      }
    }
    return changed;
  };
  double rate = measure(choice);
  bool grew = false;
  for (int i = 0; i < 20; ++i) {
    const Choice more = with(choice, 1);
    const double better = measure(more);
    if (more == choice || better < 1.07 * rate) break;
    choice = more;
    rate = better;
    grew = true;
  }
  for (int i = 0; i < 20 && !grew; ++i) {
    const Choice less = with(choice, -1);
    const double worse = measure(less);
    if (less == choice || worse < 0.97 * rate) break;
    choice = less;
    rate = worse;
  }
  return choice;
}

}  // namespace

Strategy Cachew() { return {"Cachew, one worker more or less", Scale}; }

}  // namespace headrace::validation
