// [[filter]]: which rows the job wants.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "reader/batch/row_filter.h"
#include "reader/pipeline/spec.h"
#include "reader/pipeline/spec/sections.h"
#include "reader/pipeline/spec/value.h"

namespace headrace::reader {
namespace {

// A number as it stands in the file: ids need more digits than a double has.
long double Exact(const SpecValue& node, const char* key) {
  if (const auto integer = node.AsInteger()) return static_cast<long double>(*integer);
  const auto real = node.AsReal();
  if (!real) node.Fail(fmt::format("expected a number for {}", key));
  if (std::isnan(*real)) node.Fail(fmt::format("{} is nan, which no value passes", key));
  return *real;
}

// feature = "dense:3" or column = "label", and what its values must be.
RowFilter ParseFilter(const SpecValue& table, const PipelineSpec& spec) {
  table.CheckKeys("[[filter]]", {"feature", "column", "min", "max", "in", "absent"});
  RowFilter filter;
  filter.is_column = bool(table["column"]);
  if (filter.is_column == bool(table["feature"]))
    table.Fail("a filter has either feature or column");
  const char* const key = filter.is_column ? "column" : "feature";
  filter.name = table.Text(key, "");
  std::vector<std::string> names = spec.projection.columns;
  if (!filter.is_column) {
    names.clear();
    for (const auto& request : spec.projection.features)
      names.push_back(dwrf::FeatureName(request));
  }
  if (std::find(names.begin(), names.end(), filter.name) == names.end())
    table[key].Fail(fmt::format("the projection has no {} '{}'{}", key, Printable(filter.name, 60),
                                DidYouMean(filter.name, names)));
  if (const SpecValue min = table["min"]) filter.min = Exact(min, "min");
  if (const SpecValue max = table["max"]) filter.max = Exact(max, "max");
  if (filter.min > filter.max) table.Fail("no value is at least min and at most max");
  if (const SpecValue in = table["in"]) {
    if (!in.is_list()) in.Fail("in is a list of numbers");
    if (in.Items().empty()) in.Fail("in is empty: no row would pass");
    for (const SpecValue& value : in.Items()) filter.in.push_back(Exact(value, "in"));
  }
  if (!table["min"] && !table["max"] && filter.in.empty())
    table.Fail("a filter has min, max or in");
  filter.keep_absent = table.IsSecond("absent", "drop", "keep");
  if (filter.is_column && table["absent"])
    table["absent"].Fail("absent is for features; the nulls of a column read as 0");
  if (table.line() > 0) filter.where = table.Place();
  return filter;
}

}  // namespace

void ParseFilters(const SpecValue& root, PipelineSpec* spec) {
  const SpecValue node = root["filter"];
  if (!node) return;
  const std::vector<SpecValue> items = node.Items();
  const bool are_tables = std::all_of(items.begin(), items.end(),
                                      [](const SpecValue& item) { return item.is_table(); });
  if (items.empty() || !are_tables) node.Fail("a filter is a table: write [[filter]]");
  for (const SpecValue& table : items) spec->filters.push_back(ParseFilter(table, *spec));
}

}  // namespace headrace::reader
