// A card as the pages take it.
#pragma once
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "dashboards/pages/page_run.h"

namespace headrace::dashboards {

// `sql` with {run} replaced by the run's id.
std::string ForRun(std::string sql, int64_t run_id);

// {"question", "answer" or "empty" and "command", "read", "sql"}.
nlohmann::ordered_json CardJson(const Card& card, int64_t run_id);

}  // namespace headrace::dashboards
