// Scalar settings of a run's pipeline, as far as statements need them: read from the pipeline text
// in the store; settings on the command line take precedence.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "analysis/run/run_view.h"

namespace headrace::analysis {

// The value of "SECTION.KEY" ("source.epochs", "pipeline.order", "source.throttle.iops") without
// quotes; empty where neither the file nor `--set` names it, or where the run has no file. Reads
// `KEY = VALUE` under a `[SECTION]` heading; of inline tables only one level
// (`throttle = { iops = 100 }`).
std::optional<std::string> SettingOf(const RunRow& run, const std::string& key);

// The `op` of each [[transform]], in the file's order.
std::vector<std::string> TransformsOf(const RunRow& run);

// How often the pipeline reads its table: source.epochs or --epochs; 0: for ever. (With --duration
// a run may read its table repeatedly, but only for the measurement; this says nothing about the
// job.) Empty where the run has no pipeline file.
std::optional<int> EpochsOf(const RunRow& run);

}  // namespace headrace::analysis
