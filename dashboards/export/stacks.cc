#include "dashboards/export/stacks.h"

#include <set>
#include <string_view>

#include "dashboards/sql_values.h"

namespace headrace::dashboards {
namespace {

using collectors::ReadStore;
using collectors::SqlResult;

// The frames that stand for where the threads were.
std::vector<std::string> RootFrames(const ExportedStack& stack) {
  std::vector<std::string> frames;
  if (!stack.stage.empty()) frames.push_back("stage " + stack.stage);
  if (!stack.operator_name.empty()) frames.push_back("operator " + stack.operator_name);
  if (frames.empty()) {
    frames.push_back(stack.process.empty() ? "outside operators" : "process " + stack.process);
  }
  return frames;
}

void AddFolded(std::string_view folded, std::vector<std::string>* frames) {
  for (size_t begin = 0; begin <= folded.size();) {
    size_t end = folded.find(';', begin);
    if (end == std::string_view::npos) end = folded.size();
    if (end > begin) frames->emplace_back(folded.substr(begin, end - begin));
    begin = end + 1;
  }
}

void AddTotals(ReadStore& store, int64_t run_id, const std::string& kind, const std::string& column,
               std::vector<ExportedStack>* stacks) {
  const SqlResult totals = store.Query("SELECT stage, operator, " + column +
                                           " FROM operator_summary WHERE run_id = ?1 AND " +
                                           column + " > 0 ORDER BY stage_index, position_index",
                                       {run_id});
  for (const auto& row : totals.rows) {
    ExportedStack stack;
    stack.kind = kind;
    stack.stage = TextOf(row[0]);
    stack.operator_name = TextOf(row[1]);
    stack.time_ns = WholeOf(row[2]).value_or(0);
    stack.frames = RootFrames(stack);
    stack.frames.emplace_back(kOperatorTotal);
    stacks->push_back(std::move(stack));
  }
}

}  // namespace

std::vector<ExportedStack> ReadStacks(ReadStore& store, int64_t run_id) {
  std::vector<ExportedStack> stacks;
  std::set<std::string> kinds;
  const SqlResult result = store.Query(
      "SELECT CASE WHEN class IN ('queue', 'outside') THEN 'waiting' ELSE kind END AS shown_kind, "
      "stage, operator, process, pid, thread, folded, samples_count, time_ns "
      "FROM stack_summary WHERE run_id = ?1 AND time_ns > 0 "
      "ORDER BY shown_kind, stage, operator, folded, thread, pid",
      {run_id});
  for (const auto& row : result.rows) {
    ExportedStack stack;
    stack.kind = TextOf(row[0]);
    stack.stage = TextOf(row[1]);
    stack.operator_name = TextOf(row[2]);
    stack.process = TextOf(row[3]);
    stack.pid = WholeOf(row[4]).value_or(0);
    stack.thread = TextOf(row[5]);
    stack.samples_count = WholeOf(row[7]).value_or(0);
    stack.time_ns = WholeOf(row[8]).value_or(0);
    stack.frames = RootFrames(stack);
    AddFolded(TextOf(row[6]), &stack.frames);
    kinds.insert(stack.kind);
    stacks.push_back(std::move(stack));
  }
  // Off-CPU stacks of both kinds are recorded together: of one without any, there was none.
  const bool off_cpu = kinds.contains("off_cpu") || kinds.contains("waiting");
  if (!kinds.contains("cpu")) AddTotals(store, run_id, "cpu", "on_cpu_ns", &stacks);
  if (!off_cpu) {
    AddTotals(store, run_id, "off_cpu", "blocked_ns", &stacks);
    AddTotals(store, run_id, "waiting", "wait_in_ns + wait_out_ns", &stacks);
  }
  return stacks;
}

}  // namespace headrace::dashboards
