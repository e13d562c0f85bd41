#include "experiments/decision_record.h"

#include <cmath>
#include <nlohmann/json.hpp>

#include "analysis/run/read_run.h"
#include "base/error.h"
#include "dashboards/json_number.h"

namespace headrace::experiments {
namespace {

using Json = nlohmann::ordered_json;
using dashboards::NumberOrNull;

Json Time(const std::optional<int64_t>& value) { return value ? Json(*value) : Json(nullptr); }
Json IntervalOf(bool known, const analysis::Interval& interval, double level) {
  if (!known || !std::isfinite(interval.low) || !std::isfinite(interval.high)) return nullptr;
  return {{"low", interval.low}, {"high", interval.high}, {"level_ratio", level}};
}

}  // namespace

std::string DecisionJson(const analysis::Decision& decision) {
  Json out;
  out["schema"] = "headrace.decision/1";
  out["decision"] = decision.index;
  out["at_ns"] = decision.at_ns;
  out["applied_ns"] = Time(decision.applied_ns);
  out["judged_ns"] = Time(decision.judged_ns);
  out["action"] = analysis::TuneActionName(decision.action);
  out["changes"] = Json::array();
  for (const analysis::Change& change : decision.changes) {
    out["changes"].push_back(
        {{"knob", change.knob},
         {"from", change.from},
         {"to", change.to},
         {"why", change.why},
         {"memory_change_bytes",
          change.memory_bytes ? Json(std::llround(*change.memory_bytes)) : Json(nullptr)}});
  }
  out["settings"] = Json::object();
  for (const auto& [knob, value] : decision.settings) out["settings"][knob] = value;
  if (decision.action == analysis::TuneAction::kCache) {
    out["start_settings"] = Json::object();
    for (const auto& [key, value] : decision.start_settings) out["start_settings"][key] = value;
  }
  out["limited_by"] = decision.limited_by ? Json(decision.limited_by->name) : Json(nullptr);
  out["limited_by_kind"] =
      decision.limited_by ? Json(decision.limited_by->kind_name()) : Json(nullptr);
  out["then_limited_by"] =
      decision.then_limited_by.empty() ? Json(nullptr) : Json(decision.then_limited_by);
  out["now_batches_per_second"] = NumberOrNull(decision.now);
  out["predicted_batches_per_second"] = NumberOrNull(decision.predicted);
  out["predicted_interval"] =
      IntervalOf(decision.predicted.has_value(), decision.predicted_interval, 0.9);
  out["observed_batches_per_second"] = NumberOrNull(decision.observed);
  out["observed_interval"] =
      IntervalOf(decision.observed.has_value(), decision.observed_interval, 0.95);
  out["effect_ratio"] = NumberOrNull(decision.effect);
  out["effect_interval"] = IntervalOf(decision.effect.has_value(), decision.effect_interval, 0.95);
  out["pairs_count"] = decision.pairs;
  out["memory_bytes"] =
      decision.memory_bytes ? Json(std::llround(*decision.memory_bytes)) : Json(nullptr);
  out["verdict"] = analysis::TuneVerdictName(decision.verdict);
  out["reason"] = decision.reason;
  return out.dump(-1, ' ', false, Json::error_handler_t::replace);
}

collectors::DecisionRow DecisionRowOf(const analysis::Decision& decision) {
  collectors::DecisionRow row;
  row.index = decision.index;
  row.at_ns = decision.at_ns;
  row.applied_ns = decision.applied_ns;
  row.observed_ns = decision.judged_ns;
  row.action = analysis::TuneActionName(decision.action);
  if (decision.limited_by) {
    row.limited_by = decision.limited_by->name;
    row.limited_by_kind = decision.limited_by->kind_name();
  }
  row.now_rate = decision.now;
  if (decision.predicted) {
    row.predicted_rate = decision.predicted;
    row.predicted_low = decision.predicted_interval.low;
    row.predicted_high = decision.predicted_interval.high;
  }
  if (decision.observed) {
    row.observed_rate = decision.observed;
    row.observed_low = decision.observed_interval.low;
    row.observed_high = decision.observed_interval.high;
  }
  row.verdict = analysis::TuneVerdictName(decision.verdict);
  row.reason = decision.reason;
  row.detail_json = DecisionJson(decision);
  for (const analysis::Change& change : decision.changes) {
    row.changes.push_back({change.knob, std::to_string(change.from), std::to_string(change.to)});
  }
  return row;
}

void StoredDecisions::Take(const analysis::Decision& decision) {
  if (!failure_.empty()) return;
  try {
    collectors::RunStore(database_).SetDecision(run_id_, DecisionRowOf(decision));
  } catch (const Error& error) {
    failure_ = error.what();
  }
}

}  // namespace headrace::experiments
