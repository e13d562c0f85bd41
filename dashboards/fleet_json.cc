#include "dashboards/fleet_json.h"

#include <nlohmann/json.hpp>
#include <optional>

#include "dashboards/json_number.h"

namespace headrace::dashboards {
namespace {

using analysis::FleetBound;
using analysis::FleetOutcome;
using analysis::FleetPlan;
using analysis::FleetResource;
using analysis::FleetScenario;
using analysis::FleetSimulation;
using analysis::NodeFit;
using analysis::NodesFile;
using analysis::NodeType;
using analysis::RowCost;
using Json = nlohmann::ordered_json;

Json CountsJson(const NodesFile& nodes, const std::vector<int>& counts) {
  Json object = Json::object();
  for (size_t t = 0; t < counts.size(); ++t) object[nodes.types[t].name] = counts[t];
  return object;
}

Json NodeJson(const NodeType& type, const NodeFit& fit, const analysis::FleetAlternative& alone,
              int count) {
  Json node;
  node["name"] = type.name;
  node["count"] = count;
  node["rows_per_second"] = fit.rows_per_s;
  node["rows_per_second_low"] = fit.interval.low;
  node["rows_per_second_high"] = fit.interval.high;
  node["rows_per_second_full"] = fit.full_rows_per_s;
  node["speed_known"] = fit.speed_known;
  node["cpu_seconds_per_row"] = fit.cpu_s_per_row;
  node["cpu_ratio"] = fit.cpu_ratio;
  node["threads"] = fit.threads;
  node["processes"] = fit.processes;
  node["memory_bytes"] = NumberOrNull(fit.memory_bytes);
  node["watts"] = NumberOrNull(fit.watts);
  node["limits"] = Json::array();
  for (const analysis::NodeBound& bound : fit.bounds) {
    node["limits"].push_back({{"resource", analysis::NodeResourceKey(bound.resource)},
                              {"rows_per_second", bound.rows_per_s},
                              {"low", bound.interval.low},
                              {"high", bound.interval.high},
                              {"probability", bound.probability}});
  }
  node["alone"] = {{"count", alone.count ? Json(*alone.count) : Json(nullptr)},
                   {"price_per_hour", alone.count ? Json(alone.price_per_hour) : Json(nullptr)},
                   {"watts", alone.count ? NumberOrNull(alone.watts) : Json(nullptr)}};
  return node;
}

Json SimulationJson(const NodesFile& nodes, const FleetSimulation& simulation) {
  const FleetOutcome& planned = simulation.planned;
  Json object;
  object["seed"] = simulation.seed;
  object["duration_seconds"] = simulation.duration_s;
  object["events"] = simulation.events;
  object["rows_per_second"] = simulation.planned_rows_per_s;
  object["most_rows_per_second"] = NumberOrNull(simulation.most_rows_per_s);
  if (!simulation.most_rows_per_s) object["most_rows_per_second_unavailable"] = simulation.no_most;
  object["missing_count"] = simulation.missing ? Json(*simulation.missing) : Json(nullptr);
  object["stall_ratio"] = planned.stall_ratio;
  object["worst_client_stall_ratio"] = planned.worst_stall_ratio;
  object["client_wait_p99_seconds"] = planned.wait_p99_s;
  object["batch_latency_p50_seconds"] = planned.latency_p50_s;
  object["batch_latency_p99_seconds"] = planned.latency_p99_s;
  object["batch_work_p50_seconds"] = planned.work_p50_s;
  object["batch_work_p99_seconds"] = planned.work_p99_s;
  object["busy_ratio"] = {{"cores", planned.cores_ratio},
                          {"storage", planned.storage_ratio},
                          {"dispatcher", planned.dispatcher_ratio},
                          {"client_nic", planned.client_nic_ratio}};
  object["scenarios"] = Json::array();
  for (const FleetScenario& scenario : simulation.scenarios) {
    Json entry;
    entry["key"] = scenario.key;
    entry["name"] = scenario.name;
    entry["at_seconds"] = scenario.disturbance.at_s;
    entry["lost"] = scenario.disturbance.lost.empty()
                        ? Json::object()
                        : CountsJson(nodes, scenario.disturbance.lost);
    const bool known = scenario.unavailable.empty();
    if (!known) entry["unavailable"] = scenario.unavailable;
    const auto figure = [&](double value) { return known ? Json(value) : Json(nullptr); };
    entry["rows_per_second_before"] = figure(scenario.before_rows_per_s);
    entry["rows_per_second_after"] = figure(scenario.after_rows_per_s);
    entry["stall_ratio_after"] = figure(scenario.after_stall_ratio);
    entry["stall_ratio_worst"] = figure(scenario.worst_stall_ratio);
    entry["target_kept"] = known ? Json(scenario.kept) : Json(nullptr);
    entry["back_seconds"] = known ? NumberOrNull(scenario.back_s) : Json(nullptr);
    entry["redone_rows"] = figure(scenario.lost_rows);
    entry["spares"] = scenario.spares ? Json(*scenario.spares) : Json(nullptr);
    if (!scenario.spares && scenario.spares_tried > 0)
      entry["spares_tried"] = scenario.spares_tried;
    entry["spare_type"] = nodes.types[scenario.spare_type].name;
    object["scenarios"].push_back(std::move(entry));
  }
  object["assumptions"] = simulation.assumptions;
  return object;
}

Json RowJson(const RowCost& cost) {
  const analysis::RowFigures& row = cost.figures;
  Json object;
  object["cpu_seconds"] = row.cpu_s();
  object["blocked_seconds"] = row.blocked_s;
  const auto put = [&](const char* key, const std::optional<double>& value,
                       const std::string& reason) {
    object[key] = NumberOrNull(value);
    if (!value) object[std::string(key) + "_unavailable"] = reason;
  };
  put("stored_bytes", row.stored_bytes, cost.no_stored);
  put("stored_requests", row.stored_requests, cost.no_requests);
  put("sent_bytes", row.sent_bytes, cost.no_sent);
  put("memory_traffic_bytes", row.memory_traffic_bytes, cost.no_traffic);
  object["rows_per_batch"] = cost.batch_rows;
  object["rows_per_split"] = cost.split_rows;
  object["operators"] = Json::array();
  for (size_t i = 0; i < cost.operators.size(); ++i) {
    object["operators"].push_back({{"name", cost.operators[i].name},
                                   {"kind", cost.operators[i].kind},
                                   {"cpu_seconds", row.operator_cpu_s[i]}});
  }
  object["other_cpu_seconds"] = row.other_cpu_s;
  return object;
}

Json LimitsJson(const FleetPlan& plan) {
  Json limits = Json::array();
  for (const FleetBound& bound : plan.bounds) {
    limits.push_back({{"resource", analysis::FleetResourceKey(bound.resource)},
                      {"rows_per_second", bound.rows_per_s},
                      {"low", bound.interval.low},
                      {"high", bound.interval.high},
                      {"utilisation_ratio", bound.utilisation},
                      {"probability", bound.probability}});
    if (bound.per_row > 0) {
      limits.back()["per_row"] = bound.per_row;
      limits.back()["capacity_per_second"] = bound.capacity;
    }
  }
  return limits;
}

Json CheckJson(const analysis::PlanCheck& check) {
  Json out = {{"job", check.job}, {"workers_count", check.workers}, {"hosts_count", check.hosts}};
  if (!check.unavailable.empty()) {
    out["unavailable"] = check.unavailable;
    out["fix"] = check.fix;
    return out;
  }
  const auto rate = [](double value, const analysis::Interval& interval) {
    return Json{{"rows_per_second", value}, {"low", interval.low}, {"high", interval.high}};
  };
  out["planned_workers_count"] = check.planned_workers;
  out["limit"] = analysis::JobLimitKey(check.limit);
  out["measured"] = rate(check.measured, check.measured_interval);
  out["predicted"] = rate(check.predicted, check.predicted_interval);
  out["error_ratio"] = check.error_ratio;
  out["agrees"] = check.agrees;
  return out;
}

}  // namespace

std::string FleetJson(const FleetPage& page) {
  const NodesFile& nodes = page.nodes;
  const FleetPlan& plan = page.plan;
  Json out;
  out["schema"] = "headrace.fleet/1";
  out["run"] = page.run.run.run_id;
  out["run_name"] = page.run.run.name;
  out["feasible"] = !plan.shortage.has_value();
  out["target_rows_per_second"] = plan.target;
  out["demand_rows_per_second"] = NumberOrNull(plan.demand);
  if (plan.shortage) {
    out["shortage"] = {{"resource", analysis::FleetResourceKey(plan.shortage->resource)},
                       {"most_rows_per_second", plan.shortage->most_rows_per_s},
                       {"short_ratio", plan.shortage->short_ratio},
                       {"text", plan.shortage->text},
                       {"fix", plan.shortage->fix}};
  }
  out["counts"] = CountsJson(nodes, plan.counts);
  out["currency"] = nodes.currency;
  out["price_per_hour"] = plan.price_per_hour;
  out["price_per_million_rows"] = plan.price_per_million_rows;
  out["watts"] = NumberOrNull(plan.watts);
  if (!plan.watts) out["watts_unavailable"] = plan.no_watts;
  out["watt_hours_per_million_rows"] = NumberOrNull(plan.watt_hours_per_million_rows);
  out["reached_probability"] = plan.reached_probability;
  if (!plan.sure_counts.empty()) {
    out["sure"] = {{"level_ratio", 0.9},
                   {"counts", CountsJson(nodes, plan.sure_counts)},
                   {"price_per_hour", plan.sure_price_per_hour}};
  } else {
    out["sure"] = nullptr;
    if (!plan.no_sure.empty()) out["sure_unavailable"] = plan.no_sure;
  }
  out["limits"] = LimitsJson(plan);
  out["not_limited_by"] = Json::array();
  for (const FleetResource resource : plan.unlimited)
    out["not_limited_by"].push_back(analysis::FleetResourceKey(resource));
  out["next_node"] = {
      {"name", nodes.types[plan.main_type()].name},
      {"gain_rows_per_second", plan.next_node_gain},
      {"useful_count", plan.useful_nodes ? Json(*plan.useful_nodes) : Json(nullptr)}};
  if (plan.present) {
    out["present"] = {{"rows_per_second", plan.present->rows_per_s},
                      {"starved_ratio", plan.present->starved_ratio},
                      {"surplus_ratio", plan.present->surplus_ratio},
                      {"price_per_hour", plan.present->price_per_hour}};
  }
  if (page.check != nullptr) out["check"] = CheckJson(*page.check);
  out["nodes"] = Json::array();
  for (size_t t = 0; t < nodes.types.size(); ++t) {
    out["nodes"].push_back(
        NodeJson(nodes.types[t], plan.fits[t], plan.alternatives[t], plan.counts[t]));
  }
  if (page.simulation != nullptr && page.simulation->unavailable.empty()) {
    out["simulation"] = SimulationJson(nodes, *page.simulation);
  } else if (page.simulation != nullptr) {
    out["simulation_unavailable"] = page.simulation->unavailable;
  }
  out["row"] = RowJson(page.cost);
  out["assumptions"] = FleetAssumptions(page.cost, nodes, plan);
  return out.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace headrace::dashboards
