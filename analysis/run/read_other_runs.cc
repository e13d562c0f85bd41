#include "analysis/run/read_other_runs.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <initializer_list>
#include <set>
#include <sstream>
#include <string_view>

#include "analysis/thresholds.h"

namespace headrace::analysis {
namespace {

// Recorded at one level. Where none was asked for, the recorder may have stepped down in one of
// two, since it took too much of the program: as long as both know CPU time apart they are alike.
constexpr char kSameLevel[] =
    "(o.accounting_level IS r.accounting_level OR "
    "(o.level_asked IS NULL AND r.level_asked IS NULL AND "
    "MIN(o.accounting_level, r.accounting_level) >= 2))";

// Whether the setting changes no row's work.
bool IsKnob(std::string_view name) {
  return name.ends_with(".parallelism") || name.ends_with(".queue") ||
         name.ends_with(".prefetch") || name == "pipeline.reorder_window";
}

// The settings of a run but for the knobs.
std::string SettingsOfWork(const std::string& settings_text) {
  std::string settings;
  std::istringstream lines(settings_text);
  for (std::string line; std::getline(lines, line);) {
    if (IsKnob(line.substr(0, line.find('=')))) continue;
    settings += line + '\n';
  }
  return settings;
}

// The options of a command line that add work beside the pipeline's settings. Where the work is
// kept does not matter.
std::string AddedWork(const std::string& command,
                      std::initializer_list<std::string_view> options = {
                          "--checksum", "--row-log", "--dump-tensors", "--checkpoint"}) {
  std::set<std::string> found;
  std::istringstream words(command);
  for (std::string word; words >> word;) {
    word.resize(std::min(word.find('='), word.size()));
    if (std::find(options.begin(), options.end(), word) != options.end()) found.insert(word);
  }
  std::string text;
  for (const std::string& option : found) text += (text.empty() ? "" : " ") + option;
  return text;
}

// Writing down what is read costs CPU time, and delivers the same rows.
std::string WorkOf(const std::string& command) {
  return AddedWork(command,
                   {"--checksum", "--row-log", "--dump-tensors", "--checkpoint", "--log-reads"});
}

// Calls `use` for the runs that differ from this one at most in threads, queues and cores, for this
// one first and then the latest, with their run_id, duration_ns, rows_count and `columns`, where
// `condition` holds.
void EachOfSameWork(RunDatabase& database, int64_t run_id, const RunView& view,
                    const std::string& columns, const std::string& condition,
                    const RunDatabase::Use& use) {
  if (view.run.pipeline_text.empty() || !view.run.settings_text) return;
  const std::string settings = SettingsOfWork(*view.run.settings_text);
  const std::string work = WorkOf(view.run.command);
  database.Each(
      "SELECT o.run_id, o.command, o.settings_text, o.duration_ns, s.rows_count, " + columns +
          " FROM run_summary AS r JOIN run_summary AS o "
          "USING (hostname, cpu_model, headrace_version, pipeline_path, pipeline_text, table_text, "
          "kind) JOIN step_summary AS s ON s.run_id = o.run_id "
          "WHERE r.run_id = ?1 AND o.cold IS r.cold AND o.duration_ns >= 1000000000 "
          "AND s.rows_count > 0 AND o.settings_text IS NOT NULL AND " +
          condition + " ORDER BY o.run_id = ?1 DESC, o.run_id DESC LIMIT 200",
      run_id, [&](const ViewRow& row) {
        if (SettingsOfWork(row.Text("settings_text")) != settings) return;
        if (WorkOf(row.Text("command")) == work) use(row);
      });
}

void ReadLoads(RunDatabase& database, int64_t run_id, RunView* view) {
  EachOfSameWork(
      database, run_id, *view,
      "(SELECT SUM(on_cpu_ns) FROM stage_summary WHERE run_id = o.run_id) AS cpu_ns, "
      "(SELECT COUNT(*) FROM stage_summary WHERE run_id = o.run_id AND on_cpu_ns IS NULL) "
      "AS unknown, "
      "(SELECT MAX(mean_value) FROM host_summary WHERE run_id = o.run_id AND "
      "metric = 'host_busy_cores') AS busy_cores",
      kSameLevel, [&](const ViewRow& row) {
        const double cpu_ns = row.Real("cpu_ns").value_or(0);
        if (row.Number("unknown") > 0 || cpu_ns <= 0) return;
        const double own = cpu_ns / static_cast<double>(row.Number("duration_ns"));
        view->loads.push_back({cpu_ns * 1e-9 / static_cast<double>(row.Number("rows_count")),
                               std::max(own, row.Real("busy_cores").value_or(0)),
                               row.Number("run_id") == run_id});
      });
}

// What a probe of the store added to a run's stage: thread-seconds, time, and rows.
struct ProbedTime {
  double thread_s = 0, seconds = 0, rows = 0;
};

std::map<std::string, ProbedTime> ProbedTimeOf(RunDatabase& database, int64_t run_id) {
  std::map<std::string, ProbedTime> probed;
  if (!database.Has("store_probe")) return probed;
  database.EachOf("store_probe", run_id, "start_ns", [&](const ViewRow& row) {
    ProbedTime& time = probed[row.Text("stage")];
    const double seconds = 1e-9 * row.Real("duration_ns").value_or(0);
    time.seconds += seconds;
    time.thread_s += seconds * row.Real("many_count").value_or(0);
    time.rows += seconds * row.Real("many_rows_per_s").value_or(0);
  });
  return probed;
}

void ReadStagesOf(RunDatabase& database, int64_t run_id, double rows_per_s, bool own,
                  RunView* view) {
  const std::map<std::string, ProbedTime> probes = ProbedTimeOf(database, run_id);
  database.Each(
      "SELECT st.stage, st.last_parallelism_count, st.parallelism_count, st.lifetime_ns, "
      "SUM(COALESCE(op.blocked_ns, 0) - COALESCE(op.lock_wait_ns, 0)) AS blocked_ns "
      "FROM stage_summary AS st JOIN operator_summary AS op "
      "ON op.run_id = st.run_id AND op.stage = st.stage WHERE st.run_id = ?1 "
      "GROUP BY st.stage, st.last_parallelism_count, st.parallelism_count, st.lifetime_ns",
      run_id, [&](const ViewRow& row) {
        const double threads = row.Real("last_parallelism_count").value_or(0);
        // Threads that changed while it ran say nothing of either number.
        double mean = row.Real("parallelism_count").value_or(0), rate = rows_per_s;
        const double all_s = threads > 0 ? 1e-9 * row.Real("lifetime_ns").value_or(0) / mean : 0;
        if (const auto found = probes.find(row.Text("stage"));
            found != probes.end() && all_s > 2 * found->second.seconds) {
          const ProbedTime& probed = found->second;
          mean = (mean * all_s - probed.thread_s) / (all_s - probed.seconds);
          rate = std::max(0.0, (rate * all_s - probed.rows) / (all_s - probed.seconds));
        }
        if (std::abs(mean - threads) > kSameThreads * threads) return;
        const double lifetime = row.Real("lifetime_ns").value_or(0);
        const double blocked = std::max(0.0, row.Real("blocked_ns").value_or(0));
        view->stage_rates.push_back(
            {row.Text("stage"), threads, lifetime > 0 ? blocked / lifetime : 0, rate, own});
      });
}

void ReadTried(RunDatabase& database, int64_t run_id, double rows_per_s, RunView* view) {
  if (!database.Has("run_setting")) return;
  TriedRow& tried = view->tried.emplace_back();
  tried.run_id = run_id;
  tried.rows_per_s = rows_per_s;
  database.Each("SELECT key, value FROM run_setting WHERE run_id = ?1", run_id,
                [&](const ViewRow& row) {
                  const std::string key = row.Text("key");
                  if (IsKnob(key)) tried.knobs.emplace(key, row.Text("value"));
                });
}

void ReadStageRates(RunDatabase& database, int64_t run_id, RunView* view) {
  constexpr size_t kMostRuns = 16;
  std::vector<std::pair<int64_t, double>> runs;  // and their rows a second
  EachOfSameWork(database, run_id, *view, "s.wall_ns",
                 "o.cores_count IS r.cores_count AND s.wall_ns > 0", [&](const ViewRow& row) {
                   if (runs.size() >= kMostRuns) return;
                   runs.emplace_back(row.Number("run_id"),
                                     1e9 * static_cast<double>(row.Number("rows_count")) /
                                         static_cast<double>(row.Number("wall_ns")));
                 });
  for (const auto& [other, rows_per_s] : runs) {
    ReadStagesOf(database, other, rows_per_s, other == run_id, view);
    ReadTried(database, other, rows_per_s, view);
  }
}

// Comparisons of two settings of the same work. A side's runs all have the settings of one of them.
void ReadMeasured(RunDatabase& database, RunView* view) {
  if (view->tried.empty() || !database.Has("comparison_run")) return;
  std::map<int64_t, const TriedRow*> tried;
  std::string ids;
  for (const TriedRow& row : view->tried) {
    tried.emplace(row.run_id, &row);
    ids += fmt::format("{}{}", ids.empty() ? "" : ", ", row.run_id);
  }
  database.Each(
      fmt::format(
          "SELECT q.comparison_id, q.verdict, q.pairs_count, json_extract(q.rate, '$.change') AS "
          "change, json_extract(q.rate, '$.change_low') AS change_low, json_extract(q.rate, "
          "'$.change_high') AS change_high, MIN(CASE WHEN c.side = 'a' THEN c.run_id END) AS "
          "a_run, MIN(CASE WHEN c.side = 'b' THEN c.run_id END) AS b_run FROM (SELECT *, CASE WHEN "
          "json_valid(result_json) THEN json_extract(result_json, '$.metrics[0]') END AS rate FROM "
          "comparison_summary WHERE state = 'complete' AND verdict <> '') AS q JOIN comparison_run "
          "AS c USING (comparison_id) WHERE json_extract(q.rate, '$.metric') = 'rows_per_s' AND "
          "c.left_out = '' AND c.run_id IN ({}) GROUP BY q.comparison_id ORDER BY q.comparison_id "
          "DESC",
          ids),
      0, [&](const ViewRow& row) {
        const auto a = tried.find(row.Number("a_run")), b = tried.find(row.Number("b_run"));
        const Real gain = row.Real("change");
        if (a == tried.end() || b == tried.end() || !gain) return;
        view->measured.push_back({row.Number("comparison_id"), row.Text("verdict"),
                                  a->second->knobs, b->second->knobs, row.Number("pairs_count"),
                                  *gain, row.Real("change_low"), row.Real("change_high")});
      });
}

// Runs overlap where each began before the other ended.
void ReadSamePipeline(RunDatabase& database, int64_t run_id, RunView* view) {
  if (view->run.pipeline_text.empty()) return;
  database.Each(
      "SELECT COUNT(*) AS runs FROM run_summary AS r JOIN run_summary AS o "
      "ON o.run_id <> r.run_id AND o.pipeline_text = r.pipeline_text "
      "AND o.started_realtime_ns < r.started_realtime_ns + r.duration_ns "
      "AND r.started_realtime_ns < o.started_realtime_ns + o.duration_ns WHERE r.run_id = ?1",
      run_id, [&](const ViewRow& row) { view->same_pipeline_runs = row.Number("runs"); });
}

// Everything that is known of the two runs' conditions must be equal; their kind, and what the page
// cache held, may not be. A run of the always-on collector, or of another program, knows none.
void ReadSiblings(RunDatabase& database, int64_t run_id, RunView* view) {
  if (view->run.pipeline_text.empty() || !view->run.settings_text) return;
  constexpr size_t kMost = 40;
  view->added_work = AddedWork(view->run.command);
  database.Each(
      fmt::format(
          "SELECT o.run_id, o.name, o.kind, o.cold, o.command FROM run_summary AS r "
          "JOIN run_summary AS o USING (hostname, cpu_model, kernel, pipeline_path, pipeline_text, "
          "settings_text, table_text, element_order, headrace_version, deep) WHERE r.run_id = ?1 "
          "AND "
          "o.run_id <> ?1 AND o.state = 'complete' AND o.cores_count IS r.cores_count AND "
          "o.ring_ns IS r.ring_ns AND {} ORDER BY o.run_id DESC LIMIT {}",
          kSameLevel, kMost),
      run_id, [&](const ViewRow& row) {
        if (AddedWork(row.Text("command")) != view->added_work) return;
        SiblingRow& sibling = view->siblings.emplace_back();
        sibling.run_id = row.Number("run_id");
        sibling.name = row.Text("name");
        sibling.kind = row.Text("kind");
        sibling.cold = row.Integer("cold");
      });
  for (SiblingRow& sibling : view->siblings) {
    ReadDeviceBytes(database, sibling.run_id, &sibling.device_bytes, &sibling.fetched_bytes);
    database.Each(
        "SELECT duration_ns, steps_count FROM step_interval WHERE run_id = ?1 ORDER BY start_ns",
        sibling.run_id, [&](const ViewRow& row) {
          sibling.windows.push_back({row.Number("duration_ns"), row.Number("steps_count")});
        });
  }
}

}  // namespace

void ReadOtherRuns(RunDatabase& database, int64_t run_id, RunView* view) {
  ReadLoads(database, run_id, view);
  ReadStageRates(database, run_id, view);
  ReadMeasured(database, view);
  if (database.Has("measurement_summary")) ReadSiblings(database, run_id, view);
  ReadSamePipeline(database, run_id, view);
}

void ReadDeviceBytes(RunDatabase& database, int64_t run_id, Count* device, Count* fetched) {
  database.Each("SELECT SUM(read_bytes) AS bytes FROM process_summary WHERE run_id = ?1", run_id,
                [&](const ViewRow& row) { *device = row.Integer("bytes"); });
  database.Each(
      "SELECT SUM(bytes_out_bytes) AS bytes FROM operator_summary WHERE run_id = ?1 AND kind = "
      "'io' AND operator NOT LIKE '%.retry'",
      run_id, [&](const ViewRow& row) { *fetched = row.Integer("bytes"); });
  if (*fetched == 0) fetched->reset();
}

}  // namespace headrace::analysis
