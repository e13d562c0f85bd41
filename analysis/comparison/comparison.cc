#include "analysis/comparison/comparison.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <span>

#include "analysis/statistics/distributions.h"
#include "analysis/statistics/sequential.h"
#include "analysis/thresholds.h"
#include "base/error.h"
#include "base/registry.h"

namespace headrace::analysis {
namespace {

constexpr Figure kOfPipelines[] = {Figure::kRowsPerSecond, Figure::kWait,        Figure::kCpuPerRow,
                                   Figure::kPeakRss,       Figure::kStepP50,     Figure::kStepP99,
                                   Figure::kReadPerRow,    Figure::kDevicePerRow};
constexpr Figure kOfCommands[] = {Figure::kElapsed, Figure::kCpu, Figure::kPeakRss, Figure::kRead};

// Ranks have no small p values below, and lose next to nothing from there on
// (analysis/statistics/sequential.h changes its statistic at the same number).
constexpr size_t kRanksFrom = 10;

double Median(const std::vector<double>& values) { return Quantile(values, 0.5); }

bool KnownOnBothSides(const ComparisonInput& input, Figure figure) {
  const auto known = [&](const ComparedSide& side) {
    return std::any_of(side.samples.begin(), side.samples.end(),
                       [&](const ComparedSample& s) { return s.figures.Of(figure).has_value(); });
  };
  return known(input.a) && known(input.b);
}

std::vector<Figure> FamilyOf(const ComparisonInput& input) {
  std::vector<Figure> family;
  const bool rows = KnownOnBothSides(input, Figure::kRowsPerSecond);
  const auto add = [&](std::span<const Figure> figures) {
    for (const Figure figure : figures) {
      if (KnownOnBothSides(input, figure)) family.push_back(figure);
    }
  };
  if (rows) {
    add(kOfPipelines);
  } else {
    add(kOfCommands);
  }
  return family;
}

std::string NotMeasured(const ComparedSample& sample, Figure figure) {
  return fmt::format("run {} has no {}: {}", sample.run_id, InfoOf(figure).title,
                     sample.figures.ReasonOf(figure));
}

// Why a pair, or a sample of sets, does not count. None is left out for what it says of the
// question asked.
void LeaveOut(const ComparisonInput& input, Figure first, Comparison* out) {
  const auto look = [&](const ComparedSide& side, std::vector<std::string>* reasons) {
    for (const ComparedSample& sample : side.samples) {
      std::string reason = sample.left_out;
      if (reason.empty() && !sample.figures.Of(first)) reason = NotMeasured(sample, first);
      reasons->push_back(std::move(reason));
    }
  };
  look(input.a, &out->left_out_a);
  look(input.b, &out->left_out_b);
  if (input.unit != ComparedUnit::kPair) return;
  // Both of a pair go.
  for (size_t i = 0; i < std::min(out->left_out_a.size(), out->left_out_b.size()); ++i) {
    std::string& a = out->left_out_a[i];
    std::string& b = out->left_out_b[i];
    if (a.empty() && !b.empty()) a = b;
    if (b.empty() && !a.empty()) b = a;
  }
  // The first pairs had to fetch from the device what later ones found in memory. How much they
  // read says so, not how fast they were.
  const size_t pairs = std::min(input.a.samples.size(), input.b.samples.size());
  if (input.cold || static_cast<double>(pairs) < kFewestPairsToCompare) return;
  const auto read_of = [&](size_t i) {
    return std::max(input.a.samples[i].figures.Of(Figure::kRead).value_or(0),
                    input.b.samples[i].figures.Of(Figure::kRead).value_or(0));
  };
  double later = 0;
  for (size_t i = pairs / 2; i < pairs; ++i) later = std::max(later, read_of(i));
  for (size_t i = 0; i < pairs / 2; ++i) {
    const double read = read_of(i);
    if (read < kColdPairBytes || read < kColdPairFactor * later) break;
    if (out->left_out_a[i].empty()) {
      out->left_out_a[i] = out->left_out_b[i] =
          "its runs read from the device what later ones found in memory";
    }
  }
}

void Collect(const ComparisonInput& input, const Comparison& out, ComparedMetric* metric) {
  const auto& a = input.a.samples;
  const auto& b = input.b.samples;
  const auto of = [&](const ComparedSample& sample) { return sample.figures.Of(metric->figure); };
  if (input.unit == ComparedUnit::kPair) {
    for (size_t i = 0; i < std::min(a.size(), b.size()); ++i) {
      const Real x = of(a[i]), y = of(b[i]);
      if (!out.left_out_a[i].empty() || !x || !y) continue;
      metric->a_values.push_back(*x);
      metric->b_values.push_back(*y);
    }
    return;
  }
  for (size_t i = 0; i < a.size(); ++i) {
    if (const Real x = of(a[i]); x && out.left_out_a[i].empty()) metric->a_values.push_back(*x);
  }
  for (size_t i = 0; i < b.size(); ++i) {
    if (const Real x = of(b[i]); x && out.left_out_b[i].empty()) metric->b_values.push_back(*x);
  }
}

// A share is compared by its difference: ln(e^b / e^a) = b - a lets the same statistics do it.
std::vector<double> ForRatio(Figure figure, std::vector<double> values) {
  if (InfoOf(figure).share) {
    for (double& value : values) value = std::exp(value);
  }
  return values;
}

RatioEstimate Estimate(const ComparisonInput& input, std::span<const double> a,
                       std::span<const double> b, double level) {
  switch (input.unit) {
    case ComparedUnit::kPair:
      return PairedLogRatio(a, b, level, input.seed);
    case ComparedUnit::kRun:
      return UnpairedLogRatio(a, b, Center::kMean, level, input.seed);
    case ComparedUnit::kBlock:
      break;
  }
  const WindowsEstimate blocks = WindowsLogRatio(a, b, level, input.seed);
  RatioEstimate estimate;
  estimate.log_ratio = blocks.log_ratio;
  estimate.interval = blocks.interval;
  estimate.pairs = std::min(a.size(), b.size());
  return estimate;
}

double MarginOf(const ComparisonInput& input, Figure figure) {
  if (InfoOf(figure).share) return input.margin;  // in points
  const double margin =
      figure == Figure::kStepP99 ? std::max(input.margin, kTailMargin) : input.margin;
  return std::log1p(margin);
}

// The smallest p that a rank test of so many units can give.
double BestP(ComparedUnit unit, size_t a, size_t b) {
  if (unit == ComparedUnit::kPair) return std::min(1.0, 2 * std::pow(0.5, static_cast<double>(a)));
  double ways = 1;  // of choosing A's ranks
  for (size_t i = 1; i <= b; ++i) ways *= static_cast<double>(a + i) / static_cast<double>(i);
  return std::min(1.0, 2 / ways);
}

std::vector<double> Logs(std::span<const double> values) {
  std::vector<double> out;
  for (const double value : values) out.push_back(std::log(value));
  return out;
}

// What DetectableRatio and PairsFor ask for: n values with the spread that a difference of one unit
// of each side has.
std::vector<double> SpreadOf(std::span<const double> a, std::span<const double> b) {
  const double deviation = std::sqrt(Variance(Logs(a)) + Variance(Logs(b)));
  const size_t n = std::min(a.size(), b.size());
  const double even = static_cast<double>(n - n % 2);
  std::vector<double> spread(n, 0.0);
  for (size_t i = 0; i + 1 < n; i += 2) {
    const double value = deviation * std::sqrt(static_cast<double>(n - 1) / even);
    spread[i] = value;
    spread[i + 1] = -value;
  }
  return spread;
}

// Two-sided p of Student's test that the mean is 0.
double StudentP(std::span<const double> values) {
  const auto n = static_cast<double>(values.size());
  const double mean = Mean(values), deviation = std::sqrt(Variance(values));
  if (values.size() < 2) return 1;
  if (deviation == 0) return mean == 0 ? 1 : 0;
  return 2 * StudentCdf(-std::abs(mean) / (deviation / std::sqrt(n)), n - 1);
}

// The same for two sides that are no pairs (Welch), of their logarithms.
double WelchP(std::span<const double> a, std::span<const double> b) {
  const std::vector<double> x = Logs(a), y = Logs(b);
  if (x.size() < 2 || y.size() < 2) return 1;
  const double of_x = Variance(x) / static_cast<double>(x.size());
  const double of_y = Variance(y) / static_cast<double>(y.size());
  const double difference = Mean(y) - Mean(x), squares = of_x + of_y;
  if (squares == 0) return difference == 0 ? 1 : 0;
  const double freedom = squares * squares /
                         (of_x * of_x / static_cast<double>(x.size() - 1) +
                          of_y * of_y / static_cast<double>(y.size() - 1));
  return 2 * StudentCdf(-std::abs(difference) / std::sqrt(squares), freedom);
}

void Measure(const ComparisonInput& input, ComparedMetric* metric) {
  const FigureInfo& info = InfoOf(metric->figure);
  const size_t n = std::min(metric->a_values.size(), metric->b_values.size());
  metric->margin = MarginOf(input, metric->figure);
  metric->word = "cannot tell";
  if (n == 0) {
    metric->reason = "not measured";
    return;
  }
  metric->a = Median(metric->a_values);
  metric->b = Median(metric->b_values);
  const auto all_are = [&](double value) {
    const auto is = [&](double x) { return x == value; };
    return std::all_of(metric->a_values.begin(), metric->a_values.end(), is) &&
           std::all_of(metric->b_values.begin(), metric->b_values.end(), is);
  };
  metric->identical = input.unit == ComparedUnit::kPair ? metric->a_values == metric->b_values
                                                        : all_are(metric->a_values[0]);
  if (metric->identical && n >= 2) {
    metric->change = 0;
    metric->interval = {0, 0};
    metric->p = 1;
    metric->p_same = 0;
    metric->detectable = 0;
    metric->verdict = ChangeVerdict::kSame;
    metric->word = "identical";
    return;
  }
  const auto zero = [](double value) { return value <= 0; };
  if (!info.share && (std::any_of(metric->a_values.begin(), metric->a_values.end(), zero) ||
                      std::any_of(metric->b_values.begin(), metric->b_values.end(), zero))) {
    metric->reason = "0 in some: no ratio";
    return;
  }
  const std::vector<double> a = ForRatio(metric->figure, metric->a_values);
  const std::vector<double> b = ForRatio(metric->figure, metric->b_values);
  const RatioEstimate estimate = Estimate(input, a, b, 1 - input.alpha);
  metric->change = estimate.log_ratio;
  metric->interval = estimate.interval;
  if (n < 2) {
    metric->reason = "one value a side";
    return;
  }
  const std::vector<double> ratios =
      input.unit == ComparedUnit::kPair ? LogRatios(a, b) : SpreadOf(a, b);
  const RatioEstimate within = Estimate(input, a, b, 1 - 2 * input.alpha);
  if (input.unit == ComparedUnit::kPair) {
    metric->p_ranks = WilcoxonSignedRank(ratios);
    metric->p = n < kRanksFrom ? StudentP(ratios) : *metric->p_ranks;
    metric->p_same = EquivalenceP(ratios, metric->margin);
  } else {
    metric->p_ranks = MannWhitney(metric->a_values, metric->b_values);
    metric->p = n < kRanksFrom ? WelchP(a, b) : *metric->p_ranks;
  }
  const double detectable = DetectableRatio(ratios, input.alpha, input.power);
  if (std::isfinite(detectable)) metric->detectable = detectable;
  const auto needed = PairsFor(ratios, metric->margin, input.alpha, input.power);
  if (needed && *needed > n) metric->units_needed = needed;
  metric->verdict = VerdictOf(metric->interval, within.interval, metric->margin);
}

std::string SameWord(const ComparedMetric& metric) {
  const double margin = InfoOf(metric.figure).share ? metric.margin : std::expm1(metric.margin);
  const std::string number = fmt::format("{:.3g}", 100 * margin);
  return fmt::format("same within {} {}", number, InfoOf(metric.figure).share ? "pt" : "%");
}

// Verdicts are of a rate; the words of the others follow their own direction.
void Say(const ComparisonInput& input, ComparedMetric* metric) {
  if (metric->identical || !metric->change) return;
  const bool proven =
      metric->verdict == ChangeVerdict::kFaster || metric->verdict == ChangeVerdict::kSlower;
  if (proven && !metric->sequential && metric->p_holm.value_or(1) >= input.alpha) {
    metric->verdict = ChangeVerdict::kCannotTell;
  }
  const FigureInfo& info = InfoOf(metric->figure);
  switch (metric->verdict) {
    case ChangeVerdict::kFaster:
      metric->word = info.more;
      break;
    case ChangeVerdict::kSlower:
      metric->word = info.less;
      break;
    case ChangeVerdict::kSame:
      metric->word = SameWord(*metric);
      break;
    case ChangeVerdict::kCannotTell:
      metric->word = "cannot tell";
      break;
  }
  // From here on the verdict is that of the metric: faster is better.
  if (!info.higher_is_better) {
    if (metric->verdict == ChangeVerdict::kFaster) {
      metric->verdict = ChangeVerdict::kSlower;
    } else if (metric->verdict == ChangeVerdict::kSlower) {
      metric->verdict = ChangeVerdict::kFaster;
    }
  }
}

std::optional<OrderEffect> FindOrder(const ComparisonInput& input, const Comparison& out,
                                     Figure figure) {
  const size_t pairs = std::min(input.a.samples.size(), input.b.samples.size());
  if (input.unit != ComparedUnit::kPair || input.b_first.size() < pairs) return std::nullopt;
  struct Ratio {
    double value = 0;  // ln(second / first)
    bool b_first = false;
  };
  std::vector<Ratio> ratios;
  double sums[2] = {0, 0}, counts[2] = {0, 0};
  for (size_t i = 0; i < pairs; ++i) {
    const Real a = input.a.samples[i].figures.Of(figure);
    const Real b = input.b.samples[i].figures.Of(figure);
    if (!out.left_out_a[i].empty() || !a || !b || *a <= 0 || *b <= 0) continue;
    const bool b_first = input.b_first[i];
    ratios.push_back({b_first ? std::log(*a / *b) : std::log(*b / *a), b_first});
    sums[b_first ? 1 : 0] += ratios.back().value;
    counts[b_first ? 1 : 0] += 1;
  }
  if (counts[0] < 2 || counts[1] < 2) return std::nullopt;
  // It is order + change where A ran first, and order - change where B did. The two orders are not
  // always as many: the change has to go first.
  const double change = (sums[0] / counts[0] - sums[1] / counts[1]) / 2;
  std::vector<double> rest, first(ratios.size(), 1.0), second;
  for (const Ratio& ratio : ratios) {
    rest.push_back(ratio.value - (ratio.b_first ? -change : change));
    second.push_back(std::exp(rest.back()));
  }
  const RatioEstimate estimate = PairedLogRatio(first, second, 1 - input.alpha, input.seed);
  return OrderEffect{estimate.log_ratio, estimate.interval, WilcoxonSignedRank(rest)};
}

// From the differences of neighbours on one side, so that a drift over hours adds little to it.
Real NoiseOf(const ComparisonInput& input, const Comparison& out, Figure figure) {
  double squares = 0;
  size_t count = 0;
  const auto add = [&](const ComparedSide& side, const std::vector<std::string>& left_out) {
    Real last;
    for (size_t i = 0; i < side.samples.size(); ++i) {
      const Real value = side.samples[i].figures.Of(figure);
      if (!left_out[i].empty() || !value || *value <= 0) continue;
      if (last) {
        const double difference = std::log(*value / *last);
        squares += difference * difference;
        ++count;
      }
      last = value;
    }
  };
  add(input.a, out.left_out_a);
  add(input.b, out.left_out_b);
  if (count < 2) return std::nullopt;
  return 1.96 * std::sqrt(squares / static_cast<double>(count));
}

}  // namespace

const char* ComparedUnitName(ComparedUnit unit) {
  switch (unit) {
    case ComparedUnit::kPair:
      return "pair";
    case ComparedUnit::kRun:
      return "run";
    case ComparedUnit::kBlock:
      return "block";
  }
  return "";
}

const ComparedMetric* Comparison::Find(Figure figure) const {
  for (const ComparedMetric& metric : metrics) {
    if (metric.figure == figure) return &metric;
  }
  return nullptr;
}

bool OfOneRun(const ComparisonInput& input) {
  return input.unit == ComparedUnit::kBlock && !input.a.samples.empty() &&
         !input.b.samples.empty() && input.a.samples[0].run_id == input.b.samples[0].run_id;
}

SequentialTest Replay(const ComparisonInput& input, const SequentialPlan& plan) {
  const std::vector<Figure> family = FamilyOf(input);
  const Figure first = family.empty() ? Figure::kRowsPerSecond : family[0];
  Comparison left_out;
  LeaveOut(input, first, &left_out);
  const double sign = InfoOf(first).higher_is_better ? 1 : -1;
  SequentialTest test(plan, MarginOf(input, first));
  for (size_t i = 0; i < std::min(input.a.samples.size(), input.b.samples.size()); ++i) {
    const Real a = input.a.samples[i].figures.Of(first), b = input.b.samples[i].figures.Of(first);
    const bool counts = left_out.left_out_a[i].empty() && a && b && *a > 0 && *b > 0;
    test.Add(counts ? sign * std::log(*b / *a) : std::numeric_limits<double>::quiet_NaN());
  }
  return test;
}

namespace {

// The verdict on the first metric where pairs were looked at as they came, and might have ended
// early. `plan` null: the one that follows from the input.
void JudgeSequentially(const ComparisonInput& input, const SequentialPlan* plan, Comparison* out) {
  ComparedMetric& first = out->metrics[0];
  std::optional<SequentialPlan> own;
  if (plan == nullptr) own = PlanSequential(input.planned_pairs, input.alpha);
  SequentialTest test = Replay(input, plan == nullptr ? *own : *plan);
  // It ended for the time, or pairs that had counted at first are left out.
  if (!test.step().stop) test.Close();
  out->stopped_early = out->units < input.planned_pairs && test.looked_at() < input.planned_pairs;
  out->stopped_why = StopReasonName(test.step().why);
  const bool flip = !InfoOf(first.figure).higher_is_better;
  const auto as_change = [&](const Interval& interval) {
    return flip ? Interval{-interval.high, -interval.low} : interval;
  };
  first.sequential = true;
  first.change = flip ? -test.estimate() : test.estimate();
  first.interval = as_change(test.interval());
  first.verdict = VerdictOf(first.interval, as_change(test.within()), first.margin);
  // Looking often at the first metric is looking often at what goes with it.
  const auto looks = static_cast<double>(
      std::count_if(test.plan().looks.begin(), test.plan().looks.end(),
                    [&](const SequentialPlan::Look& look) { return look.pairs <= out->units; }));
  for (size_t i = 1; i < out->metrics.size(); ++i) {
    if (out->metrics[i].p)
      out->metrics[i].p = std::min(1.0, *out->metrics[i].p * std::max(looks, 1.0));
  }
}

// Several metrics are looked at: each has its p by Holm.
void CorrectForMany(std::vector<ComparedMetric>* metrics) {
  std::vector<double> p;
  for (const ComparedMetric& metric : *metrics) {
    p.push_back(metric.sequential ? std::numeric_limits<double>::quiet_NaN()
                                  : metric.p.value_or(std::numeric_limits<double>::quiet_NaN()));
  }
  const std::vector<double> holm = Holm(p);
  for (size_t i = 0; i < holm.size(); ++i) {
    if (std::isfinite(holm[i])) (*metrics)[i].p_holm = holm[i];
  }
}

}  // namespace

Comparison Compare(const ComparisonInput& input, const SequentialPlan* plan) {
  const std::vector<Figure> family = FamilyOf(input);
  if (family.empty()) {
    throw Error(ExitCode::kInconclusive, "nothing was measured on both sides", "",
                "'headrace report RUN' says what a run lacks");
  }
  Comparison out;
  LeaveOut(input, family[0], &out);
  for (const ComparedSide* side : {&input.a, &input.b}) {
    for (const ComparedSample& sample : side->samples) {
      if (family[0] == Figure::kRowsPerSecond && sample.figures.steady_windows == 0)
        ++out.steadyless;
    }
  }
  for (const Figure figure : family) {
    ComparedMetric& metric = out.metrics.emplace_back();
    metric.figure = figure;
    Collect(input, out, &metric);
    Measure(input, &metric);
  }
  ComparedMetric& first = out.metrics[0];
  out.units = std::min(first.a_values.size(), first.b_values.size());
  const bool sequential = input.unit == ComparedUnit::kPair && input.planned_pairs >= 2 &&
                          first.change && !first.identical;
  if (sequential) {
    JudgeSequentially(input, plan, &out);
  }
  CorrectForMany(&out.metrics);
  const double best = BestP(input.unit, first.a_values.size(), first.b_values.size());
  const bool few = input.unit == ComparedUnit::kPair
                       ? static_cast<double>(out.units) < kFewestPairsToCompare
                       : best >= input.alpha;
  if (few && !first.identical) {
    out.too_few = fmt::format(
        "{} {}{} cannot prove a change (p would have to be below {:.2g}, and "
        "is {:.2g} at best)",
        out.units, ComparedUnitName(input.unit),
        std::string(out.units == 1 ? "" : "s") +
            (input.unit == ComparedUnit::kPair ? "" : " of one side"),
        input.alpha, best);
    for (ComparedMetric& metric : out.metrics) {
      if (metric.identical) continue;
      metric.verdict = ChangeVerdict::kCannotTell;
      metric.word = "cannot tell";
    }
  } else {
    for (ComparedMetric& metric : out.metrics) Say(input, &metric);
  }
  out.order = FindOrder(input, out, family[0]);
  if (input.unit != ComparedUnit::kBlock) out.noise = NoiseOf(input, out, family[0]);
  return out;
}

std::string ChangeText(Figure figure, double change) {
  if (InfoOf(figure).share) {
    return std::abs(change) < 0.0005 ? "0.0 pt" : fmt::format("{:+.1f} pt", 100 * change);
  }
  const double percent = 100 * std::expm1(change);
  if (!std::isfinite(percent)) return percent > 0 ? "+inf" : "-inf";
  if (percent >= 100'000) return ">x1000";  // of next to nothing: no figure
  if (percent >= 1000) return fmt::format("x{:.1f}", percent / 100 + 1);
  return fmt::format("{:+.{}f} %", percent, std::abs(percent) < 0.995 ? 2 : 1);
}

Gate ParseGate(const std::string& text, const std::string& what) {
  const std::string shape = "write FIGURE<NUMBER% or FIGURE>NUMBER%, as in 'rows_per_s<-3%'";
  const size_t at = text.find_first_of("<>");
  if (at == std::string::npos) {
    throw Error(ExitCode::kUsage, fmt::format("'{}' has no < or >", Printable(text, 60)), what,
                shape);
  }
  const auto trim = [](std::string part) {
    const size_t begin = part.find_first_not_of(" \t");
    if (begin == std::string::npos) return std::string();
    return part.substr(begin, part.find_last_not_of(" \t") - begin + 1);
  };
  Gate gate;
  gate.text = trim(text);
  gate.below = text[at] == '<';
  const std::string name = trim(text.substr(0, at));
  std::string number = trim(text.substr(at + 1));
  const auto figure = FigureByKey(name);
  if (!figure) {
    std::vector<std::string> names;
    std::string list;
    for (size_t i = 0; i < kFigures; ++i) {
      names.emplace_back(InfoOf(static_cast<Figure>(i)).key);
      list += (i > 0 ? ", " : "") + names.back();
    }
    const std::string nearest = NearestName(name, names);
    throw Error(ExitCode::kUsage,
                fmt::format("unknown figure '{}'{}", Printable(name, 60),
                            nearest.empty() ? "" : fmt::format(". Did you mean '{}'?", nearest)),
                what, "the figures are " + list);
  }
  gate.figure = *figure;
  const bool share = InfoOf(*figure).share;
  const std::string unit = share ? "pt" : "%";
  if (!number.ends_with(unit)) {
    throw Error(ExitCode::kUsage,
                fmt::format("'{}': the change of {} is in {}", Printable(text, 60), name,
                            share ? "points (pt)" : "percent (%)"),
                what, share ? "as in 'wait_ratio>2pt'" : shape);
  }
  number = trim(number.substr(0, number.size() - unit.size()));
  char* end = nullptr;
  const double value = std::strtod(number.c_str(), &end);
  if (number.empty() || *end != '\0' || !std::isfinite(value)) {
    throw Error(
        ExitCode::kUsage,
        fmt::format("'{}': '{}' is not a number", Printable(text, 60), Printable(number, 60)), what,
        shape);
  }
  if (!share && value <= -100) {
    throw Error(ExitCode::kUsage, fmt::format("'{}': nothing falls by 100 % or more", gate.text),
                what, shape);
  }
  gate.bound = share ? value / 100 : std::log1p(value / 100);
  return gate;
}

GateResult Judge(const Gate& gate, const Comparison& comparison) {
  const ComparedMetric* metric = comparison.Find(gate.figure);
  if (metric == nullptr || !metric->change) {
    return {GateState::kUndecided,
            fmt::format("{}: {} was not compared{}", gate.text, InfoOf(gate.figure).key,
                        metric == nullptr || metric->reason.empty() ? "" : ": " + metric->reason)};
  }
  const std::string seen =
      std::isfinite(metric->interval.low) && std::isfinite(metric->interval.high)
          ? fmt::format("{} [{}, {}]", ChangeText(gate.figure, *metric->change),
                        ChangeText(gate.figure, metric->interval.low),
                        ChangeText(gate.figure, metric->interval.high))
          : ChangeText(gate.figure, *metric->change);
  // Too few units for any statement are too few for this one.
  const bool known = metric->identical || comparison.too_few.empty();
  const double bound = gate.bound, low = metric->interval.low, high = metric->interval.high;
  if (known && (gate.below ? high < bound : low > bound))
    return {GateState::kFails, fmt::format("{} holds: {}", gate.text, seen)};
  if (known && (gate.below ? low >= bound : high <= bound))
    return {GateState::kPasses, fmt::format("{} does not hold: {}", gate.text, seen)};
  return {GateState::kUndecided, fmt::format("{} may hold or not: {}", gate.text, seen)};
}

}  // namespace headrace::analysis
