// Plan file: the settings that `headrace plan -o` recommends, or `headrace tune -o` found, as
// `headrace run --plan` applies them.
//
// JSON (docs/schema/plan.schema.json), of which is read:
//
//   "schema"                "headrace.plan/1"; a file without it is no plan
//   "settings"              an object: knob -> text, number, true or false, as `run --set` takes it
//   "pipeline"              the pipeline file it was made for
//   "run"                   the run it was made from
//   "cores"                 the number of cores it was made for; null: any
//   "predicted"             an object: "batches_per_second", "low", "high"
//   "then_limited_by", "then_limited_by_kind"
//
// The first two must be there. Other members may be missing; one of another type counts as missing.
#pragma once
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "collectors/store/store.h"

namespace headrace::experiments {

struct PlanFile {
  std::vector<std::pair<std::string, std::string>> settings;  // as reader::Settings
  // File that the plan was made for; may be empty.
  std::string pipeline;
  // None where the plan has no prediction, changes nothing, or was made for another number of
  // cores.
  std::optional<collectors::PredictionRow> prediction;
};

// Reads the plan in `text`, for a process that may use `cores` cores. `path` is named in errors.
// Throws Error kBadData, with the byte or the setting, for anything that is not a plan.
PlanFile ParsePlan(const std::string& text, const std::string& path, int cores);

// The same for a file of at most 4 MiB and the cores that this process may use. Throws Error as
// ReadWholeFile and ParsePlan do.
PlanFile ReadPlan(const std::string& path);

}  // namespace headrace::experiments
