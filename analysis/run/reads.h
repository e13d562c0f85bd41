// Reads: what was asked of the storage, in requests and bytes, by the accounts of `fetch`.
#pragma once
#include <cstddef>
#include <optional>
#include <string>

#include "analysis/run/run_view.h"

namespace headrace::analysis {

struct Reads {
  size_t fetch = 0, io = 0;  // indices of operators "fetch" and "fetch.io" within it
  double requests_per_row = 0, bytes_per_row = 0, mean_bytes = 0;
  double requests_per_stripe = 0, stripe_rows = 0;
  double over_read_ratio = 0;  // share of the bytes read that nobody asked for: holes and alignment
};

// Over the whole run; empty without the operators "fetch" and "fetch.io", or without requests.
std::optional<Reads> ReadsOf(const RunView& run);

// Whether a stripe is read in so many requests, each so small, that fewer and longer ones are the
// first thing to try on a storage of which nobody knows what a request costs.
bool ManySmallReads(const Reads& reads);

// Seconds that a request and a byte cost the storage, and the source of that: the device modelled
// or described in the pipeline file, else the calibration of a folder that holds the table.
struct ReadCost {
  double request_s = 0, byte_s = 0;
  std::string told_by;
};
std::optional<ReadCost> ReadCostOf(const RunView& run);

// The folder, file or URL of the run's table; empty where the pipeline file does not say.
std::string TableOf(const RunRow& run);

// The innermost calibrated folder that holds the run's table; empty: none does.
std::string CalibratedFolder(const RunView& run);

}  // namespace headrace::analysis
