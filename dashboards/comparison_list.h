// The comparisons of a database, one line each.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace headrace::dashboards {

// A row of the view comparison_summary; an empty verdict: there is none.
struct ListedComparison {
  int64_t id = 0;
  std::string name;
  int64_t started_realtime_ns = 0;
  std::optional<int64_t> duration_ns;  // none: not finished
  std::string state, a_label, b_label, verdict;
  int64_t pairs_count = 0;
  std::optional<double> change, change_low, change_high;  // of the first figure; none: not known
};

// A head line, and a line for each.
std::string ComparisonListText(const std::vector<ListedComparison>& list);

// One object, "schema": "headrace.comparisons/1". What is not known is null.
std::string ComparisonListJson(const std::vector<ListedComparison>& list);

}  // namespace headrace::dashboards
