#include "cli/plan_emit.h"

#include <cmath>
#include <nlohmann/json.hpp>

#include "cli/command_line.h"
#include "dashboards/json_number.h"

namespace headrace::cli {
namespace {

using Json = nlohmann::ordered_json;
using dashboards::NumberOrNull;

// A value as Python writes it: whole numbers (also "900 << 20"), True, False; else a string.
Json Value(const std::string& text) {
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

Json Bytes(const std::optional<double>& value) {
  return value ? Json(std::llround(*value)) : Json(nullptr);
}

Json ToJson(const analysis::RunView& view, const analysis::Emitted& e) {
  const bool torch = e.target == analysis::EmitTarget::kDataLoader;
  Json out;
  out["target"] = torch ? "torch.utils.data.DataLoader" : "tf.data";
  out["basis"] = e.basis;
  out["settings"] = Json::object();
  out["lines"] = Json::array();
  for (const analysis::EmittedSetting& s : e.settings) {
    const char* kind = s.is_choice ? "choice" : s.is_call ? "call" : torch ? "argument" : "option";
    if (!s.is_choice && !s.is_call) out["settings"][s.name] = Value(s.value);
    out["lines"].push_back({{"name", s.name},
                            {"value", Value(s.value)},
                            {"was", Value(s.was)},
                            {"kind", kind},
                            {"why", s.why}});
  }
  out["not_recommended"] = Json::array();
  for (const analysis::NotEmitted& one : e.unknown) {
    out["not_recommended"].push_back({{"name", one.name}, {"why", one.why}});
  }
  out["now_batches_per_second"] = NumberOrNull(e.now);
  out["predicted"] = nullptr;
  if (e.predicted) {
    out["predicted"] = {{"batches_per_second", NumberOrNull(e.predicted)},
                        {"low", NumberOrNull(e.predicted_interval.low)},
                        {"high", NumberOrNull(e.predicted_interval.high)},
                        {"gain_low", NumberOrNull(e.gain_interval.low)},
                        {"gain_high", NumberOrNull(e.gain_interval.high)},
                        {"level_ratio", 0.9}};
  }
  out["gain_at_most_ratio"] = e.at_most ? Json(*e.at_most - 1) : Json(nullptr);
  out["not_predicted"] = e.gain_note;
  out["memory"] = {{"worker_bytes", Bytes(e.worker_bytes)},
                   {"workers_now_bytes", Bytes(e.workers_now_bytes)},
                   {"workers_bytes", Bytes(e.workers_bytes)},
                   {"note", e.memory_note}};
  out["python"] = analysis::EmitPython(view, e);
  return out;
}

std::string Dump(const Json& json) {
  return json.dump(2, ' ', false, Json::error_handler_t::replace);
}

}  // namespace

void AddEmitOption(CommandLine* command_line, std::string* target) {
  CommandOption* emit =
      command_line
          ->AddOption("--emit", *target,
                      "Say it as arguments of torch.utils.data.DataLoader, or options of tf.data, "
                      "to be pasted; also of runs seen from outside (docs/plan.md)")
          ->Check(OneOf({"dataloader", "tfdata"}));
  for (const char* other : {"--what-if", "--nodes", "--cache", "--lp", "--explain",
                            "--price-per-core-hour", "--watts-per-core"}) {
    emit->Excludes(command_line->Find(other));
  }
}

analysis::Emitted EmitFor(const std::string& target, const analysis::RunView& view,
                          const analysis::Budget& budget) {
  return target == "tfdata" ? analysis::EmitTfData(view, budget)
                            : analysis::EmitDataLoader(view, budget);
}

std::string EmitJson(const analysis::RunView& view, const analysis::Emitted& emitted) {
  return Dump(ToJson(view, emitted));
}

std::string OutsidePlanJson(const analysis::RunView& view, const analysis::Emitted& emitted) {
  Json out;
  out["schema"] = "headrace.plan/1";
  out["run"] = view.run.run_id;
  out["run_name"] = view.run.name;
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
  out["emit"] = ToJson(view, emitted);
  return Dump(out) + "\n";
}

}  // namespace headrace::cli
