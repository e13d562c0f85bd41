// A rate in batches and rows, as the pages of plans and of tuning say it.
#pragma once
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>

namespace headrace::dashboards {

// "179 batches/s (11.5 krows/s)", with `between` after the first rate ("179 batches/s [160, 190]
// (...)"). The rate in rows is left out if the run recorded no rows (`rows_per_batch` 0).
std::string RatesText(double batches_per_second, double rows_per_batch,
                      const std::string& between = "");

// {"batches_per_second", "rows_per_second"}; the rate in rows is null if the run recorded no rows.
nlohmann::ordered_json RatesJson(const std::optional<double>& batches_per_second,
                                 double rows_per_batch);

}  // namespace headrace::dashboards
