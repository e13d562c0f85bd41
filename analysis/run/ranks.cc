#include "analysis/run/ranks.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "analysis/run/process_figures.h"
#include "analysis/thresholds.h"
#include "base/error.h"
#include "base/units.h"

namespace headrace::analysis {

int RanksOf(const RunView& run) {
  constexpr int64_t kMost = 4096;
  int64_t ranks = 1;
  for (const OperatorRow& op : run.operators) {
    if (op.kind != "consumer") continue;
    for (const StageRow& stage : run.stages) {
      if (stage.name == op.stage) ranks = std::max(ranks, stage.last_parallelism_count);
    }
  }
  return static_cast<int>(std::min(ranks, kMost));
}

int EachRank(const RunView& run, int workers) {
  if (workers <= 0) return workers;
  return std::max(1, static_cast<int>(std::lround(double(workers) / RanksOf(run))));
}

double Rank::wait_ratio() const {
  const double all = wait_s + compute_s;
  return all > 0 ? wait_s / all : 0;
}

double Rank::steps_per_s() const {
  const double all = wait_s + compute_s;
  return all > 0 ? steps / all : 0;
}

std::vector<Rank> Ranks(const RunView& run) {
  auto by_process = FiguresByProcess<Rank>(run, {{"rank_steps_count", &Rank::steps},
                                                 {"rank_wait_ns", &Rank::wait_s, 1e-9},
                                                 {"rank_compute_ns", &Rank::compute_s, 1e-9}});
  std::vector<Rank> ranks;
  for (auto& [id, rank] : by_process) {
    if (rank.steps > 0) ranks.push_back(std::move(rank));
  }
  if (ranks.size() < 2) return {};
  std::stable_sort(ranks.begin(), ranks.end(),
                   [](const Rank& a, const Rank& b) { return a.wait_ratio() > b.wait_ratio(); });
  return ranks;
}

std::optional<SlowRank> SlowestRank(const std::vector<Rank>& ranks) {
  if (ranks.size() < 2) return std::nullopt;
  const auto [fewest, most] = std::minmax_element(
      ranks.begin(), ranks.end(), [](const Rank& a, const Rank& b) { return a.steps < b.steps; });
  if (fewest->steps < kEnoughStepsOfRank) return std::nullopt;
  // They are read at different instants of a step.
  if (most->steps - fewest->steps > 2 + kStepTogether * most->steps) return std::nullopt;
  const Rank &first = ranks[0], &second = ranks[1];
  if (first.wait_ratio() - second.wait_ratio() <= kSmallStall) return std::nullopt;
  // The others find no batch ready either: what is slow is slow in each, and the rest of their step
  // is a wait for the one that is a little behind.
  if (second.wait_ratio() > kHighStall) return std::nullopt;
  return SlowRank{first, ranks.size(), second.wait_ratio()};
}

std::string Words(const SlowRank& slow) {
  return fmt::format("the slowest of {} ranks, pid {} ({}): it {}", slow.ranks, slow.rank.pid,
                     Printable(slow.rank.process), WaitWords(slow));
}

std::string WaitWords(const SlowRank& slow) {
  const std::string others = FormatPercent(slow.others_wait_ratio);
  return fmt::format(
      "waits {} of each step, the {}", FormatPercent(slow.rank.wait_ratio()),
      slow.ranks == 2 ? "other " + others : fmt::format("others {} at most", others));
}

}  // namespace headrace::analysis
