#include "tests/validation/gates.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "tests/validation/applied.h"
#include "tests/validation/gate_parts.h"

namespace headrace::validation {
namespace {

constexpr double kGap = 0.10;  // a bottleneck is clear when relieving it gains this

double ErrorOf(const PredictTrial& t) { return t.predicted / t.observed - 1; }
bool Covers(const PredictTrial& t) { return t.low <= t.observed && t.observed <= t.high; }
double RegretOf(const ChooseTrial& t) { return 1 - t.rate / t.best; }

constexpr double kMoved = 0.05;  // a rate that the change moved

// The lines of the two benches (peers' bars are in neither).
struct ErrorLines {
  const char* id;
  double median, p90, p99;  // 0: no line
};
constexpr ErrorLines kSimulatedLines{"G1", 0.05, 0.12, 0.25};
constexpr ErrorLines kRealLines{"G2", 0.10, 0.20, 0};

void JudgeErrors(const std::vector<PredictTrial>& trials, const std::string& of,
                 const ErrorLines& lines, std::vector<Gate>* gates) {
  const size_t n = trials.size();
  const std::vector<double> errors =
      Each(trials, [](const PredictTrial& t) { return std::abs(ErrorOf(t)); });
  const auto at_most = [&](const std::string& what, double quantile, double limit) {
    if (limit <= 0) return;
    gates->push_back(AtMost(lines.id, of + ", " + what, QuantileOf(errors, quantile), limit, n));
  };
  at_most("median error", 0.5, lines.median);
  at_most("90th percentile", 0.9, lines.p90);
  at_most("99th percentile", 0.99, lines.p99);
  gates->push_back(AtMost(lines.id, of + ", signed mean, either way",
                          std::abs(Mean(Each(trials, ErrorOf))), 0.03, n));
  // The 10th percentile of a prediction, of which the interval's low end is the 5th.
  const double promised = Mean(Each(trials, [](const PredictTrial& t) {
    return t.observed >= t.predicted * std::pow(t.low / t.predicted, 1.2816 / 1.645);
  }));
  gates->push_back(AtLeast("G3", of + ", promises kept", promised, 0.90, n));
  const double covered = Mean(Each(trials, [](const PredictTrial& t) { return Covers(t); }));
  gates->push_back(AtLeast("G3", of + ", 90 % intervals that cover, at least", covered, 0.85, n));
  gates->push_back(AtMost("G3", of + ", 90 % intervals that cover, at most", covered, 0.95, n));
}

void JudgePredictions(const std::vector<PredictTrial>& trials, std::vector<Gate>* gates) {
  if (trials.empty()) return;
  const size_t n = trials.size();
  JudgeErrors(trials, "predicted rate", kSimulatedLines, gates);
  const std::vector<PredictTrial> moved =
      Only(trials, [](const PredictTrial& t) { return std::abs(t.observed / t.now - 1) > kMoved; });
  if (!moved.empty()) {
    JudgeErrors(moved, "where the change moved the rate", kSimulatedLines, gates);
  }
  std::map<std::string, std::vector<double>> by_limit;
  for (const PredictTrial& t : trials) by_limit[t.limited_by].push_back(Covers(t));
  for (const auto& [limit, covers] : by_limit) {
    if (covers.size() < 20) continue;
    gates->push_back(
        AtLeast("G3", "cover, limited by " + limit, Mean(covers), 0.80, covers.size()));
  }
  gates->push_back(AtMost(
      "G3", "half width of the intervals, mean",
      Mean(Each(trials, [](const PredictTrial& t) { return (t.high - t.low) / 2 / t.predicted; })),
      0.20, n));
}

// `of` before each row's words; `first_line`: the share that must be named first.
void JudgeNames(const std::vector<NameTrial>& all, const std::string& of, double first_line,
                double wilson_line, std::vector<Gate>* gates) {
  const std::vector<NameTrial> clear = Only(all, [](const NameTrial& t) { return t.gap >= kGap; });
  if (clear.empty()) return;
  const size_t n = clear.size();
  size_t first = 0, either = 0, undecided = 0, sure = 0, wrong = 0;
  for (const NameTrial& t : clear) {
    first += t.first_right;
    either += t.first_right || t.second_right;
    undecided += t.verdict == "undecided";
    if (t.probability < kSure || t.verdict == "undecided") continue;
    ++sure;
    wrong += !t.first_right;
  }
  const auto share = [](size_t part, size_t of) {
    return of == 0 ? 0 : static_cast<double>(part) / static_cast<double>(of);
  };
  gates->push_back(AtLeast("G4", of + "bottleneck named first", share(first, n), first_line, n));
  gates->push_back(AtLeast("G4", of + "the same, lower end of Wilson's 95 % interval",
                           WilsonLow(first, n), wilson_line, n));
  gates->push_back(AtLeast("G4", of + "named first or second", share(either, n), 0.98, n));
  gates->push_back(AtMost("G4", of + "undecided", share(undecided, n), 0.10, n));
  gates->push_back(AtMost("G4", of + "wrong when sure", share(wrong, sure), 0.03, sure));
  size_t all_sure = 0, all_wrong = 0;
  for (const NameTrial& t : all) {
    if (t.probability < kSure || t.verdict == "undecided") continue;
    ++all_sure;
    all_wrong += !t.first_right;
  }
  gates->push_back(AtMost("G4", of + "wrong when sure, unclear bottlenecks too",
                          share(all_wrong, all_sure), 0.03, all_sure));
}

void JudgeWorths(const std::vector<WorthTrial>& trials, std::vector<Gate>* gates) {
  if (trials.empty()) return;
  const std::vector<WorthTrial> ranked =
      Only(trials, [](const WorthTrial& t) { return t.pairs > 0; });
  const double tau = Mean(Each(ranked, [](const WorthTrial& t) { return t.tau; }));
  Gate order = AtLeast("G11", "order of the three best limits to remove, Kendall's tau, mean", tau,
                       0.8, ranked.size());
  order.line = ">= 0.8";
  order.figure = fmt::format("{:.2f}", tau);
  gates->push_back(order);
  const auto gains = Only(trials, [](const WorthTrial& t) { return t.observed >= 0.03; });
  gates->push_back(AtLeast(
      "G3", "gain of removing the best limit, 90 % intervals that cover",
      Mean(Each(gains,
                [](const WorthTrial& t) { return t.low <= t.observed && t.observed <= t.high; })),
      0.80, gains.size()));
  gates->push_back(AtLeast("G11", "the row said to gain most does",
                           Mean(Each(gains, [](const WorthTrial& t) { return t.first_right; })),
                           0.92, gains.size()));
  size_t nothing = 0, wrong = 0;
  for (const WorthTrial& t : trials) {
    nothing += static_cast<size_t>(t.nothing);
    wrong += static_cast<size_t>(t.wrong);
  }
  gates->push_back(AtMost("G11", "said to gain none, gains 2 % or more",
                          nothing == 0 ? 0 : static_cast<double>(wrong) / double(nothing), 0.05,
                          nothing));
}

std::vector<ChooseTrial> Of(const std::vector<ChooseTrial>& trials, const std::string& name) {
  return Only(trials, [&](const ChooseTrial& t) { return t.strategy == name; });
}

std::vector<std::string> StrategyNames(const std::vector<ChooseTrial>& trials) {
  std::vector<std::string> names;
  for (const ChooseTrial& t : trials) {
    if (std::find(names.begin(), names.end(), t.strategy) == names.end()) {
      names.push_back(t.strategy);
    }
  }
  return names;
}

constexpr const char* kOurs = "headrace plan";

void JudgeChoices(const std::vector<ChooseTrial>& trials, std::vector<Gate>* gates) {
  const std::vector<ChooseTrial> ours = Of(trials, kOurs);
  if (ours.empty()) return;
  const size_t n = ours.size();
  const std::vector<double> regrets = Each(ours, RegretOf);
  const double close = Mean(Each(ours, [](const ChooseTrial& t) { return RegretOf(t) <= 0.05; }));
  gates->push_back(AtLeast("G5", "chosen settings within 5 % of the best", close, 0.92, n));
  gates->push_back(
      AtMost("G5", "worst regret", *std::max_element(regrets.begin(), regrets.end()), 0.15, n));
  const double worse =
      Mean(Each(ours, [](const ChooseTrial& t) { return t.rate < 0.97 * t.before; }));
  gates->push_back(AtMost("G5", "made slower than it was (by over 3 %)", worse, 0, n));
  gates->push_back(AtMost("G8", "over memory",
                          Mean(Each(ours, [](const ChooseTrial& t) { return t.over_memory; })), 0,
                          n));
  double rival = 1;
  std::string who;
  for (const std::string& name : StrategyNames(trials)) {
    if (name == kOurs) continue;
    const double regret = Mean(Each(Of(trials, name), RegretOf));
    if (regret < rival) {
      rival = regret;
      who = name;
    }
  }
  gates->push_back(AtMost("G13", fmt::format("mean regret, against the best baseline ({})", who),
                          Mean(regrets), rival, n));
}

void JudgeCaches(const std::vector<CacheTrial>& trials, std::vector<Gate>* gates) {
  constexpr double kCrossover = 1.10;  // of the least time: either way is right
  // With one epoch there is nothing to gain: no row, as it could not fail.
  for (const int epochs : {3, 30}) {
    const auto of = Only(trials, [&](const CacheTrial& t) { return t.epochs == epochs; });
    if (of.empty()) continue;
    gates->push_back(AtLeast(
        "G6", fmt::format("cache kept or not, and where, {} epochs", epochs),
        Mean(Each(of, [](const CacheTrial& t) { return t.chosen_s <= kCrossover * t.best_s; })),
        0.95, of.size()));
  }
  if (trials.empty()) return;
  const auto kept = Only(trials, [](const CacheTrial& t) { return t.chosen != "none"; });
  gates->push_back(AtMost(
      "G6", "size of what is kept an epoch, 95th percentile of the error",
      QuantileOf(Each(kept, [](const CacheTrial& t) { return std::abs(t.size_error); }), 0.95),
      0.05, kept.size()));
  const auto hurt = Only(trials, [](const CacheTrial& t) { return t.chosen_s > 1.03 * t.none_s; });
  gates->push_back(AtMost("G6", "cache that costs time (over 3 %)",
                          static_cast<double>(hurt.size()) / static_cast<double>(trials.size()),
                          0.05, trials.size()));
}

std::string NeverRight(const std::vector<CacheTrial>& trials, int epochs) {
  const auto of = Only(trials, [&](const CacheTrial& t) { return t.epochs == epochs; });
  if (of.empty()) return "-";
  return Percent(Mean(Each(of, [](const CacheTrial& t) { return t.none_s <= 1.10 * t.best_s; })));
}

void JudgeSolutions(const std::vector<SolveTrial>& trials, std::vector<Gate>* gates) {
  for (const SolveTrial& t : trials) {
    const bool thousand = t.what.find("1000") != std::string::npos;
    const bool hundred = !thousand && t.what.find("100") != std::string::npos;
    gates->push_back(
        AtLeast("G7", t.what, static_cast<double>(t.equal) / double(t.instances), 1, t.instances));
    if (!hundred && !thousand) continue;
    const double limit = thousand ? 10 : 1000;
    gates->push_back({"G7", "the same, slowest", fmt::format("<= {} ms", limit), t.slowest_ms,
                      limit, false, fmt::format("{:.3g} ms", t.slowest_ms), t.instances});
  }
}

std::string KindTable(const std::vector<PredictTrial>& all_predictions,
                      const std::vector<NameTrial>& all_names) {
  std::string text =
      "| planted | predictions | median error | p90 | cover | clear bottlenecks | named first | in "
      "two |\n"
      "|---|---|---|---|---|---|---|---|\n";
  std::set<std::string> kinds;
  for (const PredictTrial& t : all_predictions) kinds.insert(t.kind);
  for (const NameTrial& t : all_names) kinds.insert(t.kind);
  for (const std::string& kind : kinds) {
    const auto predictions =
        Only(all_predictions, [&](const PredictTrial& t) { return t.kind == kind; });
    const auto names =
        Only(all_names, [&](const NameTrial& t) { return t.kind == kind && t.gap >= kGap; });
    const std::vector<double> errors =
        Each(predictions, [](const PredictTrial& t) { return std::abs(ErrorOf(t)); });
    const auto or_dash = [](bool known, double share) { return known ? Percent(share) : "-"; };
    text += fmt::format(
        "| {} | {} | {} | {} | {} | {} | {} | {} |\n", kind, errors.size(),
        or_dash(!errors.empty(), QuantileOf(errors, 0.5)),
        or_dash(!errors.empty(), QuantileOf(errors, 0.9)),
        or_dash(!errors.empty(),
                Mean(Each(predictions, [](const PredictTrial& t) { return Covers(t); }))),
        names.size(),
        or_dash(!names.empty(),
                Mean(Each(names, [](const NameTrial& t) { return t.first_right; }))),
        or_dash(!names.empty(), Mean(Each(names, [](const NameTrial& t) {
          return t.first_right || t.second_right;
        }))));
  }
  return text;
}

// Two families of pipelines that really ran, in one line each.
std::string QuietAndBeside(const Trials& trials) {
  std::string text =
      "| machine | predictions | median error | p90 | cover | clear bottlenecks | named first | "
      "undecided | wrong when sure |\n|---|---|---|---|---|---|---|---|---|\n";
  const auto line = [&](const char* what, const std::vector<PredictTrial>& predictions,
                        const std::vector<NameTrial>& all_names) {
    const auto names = Only(all_names, [](const NameTrial& t) { return t.gap >= kGap; });
    const auto sure = Only(names, [](const NameTrial& t) {
      return t.probability >= kSure && t.verdict != "undecided";
    });
    const std::vector<double> errors =
        Each(predictions, [](const PredictTrial& t) { return std::abs(ErrorOf(t)); });
    const auto or_dash = [](bool known, double share) { return known ? Percent(share) : "-"; };
    const auto share = [&](const std::vector<NameTrial>& of, auto holds) {
      return or_dash(!of.empty(), Mean(Each(of, holds)));
    };
    text += fmt::format(
        "| {} | {} | {} | {} | {} | {} | {} | {} | {} of {} |\n", what, errors.size(),
        or_dash(!errors.empty(), QuantileOf(errors, 0.5)),
        or_dash(!errors.empty(), QuantileOf(errors, 0.9)),
        or_dash(!errors.empty(),
                Mean(Each(predictions, [](const PredictTrial& t) { return Covers(t); }))),
        names.size(), share(names, [](const NameTrial& t) { return t.first_right; }),
        share(names, [](const NameTrial& t) { return t.verdict == "undecided"; }),
        Only(sure, [](const NameTrial& t) { return !t.first_right; }).size(), sure.size());
  };
  line("with nothing else on it", trials.real_predictions, trials.real_names);
  line("beside a neighbour that computes", trials.beside_predictions, trials.beside_names);
  return text;
}

std::string StrategyTable(const std::vector<ChooseTrial>& trials) {
  std::string text =
      "| strategy | mean regret | p90 regret | within 5 % of the best | over memory | mean regret "
      "where it fits | runs it tried |\n|---|---|---|---|---|---|---|\n";
  for (const std::string& name : StrategyNames(trials)) {
    const auto own = Of(trials, name);
    const auto fitting = Only(own, [](const ChooseTrial& t) { return !t.over_memory; });
    const std::vector<double> regrets = Each(own, RegretOf);
    text += fmt::format(
        "| {} | {} | {} | {} | {} | {} | {:.1f} |\n", name, Percent(Mean(regrets)),
        Percent(QuantileOf(regrets, 0.9)),
        Percent(Mean(Each(own, [](const ChooseTrial& t) { return RegretOf(t) <= 0.05; }))),
        Percent(Mean(Each(own, [](const ChooseTrial& t) { return t.over_memory; }))),
        Percent(Mean(Each(fitting, RegretOf))),
        Mean(Each(own, [](const ChooseTrial& t) { return double(t.measured); })));
  }
  return text;
}

template <typename T>
std::string SeedsOf(const std::vector<T>& trials) {
  if (trials.empty()) return "none";
  uint64_t low = ~uint64_t{0}, high = 0;
  std::set<uint64_t> seeds;
  for (const T& t : trials) {
    low = std::min(low, t.seed);
    high = std::max(high, t.seed);
    seeds.insert(t.seed);
  }
  return fmt::format("{} to {} ({} pipelines)", low, high, seeds.size());
}

}  // namespace

double QuantileOf(std::vector<double> values, double q) {
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  const double at = q * static_cast<double>(values.size() - 1);
  const size_t below = static_cast<size_t>(at);
  const size_t above = std::min(below + 1, values.size() - 1);
  return values[below] + (at - static_cast<double>(below)) * (values[above] - values[below]);
}

double WilsonLow(size_t right, size_t all) {
  if (all == 0) return 0;
  constexpr double z = 1.96;
  const double n = static_cast<double>(all), p = static_cast<double>(right) / n;
  return (p + z * z / (2 * n) - z * std::sqrt(p * (1 - p) / n + z * z / (4 * n * n))) /
         (1 + z * z / n);
}

std::vector<std::string> MissingFamilies(const Trials& trials, Page page) {
  std::vector<std::string> missing;
  const auto want = [&](bool there, const char* name) {
    if (!there) missing.push_back(name);
  };
  const auto clear = [](const std::vector<NameTrial>& names) {
    return std::any_of(names.begin(), names.end(),
                       [](const NameTrial& t) { return t.gap >= kGap; });
  };
  if (page != Page::kReal) {
    want(!trials.predictions.empty(), "predict");
    want(!trials.contended.empty(), "load");
    want(clear(trials.names), "name");
    want(!trials.worths.empty(), "worth");
    want(!Of(trials.choices, kOurs).empty(), "choose");
    want(StrategyNames(trials.choices).size() > 1, "choose by others");
    want(!trials.caches.empty(), "cache");
    want(!trials.solutions.empty(), "solve");
    want(!trials.attributions.empty(), "attribute");
  }
  if (page != Page::kSimulated) {
    want(!trials.real_predictions.empty(), "real-predict");
    want(clear(trials.real_names), "real-name");
    want(!trials.controls.empty(), "control");
    want(!trials.accounts.empty(), "account");
    want(!trials.real_attributions.empty(), "real-attribute");
  }
  return missing;
}

// The worst of each kind of figure, over all loads.
void JudgeAccounts(const std::vector<AccountTrial>& trials, std::vector<Gate>* gates) {
  std::vector<std::string> kinds;
  for (const AccountTrial& t : trials) {
    if (std::find(kinds.begin(), kinds.end(), t.what) == kinds.end()) kinds.push_back(t.what);
  }
  for (const std::string& kind : kinds) {
    const auto of = Only(trials, [&](const AccountTrial& t) { return t.what == kind; });
    double worst = 0;
    for (const AccountTrial& t : of) {
      // What is no number is no small error.
      const double error = std::abs(t.recovered / t.expected - 1);
      worst = std::isfinite(error) ? std::max(worst, error) : 1e9;
    }
    gates->push_back(AtMost("B0", kind + ", worst error", worst, of.front().limit, of.size()));
  }
}

// Parts of a change: of one thing changed alone, and of several at once.
void JudgeAttributions(const std::vector<AttributeTrial>& trials, const std::string& of,
                       std::vector<Gate>* gates) {
  if (trials.empty()) return;
  constexpr double kPart = 0.9;        // of the change, to what was changed
  constexpr double kRounding = 0.005;  // of a logarithm: what the truth's own plays differ by
  const double off =
      std::max_element(trials.begin(), trials.end(), [](const auto& x, const auto& y) {
        return x.off < y.off;
      })->off;
  gates->push_back(
      AtMost("C2", of + "sum of all parts against the change, worst", off, 0.02, trials.size()));
  const auto moved = Only(trials, [](const AttributeTrial& t) {
    return t.changes == 1 && std::abs(t.measured) >= kMoved && t.measured * t.truth > 0;
  });
  gates->push_back(AtLeast(
      "C2", of + "changed alone, moved the rate by 5 %: >= 90 % of it given to it, in",
      Mean(Each(moved, [](const AttributeTrial& t) { return t.found / t.measured >= kPart; })),
      0.90, moved.size()));
  const auto cost = Only(trials, [](const AttributeTrial& t) { return t.cost != -1; });
  gates->push_back(
      AtLeast("C2", of + "changed alone: >= 90 % of the change in cost given to it, in",
              Mean(Each(cost, [](const AttributeTrial& t) { return t.cost >= kPart; })), 0.90,
              cost.size()));
  const auto still = Only(trials, [](const AttributeTrial& t) {
    return t.changes == 1 && std::abs(t.truth) < 0.01 && std::abs(t.measured) < 0.02;
  });
  if (!still.empty()) {
    gates->push_back(
        AtMost("C2", of + "moved nothing: given 2 % of the rate or more, in",
               Mean(Each(still, [](const AttributeTrial& t) { return std::abs(t.found) >= 0.02; })),
               0.05, still.size()));
  }
  gates->push_back(AtMost(
      "C2", of + "a part that was not changed is told to carry 2 % of the rate or more, in",
      Mean(Each(trials, [](const AttributeTrial& t) { return std::abs(t.stranger) >= 0.02; })),
      0.05, trials.size()));
  const auto several = Only(trials, [](const AttributeTrial& t) { return t.changes > 1; });
  if (several.empty()) return;
  const auto errors =
      Each(several, [](const AttributeTrial& t) { return std::abs(t.found - t.truth); });
  gates->push_back(AtMost("C2", of + "two or three changed at once: error of each part, median",
                          QuantileOf(errors, 0.5), 0.02, several.size()));
  gates->push_back(AtMost("C2", of + "the same, 90th percentile", QuantileOf(errors, 0.9), 0.06,
                          several.size()));
  gates->push_back(AtLeast("C2", of + "95 % intervals of the parts that cover",
                           Mean(Each(trials,
                                     [](const AttributeTrial& t) {
                                       return t.low - kRounding <= t.truth &&
                                              t.truth <= t.high + kRounding;
                                     })),
                           0.85, trials.size()));
}

std::vector<Gate> Judge(const Trials& trials) {
  std::vector<Gate> gates;
  JudgeAccounts(trials.accounts, &gates);
  JudgePredictions(trials.predictions, &gates);
  for (const char* recorded : {"one run", "three runs"}) {
    const auto of =
        Only(trials.contended, [&](const PredictTrial& t) { return t.kind == recorded; });
    if (of.empty()) continue;
    JudgeErrors(of, fmt::format("costlier with busy cores, from {}", recorded), kSimulatedLines,
                &gates);
  }
  JudgeNames(trials.names, "", 0.92, 0.88, &gates);
  JudgeWorths(trials.worths, &gates);
  JudgeChoices(trials.choices, &gates);
  JudgeCaches(trials.caches, &gates);
  JudgeSolutions(trials.solutions, &gates);
  JudgeAttributions(trials.attributions, "attribution, ", &gates);
  JudgeAttributions(trials.real_attributions, "attribution of real pipelines, ", &gates);
  if (!trials.real_predictions.empty()) {
    JudgeErrors(trials.real_predictions, "real pipelines, predicted rate", kRealLines, &gates);
    const auto moved = Only(trials.real_predictions, [](const PredictTrial& t) {
      return std::abs(t.observed / t.now - 1) > kMoved;
    });
    if (!moved.empty()) {
      JudgeErrors(moved, "real pipelines, where the change moved the rate", kRealLines, &gates);
    }
  }
  // So few pipelines say no more than 79 % (28 of 30 right).
  JudgeNames(trials.real_names, "real pipelines, ", 0.90, 0.79, &gates);
  JudgeApplied(trials.applied, &gates);
  return gates;
}

namespace {

Trials OfPage(const Trials& trials, Page page) {
  Trials of;
  if (page == Page::kSimulated) {
    of.predictions = trials.predictions;
    of.contended = trials.contended;
    of.names = trials.names;
    of.worths = trials.worths;
    of.choices = trials.choices;
    of.caches = trials.caches;
    of.solutions = trials.solutions;
    of.attributions = trials.attributions;
  } else {
    of.real_predictions = trials.real_predictions;
    of.real_names = trials.real_names;
    of.beside_predictions = trials.beside_predictions;
    of.beside_names = trials.beside_names;
    of.real_attributions = trials.real_attributions;
    of.controls = trials.controls;
    of.applied = trials.applied;
    of.accounts = trials.accounts;
    of.real_busy = trials.real_busy;
    of.real_full = trials.real_full;
  }
  return of;
}

std::string GateTable(const Trials& of, Page page) {
  std::string text =
      "## Gates\n\n| gate | what | must be | is | trials | |\n|---|---|---|---|---|---|\n";
  for (const Gate& gate : Judge(of)) {
    text += fmt::format("| {} | {} | {} | {} | {} | {} |\n", gate.id, gate.what, gate.line,
                        gate.figure, gate.trials, gate.holds() ? "holds" : "**missed**");
  }
  for (const std::string& family : MissingFamilies(of, page)) {
    text += fmt::format("| - | all of `{}` | tried | not tried | 0 | **missed** |\n", family);
  }
  return text + "\n";
}

std::string MadeOf(const std::string& made) {
  return made.empty() ? "" : fmt::format(" Made {}.", made);
}

constexpr const char* kClear =
    "A bottleneck is clear when removing it gains 10 % or more; named right is a row that gains at "
    "least half of what removing the best limit gains. ";

}  // namespace

std::string RenderSimulated(const Trials& all, const std::string& made) {
  const Trials trials = OfPage(all, Page::kSimulated);
  std::string text = fmt::format(
      "# Accuracy: simulated pipelines\n\n"
      "How often what headrace says is true. Generated by `make validate`.{} Pipelines that really "
      "run have [a page of their own](accuracy-real.md).\n\n"
      "Each pipeline is a random one (`tests/validation/generator.cc`), played in virtual time by "
      "a simulator that shares no code with the model (`tests/validation/world.cc`) and recorded "
      "as a collector would. The model sees the recording alone. Truth is found by intervention: "
      "the pipeline is played again with other settings, with each limit removed alone, with every "
      "configuration of a grid. Constants of the model were chosen on seeds below 10000. This page "
      "is made of seeds drawn from the text of `analysis/` (`scripts/validate.sh`): after each "
      "change of the model they are others.\n\n",
      MadeOf(made));
  text += GateTable(trials, Page::kSimulated);
  text += fmt::format(
      "Seeds of predictions: {}; of names: {}; of choices: {}. {}Half of the changes do not move "
      "the rate, as they are not made where the bottleneck is; the rows about those that moved it, "
      "by over 5 %, are the harder ones. Rows C2 are of attribution "
      "(`tests/validation/attributing.cc`): pairs of which one to three things were changed; the "
      "truth is the Shapley value over plays of the pipeline with every set of them. To never keep "
      "anything, a cache in no pipeline, would be right (within 10 % of the least time) in {} of "
      "the cases with 3 and {} of those with 30 epochs.\n\n",
      SeedsOf(trials.predictions), SeedsOf(trials.names), SeedsOf(trials.choices), kClear,
      NeverRight(trials.caches, 3), NeverRight(trials.caches, 30));
  text += "## By what was planted\n\n" + KindTable(trials.predictions, trials.names) + "\n";
  if (!trials.choices.empty()) {
    text +=
        "## Against other ways to choose\n\nRegret is the share of the best known rate that the "
        "chosen settings lose; settings over the memory budget count as a rate of 0. Pipelines of "
        "two and three stages, all thread counts of {1, 2, 3, 4, 6, 8, 12, 16}, queues as they are "
        "and four times as deep. The rules of others are written from their descriptions "
        "(`tests/validation/strategies`).\n\n" +
        StrategyTable(trials.choices) + "\n";
  }
  text +=
      "## What this does not show\n\n"
      "The worlds know no memory bandwidth, no memory budget, no network, no store whose most "
      "nobody measured and no phases; costs are drawn independently of each other. They share no "
      "code with the model, but much of what they assume: threads that take, compute, block, hold "
      "and put in turn, first come first served, cores fairly shared. A prediction is a simulation "
      "of such a pipeline fitted to the recording, so that a small error is to be expected. Caches "
      "of worlds are filled by one epoch, read back at the rate that they are said to have, and a "
      "part of one is a part of each element's cost. Contention (work that gets costlier with busy "
      "cores) is in 30 % of the worlds and in all of the rows `costlier with busy cores`, where "
      "each core adds 1 to 5 % and either the one run was recorded or two others, with all threads "
      "halved and doubled, as well; all threads times four are predicted. A cost of switching is "
      "in all worlds; the model has none: see `cores`. Ordered worlds neither slice nor batch. "
      "Memory is that of full queues, in the recording as in the truth, and elements have one "
      "size: `over memory` says only that the arithmetic is kept. A bottleneck `order` is removed "
      "together with its queues. Operators that use a lock or a device are of that kind, as the "
      "reader's seldom are. Of the baselines only AUTOTUNE changes queues, and it sees one "
      "recording where tf.data looks again and again; our plan sees one, too, and may change the "
      "window of an order. `make test` holds a reduced set of the gates "
      "(`tests/validation/gates_test.cc`).\n";
  return text;
}

std::string RenderReal(const Trials& all, const std::string& made) {
  const Trials trials = OfPage(all, Page::kReal);
  std::string text = fmt::format(
      "# Accuracy: pipelines that really run\n\n"
      "How often what headrace says is true of pipelines that really run, on two cores. Generated "
      "by `make validate`, on a machine that does nothing else.{} Simulated ones, which are many "
      "more, have [a page of their own](accuracy.md).\n\n",
      MadeOf(made));
  text += GateTable(trials, Page::kReal);
  text += fmt::format(
      "Pipelines (`tests/validation/real.py`, two of three of synthetic operators, the third reads "
      "a table; each recorded once and run again as changed): {}. {}Trials while other processes "
      "used the machine were measured again, and left out where that did not help: {}; names where "
      "both cores were used up, which no third core could fix: {}. Rows B0 are of real operators "
      "of known cost (`tests/validation/accounting.py`), with one, two and four computing threads "
      "a core. Rows C2 are of attribution (`tests/validation/attribution.py`), where the truth is "
      "the whole change. Known bottlenecks of the real reader are `truth.known_bottlenecks` "
      "(docs/measurements.md). What waits is many threads wide here, what computes is not.\n\n",
      SeedsOf(trials.real_names), kClear, trials.real_busy, trials.real_full);
  if (!trials.real_names.empty()) {
    text +=
        "## By what was planted\n\n" + KindTable(trials.real_predictions, trials.real_names) + "\n";
  }
  if (!trials.beside_names.empty()) {
    text +=
        "## Beside a neighbour\n\nThe same kinds of pipelines, recorded and changed beside "
        "processes that compute on one and a half of the two cores all the time "
        "(`tests/validation/real.py --beside 1.5`). Truth is found beside the same neighbour. The "
        "page of such a run says that others use the cores, and that its figures are for that "
        "load.\n\n" +
        QuietAndBeside(trials) + "\n";
  }
  text += AppliedSections(trials.applied);
  if (!trials.controls.empty()) {
    text +=
        "## Where there is nothing to gain, or little to see\n\n`tests/validation/controls.py`."
        "\n\n| control | must be | was | |\n|---|---|---|---|\n";
    for (const ControlTrial& t : trials.controls) {
      text += fmt::format("| {} | {} | {} | {} |\n", t.name, t.must_be, t.found,
                          t.held ? "holds" : "**missed**");
    }
  }
  return text;
}

}  // namespace headrace::validation
