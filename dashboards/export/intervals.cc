#include "dashboards/export/intervals.h"

#include <fmt/format.h>

#include <algorithm>

#include "dashboards/sql_values.h"

namespace headrace::dashboards {
namespace {

using collectors::ReadStore;
using collectors::SqlResult;

constexpr int64_t kPortionRows = 20'000;

std::string SelectIntervals(const IntervalQuery& query, const std::string& columns) {
  return fmt::format(
      "SELECT {} FROM {} WHERE run_id = ?1 AND start_ns >= ?2 AND start_ns < ?3 AND ({})", columns,
      query.view, query.where);
}

}  // namespace

int64_t CountIntervals(ReadStore& store, const IntervalQuery& query, int64_t run_id,
                       int64_t since_ns, int64_t until_ns) {
  const SqlResult result =
      store.Query(SelectIntervals(query, "COUNT(*)"), {run_id, since_ns, until_ns});
  return WholeOf(result.rows.at(0).at(0)).value_or(0);
}

bool HasMoreIntervals(ReadStore& store, const IntervalQuery& query, int64_t run_id, int64_t count) {
  return !store
              .Query(fmt::format("SELECT 1 FROM {} WHERE run_id = ?1 AND ({}) LIMIT 1 OFFSET ?2",
                                 query.view, query.where),
                     {run_id, count})
              .rows.empty();
}

void ForEachPortion(ReadStore& store, const IntervalQuery& query, int64_t run_id, int64_t since_ns,
                    int64_t until_ns, const std::function<void(const SqlResult&)>& visit) {
  if (since_ns >= until_ns) return;
  const int64_t rows = CountIntervals(store, query, run_id, since_ns, until_ns);
  if (rows == 0) return;
  if (rows <= kPortionRows || until_ns - 1 == since_ns) {
    visit(store.Query(SelectIntervals(query, query.columns) + " ORDER BY " + query.order,
                      {run_id, since_ns, until_ns}));
    return;
  }
  // Where the range is open at an end, what is recorded bounds it: halves of all numbers would take
  // dozens of steps to get there.
  if (since_ns == INT64_MIN || until_ns == INT64_MAX) {
    const SqlResult ends = store.Query(SelectIntervals(query, "MIN(start_ns), MAX(start_ns)"),
                                       {run_id, since_ns, until_ns});
    const int64_t first = WholeOf(ends.rows.at(0).at(0)).value_or(0);
    const int64_t last = WholeOf(ends.rows.at(0).at(1)).value_or(0);
    if (last < INT64_MAX) return ForEachPortion(store, query, run_id, first, last + 1, visit);
  }
  // Pieces of equal time hold about as many rows each, but for old windows that were merged.
  const auto pieces = static_cast<uint64_t>(std::min<int64_t>(rows / kPortionRows + 1, 1000));
  const uint64_t length =
      (static_cast<uint64_t>(until_ns) - static_cast<uint64_t>(since_ns)) / pieces + 1;
  for (int64_t begin = since_ns; begin < until_ns;) {
    const uint64_t left = static_cast<uint64_t>(until_ns) - static_cast<uint64_t>(begin);
    const auto end = static_cast<int64_t>(static_cast<uint64_t>(begin) + std::min(length, left));
    ForEachPortion(store, query, run_id, begin, end, visit);
    begin = end;
  }
}

}  // namespace headrace::dashboards
