#include "experiments/recorded_run.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/units.h"
#include "experiments/child_run.h"
#include "experiments/interrupt.h"

namespace headrace::experiments {
namespace {

std::vector<std::string> Words(const RecordedRun& run) {
  std::vector<std::string> words = {SelfPath(), "run", run.pipeline, "--json", "--quiet"};
  // Two sides are compared at the threads that they have.
  words.emplace_back("--no-probe");
  if (run.recorded) {
    words.insert(words.end(), {"--db", run.database, "--name", run.name});
  } else {
    words.emplace_back("--no-record");
  }
  for (const std::string& setting : run.settings) words.insert(words.end(), {"--set", setting});
  words.insert(words.end(), run.arguments.begin(), run.arguments.end());
  return words;
}

}  // namespace

RecordedRunEnd RecordRun(const RecordedRun& run) {
  const std::string where = run.where.empty() ? "run '" + run.name + "'" : run.where;
  const ChildEnd end = RunChild(Words(run), {.keep_output = true, .timeout_ns = run.timeout_ns});
  if (Interrupted() || end.code == static_cast<int>(ExitCode::kInterrupted))
    throw Error(ExitCode::kInterrupted, "interrupted");
  if (end.timed_out) {
    throw Error(ExitCode::kFailure,
                "did not end within " + FormatDuration(static_cast<double>(run.timeout_ns)), where);
  }
  if (end.code != 0) throw ErrorOfChild(end, "headrace run", where);
  if (!run.recorded) return {};
  const nlohmann::json said = nlohmann::json::parse(end.out, nullptr, false);
  if (!said.is_object() || !said.contains("run_id") || !said["run_id"].is_number_integer())
    throw Error(ExitCode::kFailure, "the run was not recorded", where,
                "'headrace run' alone says why");
  return {said["run_id"].get<int64_t>(), said.value("rows_per_second", 0.0)};
}

}  // namespace headrace::experiments
