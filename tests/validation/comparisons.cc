// comparisons: judges `headrace compare`'s verdict on rows/s, with and without early stopping, by
// the code that the command runs (analysis/comparison/comparison.h).
//   comparisons simulate [COUNT [SEED [KIND]]]
//                                         runs with noise of several kinds, COUNT comparisons each;
//                                         KIND: one of them alone, by its number
//   comparisons intervals [COUNT [SEED]]  which interval of a mean covers how often
//   comparisons judge FILE...             real runs and comparisons, made by comparisons.py
// Prints tables; exit 1 where a rate is beyond its line by more than chance.
//
// Lines of FILE, fields separated by tabs (others are left alone):
//   aa KIND GROUP VALUES                  rows/s of runs of one setting in the order in which they
//                                         ran, blank-separated; pairs are neighbours
//   planted SIDE VERDICT PAIRS SECONDS CHANGE LOW HIGH NOISE
//                                         what `headrace compare` said of two sides that differ
#include <fmt/format.h>

#include <cmath>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <functional>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "analysis/comparison/comparison.h"
#include "analysis/statistics/distributions.h"
#include "analysis/statistics/sequential.h"

namespace headrace::validation {
namespace {

using namespace analysis;

constexpr size_t kPairs = 12;        // what compare runs unless told otherwise
constexpr double kMargin = 0.03;     // as well
constexpr double kRunNoise = 0.007;  // deviation of ln(rows/s) of a run: 1 % of a pair's ratio
constexpr double kPlanted = 0.03;
constexpr double kChance = 0.001;  // that a rate within its line is called beyond it

// P(X >= count) of a binomial variable.
double AtLeast(size_t count, double trials, double rate) {
  double sum = 0;
  for (double x = 0; x < static_cast<double>(count); ++x) {
    sum += std::exp(std::lgamma(trials + 1) - std::lgamma(x + 1) - std::lgamma(trials - x + 1) +
                    x * std::log(rate) + (trials - x) * std::log1p(-rate));
  }
  return std::max(0.0, 1 - sum);
}

struct Rate {
  size_t count = 0, trials = 0;
  void Add(bool hit) {
    count += hit;
    ++trials;
  }
  double value() const {
    return trials == 0 ? 0 : static_cast<double>(count) / static_cast<double>(trials);
  }
  bool AtMost(double line) const {
    return AtLeast(count, static_cast<double>(trials), line) >= kChance;
  }
  bool NotBelow(double line) const {
    return AtLeast(trials - count, static_cast<double>(trials), 1 - line) >= kChance;
  }
  std::string Text() const { return fmt::format("{:5.1f} %", 100 * value()); }
};

const SequentialPlan& Plan() {
  static const SequentialPlan plan = PlanSequential(kPairs);
  return plan;
}

struct Judged {
  bool different = false, same = false, covers = false;
  size_t pairs = 0;
  double change = 0;
};

// `runs` in the order in which they ran, two a pair; b_first of each pair.
Judged JudgeRuns(const std::vector<double>& runs, const std::vector<bool>& b_first, bool early,
                 double truth, double margin) {
  ComparisonInput input;
  input.margin = margin;
  input.planned_pairs = early ? kPairs : 0;
  for (size_t i = 0; i < b_first.size(); ++i) {
    RunFigures figures[2];
    for (size_t k = 0; k < 2; ++k) {
      figures[k].values[static_cast<size_t>(Figure::kRowsPerSecond)] = runs[2 * i + k];
      figures[k].steady_windows = 1;
    }
    const auto id = static_cast<int64_t>(2 * i);
    input.a.samples.push_back({id, figures[b_first[i] ? 1 : 0], ""});
    input.b.samples.push_back({id + 1, figures[b_first[i] ? 0 : 1], ""});
    input.b_first.push_back(b_first[i]);
    if (early && Replay(input, Plan()).step().stop) break;
  }
  const Comparison comparison = Compare(input, early ? &Plan() : nullptr);
  const ComparedMetric& metric = comparison.metrics[0];
  Judged judged;
  judged.different =
      metric.verdict == ChangeVerdict::kFaster || metric.verdict == ChangeVerdict::kSlower;
  judged.same = metric.verdict == ChangeVerdict::kSame;
  judged.covers = metric.interval.low <= truth && truth <= metric.interval.high;
  judged.pairs = comparison.units;
  judged.change = metric.change.value_or(0);
  return judged;
}

// ln(rows/s) of `count` runs in order, less the side's part.
struct Noise {
  const char* name;
  std::function<std::vector<double>(Random&, size_t count)> draw;
};

std::vector<double> Each(Random& random, size_t count, double (*one)(Random&)) {
  std::vector<double> noise;
  while (noise.size() < count) noise.push_back(kRunNoise * one(random));
  return noise;
}

std::vector<double> Correlated(Random& random, size_t count, double phi) {
  std::vector<double> noise = {kRunNoise * random.Normal()};
  while (noise.size() < count) {
    noise.push_back(phi * noise.back() + kRunNoise * std::sqrt(1 - phi * phi) * random.Normal());
  }
  return noise;
}

double Normal(Random& random) { return random.Normal(); }
double Student3(Random& random) {
  double squares = 0;
  for (int i = 0; i < 3; ++i) squares += std::pow(random.Normal(), 2);
  return random.Normal() / std::sqrt(squares / 3);
}
double Outlying(Random& random) { return random.Normal() * (random.Uniform() < 0.1 ? 10 : 1); }
// Disturbances only slow down.
double OneSided(Random& random) {
  return 0.5 * random.Normal() - (random.Uniform() < 0.2 ? random.Exponential(6) : 0);
}

const Noise kNoises[] = {
    {"normal", [](Random& r, size_t n) { return Each(r, n, Normal); }},
    {"t of 3 degrees", [](Random& r, size_t n) { return Each(r, n, Student3); }},
    {"every tenth run 10 times as far", [](Random& r, size_t n) { return Each(r, n, Outlying); }},
    {"every fifth run slowed down", [](Random& r, size_t n) { return Each(r, n, OneSided); }},
    {"AR(1) from run to run, 0.5", [](Random& r, size_t n) { return Correlated(r, n, 0.5); }},
    {"AR(1) from run to run, 0.9", [](Random& r, size_t n) { return Correlated(r, n, 0.9); }},
    {"drift of 10 % over the series",
     [](Random& r, size_t n) {
       std::vector<double> noise = Each(r, n, Normal);
       for (size_t i = 0; i < n; ++i)
         noise[i] += 0.1 * static_cast<double>(i) / static_cast<double>(n);
       return noise;
     }},
    {"the second run of a pair 1 % faster",
     [](Random& r, size_t n) {
       std::vector<double> noise = Each(r, n, Normal);
       for (size_t i = 1; i < n; i += 2) noise[i] += 0.01;
       return noise;
     }},
    {"20 % slower from some run on",
     [](Random& r, size_t n) {
       std::vector<double> noise = Each(r, n, Normal);
       for (size_t i = r.Below(n); i < n; ++i) noise[i] -= 0.2;
       return noise;
     }},
};

// Orders as compare draws them: the first pair of a block by a coin, the second the other way.
std::vector<bool> DrawOrders(Random& random, size_t pairs) {
  std::vector<bool> b_first;
  while (b_first.size() < pairs) {
    const bool first = random.Below(2) == 1;
    b_first.push_back(first);
    if (b_first.size() < pairs) b_first.push_back(!first);
  }
  return b_first;
}

std::vector<double> WithSides(std::vector<double> noise, const std::vector<bool>& b_first,
                              double effect) {
  for (size_t i = 0; i < noise.size(); ++i) {
    const bool is_b = (i % 2 == 1) != b_first[i / 2];
    noise[i] = 1000 * std::exp(noise[i] + (is_b ? effect : 0));
  }
  return noise;
}

// Rivals of the sequential rule, on the log ratios of one comparison: at which pair they would call
// it different (0: never).
size_t LookingEachTime(const std::vector<double>& ratios) {
  for (size_t n = 4; n <= ratios.size(); n += 2) {
    const Interval interval = StudentMean(std::span(ratios).first(n), 0.95);
    if (interval.low > 0 || interval.high < 0) return n;
  }
  return 0;
}

// The anytime-valid t test with a Gaussian mixture over the effect in deviations, of variance 1
// (Wang, Ramdas, "Anytime-valid t-tests and confidence sequences for Gaussian means with unknown
// variance", Sequential Analysis 44, 2025): stops at an evidence of 20.
size_t AnytimeValid(const std::vector<double>& ratios) {
  double sum = 0, squares = 0;
  for (size_t i = 0; i < ratios.size(); ++i) {
    sum += ratios[i];
    squares += ratios[i] * ratios[i];
    const double n = static_cast<double>(i + 1);
    if (i + 1 < 4 || squares <= 0) continue;
    const double share = sum * sum / (n * squares);  // of the squares that the mean explains
    const double evidence = -0.5 * std::log1p(n) + n / 2 * (-std::log1p(-share * n / (n + 1)));
    if (evidence > std::log(20.0)) return i + 1;
  }
  return 0;
}

struct Row {
  Rate alarms, early_alarms, usual_alarms, same, found, early_found, covers, early_covers;
  double pairs_equal = 0, pairs_planted = 0;  // mean used with early stopping
  Rate looking, anytime, anytime_found;
  double anytime_pairs = 0;
};

std::vector<double> Ratios(const std::vector<double>& runs, const std::vector<bool>& b_first) {
  std::vector<double> ratios;
  for (size_t i = 0; i < b_first.size(); ++i) {
    const double ratio = std::log(runs[2 * i + 1] / runs[2 * i]);
    ratios.push_back(b_first[i] ? -ratio : ratio);
  }
  return ratios;
}

Row Simulate(const Noise& noise, size_t count, uint64_t seed) {
  Random random(seed);
  Row row;
  const double each = 1 / static_cast<double>(count);
  for (size_t trial = 0; trial < count; ++trial) {
    const std::vector<bool> b_first = DrawOrders(random, kPairs);
    const std::vector<double> drawn = noise.draw(random, 2 * kPairs);
    for (double effect : {0.0, kPlanted}) {
      const std::vector<double> runs = WithSides(drawn, b_first, effect);
      // Equal sides that are called the same within 3 % raise no alarm: without a margin they may.
      const double margin = effect == 0 ? 0 : kMargin;
      const Judged all = JudgeRuns(runs, b_first, /*early=*/false, effect, margin);
      const Judged early = JudgeRuns(runs, b_first, /*early=*/true, effect, margin);
      row.covers.Add(all.covers);
      row.early_covers.Add(early.covers);
      const std::vector<double> ratios = Ratios(runs, b_first);
      const size_t anytime = AnytimeValid(ratios);
      if (effect == 0) {
        row.alarms.Add(all.different);
        row.early_alarms.Add(early.different);
        const Judged usual = JudgeRuns(runs, b_first, /*early=*/true, effect, kMargin);
        row.usual_alarms.Add(usual.different);
        row.same.Add(usual.same);
        row.pairs_equal += each * static_cast<double>(usual.pairs);
        row.looking.Add(LookingEachTime(ratios) > 0);
        row.anytime.Add(anytime > 0);
      } else {
        row.found.Add(all.different && all.change > 0);
        row.early_found.Add(early.different && early.change > 0);
        row.pairs_planted += each * static_cast<double>(early.pairs);
        row.anytime_found.Add(anytime > 0);
        row.anytime_pairs += each * static_cast<double>(anytime > 0 ? anytime : kPairs);
      }
    }
  }
  return row;
}

// `kind`: from 1; 0: all.
int SimulateAll(size_t count, uint64_t seed, size_t kind) {
  fmt::print("{} comparisons each of {} pairs; a run's ln(rows/s) varies by {:.1f} %; seed {}\n\n",
             count, kPairs, 100 * kRunNoise, seed);
  fmt::print(
      "| noise | equal, no margin: called different | with early stopping | equal, margin {:.0f} "
      "%: "
      "different | same | pairs used | {:.0f} % planted: found | with early stopping | pairs used "
      "| "
      "interval covers | with early stopping |\n"
      "| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |\n",
      100 * kMargin, 100 * kPlanted);
  bool missed = false;
  std::string rivals, misses;
  for (const Noise& noise : kNoises) {
    if (kind > 0 && &noise != &kNoises[kind - 1]) continue;
    const Row row = Simulate(noise, count, seed);
    fmt::print("| {} | {} | {} | {} | {} | {:.1f} | {} | {} | {:.1f} | {} | {} |\n", noise.name,
               row.alarms.Text(), row.early_alarms.Text(), row.usual_alarms.Text(), row.same.Text(),
               row.pairs_equal, row.found.Text(), row.early_found.Text(), row.pairs_planted,
               row.covers.Text(), row.early_covers.Text());
    std::fflush(stdout);
    rivals += fmt::format("| {} | {} | {} | {} | {} | {:.1f} | {} | {:.1f} |\n", noise.name,
                          row.early_alarms.Text(), row.looking.Text(), row.anytime.Text(),
                          row.early_found.Text(), row.pairs_planted, row.anytime_found.Text(),
                          row.anytime_pairs);
    const auto require = [&](bool holds, const char* what) {
      if (holds) return;
      missed = true;
      misses += fmt::format("MISSED: {}: {}\n", noise.name, what);
    };
    require(row.alarms.AtMost(0.05), "false alarms at most 5 %");
    require(row.early_alarms.AtMost(0.05), "false alarms with early stopping at most 5 %");
    require(row.covers.NotBelow(0.95), "the interval covers in 95 %");
    require(row.early_covers.NotBelow(0.95), "the interval covers in 95 % with early stopping");
    if (&noise == &kNoises[0]) {
      require(row.early_found.NotBelow(0.9), "the planted change is found in 90 %");
    }
  }
  fmt::print(
      "\nRules to stop by, on the same comparisons:\n\n"
      "| noise | equal, no margin: ours alarms | t at 5 % at each look | anytime-valid t | "
      "planted: ours "
      "finds | pairs | anytime-valid t finds | pairs |\n"
      "| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |\n{}\n{}",
      rivals, misses);
  if (!missed) fmt::print("all rates within their lines (binomial test, {} chance)\n", kChance);
  return missed ? 1 : 0;
}

// ---- intervals

// Why PairedLogRatio takes the wider of two: how often each covers the mean, and how wide it is
// against Student's.
int Intervals(size_t count, uint64_t seed) {
  const struct {
    const char* name;
    double (*one)(Random&);
  } kinds[] = {{"normal", Normal},
               {"t of 3 degrees", Student3},
               {"every tenth 10 times as far", Outlying},
               {"exponential", [](Random& random) { return random.Exponential(1) - 1; }}};
  fmt::print(
      "{} samples each, 1000 resamples, seed {}\n\n| noise | pairs | Student | BCa | BCa, expanded "
      "| "
      "the wider | its width over Student's |\n| --- | ---: | ---: | ---: | ---: | ---: | ---: |\n",
      count, seed);
  for (const auto& kind : kinds) {
    for (size_t n : {4u, 6u, 8u, 10u, 12u, 20u, 30u}) {
      Random random(seed);
      Rate student, plain, expanded, wider;
      double width = 0, width_student = 0;
      for (size_t trial = 0; trial < count; ++trial) {
        std::vector<double> values;
        while (values.size() < n) values.push_back(kind.one(random));
        const auto covers = [](Interval interval) {
          return interval.low <= 0 && 0 <= interval.high;
        };
        const Interval t = StudentMean(values, 0.95);
        const uint64_t draws = random.Next();
        const Interval bca = BcaMean(values, 0.95, draws, 1000, false);
        const Interval mended = BcaMean(values, 0.95, draws, 1000, true);
        const Interval both = {std::min(t.low, mended.low), std::max(t.high, mended.high)};
        student.Add(covers(t));
        plain.Add(covers(bca));
        expanded.Add(covers(mended));
        wider.Add(covers(both));
        width += both.high - both.low;
        width_student += t.high - t.low;
      }
      fmt::print("| {} | {} | {} | {} | {} | {} | {:.2f} |\n", kind.name, n, student.Text(),
                 plain.Text(), expanded.Text(), wider.Text(), width / width_student);
    }
  }
  return 0;
}

// ---- real runs

struct Group {
  std::string kind;
  std::vector<double> runs;
};

// Every way to draw the orders of a group's blocks, but for exchanging all sides: what compare
// would have said of these runs had it drawn them so.
struct GroupRates {
  double alarms = 0, early_alarms = 0, pairs = 0;  // shares; mean
  size_t comparisons = 0;
  double noise = 0;  // deviation of the log ratios of neighbours
};

GroupRates JudgeGroup(const std::vector<double>& runs) {
  const size_t pairs = std::min(runs.size() / 2, kPairs), blocks = (pairs + 1) / 2;
  GroupRates rates;
  rates.comparisons = size_t{1} << (blocks - 1);
  for (size_t signs = 0; signs < rates.comparisons; ++signs) {
    std::vector<bool> b_first;
    for (size_t i = 0; i < pairs; ++i) b_first.push_back(((signs >> (i / 2)) & 1) != (i % 2));
    const double each = 1 / static_cast<double>(rates.comparisons);
    rates.alarms += each * JudgeRuns(runs, b_first, false, 0, 0).different;
    const Judged early = JudgeRuns(runs, b_first, true, 0, 0);
    rates.early_alarms += each * early.different;
    rates.pairs += each * static_cast<double>(early.pairs);
  }
  std::vector<double> ratios;
  for (size_t i = 0; i < pairs; ++i) ratios.push_back(std::log(runs[2 * i + 1] / runs[2 * i]));
  rates.noise = std::sqrt(Variance(ratios));
  return rates;
}

// Groups of runs are independent of one another, the orders drawn for one group are not: the error
// of the rate is that of the mean over groups.
bool PrintRate(const char* what, const std::vector<double>& shares, size_t comparisons) {
  const double rate = Mean(shares);
  const double error = std::sqrt(Variance(shares) / static_cast<double>(shares.size()));
  // As many independent comparisons have this error.
  const double least = std::max(rate, 0.05);
  const double worth =
      error > 0 ? std::min(static_cast<double>(comparisons), least * (1 - least) / (error * error))
                : static_cast<double>(shares.size());
  const auto count = static_cast<size_t>(std::floor(rate * worth));
  const double p = AtLeast(count, std::floor(worth), 0.05);
  fmt::print(
      "  {:<40} {:5.2f} % +- {:.2f} (worth {:.0f} independent ones; P({} or more of them at 5 %) = "
      "{:.2f})\n",
      what, 100 * rate, 100 * error, worth, count, p);
  return p >= 0.01;
}

std::vector<std::string> Split(const std::string& line, char by) {
  std::vector<std::string> fields;
  std::istringstream in(line);
  for (std::string field; std::getline(in, field, by);) fields.push_back(field);
  return fields;
}

double Number(const std::string& text) { return std::strtod(text.c_str(), nullptr); }

int JudgeFiles(const std::vector<std::string>& files) {
  std::map<std::string, std::vector<Group>> groups;
  struct Planted {
    std::string side, verdict;
    double pairs, seconds, change, noise;
  };
  std::map<std::string, std::vector<Planted>> planted;
  for (const std::string& path : files) {
    std::ifstream in(path);
    if (!in) {
      fmt::print(stderr, "{}: cannot be read\n", path);
      return 5;
    }
    for (std::string line; std::getline(in, line);) {
      const std::vector<std::string> fields = Split(line, '\t');
      if (fields.size() >= 4 && fields[0] == "aa") {
        Group group{fields[1], {}};
        for (const std::string& value : Split(fields[3], ' ')) {
          const double number = Number(value);
          if (number > 0) group.runs.push_back(number);
        }
        if (group.runs.size() >= 8) groups[group.kind].push_back(std::move(group));
      } else if (fields.size() >= 9 && fields[0] == "planted") {
        planted[fields[1]].push_back({fields[1], fields[2], Number(fields[3]), Number(fields[4]),
                                      Number(fields[5]), Number(fields[8])});
      }
    }
  }
  bool held = true;
  for (const auto& [kind, of_kind] : groups) {
    std::vector<double> alarms, early, pairs, noise;
    size_t comparisons = 0;
    for (const Group& group : of_kind) {
      const GroupRates rates = JudgeGroup(group.runs);
      alarms.push_back(rates.alarms);
      early.push_back(rates.early_alarms);
      pairs.push_back(rates.pairs);
      noise.push_back(rates.noise);
      comparisons += rates.comparisons;
    }
    fmt::print("equal sides, {}: {} groups of runs, {} comparisons by all orders of their blocks\n",
               kind, of_kind.size(), comparisons);
    fmt::print("  a pair's ratio varies by {:.2f} % (median group; {:.2f} to {:.2f} %)\n",
               100 * Quantile(noise, 0.5), 100 * Quantile(noise, 0), 100 * Quantile(noise, 1));
    held = PrintRate("called different, all pairs", alarms, comparisons) && held;
    held = PrintRate("called different, early stopping", early, comparisons) && held;
    fmt::print("  pairs used with early stopping: {:.1f}\n\n", Mean(pairs));
  }
  for (const auto& [side, trials] : planted) {
    Rate found;
    double pairs = 0, seconds = 0;
    std::vector<double> changes, noises;
    for (const Planted& one : trials) {
      found.Add(one.verdict == (side == "equal" ? "different" : side));
      pairs += one.pairs / static_cast<double>(trials.size());
      seconds = std::max(seconds, one.seconds);
      changes.push_back(100 * std::expm1(one.change));
      noises.push_back(one.noise);
    }
    fmt::print(
        "B planted {}: {} comparisons by the command, {} said so ({}), {:.1f} pairs and at most "
        "{:.0f} s each, change {:+.2f} % (median), noise of a pair {:.2f} % (median)\n",
        side, trials.size(), found.count, found.Text(), pairs, seconds, Quantile(changes, 0.5),
        100 * Quantile(noises, 0.5));
    held = held && (side == "equal" ? found.AtMost(0.05) : found.NotBelow(0.9));
  }
  return held ? 0 : 1;
}

int Main(int argc, char** argv) {
  const auto number = [&](int at, uint64_t otherwise) {
    return argc > at ? std::strtoull(argv[at], nullptr, 10) : otherwise;
  };
  if (argc >= 2 && std::strcmp(argv[1], "simulate") == 0 && argc <= 5 &&
      number(4, 0) <= std::size(kNoises)) {
    return SimulateAll(std::max<size_t>(number(2, 4000), 1), number(3, 1), number(4, 0));
  }
  if (argc >= 2 && std::strcmp(argv[1], "intervals") == 0 && argc <= 4) {
    return Intervals(std::max<size_t>(number(2, 4000), 1), number(3, 1));
  }
  if (argc >= 3 && std::strcmp(argv[1], "judge") == 0) {
    return JudgeFiles(std::vector<std::string>(argv + 2, argv + argc));
  }
  fmt::print(stderr,
             "usage: comparisons simulate [COUNT [SEED [KIND]]] | intervals [COUNT [SEED]] | judge "
             "FILE...\n");
  return 2;
}

}  // namespace
}  // namespace headrace::validation

int main(int argc, char** argv) { return headrace::validation::Main(argc, argv); }
