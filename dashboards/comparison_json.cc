#include "dashboards/comparison_json.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/error.h"
#include "dashboards/json_number.h"
#include "dashboards/render/render.h"

namespace headrace::dashboards {
namespace {

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
using analysis::kFigures;
using analysis::Real;

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
  if (!notes.look.empty()) out["look"] = notes.look;
  if (!notes.a_limit.empty()) out["a_limit"] = notes.a_limit;
  if (!notes.b_limit.empty()) out["b_limit"] = notes.b_limit;
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

std::string VerdictKey(const analysis::Comparison& comparison) {
  return VerdictKey(comparison.metrics[0].verdict, "faster", "slower");
}

std::string ComparisonJson(const ComparisonPage& page) {
  const ComparisonInput& input = page.input;
  const Comparison& comparison = page.comparison;
  const ComparedMetric& first = comparison.metrics[0];
  Json out;
  out["schema"] = "headrace.compare/1";
  out["comparison"] = page.notes.comparison_id > 0 ? Json(page.notes.comparison_id) : Json();
  out["name"] = page.notes.name;
  out["verdict"] = VerdictKey(comparison);
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
  if (page.attribution) {
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
  if (notes.contains("look")) out.notes.look = reader.Text(notes, "look");
  if (notes.contains("a_limit")) out.notes.a_limit = reader.Text(notes, "a_limit");
  if (notes.contains("b_limit")) out.notes.b_limit = reader.Text(notes, "b_limit");
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
