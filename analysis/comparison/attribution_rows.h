// Attribution: what is said of the difference between two sides, row by row (attribution.h says how
// it is had); and its last rows, alike for runs with operators and without.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "analysis/statistics/statistics.h"

namespace headrace::analysis {

enum class AttributedTo : uint8_t {
  kOperator,
  kUnattributed,  // CPU that no operator accounts for
  kConsumer,
  kDevice,        // its speed: time for a byte, or for a request where bytes were not counted
  kLock,          // the holders it lets in at a time
  kCores,         // that others leave
  kCoreSpeed,     // what all operators got dearer or cheaper by alike: load, clock, caches
  kThreads,       // of a stage
  kQueues,        // their lengths and the order window
  kShape,         // how operators are put into stages, rows of a batch, order
  kGroup,         // runs without operators: threads of one name
  kCause,         // runs without operators: what the main thread waited for
  kOutsidePhase,  // start, fill and end of the runs: what the rate asked for has and the steady
                  // rate does not
  kUnexplained    // measured, but not by the model
};
const char* AttributedToName(AttributedTo what);  // "operator", "threads", ...

// What a row costs in one operator, on one side.
struct CostFigures {
  double cpu_s = 0, blocked_s = 0;  // waits for a lock are no cost of the one who waits
  double bytes = 0;                 // that go into the operator
};

// A part of the change of a logarithm: exp(value) - 1 is the change it would make alone.
struct SharePart {
  double value = 0;
  Interval interval;  // 95 %
};

struct AttributionRow {
  AttributedTo to = AttributedTo::kOperator;
  std::string name;                 // "decode", "threads of decode"
  std::string stage;                // operators: of the side that has it, B first
  std::optional<CostFigures> a, b;  // empty: this side does not have it, or it is no cost
  // Settings and resources: threads, cores, seconds a byte; empty where no one number says it.
  std::optional<double> setting_a, setting_b;
  // Parts of ln(total B / total A) of each cost; empty: no cost.
  std::optional<double> cpu_share, blocked_share, bytes_share;
  SharePart throughput;
  bool within_noise = false;  // its change is within what runs of one side differ by
  bool told = false;          // the interval of its share of the throughput does not hold 0
};

struct Attribution {
  std::string unavailable;   // why nothing can be said; then all else is empty
  std::string unit = "row";  // what costs and rates are counted by: "row", "batch", "run"
  size_t runs_a = 0, runs_b = 0;
  bool paired = false;

  double rate_a = 0, rate_b = 0;  // units a second, geometric means over the runs
  SharePart log_ratio;            // ln(rate_b / rate_a), as measured: what the rows sum to
  double explained = 0;           // of it, by the model
  double spread = 0;              // of what the model errs by, put to its parts by their size
  CostFigures total_a, total_b;
  // Empty: the accounts do not tell CPU time from blocked time, or there are no accounts.
  std::string cpu_unavailable, bytes_unavailable;

  // Largest share of the throughput first, then of the cost; the rows that are not explained last.
  std::vector<AttributionRow> rows;

  // How shares of the throughput were had.
  std::string method;  // "Shapley value, all 2^4 sets of changes", "4 of ..."
  uint64_t seed = 0;
  // What is to be known with it, a sentence each: operators of one side only, what was left out.
  std::vector<std::string> notes;
};

struct AttributionOptions {
  // ln(X_B / X_A) of the rate that the page is about, if that is not the one of the steady phase:
  // the difference becomes a row of this name (empty: one that suits the runs), unless it is
  // negligible.
  std::optional<double> log_ratio;
  std::string outside;
  uint64_t seed = 20261122;
  size_t draws = 300;  // of the bootstrap
};

// Brings the rows of `result` into order and adds what they do not carry: a row for what the rate
// that the page is about has beyond `measured`, the logarithm of the rates that the other rows
// divide, called `options.outside` or else `outside`; and `unexplained`, named by the caller, with
// what is left of `measured` and its interval. The interval of `result.log_ratio` is around
// `measured` before, around the ratio asked for afterwards.
void CloseRows(const AttributionOptions& options, double measured, const std::string& outside,
               const std::string& unexplained_name, const SharePart& unexplained,
               Attribution* result);

}  // namespace headrace::analysis
