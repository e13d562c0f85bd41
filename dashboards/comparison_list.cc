#include "dashboards/comparison_list.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <utility>

#include "base/terminal_text.h"

namespace headrace::dashboards {

std::string ComparisonListText(const std::vector<ListedComparison>& list) {
  std::string text = fmt::format("{:>4}  {:<18} {:<12} {:<12} {:>5}  {}\n", "id", "name", "state",
                                 "verdict", "pairs", "A | B");
  for (const ListedComparison& row : list) {
    text += fmt::format("{:>4}  {:<18} {:<12} {:<12} {:>5}  {} | {}\n", row.id,
                        Printable(row.name, 40), row.state, row.verdict.empty() ? "-" : row.verdict,
                        row.pairs_count, Printable(row.a_label, 60), Printable(row.b_label, 60));
  }
  return text;
}

std::string ComparisonListJson(const std::vector<ListedComparison>& list) {
  nlohmann::ordered_json rows = nlohmann::ordered_json::array();
  for (const ListedComparison& row : list) {
    nlohmann::ordered_json duration;
    if (row.duration_ns) duration = *row.duration_ns;
    const auto number = [](const std::optional<double>& value) {
      return value ? nlohmann::ordered_json(*value) : nlohmann::ordered_json(nullptr);
    };
    rows.push_back({{"comparison", row.id},
                    {"name", row.name},
                    {"started_realtime_ns", row.started_realtime_ns},
                    {"duration_ns", duration},
                    {"state", row.state},
                    {"a", row.a_label},
                    {"b", row.b_label},
                    {"verdict", row.verdict},
                    {"pairs_count", row.pairs_count},
                    {"change", number(row.change)},
                    {"change_low", number(row.change_low)},
                    {"change_high", number(row.change_high)}});
  }
  const nlohmann::ordered_json out = {{"schema", "headrace.comparisons/1"},
                                      {"comparisons", std::move(rows)}};
  return out.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

}  // namespace headrace::dashboards
