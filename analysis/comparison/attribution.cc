#include "analysis/comparison/attribution.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>

#include "analysis/comparison/attribution_rows.h"
#include "analysis/comparison/outside_pair.h"
#include "analysis/comparison/pipeline_pair.h"
#include "analysis/statistics/shapley.h"
#include "analysis/thresholds.h"
#include "base/error.h"

namespace headrace::analysis {
namespace {

constexpr double kSoft = 8;        // sharpness: rows count that come within a third or so
constexpr size_t kMostTried = 24;  // changes that are simulated alone
constexpr double kNormal95 = 1.96;
constexpr size_t kMostPlayers = 12;
constexpr size_t kMostExact = 6;
constexpr size_t kOrders = 16, kDrawnOrders = 4;
constexpr double kMoves = 100e6;  // of all simulations together: some seconds
constexpr int64_t kMostSteps = 3000, kFewestSteps = 300;

std::optional<double> CostShare(double a, double b, double total_a, double total_b) {
  const double mean = LogMean(total_a, total_b);
  if (mean <= 0) return std::nullopt;
  return (b - a) / mean;
}

// Divides the change in throughput of a pair among its changes.
class Divided {
 public:
  Divided(const PipelinePair& pair, const AttributionOptions& options)
      : pair_(pair), options_(options) {
    base_.assign(pair.changes().size(), From::kMiddle);
    moves_per_step_ = pair.MovesPerStep();
    ChoosePlayers();
    Divide();
    for (const double share : shares_) explained_ += share;
    FindIntervals();
    Spread();
  }

  const std::vector<double>& shares() const { return shares_; }  // by change
  const std::vector<Interval>& intervals() const { return intervals_; }
  double explained() const { return explained_; }  // by the model
  double spread() const { return spread_; }        // of its error, over the parts
  const Interval& measured() const { return measured_; }
  const Interval& unexplained() const { return unexplained_; }
  const std::string& method() const { return method_; }

 private:
  // Players' changes come from B where their bit is set, else from A.
  std::vector<From> SidesOf(uint64_t set) const {
    std::vector<From> from = base_;
    for (size_t p = 0; p < players_.size(); ++p) {
      for (const size_t change : players_[p]) {
        from[change] = (set >> p & 1) != 0 ? From::kB : From::kA;
      }
    }
    return from;
  }

  using Rate = std::function<double(const std::vector<From>&)>;

  // What the change does alone, on side A or on side B, where it does more.
  double EffectOf(size_t change, const std::vector<size_t>& differing, const Rate& rate) const {
    std::vector<From> a = base_, b = base_;
    for (const size_t other : differing) {
      a[other] = From::kA;
      b[other] = From::kB;
    }
    const auto moved = [&](std::vector<From> from) {
      from[change] = From::kA;
      const double before = rate(from);
      from[change] = From::kB;
      return rate(from) - before;
    };
    const double first = moved(a), last = moved(b);
    return std::abs(first) > std::abs(last) ? first : last;
  }

  // Changes that matter are players; of many, the small ones are one player together.
  void ChoosePlayers() {
    std::vector<size_t> differing;
    for (size_t i = 0; i < pair_.changes().size(); ++i) {
      if (pair_.changes()[i].differs) differing.push_back(i);
    }
    const Rate bounded = [&](const std::vector<From>& from) {
      return pair_.Bounded(from, pair_.middle(), kSoft);
    };
    const double each = kMoves / 2 / (8.0 * static_cast<double>(differing.size() + 1));
    const int64_t steps = StepsFor(each);
    const Rate simulated = [&](const std::vector<From>& from) {
      return pair_.Simulated(from, steps);
    };
    effects_.assign(pair_.changes().size(), 0);
    std::vector<size_t> matter;
    for (const size_t i : differing) {
      effects_[i] = EffectOf(i, differing, bounded);
      bool matters = std::abs(effects_[i]) >= kNoEffect;
      // Bounds do not see what queues, order and variance cost.
      if (!matters && differing.size() <= kMostTried) {
        const double effect = EffectOf(i, differing, simulated);
        matters = std::abs(effect) >= kNoSimulatedEffect;
        if (matters) effects_[i] = effect;
      }
      if (matters) matter.push_back(i);
    }
    std::stable_sort(matter.begin(), matter.end(), [&](size_t x, size_t y) {
      return std::abs(effects_[x]) > std::abs(effects_[y]);
    });
    for (const size_t i : matter) {
      if (players_.size() < kMostPlayers) {
        players_.push_back({i});
      } else {
        players_.back().push_back(i);
      }
    }
  }

