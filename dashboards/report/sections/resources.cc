// What stages share: cores, locks, devices; and the consumer's steps.
#include <fmt/format.h>

#include <algorithm>

#include "analysis/run/memory_bandwidth.h"
#include "base/units.h"
#include "dashboards/report/measured.h"
#include "dashboards/report/report.h"
#include "dashboards/report/table_rows.h"
#include "dashboards/report/wording.h"

namespace headrace::dashboards {
namespace {

std::optional<double> Seconds(const analysis::Count& ns) {
  if (!ns) return std::nullopt;
  return static_cast<double>(*ns) * 1e-9;
}

Table Steps(const analysis::RunView& run, const std::string& doubt) {
  const analysis::StepRow& steps = run.steps;
  const double count = std::max<double>(1, static_cast<double>(steps.steps_count));
  Table table{"steps",
              "Steps of the trainer",
              {{"steps_count", "steps"},
               {"rows_count", "rows"},
               {"wait_seconds", "wait each"},
               {"compute_seconds", "compute each"},
               {"step_p50_seconds", "p50"},
               {"step_p99_seconds", "p99"}},
              {}};
  if (!doubt.empty()) {
    table.rows.push_back(DoubtedRow(table, {}, doubt));
    return table;
  }
  table.rows.push_back({Number(static_cast<double>(steps.steps_count), Unit::kCount, ""),
                        Number(static_cast<double>(steps.rows_count), Unit::kRows, ""),
                        Duration(static_cast<double>(steps.wait_ns) * 1e-9 / count, ""),
                        Duration(static_cast<double>(steps.compute_ns) * 1e-9 / count, ""),
                        Duration(Seconds(steps.step_p50_ns), "no step records"),
                        Duration(Seconds(steps.step_p99_ns), "no step records")});
  return table;
}

void AddCores(const analysis::RunView& run, const analysis::Statements& statements,
              Section* section) {
  std::optional<double> used, other;
  if (statements.model) {
    used = statements.model->cores_used();
    other = statements.model->cores_other();
  }
  const analysis::CoreBudget budget = analysis::CoreBudgetOf(run, used);
  section->facts = {
      {"cores_budget", Number(budget.cores, Unit::kCores, "the core budget was not recorded")},
      {"cores_bound_by", budget.bound_by},
      {"cores_used", Number(used, Unit::kCores,
                            statements.doubts.any() ? statements.doubts.Summary()
                                                    : "CPU time was not split from waiting")},
      {"cores_used_by_others", Number(other, Unit::kCores, "the host's load was not recorded")}};
  if (!used || !budget.cores) return;
  std::string text =
      fmt::format("{:.2f} of {:.2f} cores used ({})", *used, *budget.cores, budget.bound_by);
  if (other) text += fmt::format(", {:.2f} by other processes", *other);
  section->sentences.push_back({"cores", text});
}

void AddMemoryBandwidth(const analysis::RunView& run, Section* section) {
  const auto memory = analysis::MemoryBandwidthOf(run);
  if (!memory) return;
  section->facts.push_back({"memory_bandwidth", memory->bytes_per_s});
  section->facts.push_back({"memory_bandwidth_told_by", memory->told_by});
  section->facts.push_back(
      {"memory_bandwidth_ceiling",
       Number(memory->ceiling_bytes_per_s, Unit::kBytesPerSecond,
              "this machine was not calibrated: headrace doctor --calibrate")});
  std::string text = FormatBytesRate(memory->bytes_per_s.value());
  if (memory->ceiling_bytes_per_s && *memory->ceiling_bytes_per_s > 0) {
    text += fmt::format(" of {} that this machine can read",
                        FormatBytesRate(*memory->ceiling_bytes_per_s));
  }
  text += fmt::format(" ({}{}{})",
                      memory->bytes_per_s.source() == Source::kEstimate ? "estimate: " : "",
                      memory->told_by, memory->whole_machine ? ", the whole machine" : "");
  section->sentences.push_back({"memory", text});
}

std::vector<Value> LockOrDevice(const analysis::RunView& run, const analysis::ResourceRow& row) {
  const double hold_s = static_cast<double>(row.hold_ns) * 1e-9;
  const double wait_s = static_cast<double>(row.wait_ns) * 1e-9;
  const double count = static_cast<double>(row.acquisitions_count);
  // Each takes a part of a memory budget; its servers are MiB.
  const bool is_memory = row.kind == "memory";
  const double part =
      is_memory && count > 0 ? static_cast<double>(row.moved_bytes) / count / 1048576 : 1;
  const double servers = static_cast<double>(std::max<int64_t>(1, row.servers_count));
  const auto each = [&](double total) {
    return count > 0 ? std::optional<double>(total / count) : std::nullopt;
  };
  std::optional<double> moved;
  if (row.moved_bytes > 0 && !is_memory) moved = static_cast<double>(row.moved_bytes);
  return {row.name,
          row.kind,
          Number(static_cast<double>(row.servers_count), Unit::kCount, ""),
          Ratio(PerSecond(run, part * hold_s / servers), "no duration recorded"),
          Duration(each(hold_s), "never acquired"),
          Duration(each(wait_s), "never acquired"),
          Number(PerSecond(run, moved), Unit::kBytesPerSecond, "moves no bytes")};
}

Table LocksAndDevices(const analysis::RunView& run, const analysis::Statements& statements) {
  Table table{"locks_and_devices",
              "",
              {{"resource", "resource"},
               {"kind", "kind"},
               {"servers_count", "servers"},
               {"held_ratio", "held"},
               {"hold_seconds", "hold each"},
               {"wait_seconds", "wait each"},
               {"bytes_per_second", "moved"}},
              {}};
  for (size_t i = 0; i < run.resources.size(); ++i) {
    const analysis::ResourceRow& row = run.resources[i];
    const std::string doubt = analysis::Doubts::Of(statements.doubts.resources, i);
    table.rows.push_back(
        doubt.empty() ? LockOrDevice(run, row)
                      : DoubtedRow(table, {{"resource", row.name}, {"kind", row.kind}}, doubt));
  }
  return table;
}

std::optional<Section> Resources(const analysis::RunView& run,
                                 const analysis::Statements& statements) {
  Section section{"resources", "Shared resources and steps", {}, {}, {}};
  AddCores(run, statements, &section);
  AddMemoryBandwidth(run, &section);
  if (!run.resources.empty()) section.tables.push_back(LocksAndDevices(run, statements));
  if (run.steps.steps_count > 0) section.tables.push_back(Steps(run, statements.doubts.steps));
  if (section.sentences.empty() && section.tables.empty()) section.title.clear();
  return section;
}

HR_SECTION("resources", 30, Resources);

}  // namespace
}  // namespace headrace::dashboards
