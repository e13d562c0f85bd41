#include "dashboards/comparison.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "base/error.h"
#include "base/units.h"
#include "dashboards/json_number.h"
#include "dashboards/render/render.h"

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
using analysis::FigureInfo;
using analysis::InfoOf;
using analysis::Interval;
using analysis::kFigures;
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
    text = fmt::format("withheld: {} {}", title, first.reason);
  } else if (first.identical) {
    text = fmt::format("identical {} in {}{}", title,
                       page.input.unit == ComparedUnit::kPair ? "all " : "", units);
  } else if (!comparison.too_few.empty()) {
    text = fmt::format("withheld: {}; seen: {} {}", comparison.too_few,
                       ChangeText(first.figure, *first.change), title);
  } else {
    const std::string change = fmt::format("{} {} {}", ChangeText(first.figure, *first.change),
                                           title, IntervalText(first.figure, first.interval));
    switch (first.verdict) {
      case ChangeVerdict::kFaster:
      case ChangeVerdict::kSlower:
        text = fmt::format("B is {}: {}, 95 % sure, {}", first.word, change, units);
        break;
      case ChangeVerdict::kSame:
        text = fmt::format("A and B are the {}: {}, {}", first.word, change, units);
        break;
      case ChangeVerdict::kCannotTell:
        text = fmt::format("cannot tell: {}, {}: {}", change, units,
                           first.interval.low <= 0 && first.interval.high >= 0
                               ? fmt::format("no change is possible, and so is one of more than {}",
                                             MarginText(first))
                               : "it may be chance when all the metrics shown are counted");
        break;
    }
  }
  if (page.input.unit == ComparedUnit::kBlock && first.change && comparison.too_few.empty())
    text += "; between these two runs only: what differs from run to run is not in it";
  if (page.notes.forced) text += " (NOT COMPARABLE, forced)";
  say->push_back({"VERDICT", text});
  if (!page.notes.machine.empty()) say->push_back({"NOTE", page.notes.machine});
}

std::string SideText(const ComparedSide& side) {
  return fmt::format("{} = {}", side.label, Printable(side.what, 200));
}

