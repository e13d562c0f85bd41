// Comparisons made before, as the database has them.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "dashboards/comparison.h"
#include "dashboards/comparison_list.h"

namespace headrace::experiments {

// All comparisons of the database, by id. Throws Error kBadData where there is no such database.
std::vector<dashboards::ListedComparison> ListComparisons(const std::string& database);

// The page of a comparison as it was kept; figures are computed again, and the cause of the change
// is looked up again where its runs are still there. Throws Error: kBadData where there is no such
// comparison or its page cannot be read, kInconclusive where it never came to a result.
dashboards::ComparisonPage LoadComparison(const std::string& database, int64_t comparison_id);

}  // namespace headrace::experiments
