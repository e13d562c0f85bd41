#include "experiments/stored_comparison.h"

#include <fmt/format.h>

#include <optional>
#include <utility>

#include "base/error.h"
#include "collectors/store/store.h"
#include "dashboards/comparison_json.h"
#include "experiments/compared_runs.h"

namespace headrace::experiments {
namespace {

std::string TextIn(const collectors::SqlValue& value) {
  const auto* text = std::get_if<std::string>(&value);
  return text ? *text : std::string();
}
std::optional<int64_t> IntegerIn(const collectors::SqlValue& value) {
  const auto* integer = std::get_if<int64_t>(&value);
  return integer ? std::optional(*integer) : std::nullopt;
}
std::optional<double> NumberIn(const collectors::SqlValue& value) {
  if (const auto integer = IntegerIn(value)) return static_cast<double>(*integer);
  const auto* real = std::get_if<double>(&value);
  return real ? std::optional(*real) : std::nullopt;
}

}  // namespace

std::vector<dashboards::ListedComparison> ListComparisons(const std::string& database) {
  collectors::ReadStore store(database);
  const collectors::SqlResult rows = store.Query(
      "SELECT comparison_id, name, started_realtime_ns, duration_ns, state, a_label, b_label, "
      "verdict, pairs_count, json_extract(json, '$.change'), json_extract(json, '$.change_low'), "
      "json_extract(json, '$.change_high') FROM (SELECT *, CASE WHEN json_valid(result_json) THEN "
      "json_extract(result_json, '$.metrics[0]') END AS json FROM comparison_summary) "
      "ORDER BY comparison_id");
  std::vector<dashboards::ListedComparison> list;
  for (const auto& row : rows.rows) {
    dashboards::ListedComparison& listed = list.emplace_back();
    listed.id = IntegerIn(row[0]).value_or(0);
    listed.name = TextIn(row[1]);
    listed.started_realtime_ns = IntegerIn(row[2]).value_or(0);
    listed.duration_ns = IntegerIn(row[3]);
    listed.state = TextIn(row[4]);
    listed.a_label = TextIn(row[5]);
    listed.b_label = TextIn(row[6]);
    listed.verdict = TextIn(row[7]);
    listed.pairs_count = IntegerIn(row[8]).value_or(0);
    listed.change = NumberIn(row[9]);
    listed.change_low = NumberIn(row[10]);
    listed.change_high = NumberIn(row[11]);
  }
  return list;
}

dashboards::ComparisonPage LoadComparison(const std::string& database, int64_t comparison_id) {
  collectors::ReadStore store(database);
  const collectors::SqlResult rows =
      store.Query("SELECT state, result_json FROM comparison_summary WHERE comparison_id = ?1",
                  {comparison_id});
  if (rows.rows.empty()) {
    throw Error(ExitCode::kBadData, fmt::format("has no comparison {}", comparison_id), database,
                "'headrace compare --list' lists them");
  }
  const std::string where = fmt::format("{}: comparison {}", database, comparison_id);
  const std::string json = TextIn(rows.rows[0][1]);
  if (json.empty()) {
    const std::string state = TextIn(rows.rows[0][0]);
    throw Error(ExitCode::kInconclusive,
                fmt::format("has no result: it is {}",
                            state == "running" ? "running, or was killed" : state),
                where, "make it again");
  }
  dashboards::StoredComparison stored = dashboards::ReadComparison(json, where);
  const analysis::Comparison comparison = analysis::Compare(stored.input);
  std::optional<dashboards::Section> section;
  try {
    dashboards::ComparisonNotes found = stored.notes;
    section = dashboards::NoteWhy(comparison, LoadRuns(database, stored.input), stored.input.unit,
                                  &found);
  } catch (const Error&) {
    // Its runs are gone: the sentence that was kept says it.
  }
  return {stored.input, comparison, stored.notes, std::move(section)};
}

}  // namespace headrace::experiments