void SayHow(const ComparisonPage& page, std::vector<Sentence>* say) {
  const ComparisonInput& input = page.input;
  const ComparisonNotes& notes = page.notes;
  say->push_back({"SIDES", SideText(input.a) + "; " + SideText(input.b)});
  std::vector<std::string> parts = {UnitsText(input, page.comparison)};
  if (input.unit == ComparedUnit::kPair) {
    parts.emplace_back(fmt::format("ABBA in drawn blocks (seed {})", input.seed));
  } else if (input.unit == ComparedUnit::kBlock) {
    parts.emplace_back("of 5 s, of one run a side");
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

void SayEvidence(const ComparisonPage& page, std::vector<Sentence>* say) {
  const ComparisonInput& input = page.input;
  const Comparison& comparison = page.comparison;
  const ComparedMetric& first = comparison.metrics[0];
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
    say->push_back({"FINDS", fmt::format("could have detected: {} or more in {}, at {:.0f} % power",
                                         SizeText(first.figure, *first.detectable),
                                         InfoOf(first.figure).title, 100 * input.power)});
  }
  if (comparison.noise) {
    say->push_back({"NOISE", fmt::format("a run and the next of the same side differ by up to {} "
                                         "in {} (19 of 20 times)",
                                         SizeText(first.figure, *comparison.noise),
                                         InfoOf(first.figure).title)});
  }
  if (comparison.order) {
    const analysis::OrderEffect& order = *comparison.order;
    const bool sure = order.p < input.alpha && (order.interval.low > 0 || order.interval.high < 0);
    say->push_back(
        {"ORDER",
         fmt::format("the second run of a pair {} {} (p {}){}",
                     sure ? "differs from the first by" : "is not seen to differ from the first:",
                     ChangeText(first.figure, order.change), PText(order.p),
                     sure ? "; both sides run second equally often, so it is on neither" : "")});
  }
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
  }
  if (!left.empty()) {
    const size_t count = left.size();
    if (left.size() > 3) left.resize(3);
    say->push_back(
        {"LEFT OUT", fmt::format("{}{}", Joined(left, "; "),
                                 count > 3 ? fmt::format("; and {} more", count - 3) : "")});
  }
  for (const std::string& outlier : page.notes.outliers) say->push_back({"OUTLIER", outlier});
  if (comparison.steadyless > 0) {
    const size_t all = input.a.samples.size() + input.b.samples.size();
    say->push_back({"NOTE", fmt::format("{} of {} runs were too short for a steady phase: their "
                                        "figures are of the whole run; --duration makes them "
                                        "longer",
                                        comparison.steadyless, all)});
  }
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
         fmt::format("use a quieter machine or longer runs{}: as noisy as this, a change by {} "
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
         : metric.sequential ? std::string("by looks")
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
  for (const ComparedSide* side : {&input.a, &input.b}) {
    for (const ComparedSample& sample : side->samples)
      table.rows.push_back({side->label, run(sample), value(sample)});
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
  if (page.attribution != nullptr) report.sections.push_back(*page.attribution);
  report.sections.push_back({"samples", "", {}, {}, {SamplesTable(page)}});
  const ComparedMetric& first = page.comparison.metrics[0];
  report.decided = first.change && (first.identical || first.verdict != ChangeVerdict::kCannotTell);
  return report;
}

namespace {

using Json = nlohmann::ordered_json;

// As people say it: B over A less one; of shares the difference.
Json Relative(Figure figure, const Real& change) {
  if (!change || !std::isfinite(*change)) return nullptr;
  return InfoOf(figure).share ? *change : std::expm1(*change);
}

// `better`, `worse`: "faster" and "slower" of the question asked.
const char* VerdictKey(ChangeVerdict verdict, const char* better, const char* worse) {
  switch (verdict) {
    case ChangeVerdict::kFaster:
      return better;
    case ChangeVerdict::kSlower:
      return worse;
    case ChangeVerdict::kSame:
      return "same";
    case ChangeVerdict::kCannotTell:
      return "cannot_tell";
  }
  return "";
}

Json MetricJson(const ComparedMetric& metric) {
  const FigureInfo& info = InfoOf(metric.figure);
  const auto relative = [&](double value) { return Relative(metric.figure, value); };
  const bool any = !metric.a_values.empty() && !metric.b_values.empty();
  Json out;
  out["metric"] = info.key;
  out["unit"] = info.unit;
  out["higher_is_better"] = info.higher_is_better;
  out["change_is"] = info.share ? "difference" : "ratio_less_1";
  out["a_median"] = any ? Json(metric.a) : Json(nullptr);
  out["b_median"] = any ? Json(metric.b) : Json(nullptr);
  out["change"] = Relative(metric.figure, metric.change);
  out["change_low"] = metric.change ? relative(metric.interval.low) : Json(nullptr);
  out["change_high"] = metric.change ? relative(metric.interval.high) : Json(nullptr);
  out["p"] = NumberOrNull(metric.p);
  out["p_holm"] = NumberOrNull(metric.p_holm);
  out["p_ranks"] = NumberOrNull(metric.p_ranks);
  out["sequential"] = metric.sequential;
  out["p_same"] = NumberOrNull(metric.p_same);
  out["margin"] = relative(metric.margin);
  out["detectable"] = Relative(metric.figure, metric.detectable);
  out["units_count"] = std::min(metric.a_values.size(), metric.b_values.size());
  out["units_needed_count"] = metric.units_needed ? Json(*metric.units_needed) : Json(nullptr);
  out["verdict"] = VerdictKey(metric.verdict, "better", "worse");
  out["word"] = metric.word;
  out["identical"] = metric.identical;
  if (!metric.reason.empty()) out["reason"] = metric.reason;
  return out;
}

Json SideJson(const ComparedSide& side, const std::vector<std::string>& left_out) {
  Json out;
  out["label"] = side.label;
  out["what"] = side.what;
  out["samples"] = Json::array();
  for (size_t i = 0; i < side.samples.size(); ++i) {
    const ComparedSample& sample = side.samples[i];
    Json entry;
    entry["run"] = sample.run_id;
    entry["steady_first_s"] = static_cast<double>(sample.figures.steady_first_ns) * 1e-9;
    entry["steady_last_s"] = static_cast<double>(sample.figures.steady_last_ns) * 1e-9;
    entry["steady_windows_count"] = sample.figures.steady_windows;
    for (size_t f = 0; f < kFigures; ++f) {
      const char* key = InfoOf(static_cast<Figure>(f)).key;
      entry[key] = NumberOrNull(sample.figures.values[f]);
      if (!sample.figures.values[f])
        entry[std::string(key) + "_unavailable"] = sample.figures.reasons[f];
    }
    if (!sample.left_out.empty()) entry["left_out_by"] = sample.left_out;
    if (!left_out[i].empty()) entry["left_out"] = left_out[i];
    out["samples"].push_back(std::move(entry));
  }
  return out;
}

Json NotesJson(const ComparisonNotes& notes) {
  Json out;
  out["wall_s"] = notes.wall_ns > 0 ? Json(static_cast<double>(notes.wall_ns) * 1e-9) : Json();
  out["repeat"] = notes.repeat;
  out["end"] = notes.end;
  out["forced"] = notes.forced;
  out["differences"] = notes.differences;
  out["same"] = notes.same;
  out["outliers"] = notes.outliers;
  out["machine"] = notes.machine;
  out["why"] = notes.why;
  if (notes.why.empty()) out["why_unavailable"] = notes.no_why;
  out["gates"] = Json::array();
  for (const auto& gate : notes.gates)
    out["gates"].push_back({{"gate", gate.text}, {"state", gate.state}, {"why", gate.why}});
  return out;
}

}  // namespace

std::string ComparisonJson(const ComparisonPage& page) {
  const ComparisonInput& input = page.input;
  const Comparison& comparison = page.comparison;
  const ComparedMetric& first = comparison.metrics[0];
  Json out;
  out["schema"] = "headrace.compare/1";
  out["comparison"] = page.notes.comparison_id > 0 ? Json(page.notes.comparison_id) : Json();
  out["name"] = page.notes.name;
  out["verdict"] = VerdictKey(first.verdict, "faster", "slower");
  out["word"] = first.word;
  out["unit"] = ComparedUnitName(input.unit);
  out["units_count"] = comparison.units;
  out["seed"] = input.seed;
  out["margin_ratio"] = input.margin;
  out["alpha"] = input.alpha;
  out["power"] = input.power;
  out["planned_pairs_count"] = input.planned_pairs;
  out["cold"] = input.cold;
  out["stopped_early"] = comparison.stopped_early;
  out["stopped_why"] = comparison.stopped_why;
  if (!comparison.too_few.empty()) out["too_few"] = comparison.too_few;
  out["metrics"] = Json::array();
  for (const ComparedMetric& metric : comparison.metrics)
    out["metrics"].push_back(MetricJson(metric));
  out["noise"] = comparison.noise ? Json(std::expm1(*comparison.noise)) : Json(nullptr);
  out["order_effect"] = nullptr;
  if (comparison.order) {
    out["order_effect"] = {
        {"change", std::expm1(comparison.order->change)},
        {"change_low", NumberOrNull(std::expm1(comparison.order->interval.low))},
        {"change_high", NumberOrNull(std::expm1(comparison.order->interval.high))},
        {"p", comparison.order->p}};
  }
  out["notes"] = NotesJson(page.notes);
  out["attribution"] = nullptr;
  if (page.attribution != nullptr) {
    Report report;
    report.sections.push_back(*page.attribution);
    const Json rendered = Json::parse(RenderJson(report, analysis::RunView()), nullptr, false);
    Json part = Json::object();
    if (rendered.is_object()) {
      for (const auto& [key, value] : rendered.items()) {
        if (key.rfind("attribution", 0) == 0) part[key] = value;
      }
    }
    out["attribution"] = std::move(part);
  }
  out["b_first"] = input.b_first;
  out["a"] = SideJson(input.a, comparison.left_out_a);
  out["b"] = SideJson(input.b, comparison.left_out_b);
  return out.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

namespace {

// Reads what ComparisonJson wrote; a key that is missing or of another type ends it.
class Reader {
 public:
  explicit Reader(const std::string& where) : where_(where) {}

  [[noreturn]] void Fail(const std::string& key) const {
    throw Error(ExitCode::kBadData,
                fmt::format("is not a comparison of this version: '{}'", Printable(key, 60)),
                where_, "make it again with 'headrace compare'");
  }
  const Json& At(const Json& in, const char* key) const {
    if (!in.is_object() || !in.contains(key)) Fail(key);
    return in[key];
  }
  std::string Text(const Json& in, const char* key) const {
    const Json& value = At(in, key);
    if (!value.is_string()) Fail(key);
    return value.get<std::string>();
  }
  double Number(const Json& in, const char* key) const {
    const Json& value = At(in, key);
    if (!value.is_number()) Fail(key);
    return value.get<double>();
  }
  bool Flag(const Json& in, const char* key) const {
    const Json& value = At(in, key);
    if (!value.is_boolean()) Fail(key);
    return value.get<bool>();
  }
  size_t Count(const Json& in, const char* key) const {
    const Json& value = At(in, key);
    if (!value.is_number_unsigned()) Fail(key);
    return value.get<size_t>();
  }
  const Json& List(const Json& in, const char* key) const {
    const Json& value = At(in, key);
    if (!value.is_array()) Fail(key);
    return value;
  }
  std::vector<std::string> Texts(const Json& in, const char* key) const {
    std::vector<std::string> out;
    for (const Json& value : List(in, key)) {
      if (!value.is_string()) Fail(key);
      out.push_back(value.get<std::string>());
    }
    return out;
  }

  ComparedSide Side(const Json& in) const {
    ComparedSide side;
    side.label = Text(in, "label");
    side.what = Text(in, "what");
    for (const Json& entry : List(in, "samples")) {
      ComparedSample& sample = side.samples.emplace_back();
      const Json& run = At(entry, "run");
      if (!run.is_number_integer()) Fail("run");
      sample.run_id = run.get<int64_t>();
      sample.figures.steady_windows = Count(entry, "steady_windows_count");
      // A time of over 300 years is no run's; casting it would not be defined.
      const auto ns = [&](const char* key) {
        const double seconds = Number(entry, key);
        if (!(std::abs(seconds) < 9e9)) Fail(key);
        return static_cast<int64_t>(std::llround(seconds * 1e9));
      };
      sample.figures.steady_first_ns = ns("steady_first_s");
      sample.figures.steady_last_ns = ns("steady_last_s");
      for (size_t f = 0; f < kFigures; ++f) {
        const char* key = InfoOf(static_cast<Figure>(f)).key;
        const Json& value = At(entry, key);
        if (value.is_null()) {
          sample.figures.reasons[f] = Text(entry, (std::string(key) + "_unavailable").c_str());
        } else {
          sample.figures.values[f] = Number(entry, key);
        }
      }
      if (entry.contains("left_out_by")) sample.left_out = Text(entry, "left_out_by");
    }
    return side;
  }

 private:
  const std::string& where_;
};

}  // namespace

StoredComparison ReadComparison(const std::string& json, const std::string& where) {
  const Reader reader(where);
  const Json in = Json::parse(json, nullptr, false);
  if (in.is_discarded() || reader.Text(in, "schema") != "headrace.compare/1") reader.Fail("schema");
  StoredComparison out;
  ComparisonInput& input = out.input;
  const std::string unit = reader.Text(in, "unit");
  if (unit == "pair") {
    input.unit = ComparedUnit::kPair;
  } else if (unit == "run") {
    input.unit = ComparedUnit::kRun;
  } else if (unit == "block") {
    input.unit = ComparedUnit::kBlock;
  } else {
    reader.Fail("unit");
  }
  input.a = reader.Side(reader.At(in, "a"));
  input.b = reader.Side(reader.At(in, "b"));
  for (const Json& value : reader.List(in, "b_first")) {
    if (!value.is_boolean()) reader.Fail("b_first");
    input.b_first.push_back(value.get<bool>());
  }
  input.margin = reader.Number(in, "margin_ratio");
  input.alpha = reader.Number(in, "alpha");
  input.power = reader.Number(in, "power");
  const auto inside = [](double value, double most) { return value > 0 && value < most; };
  if (!inside(input.margin, 1)) reader.Fail("margin_ratio");
  if (!inside(input.alpha, 0.5)) reader.Fail("alpha");
  if (!inside(input.power, 1)) reader.Fail("power");
  input.seed = reader.Count(in, "seed");
  input.planned_pairs = reader.Count(in, "planned_pairs_count");
  if (input.planned_pairs > analysis::kMostPairs) reader.Fail("planned_pairs_count");
  input.cold = reader.Flag(in, "cold");
  const Json& notes = reader.At(in, "notes");
  const Json& id = reader.At(in, "comparison");
  if (id.is_number_integer()) out.notes.comparison_id = id.get<int64_t>();
  out.notes.name = reader.Text(in, "name");
  const Json& wall = reader.At(notes, "wall_s");
  if (wall.is_number() && std::abs(wall.get<double>()) < 9e9)
    out.notes.wall_ns = std::llround(wall.get<double>() * 1e9);
  out.notes.repeat = reader.Text(notes, "repeat");
  out.notes.end = reader.Text(notes, "end");
  out.notes.forced = reader.Flag(notes, "forced");
  out.notes.differences = reader.Texts(notes, "differences");
  out.notes.same = reader.Texts(notes, "same");
  out.notes.outliers = reader.Texts(notes, "outliers");
  if (notes.contains("machine")) out.notes.machine = reader.Text(notes, "machine");
  out.notes.why = reader.Text(notes, "why");
  if (out.notes.why.empty()) out.notes.no_why = reader.Text(notes, "why_unavailable");
  for (const Json& gate : reader.List(notes, "gates")) {
    out.notes.gates.push_back(
        {reader.Text(gate, "gate"), reader.Text(gate, "state"), reader.Text(gate, "why")});
  }
  return out;
}

}  // namespace headrace::dashboards