  int64_t StepsFor(double moves) const {
    return std::clamp(static_cast<int64_t>(moves / moves_per_step_), kFewestSteps, kMostSteps);
  }

  // The value of each change. A player may be several changes; each of them gets what it does alone
  // and an equal part of what remains of the player's value.
  std::vector<double> ByChange(const std::vector<double>& values) const {
    std::vector<double> shares(pair_.changes().size(), 0);
    for (size_t p = 0; p < players_.size(); ++p) {
      double alone = 0;
      for (const size_t change : players_[p]) alone += effects_[change];
      const double each = (values[p] - alone) / static_cast<double>(players_[p].size());
      for (const size_t change : players_[p]) {
        shares[change] = players_[p].size() == 1 ? values[p] : effects_[change] + each;
      }
    }
    return shares;
  }

  void Divide() {
    const size_t n = players_.size();
    if (n == 0) {
      shares_.assign(pair_.changes().size(), 0);
      method_ = "no change is beyond what runs of one side differ by";
      return;
    }
    const double sets = n <= kMostExact ? std::exp2(static_cast<double>(n))
                                        : static_cast<double>(kOrders * (n - 1));
    const int64_t steps = std::clamp(
        static_cast<int64_t>(kMoves / (2 * sets * pair_.MovesPerStep())), kFewestSteps, kMostSteps);
    std::map<uint64_t, double> simulated;
    const ShapleyValues values = Shapley(
        n, [&](uint64_t set) { return simulated[set] = pair_.Simulated(SidesOf(set), steps); },
        kMostExact, kOrders, options_.seed);
    shares_ = ByChange(values.values);
    method_ = values.exact ? fmt::format("Shapley value over {} that matter, all {} sets simulated",
                                         n == 1 ? "the change" : fmt::format("the {} changes", n),
                                         values.evaluations)
                           : fmt::format(
                                 "Shapley value over the {} changes that matter, {} orders drawn "
                                 "(seed {}, each with its reverse), {} sets simulated",
                                 n, values.orders, options_.seed, values.evaluations);
    // How much rows count that come close: as the simulation has it.
    double least = -1;
    for (const double sharpness : {6.0, 12.0, 24.0, 48.0, 96.0}) {
      std::vector<double> off;
      for (const auto& [set, rate] : simulated) {
        off.push_back(rate - pair_.Bounded(SidesOf(set), pair_.middle(), sharpness));
      }
      const double spread = Variance(off);
      if (least >= 0 && spread >= least) continue;
      least = spread;
      sharpness_ = sharpness;
    }
  }

