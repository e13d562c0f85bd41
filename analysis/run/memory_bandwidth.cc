#include "analysis/run/memory_bandwidth.h"

#include "analysis/run/plausibility.h"

namespace headrace::analysis {
namespace {

constexpr double kCacheLine = 64;

// Sum of the rows of a metric that stand for whole processes, or failing these for operators.
Real SumOfMisses(const RunView& run) {
  Real processes, operators;
  for (const MeasurementRow& row : run.measurements) {
    if (row.metric != "llc_misses_count" || row.bucket || !row.value) continue;
    Real& sum = row.operator_name.empty() ? processes : operators;
    sum = sum.value_or(0) + *row.value;
  }
  return processes ? processes : operators;
}

}  // namespace

std::optional<MemoryBandwidth> MemoryBandwidthOf(const RunView& run) {
  const double seconds = static_cast<double>(run.run.duration_ns) * 1e-9;
  if (seconds <= 0) return std::nullopt;
  const auto made = [&](double bytes, Source source, std::string told_by, bool whole_machine) {
    return MemoryBandwidth{Quantity::Of(bytes / seconds, Unit::kBytesPerSecond, source),
                           std::move(told_by), whole_machine, run.memory_ceiling_bytes_per_s};
  };
  Real moved;
  std::string told_by;
  bool estimate = false;
  for (const MeasurementRow& row : run.measurements) {
    const std::string& m = row.metric;
    if (m != "memory_read_bytes" && m != "memory_write_bytes" && m != "memory_bytes") continue;
    if (!row.value) continue;
    moved = moved.value_or(0) + *row.value;
    told_by = row.cause;
    estimate |= row.source == "estimate";
  }
  if (moved) return made(*moved, estimate ? Source::kEstimate : Source::kCounter, told_by, true);
  if (const Real misses = SumOfMisses(run)) {
    return made(*misses * kCacheLine, Source::kEstimate, "LLC misses of the processes, 64 B each",
                false);
  }
  double accounted = 0;
  const Doubts doubts = FindDoubts(run);
  for (size_t i = 0; i < run.operators.size(); ++i) {
    const OperatorRow& row = run.operators[i];
    // What a stripe holds beside the wanted: known from the footers, never read.
    if (row.kind == "stored") continue;
    if (!Doubts::Of(doubts.operators, i).empty()) return std::nullopt;
    accounted += static_cast<double>(row.bytes_in_bytes) + static_cast<double>(row.bytes_out_bytes);
  }
  if (accounted <= 0) return std::nullopt;
  return made(accounted, Source::kEstimate, "accounted bytes, in and out of operators", false);
}

Real MemorySecondsPerBatch(const RunView& run, double batches_per_second) {
  const std::optional<MemoryBandwidth> seen = MemoryBandwidthOf(run);
  if (!seen || !seen->ceiling_bytes_per_s || *seen->ceiling_bytes_per_s <= 0 ||
      seen->told_by.starts_with("accounted") || !seen->bytes_per_s.available() ||
      batches_per_second <= 0) {
    return std::nullopt;
  }
  return seen->bytes_per_s.value() / batches_per_second / *seen->ceiling_bytes_per_s;
}

}  // namespace headrace::analysis
