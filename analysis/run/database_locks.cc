#include "analysis/run/database_locks.h"

#include <string_view>

#include "analysis/thresholds.h"

namespace headrace::analysis {
namespace {

bool Has(std::string_view folded, std::string_view part) {
  return folded.find(part) != std::string_view::npos;
}

bool IsUnwoundSleep(std::string_view folded) {
  const bool is_cut = Has(folded, "[truncated]") || Has(folded, "[no stack]");
  return !is_cut && Has(folded, ";[sleep];");
}

// A function of Python that SQL calls may sleep itself.
bool SleepsInSqlite(std::string_view folded) {
  const size_t last = folded.rfind(";sqlite3_");
  return last != std::string_view::npos && !Has(folded.substr(last), ";_PyEval_");
}

}  // namespace

void SqliteSleeps::Add(const StackRow& stack) {
  if (!IsUnwoundSleep(stack.folded)) return;
  const auto ns = static_cast<double>(stack.time_ns);
  all_ns_ += ns;
  samples_count_ += stack.samples_count;
  if (SleepsInSqlite(stack.folded)) in_sqlite_ns_ += ns;
}

double SqliteSleeps::ratio() const {
  return samples_count_ >= kFewestSamples ? in_sqlite_ns_ / all_ns_ : 0;
}

double SqliteSleepRatio(const RunView& run, const OperatorRow& op) {
  SqliteSleeps sleeps;
  for (const StackRow& stack : run.stacks) {
    if (stack.kind != "off_cpu" || stack.operator_name != op.name) continue;
    if (stack.stage.empty() || stack.stage == op.stage) sleeps.Add(stack);
  }
  return sleeps.ratio();
}

}  // namespace headrace::analysis
