#include "dashboards/pages/page_run.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "analysis/run/read_run.h"
#include "base/error.h"
#include "base/terminal_text.h"
#include "dashboards/report/make_report.h"

namespace headrace::dashboards {

std::shared_ptr<const LoadedRun> LoadForPages(const std::string& database, const std::string& run,
                                              const LoadOptions& options) {
  auto loaded = std::make_shared<LoadedRun>();
  loaded->run = analysis::LoadRun(database, run);
  loaded->run.program = options.program;
  loaded->run.database_option = options.database_option;
  loaded->run.core_hour_price = options.core_hour_price;
  loaded->statements = analysis::MakeStatements(loaded->run);
  loaded->report = MakeReport(loaded->run, loaded->statements);
  return loaded;
}

double PageQuery::Number(const std::string& name, double otherwise) const {
  const auto found = values.find(name);
  if (found == values.end() || found->second.empty()) return otherwise;
  char* end = nullptr;
  const double number = std::strtod(found->second.c_str(), &end);
  if (*end != '\0' || !std::isfinite(number) || number < 0) {
    throw Error(ExitCode::kUsage,
                "'" + Printable(found->second, 40) + "' is not a number of 0 or more", name,
                "give a number such as 1.5");
  }
  return number;
}

std::string PageQuery::Text(const std::string& name, const std::string& otherwise) const {
  const auto found = values.find(name);
  return found == values.end() ? otherwise : found->second;
}

std::optional<double> KnownFact(const Report& report, const std::string& section,
                                const std::string& key) {
  for (const Section& each : report.sections) {
    if (each.key != section) continue;
    for (const Fact& fact : each.facts) {
      if (fact.key != key) continue;
      const Quantity* quantity = std::get_if<Quantity>(&fact.value);
      if (quantity != nullptr && quantity->available()) return quantity->value();
    }
  }
  return std::nullopt;
}

const Table* FindTable(const Report& report, const std::string& key) {
  for (const Section& section : report.sections) {
    for (const Table& table : section.tables) {
      if (table.key == key) return &table;
    }
  }
  return nullptr;
}

namespace {

const Value* CellOf(const Table& table, const std::vector<Value>& row, const std::string& key) {
  for (size_t i = 0; i < std::min(row.size(), table.columns.size()); ++i) {
    if (table.columns[i].key == key) return &row[i];
  }
  return nullptr;
}

}  // namespace

std::optional<double> KnownCell(const Table& table, const std::vector<Value>& row,
                                const std::string& key) {
  const Value* value = CellOf(table, row, key);
  const Quantity* quantity = value != nullptr ? std::get_if<Quantity>(value) : nullptr;
  if (quantity == nullptr || !quantity->available()) return std::nullopt;
  return quantity->value();
}

std::string CellWord(const Table& table, const std::vector<Value>& row, const std::string& key) {
  const Value* value = CellOf(table, row, key);
  const std::string* text = value != nullptr ? std::get_if<std::string>(value) : nullptr;
  return text != nullptr ? *text : std::string();
}

}  // namespace headrace::dashboards
