#include <cmath>
#include <nlohmann/json.hpp>

#include "dashboards/json_number.h"
#include "dashboards/render/render.h"

namespace headrace::dashboards {
namespace {

using Json = nlohmann::ordered_json;

void Put(Json* object, const std::string& key, const Value& value) {
  const size_t dot = key.find('.');
  if (dot != std::string::npos) {
    Put(&(*object)[key.substr(0, dot)], key.substr(dot + 1), value);
    return;
  }
  if (const std::string* text = std::get_if<std::string>(&value)) {
    (*object)[key] = *text;
    return;
  }
  const Quantity& quantity = std::get<Quantity>(value);
  if (!quantity.available()) {
    (*object)[key] = nullptr;
    (*object)[key + "_unavailable"] = quantity.reason();
    return;
  }
  const double scale = quantity.unit() == Unit::kNanoseconds ? 1e-9 : 1;
  (*object)[key] = NumberOrNull(quantity.value() * scale);
  if (quantity.has_interval()) {
    (*object)[key + "_low"] = NumberOrNull(quantity.low() * scale);
    (*object)[key + "_high"] = NumberOrNull(quantity.high() * scale);
  }
}

// What people read of the run, as they read it.
Json PageJson(const FirstPage& page) {
  Json lines = Json::array();
  for (const PageLine& line : page.lines) {
    lines.push_back({{"label", line.label}, {"text", line.text}, {"command", line.command}});
  }
  constexpr const char* kSeverities[] = {"none", "good", "moderate", "high"};
  return {{"badge", page.badge},
          {"severity", kSeverities[static_cast<size_t>(page.severity)]},
          {"verdict", page.verdict},
          {"conditional", page.conditional},
          {"conditions", page.conditions},
          {"lines", std::move(lines)}};
}

}  // namespace

std::string RenderJson(const Report& report, const analysis::RunView& run) {
  Json root;
  root["schema"] = "headrace.report/1";
  root["run"] = {{"id", run.run.run_id},
                 {"name", run.run.name},
                 {"state", run.run.state},
                 {"program", run.run.program},
                 {"pid", run.run.pid},
                 {"pipeline", run.run.pipeline_path},
                 {"started_seconds", static_cast<double>(run.run.started_realtime_ns) * 1e-9},
                 {"duration_seconds", static_cast<double>(run.run.duration_ns) * 1e-9},
                 {"accounting_level", run.run.accounting_level},
                 {"hostname", run.run.hostname},
                 {"kernel", run.run.kernel},
                 {"cpu_model", run.run.cpu_model},
                 {"headrace_version", run.run.headrace_version}};
  if (!report.first.badge.empty()) root["page"] = PageJson(report.first);
  for (const Section& section : report.sections) {
    for (const Fact& fact : section.facts) Put(&root[section.key], fact.key, fact.value);
    for (const Table& table : section.tables) {
      Json rows = Json::array();
      for (const std::vector<Value>& row : table.rows) {
        Json object = Json::object();
        for (size_t i = 0; i < row.size(); ++i) Put(&object, table.columns[i].key, row[i]);
        rows.push_back(std::move(object));
      }
      root[table.key] = std::move(rows);
    }
  }
  return root.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace headrace::dashboards
