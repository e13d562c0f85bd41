// Strategy: a way to choose the settings of a pipeline from a recorded run and, for those that work
// by trying, from rates measured while it runs. Ours and the peers' stand behind it, so that they
// are compared on the same pipelines, budgets and truths. The peers' rules are written from their
// descriptions, as published, defects included where they change what is chosen.
#pragma once
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "analysis/run/run_view.h"

namespace headrace::validation {

// Per stage of the run, in its order.
struct Choice {
  std::vector<int> threads;
  std::vector<int> queues;
  std::optional<int> window;  // how far threads may be ahead of the order; nothing: as recorded
  bool operator==(const Choice&) const = default;
};

struct Allowed {
  double cores = 1;
  double memory_bytes = 0;
  int most_threads = 16;  // of a stage
};

// The rate at a choice, played for a short time; 0 where it does not fit the memory.
using Measure = std::function<double(const Choice&)>;

struct Strategy {
  std::string name;
  std::function<Choice(const analysis::RunView&, const Allowed&, const Measure&)> choose;
};

// What the peers' rules look at, per batch, summed over the whole run.
struct StageCost {
  double cpu_s = 0;
  double wall_s = 0;    // with blocking and waiting for a core
  double device_s = 0;  // part of it while it held a device, and the device's servers
  bool sequential = false, source = false;
  int threads = 1;
  double bytes = 0;  // of one element
};
std::vector<StageCost> CostsOf(const analysis::RunView& run);
// The settings of the run itself.
Choice AsRecorded(const analysis::RunView& run);

Strategy Unchanged();
Strategy Ours();
Strategy AllCores();
Strategy HillClimb();
Strategy Plumber(bool repaired);
Strategy Ray();
Strategy Cachew();
std::vector<Strategy> AllStrategies();

}  // namespace headrace::validation
