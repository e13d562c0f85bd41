#include "dashboards/terminal/top_json.h"

#include <cmath>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

namespace headrace::dashboards {
namespace {

constexpr double kSecondsOfNs = 1e-9;

using Json = nlohmann::ordered_json;

Json OrNull(const std::optional<double>& value, double scale = 1) {
  return value && std::isfinite(*value) ? Json(*value * scale) : Json(nullptr);
}

Json SharesJson(const TopShares& shares) {
  return {{"busy_ratio", OrNull(shares.busy)},       {"on_cpu_ratio", OrNull(shares.on_core)},
          {"blocked_ratio", OrNull(shares.blocked)}, {"runnable_ratio", OrNull(shares.wants)},
          {"wait_in_ratio", OrNull(shares.wait_in)}, {"wait_out_ratio", OrNull(shares.wait_out)}};
}

Json StageJson(const TopStage& stage) {
  Json json = {{"stage", stage.name}, {"threads_count", OrNull(stage.threads_count)}};
  json.update(SharesJson(stage.shares));
  json["allows_batches_per_second"] = OrNull(stage.allows);
  json["limit"] = stage.limit;
  json["queue"] = nullptr;
  if (stage.queue) {
    json["queue"] = {{"queue", stage.queue->name},
                     {"capacity_count", stage.queue->capacity_count},
                     {"mean_occupancy_ratio", OrNull(stage.queue->fill)},
                     {"full_ratio", OrNull(stage.queue->full)},
                     {"empty_ratio", OrNull(stage.queue->empty)}};
  }
  json["operators"] = Json::array();
  for (const TopOperator& op : stage.operators) {
    Json row = {{"operator", op.name}};
    row.update(SharesJson(op.shares));
    row["seconds_per_element"] = OrNull(op.element_ns, kSecondsOfNs);
    row["elements_per_second"] = OrNull(op.elements_per_s);
    row["rows_per_second"] = OrNull(op.rows_per_s);
    row["bytes_in_per_second"] = OrNull(op.bytes_in_per_s);
    row["bytes_out_per_second"] = OrNull(op.bytes_out_per_s);
    json["operators"].push_back(std::move(row));
  }
  return json;
}

Json VerdictJson(const TopModel& model) {
  if (!model.page) return nullptr;
  Json lines = Json::array();
  for (const PageLine& line : model.page->lines) {
    lines.push_back({{"label", line.label}, {"text", line.text}, {"command", line.command}});
  }
  return {{"decided", model.decided},
          {"badge", model.page->badge},
          {"verdict", model.page->verdict},
          {"conditions", model.page->conditions},
          {"lines", std::move(lines)},
          {"behind_seconds", static_cast<double>(model.verdict_behind_ns) * kSecondsOfNs}};
}

}  // namespace

std::string TopJson(const TopModel& model) {
  Json json = {{"schema", "headrace.top/1"},
               {"run",
                {{"run_id", model.run_id},
                 {"name", model.name},
                 {"program", model.program},
                 {"pid", model.pid},
                 {"state", model.state},
                 {"recorded_seconds", static_cast<double>(model.recorded_ns) * kSecondsOfNs},
                 {"measurement_level", model.level}}}};
  json["window"] = nullptr;
  if (model.window_ns > 0) {
    json["window"] = {{"steady", model.steady},
                      {"from_seconds", static_cast<double>(model.from_ns) * kSecondsOfNs},
                      {"to_seconds", static_cast<double>(model.to_ns) * kSecondsOfNs},
                      {"seconds", static_cast<double>(model.window_ns) * kSecondsOfNs}};
  }
  json["step_seconds"] = OrNull(model.step_ns, kSecondsOfNs);
  json["stall_ratio"] = OrNull(model.wait_ratio);
  json["rows_per_second"] = OrNull(model.rows_per_s);
  json["wanted_rows_per_second"] = OrNull(model.wanted_rows_per_s);
  json["cores_used"] = OrNull(model.cores_used);
  json["cores_count"] = OrNull(model.cores_count);
  json["rss_bytes"] = OrNull(model.rss_bytes);
  json["recording_machine_ratio"] = OrNull(model.cost_ratio);
  json["events_lost_count"] = OrNull(model.lost_count);
  json["stages"] = Json::array();
  for (const TopStage& stage : model.stages) json["stages"].push_back(StageJson(stage));
  json["trainer"] = nullptr;
  if (model.trainer) {
    json["trainer"] = {{"busy_ratio", OrNull(model.trainer->busy)},
                       {"allows_batches_per_second", OrNull(model.trainer->allows)},
                       {"limit", model.trainer->limit}};
  }
  json["resources"] = Json::array();
  for (const TopResource& resource : model.resources) {
    json["resources"].push_back({{"resource", resource.name},
                                 {"used_ratio", resource.used_ratio},
                                 {"allows_batches_per_second", resource.allows},
                                 {"limit", resource.limit}});
  }
  json["units"] = Json::array();
  for (const TopUnit& unit : model.units) {
    json["units"].push_back({{"unit", unit.name},
                             {"role", unit.role},
                             {"on_cpu_ratio", unit.on_core},
                             {"runnable_ratio", unit.wants},
                             {"waits_for", unit.waits_for},
                             {"waits_ratio", unit.waits}});
  }
  json["verdict"] = VerdictJson(model);
  json["waiting_for"] = model.waiting.empty() ? Json(nullptr) : Json(model.waiting);
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace headrace::dashboards
