#include "experiments/plan_file.h"

#include <fmt/format.h>
#include <sched.h>

#include <cmath>
#include <cstdint>
#include <limits>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/file.h"
#include "experiments/json_fault.h"

namespace headrace::experiments {
namespace {

using nlohmann::json;

constexpr uint64_t kMostPlanBytes = 4 << 20;  // a plan of a hundred operators has some 50 kB
constexpr const char* kMakeOne = "make one with 'headrace plan latest -o plan.json'";

[[noreturn]] void NoPlan(const std::string& where, const std::string& why) {
  throw Error(ExitCode::kBadData,
              "is not a plan (JSON with \"schema\": \"headrace.plan/1\" and \"settings\"): " + why,
              where, kMakeOne);
}

std::string TextOf(const json& in, const char* key) {
  const auto found = in.find(key);
  return found != in.end() && found->is_string() ? found->get<std::string>() : std::string();
}

std::optional<int64_t> RunOf(const json& plan) {
  const auto found = plan.find("run");
  if (found == plan.end() || !found->is_number_unsigned()) return std::nullopt;
  const auto run = found->get<uint64_t>();
  if (run > static_cast<uint64_t>(std::numeric_limits<int64_t>::max())) return std::nullopt;
  return static_cast<int64_t>(run);
}

auto SettingsOf(const json& plan, const std::string& path) {
  decltype(PlanFile::settings) settings;
  for (const auto& [knob, value] : plan.at("settings").items()) {
    if (!value.is_string() && !value.is_number() && !value.is_boolean()) {
      throw Error(ExitCode::kBadData, fmt::format("setting '{}' has no value", Printable(knob)),
                  path, kMakeOne);
    }
    settings.emplace_back(knob, value.is_string() ? value.get<std::string>() : value.dump());
  }
  return settings;
}

}  // namespace

PlanFile ParsePlan(const std::string& text, const std::string& path, int cores) {
  if (const auto fault = FindJsonFault(text))
    NoPlan(fmt::format("{}: byte {}", path, fault->byte), fault->what);
  const json plan = json::parse(text);
  if (!plan.is_object()) NoPlan(path, "it is not an object");
  if (TextOf(plan, "schema") != "headrace.plan/1") NoPlan(path, "the schema is another, or none");
  if (!plan.contains("settings") || !plan["settings"].is_object()) NoPlan(path, "no settings");
  PlanFile file;
  file.settings = SettingsOf(plan, path);
  const auto predicted = plan.find("predicted");
  if (predicted == plan.end() || !predicted->is_object()) return file;
  // A plan that changes nothing predicted nothing, and one for other cores says nothing of these.
  const std::optional<double> rate = NumberOf(*predicted, "batches_per_second");
  const bool same_cores = NumberOf(plan, "cores").value_or(cores) == cores;
  if (!rate || !std::isfinite(*rate) || *rate <= 0 || file.settings.empty() || !same_cores)
    return file;
  file.pipeline = TextOf(plan, "pipeline");
  file.prediction = {RunOf(plan),
                     *rate,
                     NumberOf(*predicted, "low"),
                     NumberOf(*predicted, "high"),
                     TextOf(plan, "then_limited_by"),
                     TextOf(plan, "then_limited_by_kind")};
  return file;
}

PlanFile ReadPlan(const std::string& path) {
  cpu_set_t allowed;
  const bool known = sched_getaffinity(0, sizeof(allowed), &allowed) == 0;
  std::string text;
  try {
    text = ReadWholeFile(path, kMostPlanBytes);
  } catch (const Error& error) {
    throw Error(error.code(), error.fact(), error.where(),
                error.fix().empty() ? kMakeOne : error.fix());
  }
  return ParsePlan(text, path, known ? CPU_COUNT(&allowed) : 0);
}

}  // namespace headrace::experiments
