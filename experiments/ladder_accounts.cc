#include "experiments/ladder_accounts.h"

#include <algorithm>

#include "analysis/run/counter_sums.h"
#include "analysis/study/characterization.h"
#include "base/error.h"

namespace headrace::experiments {

using analysis::RunView;

double RowAccounts::Seeking() const {
  return disk_s && *disk_s > 0 ? std::max(0.0, 1 - read_bytes / kDiskBytesPerS / *disk_s) : 0;
}

double RowAccounts::Of(Tier tier) const {
  switch (tier) {
    case Tier::kReader:
      return 1 / reader_cpu_s;
    case Tier::kMemory:
      return rate;
    case Tier::kStorage:
      return 1 / disk_s.value_or(0);
    case Tier::kBytes:
      return read_bytes;
    case Tier::kTrainer:
      return 1 / trainer_cpu_s;
  }
  return 0;
}

RowAccounts RowAccountsOf(const RunView& run) {
  RowAccounts all;
  all.rows = static_cast<double>(run.steps.rows_count);
  if (all.rows <= 0)
    throw Error(ExitCode::kInconclusive, "no row was recorded", "run " + run.run.name);
  if (run.steps.wall_ns > 0) all.rate = all.rows / (static_cast<double>(run.steps.wall_ns) * 1e-9);
  double lists_in = 0, lists_out = 0;
  const auto outside = [](const std::string& stage) {
    return stage == "client" || stage == "consumer";
  };
  for (const analysis::OperatorRow& op : run.operators) {
    const auto cpu_ns = analysis::LikelyCpuNs(op);
    if (!cpu_ns || op.source == "account")
      throw Error(ExitCode::kPrivilege, "the instrumentation has no thread CPU clock (level 2)",
                  "run " + run.run.name, "see 'headrace doctor'");
    const double cpu_us = static_cast<double>(*cpu_ns) / all.rows / 1e3;
    const double in = static_cast<double>(op.bytes_in_bytes) / all.rows;
    const double out = static_cast<double>(op.bytes_out_bytes) / all.rows;
    if (outside(op.stage)) {
      // The rest of its stage is the making of the model, once.
      if (op.kind == "trainer") all.trainer[op.name] = cpu_us;
      continue;
    }
    const std::string group = op.kind == "fetch" || op.kind == "io"          ? "fetch"
                              : op.kind == "dedup" || op.kind == "transform" ? op.kind
                                                                             : op.name;
    all.operators[group] += cpu_us;
    if (op.kind == "fetch") {
      all.read_bytes = in;
      all.wanted_bytes = out;
    }
    if (op.name == "fetch.io") all.requests = static_cast<double>(op.completions_count) / all.rows;
    if (op.name == "decompress") all.plain_bytes = out;
    if (op.kind == "dedup") {
      lists_in += in;
      lists_out += out;
    }
  }
  if (lists_out > 0) all.dedup_factor = lists_in / lists_out;
  for (const analysis::StageRow& stage : run.stages)
    if (!outside(stage.name) && stage.on_cpu_ns)
      all.reader_cpu_s += static_cast<double>(*stage.on_cpu_ns) / all.rows * 1e-9;
  for (const auto& [name, us] : all.trainer) all.trainer_cpu_s += us * 1e-6;
  for (const analysis::ResourceRow& resource : run.resources)
    if (resource.kind == "device")
      all.disk_s = static_cast<double>(resource.hold_ns) / all.rows * 1e-9;
  if (const analysis::HostRow* rss = run.FindHost("process_rss_bytes"); rss != nullptr)
    all.peak_bytes = rss->maximum_value;
  all.held_ratio = analysis::HeldForMemory(run);
  // Each is divided by.
  if (all.reader_cpu_s <= 0 || all.read_bytes <= 0)
    throw Error(ExitCode::kInconclusive, "no CPU time or no byte of the reader was counted",
                "run " + run.run.name);
  return all;
}

}  // namespace headrace::experiments
