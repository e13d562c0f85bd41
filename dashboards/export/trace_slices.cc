#include "dashboards/export/trace_slices.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <map>

#include "analysis/run/phases.h"
#include "analysis/run/read_run.h"
#include "dashboards/export/intervals.h"
#include "dashboards/sql_values.h"

namespace headrace::dashboards {
namespace {

using collectors::SqlResult;

constexpr int64_t kMaxRowsForPhases = 300'000;

SqlResult QueryRun(const ExportRequest& request, const std::string& sql) {
  return request.store.Query(sql, {request.run_id});
}

TraceArguments AboutTheRun(const ExportRequest& request, const ExportedRun& run) {
  TraceArguments about = {
      {"run", run.run_id},
      {"name", run.name},
      {"tags", run.tags},
      {"state", run.state},
      {"program", run.program},
      {"command", run.command},
      {"host", run.hostname},
      {"kernel", run.kernel},
      {"cpu_model", run.cpu_model},
      {"headrace_version", run.headrace_version},
      {"measurement_level", run.accounting_level},
      {"how_time_was_split", run.accounting_note},
      {"counters",
       std::string("a value is the mean of one window of the store and holds until the next; "
                   "threads: how many were in that state on average")},
      {"not_in_this_trace", std::string(kNotInTraces)}};
  const SqlResult lost = QueryRun(
      request, "SELECT what, lost_count FROM loss_summary WHERE run_id = ?1 AND lost_count > 0");
  for (const auto& row : lost.rows) about.emplace_back("lost: " + TextOf(row[0]), row[1]);
  return about;
}

void AddPhases(const ExportRequest& request, std::vector<TraceSlice>* slices,
               TraceArguments* about) {
  if (request.database.empty()) return;
  const IntervalQuery operators{"operator_interval"};
  if (HasMoreIntervals(request.store, operators, request.run_id, kMaxRowsForPhases)) {
    about->emplace_back("phases", std::string("not looked for: the run is too long for that"));
    return;
  }
  const analysis::RunView view =
      analysis::LoadRun(request.database, std::to_string(request.run_id));
  for (const analysis::Phase& phase : analysis::FindPhases(view).phases) {
    TraceSlice slice{phase.start_ns, phase.end_ns, analysis::PhaseKindName(phase.kind), {}};
    slice.arguments.emplace_back("spent_seconds", static_cast<double>(phase.time_ns) / 1e9);
    slice.arguments.emplace_back("steps_count", phase.steps_count);
    slices->push_back(std::move(slice));
  }
}

}  // namespace

std::vector<TraceSlice> CutSlices(std::vector<TraceSlice> slices, int64_t first_ns,
                                  int64_t last_ns) {
  std::vector<TraceSlice> cut;
  for (TraceSlice& slice : slices) {
    slice.end_ns = std::max(slice.begin_ns, slice.end_ns);
    const bool before = slice.begin_ns < first_ns && slice.end_ns <= first_ns;
    if (before || slice.begin_ns >= last_ns) continue;
    slice.begin_ns = std::max(slice.begin_ns, first_ns);
    slice.end_ns = std::min(slice.end_ns, last_ns);
    cut.push_back(std::move(slice));
  }
  return cut;
}

std::vector<std::vector<TraceSlice>> NestingLanes(std::vector<TraceSlice> slices) {
  std::stable_sort(slices.begin(), slices.end(), [](const TraceSlice& a, const TraceSlice& b) {
    return a.begin_ns != b.begin_ns ? a.begin_ns < b.begin_ns : a.end_ns > b.end_ns;
  });
  std::vector<std::vector<TraceSlice>> lanes;
  std::vector<std::vector<int64_t>> open;  // ends of the slices around the last one of each lane
  for (TraceSlice& slice : slices) {
    size_t lane = 0;
    for (; lane < lanes.size(); ++lane) {
      while (!open[lane].empty() && open[lane].back() <= slice.begin_ns) open[lane].pop_back();
      if (open[lane].empty() || open[lane].back() >= slice.end_ns) break;
    }
    if (lane == lanes.size()) {
      lanes.emplace_back();
      open.emplace_back();
    }
    open[lane].push_back(slice.end_ns);
    lanes[lane].push_back(std::move(slice));
  }
  return lanes;
}

std::vector<TraceSlice> RunSlices(const ExportRequest& request, const ExportedRun& run) {
  std::vector<TraceSlice> slices;
  TraceArguments about = AboutTheRun(request, run);
  AddPhases(request, &slices, &about);
  slices.push_back({0, run.duration_ns, run.name.empty() ? "run" : run.name, std::move(about)});
  return slices;
}

std::vector<TraceSlice> DecisionSlices(const ExportRequest& request) {
  std::map<int64_t, std::string> changes;
  const SqlResult changed = QueryRun(
      request,
      "SELECT decision_index, knob, from_text, to_text FROM decision_change WHERE run_id = ?1");
  for (const auto& row : changed.rows) {
    std::string& text = changes[WholeOf(row[0]).value_or(0)];
    text += fmt::format("{}{} {} -> {}", text.empty() ? ": " : ", ", TextOf(row[1]), TextOf(row[2]),
                        TextOf(row[3]));
  }
  const SqlResult result = QueryRun(
      request,
      "SELECT decision_index, at_ns, applied_ns, observed_ns, action, limited_by, now_rate, "
      "predicted_rate, observed_rate, verdict, reason FROM decision_summary WHERE run_id = ?1");
  constexpr size_t kFirstArgument = 5;
  constexpr const char* kNames[] = {"limited_by",
                                    "now_batches_per_second",
                                    "predicted_batches_per_second",
                                    "observed_batches_per_second",
                                    "verdict",
                                    "reason"};
  std::vector<TraceSlice> slices;
  for (const auto& row : result.rows) {
    const auto at = WholeOf(row[1]), applied = WholeOf(row[2]), observed = WholeOf(row[3]);
    if (!at) continue;
    TraceSlice slice{*at, observed ? *observed : applied.value_or(*at), {}, {}};
    slice.name = TextOf(row[4]) + changes[WholeOf(row[0]).value_or(0)];
    for (size_t i = 0; i < std::size(kNames); ++i) {
      slice.arguments.emplace_back(kNames[i], row[kFirstArgument + i]);
    }
    slices.push_back(std::move(slice));
  }
  return slices;
}

std::vector<TraceSlice> DetailSlices(const ExportRequest& request) {
  std::vector<TraceSlice> slices;
  const SqlResult ranges =
      QueryRun(request, "SELECT start_ns, end_ns, reason FROM detail_range WHERE run_id = ?1");
  for (const auto& row : ranges.rows) {
    slices.push_back(
        {WholeOf(row[0]).value_or(0), WholeOf(row[1]).value_or(0), TextOf(row[2]), {}});
  }
  return slices;
}

std::vector<TraceSlice> StoreProbeSlices(const ExportRequest& request) {
  std::vector<TraceSlice> slices;
  const SqlResult probes = QueryRun(
      request,
      "SELECT start_ns, duration_ns, stage, few_count, many_count, few_rows_per_s, many_rows_per_s "
      "FROM store_probe WHERE run_id = ?1");
  for (const auto& row : probes.rows) {
    const int64_t start = WholeOf(row[0]).value_or(0);
    TraceSlice slice{start, EndOfWindow(start, WholeOf(row[1]).value_or(0)), {}, {}};
    slice.name =
        fmt::format("{}: {} threads for {}", TextOf(row[2]), TextOf(row[4]), TextOf(row[3]));
    slice.arguments.emplace_back("rows_per_second", row[6]);
    slice.arguments.emplace_back("rows_per_second_otherwise", row[5]);
    slices.push_back(std::move(slice));
  }
  return slices;
}

}  // namespace headrace::dashboards