  // How the shares move as runs and windows are drawn anew, by soft bounds.
  void FindIntervals() {
    const size_t n = players_.size();
    intervals_.assign(pair_.changes().size(), {});
    const auto measured_of = [](const PipelinePair::Draw& draw) {
      return std::log(draw.b.rate / draw.a.rate);
    };
    const auto by_bounds = [&](const PipelinePair::Draw& draw, uint64_t seed) {
      const auto value = [&](uint64_t set) {
        return pair_.Bounded(SidesOf(set), draw, sharpness_);
      };
      return ByChange(Shapley(n, value, kMostExact, kDrawnOrders, seed).values);
    };
    const std::vector<double> middle =
        n > 0 ? by_bounds(pair_.middle(), options_.seed) : std::vector<double>(shares_.size(), 0);
    std::vector<std::vector<double>> drawn(shares_.size());
    std::vector<double> measured, unexplained;
    for (const PipelinePair::Draw& draw : pair_.Draws(options_.draws, options_.seed)) {
      const std::vector<double> shares = n > 0 ? by_bounds(draw, options_.seed) : middle;
      double moved = explained_;
      for (size_t i = 0; i < shares.size(); ++i) {
        drawn[i].push_back(shares_[i] + shares[i] - middle[i]);
        moved += shares[i] - middle[i];
      }
      measured.push_back(measured_of(draw));
      unexplained.push_back(measured.back() - moved);
    }
    double parts = 0, rest = 0;
    for (const double share : shares_) parts += std::abs(share);
    if (!unexplained.empty()) rest = std::abs(Mean(unexplained));
    if (!measured.empty()) {
      const double whole = measured_of(pair_.middle());
      measured_ = IntervalAround(whole, measured, kAttributionLevel);
      unexplained_ = IntervalAround(whole - explained_, unexplained, kAttributionLevel);
    }
    for (size_t i = 0; i < drawn.size(); ++i) {
      if (drawn[i].empty()) continue;
      if (shares_[i] == 0) {
        // What was not seen to change the rate may do so by a deviation of the measured change.
        const double deviation = (measured_.high - measured_.low) / 2 / kNormal95;
        const double unseen = std::hypot(kNormal95 * kLeastPartError, deviation);
        intervals_[i] = {-unseen, unseen};
        continue;
      }
      // What is not explained may belong to any part that there is.
      const double own = std::abs(shares_[i]);
      const double error =
          kNormal95 * (std::hypot(kPartError * own, kLeastPartError) + rest * own / parts);
      const Interval sampled = CentralInterval(drawn[i], kAttributionLevel);
      intervals_[i] = {shares_[i] - std::hypot(std::max(0.0, shares_[i] - sampled.low), error),
                       shares_[i] + std::hypot(std::max(0.0, sampled.high - shares_[i]), error)};
    }
  }

  // What the model errs by is put to its parts, by their size. The rest stays unexplained.
  void Spread() {
    double parts = 0;
    for (const double share : shares_) parts += std::abs(share);
    if (parts <= 0) return;
    const double rest = std::log(pair_.middle().b.rate / pair_.middle().a.rate) - explained_;
    const double most = kUnexplainedToParts * std::min(1.0, parts / kFullPartsFrom);
    spread_ = std::clamp(rest, -most, most);
    for (size_t i = 0; i < shares_.size(); ++i) {
      const double own = spread_ * std::abs(shares_[i]) / parts;
      shares_[i] += own;
      intervals_[i].low += own;
      intervals_[i].high += own;
    }
    unexplained_.low -= spread_;
    unexplained_.high -= spread_;
  }

