// What one more of each resource would gain, as the pages of a plan and of hypothetical settings
// say it.
#pragma once
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "analysis/model/sensitivity.h"

namespace headrace::dashboards {

// A block of lines after an empty one, its heading first. What gains nothing is named in its last
// line alone.
std::string WorthsText(const std::vector<analysis::Worth>& worths);
// An array of objects, in the same order, with those that gain nothing.
nlohmann::ordered_json WorthsJson(const std::vector<analysis::Worth>& worths);

// A row of the model: {"name", "kind", "batches_per_second"}; a row without a bound has null.
nlohmann::ordered_json LimitJson(const analysis::Limit& limit);

}  // namespace headrace::dashboards
