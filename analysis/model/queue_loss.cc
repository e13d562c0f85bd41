#include "analysis/model/queue_loss.h"

#include <algorithm>
#include <cmath>

namespace headrace::analysis {

double QueueLoss(double load, double cv_a, double cv_s, int slots) {
  const double variance = std::max(cv_a * cv_a + cv_s * cv_s, 1e-6);
  const double places = slots + 1;  // K - 1, with K = slots + one in service + one held
  load = std::clamp(load, 0.0, 1.0);
  if (load > 1 - 1e-6) return 1 / (2 + 2 * places / variance);
  const double decay = std::exp(-2 * (1 - load) * places / (load * variance));
  return load * (1 - load) * decay / (1 - load * load * decay);
}

int SufficientCapacity(double load, double cv_a, double cv_s, double loss, int least, int most) {
  int slots = std::max(1, least);
  while (slots < most && QueueLoss(load, cv_a, cv_s, slots) > loss) ++slots;
  return slots;
}

}  // namespace headrace::analysis
