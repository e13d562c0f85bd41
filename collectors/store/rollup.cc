// The rollup: old intervals become fewer and longer, their sums stay.
#include <fmt/format.h>

#include <algorithm>

#include "collectors/store/columns.h"
#include "collectors/store/store.h"

namespace headrace::collectors {
namespace {

constexpr int64_t kSecond = 1'000'000'000;
// With more operators intervals become longer sooner, in proportion: what an hour or a day leaves
// stays as many rows, for the file and for whoever reads all of them.
constexpr int64_t kManyOperators = 100;

}  // namespace

void RunStore::Rollup(int64_t run_id, int64_t now_ns) {
  const int64_t operators =
      database_.Integer(fmt::format("SELECT COUNT(*) FROM operators WHERE run_id = {}", run_id));
  const auto before = [&](int64_t age_s) {
    return now_ns - age_s * kSecond / std::max(operators, kManyOperators) * kManyOperators;
  };
  RollupInto(run_id, before(600), 0, 2 * kSecond);
  RollupInto(run_id, before(3600), 2 * kSecond, 16 * kSecond);
  RollupInto(run_id, before(6 * 3600), 16 * kSecond, 64 * kSecond);
  RollupInto(run_id, before(86400), 64 * kSecond, 128 * kSecond);
  RollupMeasurements(run_id, now_ns - 600 * kSecond, 16 * kSecond);
  RollupMeasurements(run_id, now_ns - 3600 * kSecond, 128 * kSecond);
  RollupMeasurements(run_id, now_ns - 86400 * kSecond, 1024 * kSecond);
}

// Merges what lies in full buckets that ended before `before_ns` and was not merged by an earlier
// call. A row says its own length, so what was merged in a run before is merged again unchanged.
void RunStore::RollupMeasurements(int64_t run_id, int64_t before_ns, int64_t resolution_ns) {
  const int64_t limit = before_ns / resolution_ns * resolution_ns;
  int64_t& done = rolled_up_[{run_id, resolution_ns}];
  if (limit <= done) return;
  Transaction transaction(database_);
  database_.Execute(fmt::format(
      "CREATE TEMP TABLE sums AS SELECT i.run_id, MIN(i.start_ns), i.measurement_id, "
      "MAX(i.start_ns + i.duration_ns) - MIN(i.start_ns), "
      "CASE WHEN m.kind = 'counter' THEN SUM(i.value) "
      "ELSE SUM(i.value * i.duration_ns) / MAX(1, SUM(i.duration_ns)) END "
      "FROM measurement_intervals AS i JOIN measurements AS d USING (run_id, measurement_id) "
      "JOIN metrics AS m USING (run_id, metric) "
      "WHERE i.run_id = {0} AND i.start_ns >= {1} AND i.start_ns < {2} "
      "GROUP BY i.start_ns / {3}, i.measurement_id",
      run_id, done, limit, resolution_ns));
  database_.Execute(fmt::format(
      "DELETE FROM measurement_intervals WHERE run_id = {} AND start_ns >= {} AND start_ns < {}",
      run_id, done, limit));
  database_.Execute("INSERT INTO measurement_intervals SELECT * FROM sums");
  database_.Execute("DROP TABLE temp.sums");
  transaction.Commit();
  done = limit;
}

// Merges the rows of `table` by the temporary table `merged`, which says into which interval each
// one goes. `columns` become `sums`.
void RunStore::MergeRows(const std::string& table, const std::string& key,
                         const std::string& columns, const std::string& sums, int64_t run_id) {
  database_.Execute(fmt::format(
      "CREATE TEMP TABLE sums AS SELECT d.run_id, m.into_ns, d.{1}, {2} FROM merged AS m CROSS "
      "JOIN {0} AS d ON d.run_id = {3} AND d.start_ns = m.start_ns GROUP BY m.into_ns, d.{1}",
      table, key, sums, run_id));
  database_.Execute(
      fmt::format("DELETE FROM {} WHERE run_id = {} AND start_ns IN (SELECT start_ns FROM merged)",
                  table, run_id));
  database_.Execute(fmt::format("INSERT INTO {} (run_id, start_ns, {}, {}) SELECT * FROM sums",
                                table, key, columns));
  database_.Execute("DROP TABLE temp.sums");
}

template <const auto& table>
void RunStore::RollupTable(int64_t run_id) {
  MergeRows(table.intervals, table.key, ListSums(table, "{}"),
            ListSums(table, "CASE WHEN COUNT({0}) = COUNT(*) THEN SUM({0}) END"), run_id);
}

// Merges the intervals of resolution `finer_ns` in each full bucket of `resolution_ns` that ended
// before `before_ns`. The first interval of a bucket lends its start to the merged one.
void RunStore::RollupInto(int64_t run_id, int64_t before_ns, int64_t finer_ns,
                          int64_t resolution_ns) {
  const int64_t limit = before_ns / resolution_ns * resolution_ns;
  if (limit <= 0) return;
  Transaction transaction(database_);
  database_.Execute(
      "CREATE TEMP TABLE IF NOT EXISTS merged (start_ns INTEGER PRIMARY KEY, into_ns INTEGER)");
  database_.Execute("DELETE FROM merged");
  Statement map(database_,
                "INSERT INTO merged SELECT start_ns, MIN(start_ns) OVER (PARTITION BY start_ns / "
                "?4) FROM intervals WHERE run_id = ?1 AND resolution_ns = ?2 AND start_ns < ?3");
  map.Bind(run_id).Bind(finer_ns).Bind(limit).Bind(resolution_ns).Run();
  RollupTable<kStages>(run_id);
  RollupTable<kOperators>(run_id);
  RollupTable<kQueues>(run_id);
  RollupTable<kResources>(run_id);
  MergeRows("step_time_intervals", "step_ns", "steps_count", "SUM(steps_count)", run_id);
  database_.Execute(fmt::format(
      "CREATE TEMP TABLE sums AS SELECT run_id, m.into_ns, SUM(duration_ns), {1}, "
      "SUM(steps_count), SUM(step_rows_count), SUM(step_wait_ns), SUM(step_compute_ns) FROM merged "
      "AS m CROSS JOIN intervals AS d ON d.run_id = {0} AND d.start_ns = m.start_ns GROUP BY "
      "m.into_ns",
      run_id, resolution_ns));
  database_.Execute(fmt::format(
      "DELETE FROM intervals WHERE run_id = {} AND start_ns IN (SELECT start_ns FROM merged)",
      run_id));
  database_.Execute("INSERT INTO intervals SELECT * FROM sums");
  database_.Execute("DROP TABLE temp.sums");
  transaction.Commit();
}

}  // namespace headrace::collectors
