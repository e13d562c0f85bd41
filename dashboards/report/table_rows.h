// Rows that several sections build alike.
#pragma once
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "dashboards/report/report.h"

namespace headrace::dashboards {

using WeightedRow = std::pair<double, std::vector<Value>>;

// Adds the rows to the table, those of most weight first.
void AddHeaviestFirst(std::vector<WeightedRow> rows, Table* table);

// A row whose figures cannot be true: of its columns, by key, `known` are shown. All others are
// unavailable because of the doubt, and so is what would be derived from them.
std::vector<Value> DoubtedRow(const Table& table, const std::map<std::string, Value>& known,
                              const std::string& doubt);

}  // namespace headrace::dashboards
