// RowAccounts: what the rungs of the ladder are compared by.
#pragma once
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "analysis/run/run_view.h"
#include "analysis/statistics/statistics.h"
#include "experiments/ladder_rungs.h"

namespace headrace::experiments {

inline constexpr double kDiskBytesPerS = 150e6, kDiskSeekS = 8e-3;  // of preset "disk"

// The accounts of one recorded run, per row.
struct RowAccounts {
  double rows = 0, rate = 0;
  std::map<std::string, double> operators, trainer;  // CPU us
  double read_bytes = 0, wanted_bytes = 0, requests = 0, plain_bytes = 0;
  std::optional<double> dedup_factor, disk_s, peak_bytes, held_ratio;
  double reader_cpu_s = 0, trainer_cpu_s = 0;

  // The share of the disk's time in which it moves its head.
  double Seeking() const;
  double OverRead() const { return read_bytes > 0 ? 1 - wanted_bytes / read_bytes : 0; }
  double Of(Tier tier) const;  // the tier's figure, in its unit
};

// Throws Error: kInconclusive where no row, CPU time or byte was counted, kPrivilege where CPU time
// was not measured.
RowAccounts RowAccountsOf(const analysis::RunView& run);

using RungRuns = std::vector<RowAccounts>;  // of one rung in one tier

// The median over the runs; 0 for none.
template <typename Value>
double MedianOf(const RungRuns& runs, Value value) {
  std::vector<double> values;
  for (const RowAccounts& run : runs) values.push_back(value(run));
  return values.empty() ? 0 : analysis::Quantile(std::move(values), 0.5);
}

}  // namespace headrace::experiments
