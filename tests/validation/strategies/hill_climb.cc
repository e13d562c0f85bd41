// tf.data's AUTOTUNE as it ships (Murray et al., VLDB 2021; model.cc): wall time per element, an
// asynchronous stage hides its producer but for the chance of an empty buffer by M/M/1/K, and the
// knob that lowers the output time most is raised by one until none helps, all have as many threads
// as there are cores, or half of the free memory is taken (MAX_PARALLELISM; HILL_CLIMB stops
// earlier, at the processing time over the cores). A buffer that was seen both empty and full is
// doubled, twice here: the tuner runs again and again.
#include <algorithm>
#include <cmath>

#include "tests/validation/strategy.h"

namespace headrace::validation {
namespace {

double EmptyProbability(double producer, double consumer, int slots) {
  if (producer <= 0) return 0;
  if (consumer <= 0) return 1;
  const double x = consumer / producer;
  if (std::abs(x - 1) < 1e-9) return 1.0 / (slots + 1);
  return std::clamp((1 - x) / (1 - std::pow(x, slots + 1)), 0.0, 1.0);
}

// Time of the consumer for one batch, its own work left out. Stages are taken one behind the other.
double OutputTime(const std::vector<StageCost>& costs, const Choice& choice) {
  double waited = 0;
  for (size_t s = 0; s < costs.size(); ++s) {
    const double producer = costs[s].wall_s / choice.threads[s] + waited;
    const double consumer = s + 1 < costs.size() ? costs[s + 1].wall_s / choice.threads[s + 1] : 0;
    waited = producer * EmptyProbability(producer, consumer, choice.queues[s]);
  }
  return waited;
}

double BytesOf(const std::vector<StageCost>& costs, const Choice& choice) {
  double bytes = 0;
  for (size_t s = 0; s < costs.size(); ++s) {
    bytes += costs[s].bytes * (choice.threads[s] + choice.queues[s]);
  }
  return bytes;
}

Choice Climb(const analysis::RunView& run, const Allowed& allowed, const Measure&) {
  const std::vector<StageCost> costs = CostsOf(run);
  Choice choice = AsRecorded(run);
  double resident = 0;
  for (size_t s = 0; s < costs.size(); ++s) {
    if (!costs[s].sequential) choice.threads[s] = 1;
  }
  const analysis::HostRow* rss = run.FindHost("process_rss_bytes");
  if (rss != nullptr && rss->maximum_value) resident = *rss->maximum_value;
  const double held = BytesOf(costs, AsRecorded(run));
  const double room = 0.5 * std::max(0.0, allowed.memory_bytes - (resident - held));
  const int most =
      std::min(allowed.most_threads, std::max(1, static_cast<int>(std::lround(allowed.cores))));
  while (true) {
    double best = OutputTime(costs, choice);
    Choice next = choice;
    for (size_t s = 0; s < costs.size(); ++s) {
      if (costs[s].sequential || choice.threads[s] >= most) continue;
      Choice trial = choice;
      ++trial.threads[s];
      const double time = OutputTime(costs, trial);
      if (time < best * (1 - 1e-9) && BytesOf(costs, trial) <= room) {
        best = time;
        next = trial;
      }
    }
    if (next == choice) break;
    choice = next;
  }
  for (size_t s = 0; s < costs.size(); ++s) {
    for (const analysis::QueueRow& queue : run.queues) {
      if (queue.producer_stage != run.stages[s].name) continue;
      if (queue.full_ratio.value_or(0) <= 0 || queue.empty_ratio.value_or(0) <= 0) continue;
      for (int times = 0; times < 2; ++times) {
        Choice trial = choice;
        trial.queues[s] *= 2;
        if (BytesOf(costs, trial) <= room) choice = trial;
      }
    }
  }
  return choice;
}

}  // namespace

Strategy HillClimb() { return {"AUTOTUNE climb (tf.data)", Climb}; }

}  // namespace headrace::validation
