#include "dashboards/comparison.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

#include "base/terminal_text.h"
#include "base/units.h"

namespace headrace::dashboards {
namespace {

using analysis::ChangeText;
using analysis::ChangeVerdict;
using analysis::ComparedMetric;
using analysis::ComparedSample;
using analysis::ComparedSide;
using analysis::ComparedUnit;
using analysis::Comparison;
using analysis::ComparisonInput;
using analysis::Figure;
using analysis::InfoOf;
using analysis::Interval;
using analysis::Real;

// So many pairs more are still worth a try; beyond, the machine or the length of a run is what to
// change.
constexpr size_t kMostUnitsAdvised = 100;

bool Bounded(const Interval& interval) {
  return std::isfinite(interval.low) && std::isfinite(interval.high);
}

// "[+77.9, +82.0]"
std::string IntervalText(Figure figure, const Interval& interval) {
  if (!Bounded(interval)) return "unknown";
  const auto bare = [&](double end) {
    std::string text = ChangeText(figure, end);
    const size_t blank = text.find(' ');
    return blank == std::string::npos ? text : text.substr(0, blank);
  };
  return fmt::format("[{}, {}]", bare(interval.low), bare(interval.high));
}

std::string ValueText(Figure figure, double value) {
  const std::string unit = InfoOf(figure).unit;
  if (unit == "rows/s") return FormatRate(value, "rows");
  if (unit == "ratio") return FormatPercent(value);
  if (unit == "s") return FormatDuration(value * 1e9);
  return FormatBytes(value);
}

// A size, without a direction: "2.4 %".
std::string SizeText(Figure figure, double change) {
  if (InfoOf(figure).share) return fmt::format("{:.1f} pt", 100 * std::abs(change));
  const double percent = 100 * std::expm1(std::abs(change));
  return fmt::format("{:.{}f} %", percent, percent < 0.995 ? 2 : percent < 9.95 ? 1 : 0);
}

std::string PText(double p) {
  return p < 0.001 ? "<0.001" : fmt::format("{:.{}f}", p, p < 0.0995 ? 3 : 2);
}

std::string Plural(size_t count, const char* word) {
  return fmt::format("{} {}{}", count, word, count == 1 ? "" : "s");
}

std::string Joined(const std::vector<std::string>& parts, const char* between) {
  std::string text;
  for (const std::string& part : parts) text += (text.empty() ? "" : between) + part;
  return text;
}

// "12 pairs", "6 runs of A and 7 of B"
std::string UnitsText(const ComparisonInput& input, const Comparison& comparison) {
  const ComparedMetric& first = comparison.metrics[0];
  if (input.unit == ComparedUnit::kPair) return Plural(comparison.units, "pair");
  const size_t a = first.a_values.size(), b = first.b_values.size();
  return fmt::format("{} {} and {} {}", Plural(a, ComparedUnitName(input.unit)), "of A",
                     Plural(b, ComparedUnitName(input.unit)), "of B");
}

std::string MarginText(const ComparedMetric& metric) {
  const bool share = InfoOf(metric.figure).share;
  return fmt::format("{:.3g} {}", 100 * (share ? metric.margin : std::expm1(metric.margin)),
                     share ? "pt" : "%");
}

void SayVerdict(const ComparisonPage& page, std::vector<Sentence>* say) {
  const Comparison& comparison = page.comparison;
  const ComparedMetric& first = comparison.metrics[0];
  const std::string units = UnitsText(page.input, comparison);
  const std::string title = InfoOf(first.figure).title;
  std::string text;
  if (!first.change) {
    text = fmt::format("no verdict: {} {}", title, first.reason);
  } else if (first.identical) {
    text = fmt::format("identical {} in {}{}", title,
                       page.input.unit == ComparedUnit::kPair ? "all " : "", units);
  } else if (!comparison.too_few.empty()) {
    text = fmt::format("no verdict: {}; measured: {} {}", comparison.too_few,
                       ChangeText(first.figure, *first.change), title);
  } else {
    const std::string change = fmt::format("{} {} {}", ChangeText(first.figure, *first.change),
                                           title, IntervalText(first.figure, first.interval));
    switch (first.verdict) {
      case ChangeVerdict::kFaster:
      case ChangeVerdict::kSlower:
        text = fmt::format(
            "B is {}: {}, {}, {}", first.word, change,
            OfOneRun(page.input) ? "95 % sure if noise lasts 2 s or less" : "95 % sure", units);
        break;
      case ChangeVerdict::kSame:
        text = fmt::format("A and B are the {}: {}, {}", first.word, change, units);
        break;
      case ChangeVerdict::kCannotTell:
        text = fmt::format(
            "cannot tell: {}, {}: {}", change, units,
            first.interval.low <= 0 && first.interval.high >= 0
                ? fmt::format("it could be no change or more than {}", MarginText(first))
                : "it may be chance when all the metrics shown are counted");
        break;
    }
  }
  const bool one_run = OfOneRun(page.input);
  if (page.input.unit == ComparedUnit::kBlock && !one_run && first.change &&
      comparison.too_few.empty())
    text += "; between these two runs only: the next two runs may differ otherwise";
  if (page.notes.forced) text += " (NOT COMPARABLE, forced)";
  say->push_back({"VERDICT", text});
  if (one_run && first.change)
    say->push_back(
        {"NOTE", "these are parts of one run, so this says what changed and not what caused it"});
  if (!page.notes.machine.empty()) say->push_back({"NOTE", page.notes.machine});
}

std::string SideText(const ComparedSide& side) {
  return fmt::format("{} = {}", side.label, Printable(side.what, 200));
}

// How long the blocks are: "5 s".
std::string BlockText(const ComparisonInput& input) {
  const analysis::RunFigures& block = input.a.samples[0].figures;
  const double seconds = static_cast<double>(block.steady_last_ns - block.steady_first_ns) * 1e-9;
  return seconds > 0 ? fmt::format("{:.2g} s", seconds) : std::string("all of it");
}

void SayHow(const ComparisonPage& page, std::vector<Sentence>* say) {
  const ComparisonInput& input = page.input;
  const ComparisonNotes& notes = page.notes;
  say->push_back({"SIDES", SideText(input.a) + "; " + SideText(input.b)});
  std::vector<std::string> parts = {UnitsText(input, page.comparison)};
  if (input.unit == ComparedUnit::kPair) {
    parts.emplace_back(fmt::format("in random order (seed {})", input.seed));
  } else if (input.unit == ComparedUnit::kBlock) {
    parts.push_back(fmt::format("{} each, cut from {}", BlockText(input),
                                OfOneRun(input) ? "one run" : "one run of each side"));
  }
  if (notes.wall_ns > 0) parts.push_back(FormatDuration(static_cast<double>(notes.wall_ns)));
  if (input.cold) parts.emplace_back("cold");
  std::string text = Joined(parts, ", ");
  if (!notes.end.empty()) text += "; " + notes.end;
  if (!notes.same.empty()) text += "; same " + Joined(notes.same, ", same ");
  say->push_back({"HOW", text});
  if (!notes.differences.empty()) {
    say->push_back({notes.forced ? "FORCED" : "DIFFERS",
                    fmt::format("{}{}", notes.forced ? "compared with --force although: " : "",
                                Joined(notes.differences, "; "))});
  }
}

// What else B does: the proven changes of the other metrics; all of them, those for the better, or
// what it costs.
enum class Others { kAll, kGains, kCosts };
std::string OthersText(const Comparison& comparison, Others which) {
  std::vector<std::string> parts;
  for (size_t i = 1; i < comparison.metrics.size(); ++i) {
    const ComparedMetric& metric = comparison.metrics[i];
    if (!metric.change || metric.identical) continue;
    if (metric.verdict != ChangeVerdict::kFaster && metric.verdict != ChangeVerdict::kSlower)
      continue;
    if (which == Others::kCosts && metric.verdict == ChangeVerdict::kFaster) continue;
    if (which == Others::kGains && metric.verdict == ChangeVerdict::kSlower) continue;
    parts.push_back(fmt::format("{} ({})", metric.word, ChangeText(metric.figure, *metric.change)));
  }
  return Joined(parts, ", ");
}

// Which side to choose if both are equally fast: the one that costs less.
std::string EitherText(const ComparisonInput& input, const Comparison& comparison) {
  const std::string gains = OthersText(comparison, Others::kGains);
  const std::string costs = OthersText(comparison, Others::kCosts);
  const std::string a = Printable(input.a.what, 120), b = Printable(input.b.what, 120);
  if (gains.empty() && costs.empty()) return "either will do: no difference that matters";
  if (costs.empty()) return fmt::format("adopt B ({}): as fast, with {}", b, gains);
  if (gains.empty()) return fmt::format("keep A ({}): as fast, and B costs {}", a, costs);
  return fmt::format("either will do for the rate: B has {}, and costs {}", gains, costs);
}

// The pairs or runs that do not count, with their reasons: three at most, and how many more. Empty
// where all count.
std::string LeftOutText(const ComparisonInput& input, const Comparison& comparison) {
  std::vector<std::string> left;
  for (size_t i = 0; i < comparison.left_out_a.size(); ++i) {
    if (comparison.left_out_a[i].empty()) continue;
    left.push_back(input.unit == ComparedUnit::kPair
                       ? fmt::format("pair {}: {}", i + 1, comparison.left_out_a[i])
                       : comparison.left_out_a[i]);
  }
  if (input.unit != ComparedUnit::kPair) {
    for (const std::string& reason : comparison.left_out_b) {
      if (!reason.empty()) left.push_back(reason);
    }
    // The run counts once; that its other blocks do not is nothing that was left out.
    std::erase_if(
        left, [](const std::string& reason) { return reason.ends_with(analysis::kOfWholeRun); });
  }
  const size_t count = left.size();
  if (left.size() > 3) left.resize(3);
  return Joined(left, "; ") + (count > 3 ? fmt::format("; and {} more", count - 3) : "");
}

void SayEvidence(const ComparisonPage& page, std::vector<Sentence>* say) {
  const ComparisonInput& input = page.input;
  const Comparison& comparison = page.comparison;
  const ComparedMetric& first = comparison.metrics[0];
  if (!page.notes.a_limit.empty() && !page.notes.b_limit.empty())
    say->push_back(
        {"LIMIT", page.notes.a_limit == page.notes.b_limit
                      ? "of both: " + page.notes.a_limit
                      : fmt::format("of A: {}; of B: {}", page.notes.a_limit, page.notes.b_limit)});
  if (!page.notes.why.empty()) {
    say->push_back({"WHY", page.notes.why});
  } else if (!page.notes.no_why.empty() &&
             (first.verdict == ChangeVerdict::kFaster || first.verdict == ChangeVerdict::kSlower)) {
    say->push_back({"WHY", fmt::format("unavailable ({})", page.notes.no_why)});
  }
  const std::string others = OthersText(comparison, Others::kAll);
  if (!others.empty()) say->push_back({"ALSO", others});
  // Too few units show no change, however large.
  if (first.detectable && !first.identical && comparison.too_few.empty()) {
    say->push_back(
        {"FINDS",
         fmt::format("smallest change this comparison could detect: {} in {}, at {:.0f} % power",
                     SizeText(first.figure, *first.detectable), InfoOf(first.figure).title,
                     100 * input.power)});
  }
  if (comparison.noise) {
    say->push_back({"NOISE", fmt::format("two runs of the same side differ by up to {} in {} "
                                         "(95 % of the time)",
                                         SizeText(first.figure, *comparison.noise),
                                         InfoOf(first.figure).title)});
  }
  if (comparison.order) {
    const analysis::OrderEffect& order = *comparison.order;
    const bool sure = order.p < input.alpha && (order.interval.low > 0 || order.interval.high < 0);
    say->push_back(
        {"ORDER",
         fmt::format(
             "{} {} (p {}){}",
             sure ? "the second run of a pair differs from the first by"
                  : "running second made no measurable difference:",
             ChangeText(first.figure, order.change), PText(order.p),
             sure ? "; each side runs second equally often, so this favours neither" : "")});
  }
  const std::string left = LeftOutText(input, comparison);
  if (!left.empty()) say->push_back({"LEFT OUT", left});
  for (const std::string& outlier : page.notes.outliers) say->push_back({"OUTLIER", outlier});
  if (comparison.steadyless > 0 && OfOneRun(input)) {
    say->push_back({"NOTE",
                    "a part was too short for a steady phase: its figures are of all of the part; "
                    "give longer parts"});
  } else if (comparison.steadyless > 0) {
    const size_t all = input.a.samples.size() + input.b.samples.size();
    say->push_back({"NOTE", fmt::format("{} of {} runs were too short for a steady phase: their "
                                        "figures are of the whole run; --duration makes them "
                                        "longer",
                                        comparison.steadyless, all)});
  }
}

// What to do next with parts of one run, which cannot be run again.
void SayNextOfParts(const ComparisonPage& page, std::vector<Sentence>* say) {
  const Comparison& comparison = page.comparison;
  const ComparedMetric& first = comparison.metrics[0];
  if (!comparison.too_few.empty() && !first.identical) {
    say->push_back({"DO",
                    "give parts of 8 s each or more, better 20 s; of a run that is too "
                    "short, record a longer one"});
    return;
  }
  if (first.verdict == ChangeVerdict::kCannotTell) {
    say->push_back({"DO", "give longer parts: these vary too much for their length"});
    return;
  }
  if (first.verdict == ChangeVerdict::kSame) {
    say->push_back({"DO", "nothing: the rate did not change"});
    return;
  }
  say->push_back({"DO", "see what limits the later part"});
  if (!page.notes.look.empty()) say->push_back({"", page.notes.look, true});
}

// What to do next.
void SayNext(const ComparisonPage& page, std::vector<Sentence>* say) {
  const ComparisonInput& input = page.input;
  const Comparison& comparison = page.comparison;
  const ComparedMetric& first = comparison.metrics[0];
  const auto more_pairs = [&](size_t pairs, const std::string& because) {
    say->push_back({"DO", fmt::format("run {} pairs in all{}", pairs, because)});
    if (!page.notes.repeat.empty())
      say->push_back({"", fmt::format("{} --pairs {}", page.notes.repeat, pairs), true});
  };
  if (!first.change) return;
  if (OfOneRun(input)) {
    SayNextOfParts(page, say);
    return;
  }
  if (!comparison.too_few.empty() && !first.identical) {
    more_pairs(6, input.unit == ComparedUnit::kPair ? "" : ", interleaved");
    return;
  }
  const std::string costs = OthersText(comparison, Others::kCosts);
  // One run a side may have had a good day.
  if (input.unit == ComparedUnit::kBlock &&
      (first.verdict == ChangeVerdict::kFaster || first.verdict == ChangeVerdict::kSlower)) {
    more_pairs(6, ", interleaved, before you rely on it");
    return;
  }
  switch (first.verdict) {
    case ChangeVerdict::kFaster:
      say->push_back({"DO", fmt::format("adopt B ({}){}", Printable(input.b.what, 120),
                                        costs.empty() ? "" : "; it costs " + costs)});
      return;
    case ChangeVerdict::kSlower:
      say->push_back({"DO", fmt::format("keep A ({})", Printable(input.a.what, 120))});
      return;
    case ChangeVerdict::kSame:
      say->push_back({"DO", EitherText(input, comparison)});
      return;
    case ChangeVerdict::kCannotTell:
      break;
  }
  if (input.unit == ComparedUnit::kBlock) {
    more_pairs(12, ", interleaved: blocks of two runs see too little");
    return;
  }
  if (first.units_needed && *first.units_needed <= kMostUnitsAdvised) {
    const size_t more = *first.units_needed - std::min(comparison.units, *first.units_needed);
    more_pairs(*first.units_needed,
               fmt::format(" ({} more) to find a change by {}", more, MarginText(first)));
  } else if (first.units_needed) {
    say->push_back(
        {"DO",
         fmt::format("use a quieter machine or longer runs{}: with this noise, a change of {} "
                     "takes {} {}s",
                     first.figure == Figure::kElapsed ? "" : " (--duration)", MarginText(first),
                     *first.units_needed, ComparedUnitName(input.unit))});
  } else {
    more_pairs(2 * std::max<size_t>(comparison.units, 6), "");
  }
}

Table MetricsTable(const ComparisonPage& page) {
  Table table;
  table.key = "metrics";
  table.columns = {{"metric", "metric"},       {"a_median", "A (median)"},
                   {"b_median", "B (median)"}, {"change", "change"},
                   {"interval", "95 % CI"},    {"p_holm", "p (Holm)"},
                   {"verdict", "verdict"},     {"units", "n"}};
  std::vector<std::string> notes;
  for (const ComparedMetric& metric : page.comparison.metrics) {
    const std::string title = InfoOf(metric.figure).title;
    if (metric.a_values.empty() || metric.b_values.empty()) {
      table.rows.push_back({title, std::string("-"), std::string("-"), std::string("-"),
                            std::string("-"), std::string("-"), metric.reason, std::string("0")});
      continue;
    }
    const bool interval = metric.change && Bounded(metric.interval);
    // With too few units the raw values are all there is to see.
    const bool raw = !page.comparison.too_few.empty() && !metric.identical;
    table.rows.push_back(
        {title, ValueText(metric.figure, metric.a), ValueText(metric.figure, metric.b),
         metric.change ? ChangeText(metric.figure, *metric.change) : std::string("-"),
         interval && !raw ? IntervalText(metric.figure, metric.interval) : std::string("-"),
         raw                 ? std::string("-")
         : metric.sequential ? std::string("sequential")
         : metric.p_holm     ? PText(*metric.p_holm)
                             : std::string("-"),
         metric.change ? metric.word : metric.reason,
         std::to_string(std::min(metric.a_values.size(), metric.b_values.size()))});
  }
  return table;
}

// One row for each pair or sample, of the question asked.
Table SamplesTable(const ComparisonPage& page) {
  const ComparisonInput& input = page.input;
  const Figure figure = page.comparison.metrics[0].figure;
  Table table;
  table.key = "samples";
  table.title = input.unit == ComparedUnit::kPair ? "Pairs" : "What was compared";
  table.text_rows = 12;
  const auto value = [&](const ComparedSample& sample) {
    const Real known = sample.figures.Of(figure);
    return known ? ValueText(figure, *known) : std::string("-");
  };
  const auto run = [](const ComparedSample& sample) { return std::to_string(sample.run_id); };
  if (input.unit == ComparedUnit::kPair) {
    table.columns = {{"pair", "pair"},     {"order", "order"},      {"a_run", "run A"},
                     {"b_run", "run B"},   {"a_value", "A"},        {"b_value", "B"},
                     {"change", "change"}, {"left_out", "left out"}};
    for (size_t i = 0; i < std::min(input.a.samples.size(), input.b.samples.size()); ++i) {
      const ComparedSample &a = input.a.samples[i], &b = input.b.samples[i];
      const Real x = a.figures.Of(figure), y = b.figures.Of(figure);
      const bool both = x && y && *x > 0 && *y > 0;
      table.rows.push_back(
          {std::to_string(i + 1), i < input.b_first.size() ? (input.b_first[i] ? "BA" : "AB") : "-",
           run(a), run(b), value(a), value(b), both ? ChangeText(figure, std::log(*y / *x)) : "-",
           page.comparison.left_out_a[i].empty() ? "" : "yes"});
    }
    return table;
  }
  table.columns = {{"side", "side"}, {"run", "run"}, {"value", InfoOf(figure).title}};
  const bool blocks = input.unit == ComparedUnit::kBlock;
  if (blocks) table.columns.insert(table.columns.begin() + 2, {"from", "from"});
  for (const ComparedSide* side : {&input.a, &input.b}) {
    for (const ComparedSample& sample : side->samples) {
      table.rows.push_back({side->label, run(sample), value(sample)});
      const double from_s = static_cast<double>(sample.figures.steady_first_ns) * 1e-9;
      std::vector<Value>& row = table.rows.back();
      if (blocks) row.insert(row.begin() + 2, fmt::format("{:.1f} s", from_s));
    }
  }
  return table;
}

}  // namespace

Report MakeComparisonReport(const ComparisonPage& page) {
  Report report;
  report.title =
      fmt::format("comparison{}{}",
                  page.notes.comparison_id > 0 ? fmt::format(" {}", page.notes.comparison_id) : "",
                  page.notes.name.empty() ? "" : fmt::format(" '{}'", Printable(page.notes.name)));
  Section verdict{"comparison", "", {}, {}, {}};
  SayVerdict(page, &verdict.sentences);
  SayHow(page, &verdict.sentences);
  SayEvidence(page, &verdict.sentences);
  for (const ComparisonNotes::GateSaid& gate : page.notes.gates)
    verdict.sentences.push_back({"GATE", fmt::format("{}: {}", gate.state, gate.why)});
  SayNext(page, &verdict.sentences);
  report.sections.push_back(std::move(verdict));
  report.sections.push_back({"metrics", "Figures", {}, {}, {MetricsTable(page)}});
  if (page.attribution) report.sections.push_back(*page.attribution);
  report.sections.push_back({"samples", "", {}, {}, {SamplesTable(page)}});
  const ComparedMetric& first = page.comparison.metrics[0];
  report.decided = first.change && (first.identical || first.verdict != ChangeVerdict::kCannotTell);
  return report;
}

}  // namespace headrace::dashboards
