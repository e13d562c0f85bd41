// Characterization: the figures that industrial characterization studies of data ingestion print,
// for one table, one model and one host: dataset, features, selectivity, reads, bytes at each
// border, worker and trainer, stall, resources, transforms, duplication and cost. Each is shown
// beside the published value where there is one, and other figures of the same sheet explain the
// difference (sheet.h).
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "analysis/run/run_view.h"
#include "analysis/statistics/statistics.h"
#include "analysis/study/sheet.h"
#include "base/quantity.h"

namespace headrace::analysis {

Sheet MakeSheet(const SheetInputs& inputs);

// Rows per second of a run with its 95 % interval, by resampling blocks of its windows. The first
// window is left out where there are more than three.
Quantity RowRate(const RunView& run);

// Seconds of a consumer step, with batches of `tensor_bytes_per_batch`, such that the consumer
// demands what was published for `model`, scaled by cores from the published trainer's host to this
// one; empty where no demand was published for that model.
std::optional<double> ScaledStepSeconds(const std::string& model, double tensor_bytes_per_batch,
                                        double cores);

// The rung of an optimisation ladder: one change, measured in one tier against another rung.
struct LadderStep {
  std::string rung, words, figure, unit, against;
  double before = 0, after = 0;  // medians
  double ratio = 1;
  Interval interval;  // 95 %
  size_t pairs = 0;
  std::optional<Interval> published;  // a single value has both ends equal
  std::string source;
  // From SignOf: "same", "OPPOSITE", "no change", "not resolved", "same (none)", "differs: none
  // published"; "" where nothing was published.
  std::string sign;
  std::string why;  // from the accounts of the runs
};
// A rung compared with the first rung.
struct LadderTotal {
  std::string rung;
  std::optional<double> reader, storage, published_reader, published_storage;
  double storage_rows_per_s = 0, read_bytes_per_row = 0, requests_per_row = 0, over_read_ratio = 0;
  std::optional<double> trainer_rows_per_cpu_s, peak_bytes;
};
struct Ladder {
  std::string table, conditions;
  std::vector<LadderStep> steps;
  std::vector<LadderTotal> totals;
  std::vector<std::string> left_out;  // rungs not measured, and why
  bool opposite = false;
};
// Whether the measured ratio's interval has the same sign of change as the published factor (see
// LadderStep::sign).
std::string SignOf(const std::optional<Interval>& published, const Interval& interval);

struct Characterization {
  std::string version, command, hostname, cpu_model, kernel;  // command: produces it again
  double cores = 0;
  double minutes = 0, load = 0;
  bool quick = false;
  std::vector<Sheet> sheets;
  std::optional<Ladder> ladder;
  std::string no_ladder;
};

}  // namespace headrace::analysis
