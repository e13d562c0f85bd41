// Plan file: the settings that `headrace plan -o` recommends, or `headrace tune -o` found, as
// `headrace run --plan` applies them.
//
// JSON (docs/schema/plan.schema.json), of which is read:
//
//   "schema"                "headrace.plan/1"; a file without it is no plan
//   "settings"              an object: knob -> text, number, true or false, as `run --set` takes it
//   "pipeline"              the pipeline file it was made for
//   "run"                   the run it was made from
//   "cores"                 it was made for so many; null: any
//   "predicted"             an object: "batches_per_second", "low", "high"
//   "then_limited_by", "then_limited_by_kind"
//
// The first two must be there. What else is missing, or is of another kind, is not known.
#pragma once
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "collectors/store/store.h"

namespace headrace::experiments {

struct PlanFile {
  std::vector<std::pair<std::string, std::string>> settings;  // as reader::Settings
  std::string pipeline;                                       // that it was made for; may be empty
  // None where the plan holds none, changes nothing, or is one for another number of cores.
  std::optional<collectors::PredictionRow> prediction;
};

// The plan in `text`, for a machine that gives us `cores`. `path` is named in errors. Throws Error
// kBadData, with the byte or the setting, for what is no plan.
PlanFile ParsePlan(const std::string& text, const std::string& path, int cores);

// The same of a file of at most 4 MiB, for the cores that this process may use. Throws Error as
// ReadWholeFile and ParsePlan do.
PlanFile ReadPlan(const std::string& path);

}  // namespace headrace::experiments
