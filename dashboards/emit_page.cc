#include "dashboards/emit_page.h"

#include <fmt/format.h>

#include <cstdlib>
#include <nlohmann/json.hpp>

#include "base/units.h"
#include "dashboards/json_number.h"

namespace headrace::dashboards {
namespace {

using Json = nlohmann::ordered_json;

// A value as Python writes it: whole numbers (also "900 << 20"), True, False; else a string.
Json PythonValue(const std::string& text) {
  if (text.empty()) return nullptr;
  if (text == "True") return true;
  if (text == "False") return false;
  char* end = nullptr;
  const long long number = std::strtoll(text.c_str(), &end, 10);
  if (end == text.c_str()) return text;
  if (*end == '\0') return number;
  if (std::string(end) == " << 20") return number << 20;
  return text;
}

Json SettingJson(const analysis::EmittedSetting& setting, bool torch) {
  const char* kind = setting.is_choice ? "choice"
                     : setting.is_call ? "call"
                     : torch           ? "argument"
                                       : "option";
  return {{"name", setting.name},
          {"value", PythonValue(setting.value)},
          {"was", PythonValue(setting.was)},
          {"kind", kind},
          {"why", setting.why}};
}

Json EmitPredictionJson(const analysis::Emitted& emitted) {
  if (!emitted.predicted) return nullptr;
  return {{"batches_per_second", NumberOrNull(emitted.predicted)},
          {"low", NumberOrNull(emitted.predicted_interval.low)},
          {"high", NumberOrNull(emitted.predicted_interval.high)},
          {"gain_low", NumberOrNull(emitted.gain_interval.low)},
          {"gain_high", NumberOrNull(emitted.gain_interval.high)},
          {"level_ratio", 0.9}};
}

}  // namespace

std::string EmitText(const analysis::RunView& run, const analysis::Emitted& emitted,
                     const std::string& output) {
  std::string text = analysis::EmitPython(run, emitted);
  if (emitted.target != analysis::EmitTarget::kDataLoader) return text;
  return text +
         fmt::format(
             "# or, without pasting: {} plan {}{} --emit dataloader -o {}; then in the program:\n"
             "#   loader = DataLoader(dataset, **headrace.apply(\"plan.json\", DataLoader, ...))\n",
             run.program, run.run.run_id, run.database_option,
             output.empty() ? "plan.json" : ShellWord(output));
}

Json EmitJson(const analysis::RunView& run, const analysis::Emitted& emitted) {
  const bool torch = emitted.target == analysis::EmitTarget::kDataLoader;
  Json out;
  out["target"] = torch ? "torch.utils.data.DataLoader" : "tf.data";
  out["basis"] = emitted.basis;
  out["settings"] = Json::object();
  out["lines"] = Json::array();
  for (const analysis::EmittedSetting& setting : emitted.settings) {
    if (!setting.is_choice && !setting.is_call)
      out["settings"][setting.name] = PythonValue(setting.value);
    out["lines"].push_back(SettingJson(setting, torch));
  }
  out["not_recommended"] = Json::array();
  for (const analysis::NotEmitted& one : emitted.unknown)
    out["not_recommended"].push_back({{"name", one.name}, {"why", one.why}});
  out["now_batches_per_second"] = NumberOrNull(emitted.now);
  out["predicted"] = EmitPredictionJson(emitted);
  out["gain_at_most_ratio"] = emitted.at_most ? Json(*emitted.at_most - 1) : Json(nullptr);
  out["not_predicted"] = emitted.gain_note;
  out["doubt"] = emitted.doubt;
  out["memory"] = {{"worker_bytes", WholeOrNull(emitted.worker_bytes)},
                   {"workers_now_bytes", WholeOrNull(emitted.workers_now_bytes)},
                   {"workers_bytes", WholeOrNull(emitted.workers_bytes)},
                   {"note", emitted.memory_note}};
  out["python"] = analysis::EmitPython(run, emitted);
  return out;
}

std::string OutsidePlanJson(const analysis::RunView& run, const analysis::Emitted& emitted) {
  Json out;
  out["schema"] = "headrace.plan/1";
  out["run"] = run.run.run_id;
  out["run_name"] = run.run.name;
  out["pipeline"] = "";
  out["settings"] = Json::object();
  out["changes"] = Json::array();
  out["now"] = {{"batches_per_second", nullptr}, {"rows_per_second", nullptr}};
  out["caches"] = Json::array();
  out["predicted"] = {{"batches_per_second", nullptr}, {"rows_per_second", nullptr}};
  out["gain_ratio"] = nullptr;
  out["gain_interval"] = {{"low", nullptr}, {"high", nullptr}, {"level_ratio", 0.9}};
  out["promise"] = {{"batches_per_second", nullptr}, {"probability", 0.9}};
  out["risk"] = {{"slower_probability", nullptr}};
  out["then_limited_by"] = "";
  for (const char* name : {"then_limited_by_kind", "memory_bytes", "memory_change_bytes", "solver",
                           "cores_used", "watts"}) {
    out[name] = nullptr;
  }
  out["objectives"] = Json::array();
  out["worth_of_more"] = Json::array();
  out["emit"] = EmitJson(run, emitted);
  return out.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace headrace::dashboards
