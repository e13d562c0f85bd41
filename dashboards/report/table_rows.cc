#include "dashboards/report/table_rows.h"

#include <algorithm>

namespace headrace::dashboards {

void AddHeaviestFirst(std::vector<WeightedRow> rows, Table* table) {
  std::stable_sort(rows.begin(), rows.end(),
                   [](const WeightedRow& a, const WeightedRow& b) { return a.first > b.first; });
  for (auto& [weight, row] : rows) table->rows.push_back(std::move(row));
}

std::vector<Value> DoubtedRow(const Table& table, const std::map<std::string, Value>& known,
                              const std::string& doubt) {
  std::vector<Value> row;
  for (const Column& column : table.columns) {
    const auto found = known.find(column.key);
    row.push_back(found == known.end() ? Value(Quantity::Unavailable(doubt)) : found->second);
  }
  return row;
}

}  // namespace headrace::dashboards