  const PipelinePair& pair_;
  const AttributionOptions& options_;
  std::vector<From> base_;                    // by change
  std::vector<std::vector<size_t>> players_;  // changes of each
  std::vector<double> effects_;               // by change
  std::vector<double> shares_;
  std::vector<Interval> intervals_;
  Interval measured_, unexplained_;
  double sharpness_ = 24, moves_per_step_ = 1;
  double explained_ = 0, spread_ = 0;
  std::string method_;
};

CostFigures CostOf(const PipelinePair& pair, const PairFigures& figures, size_t i) {
  return {pair.CpuOf(figures, i), pair.BlockedOf(figures, i), figures.operators[i].bytes};
}

void Add(const std::optional<CostFigures>& cost, CostFigures* total) {
  if (!cost) return;
  total->cpu_s += cost->cpu_s;
  total->blocked_s += cost->blocked_s;
  total->bytes += cost->bytes;
}

void AddCosts(const PipelinePair& pair, AttributionRow* row, size_t change) {
  const PairChange& what = pair.changes()[change];
  const PairFigures &a = pair.middle().a, &b = pair.middle().b;
  switch (what.what) {
    case AttributedTo::kOperator: {
      const PairOperator& op = pair.operators()[what.index];
      row->stage = op.stage;
      if (op.in_a) row->a = CostOf(pair, a, what.index);
      if (op.in_b) row->b = CostOf(pair, b, what.index);
      break;
    }
    case AttributedTo::kUnattributed:
      row->a = CostFigures{a.unattributed_s, 0, 0};
      row->b = CostFigures{b.unattributed_s, 0, 0};
      break;
    case AttributedTo::kConsumer:
      row->a =
          CostFigures{a.consumer_cpu_s, std::max(0.0, a.consumer_s - a.consumer_operators_s), 0};
      row->b =
          CostFigures{b.consumer_cpu_s, std::max(0.0, b.consumer_s - b.consumer_operators_s), 0};
      break;
    default:
      break;
  }
}

void ShareCosts(Attribution* result) {
  for (const AttributionRow& row : result->rows) {
    Add(row.a, &result->total_a);
    Add(row.b, &result->total_b);
  }
  const CostFigures &all_a = result->total_a, &all_b = result->total_b, none;
  for (AttributionRow& row : result->rows) {
    if (!row.a && !row.b) continue;
    const CostFigures a = row.a.value_or(none), b = row.b.value_or(none);
    row.cpu_share = CostShare(a.cpu_s, b.cpu_s, all_a.cpu_s, all_b.cpu_s);
    row.blocked_share = CostShare(a.blocked_s, b.blocked_s, all_a.blocked_s, all_b.blocked_s);
    row.bytes_share = CostShare(a.bytes, b.bytes, all_a.bytes, all_b.bytes);
  }
}

Attribution OfPipelines(std::span<const RunView> a, std::span<const RunView> b,
                        const AttributionOptions& options) {
  const PipelinePair pair(a, b, options.seed);
  Attribution result;
  result.unit = pair.unit();
  result.runs_a = a.size();
  result.runs_b = b.size();
  result.paired = pair.paired();
  result.seed = options.seed;
  result.notes = pair.notes();
  result.rate_a = pair.middle().a.rate;
  result.rate_b = pair.middle().b.rate;
  if (!pair.splits_cpu()) {
    result.cpu_unavailable =
        "the instrumentation of these runs does not separate CPU time from blocked time";
  }
  const Divided divided(pair, options);
  result.method = divided.method();
  const double steady = std::log(result.rate_b / result.rate_a);
  result.log_ratio = {options.log_ratio.value_or(steady), divided.measured()};
  result.explained = divided.explained();
  result.spread = divided.spread();
  for (size_t i = 0; i < pair.changes().size(); ++i) {
    const PairChange& change = pair.changes()[i];
    AttributionRow row;
    row.to = change.what;
    row.name = change.name;
    row.setting_a = change.a;
    row.setting_b = change.b;
    row.within_noise = !change.differs;
    row.throughput = {divided.shares()[i], divided.intervals()[i]};
    row.told = row.throughput.value != 0 &&
               (row.throughput.interval.low > 0 || row.throughput.interval.high < 0);
    AddCosts(pair, &row, i);
    result.rows.push_back(std::move(row));
  }
  ShareCosts(&result);
  CloseRows(options, steady, "start, fill and end", "not explained by the model",
            {steady - divided.explained() - divided.spread(), divided.unexplained()}, &result);
  return result;
}

}  // namespace

const char* AttributedToName(AttributedTo what) {
  constexpr const char* kNames[] = {"operator",      "unattributed", "consumer",      "device",
                                    "lock",          "cores",        "core_speed",    "threads",
                                    "queues",        "shape",        "threads_group", "cause",
                                    "outside_phase", "unexplained"};
  return kNames[static_cast<int>(what)];
}

Attribution Attribute(std::span<const RunView> a, std::span<const RunView> b,
                      const AttributionOptions& options) {
  if (a.empty() || b.empty()) return UnavailableAttribution("one side has no run");
  const auto with_operators = [](std::span<const RunView> runs) {
    return std::count_if(runs.begin(), runs.end(),
                         [](const RunView& run) { return !run.operators.empty(); });
  };
  const auto of_a = static_cast<size_t>(with_operators(a));
  const auto of_b = static_cast<size_t>(with_operators(b));
  if (of_a + of_b == 0) return AttributeFromOutside(a, b, options);
  if (of_a < a.size() || of_b < b.size()) {
    return UnavailableAttribution("some of the runs are instrumented and some are not");
  }
  try {
    return OfPipelines(a, b, options);
  } catch (const Error& error) {
    return UnavailableAttribution(error.where().empty() ? error.fact()
                                                        : error.where() + ": " + error.fact());
  }
}

}  // namespace headrace::analysis
