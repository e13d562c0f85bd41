// As many threads as there are cores, for every stage that can have them.
#include <algorithm>
#include <cmath>

#include "tests/validation/strategy.h"

namespace headrace::validation {

Strategy AllCores() {
  return {"all cores", [](const analysis::RunView& run, const Allowed& allowed, const Measure&) {
            Choice choice = AsRecorded(run);
            const std::vector<StageCost> costs = CostsOf(run);
            for (size_t s = 0; s < costs.size(); ++s) {
              if (costs[s].sequential) continue;
              choice.threads[s] = std::min(
                  allowed.most_threads, std::max(1, static_cast<int>(std::lround(allowed.cores))));
            }
            return choice;
          }};
}

}  // namespace headrace::validation
