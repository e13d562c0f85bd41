// Attribution: the difference between two sides, row by row (attribution.h says how it is
// computed); and the rows at its end, which are the same for runs with operators and without.
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
  kDevice,     // its speed: time for a byte, or for a request where bytes were not counted
  kLock,       // the holders it lets in at a time
  kCores,      // that others leave
  kCoreSpeed,  // what all operators got dearer or cheaper by alike: load, clock, caches
  kThreads,    // of a stage
  kQueues,     // their lengths and the order window
  kShape,      // how operators are put into stages, rows of a batch, order
  kGroup,      // runs without operators: threads of one name
  kCause,      // runs without operators: what the main thread waited for
  // Start, fill and end of the runs: the part of the requested rate that the steady rate does not
  // have.
  kOutsidePhase,
  kUnexplained  // measured, but not by the model
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
  std::string name;  // "decode", "threads of decode"
  // Operators: the stage on side B, or on side A where B does not have the operator.
  std::string stage;
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
  double explained = 0;           // the part of log_ratio that the model explains
  // The part within the model's usual error, spread over the rows in proportion to their size.
  double spread = 0;
  CostFigures total_a, total_b;
  // Empty: the accounts do not tell CPU time from blocked time, or there are no accounts.
  std::string cpu_unavailable, bytes_unavailable;

  // Largest share of the throughput first, then of the cost; the rows that are not explained last.
  std::vector<AttributionRow> rows;

  // How the shares of the throughput were computed.
  std::string method;  // "Shapley value, all 2^4 sets of changes", "4 of ..."
  uint64_t seed = 0;
  // Remarks, one sentence each: operators that only one side has, what was left out.
  std::vector<std::string> notes;
};

struct AttributionOptions {
  // ln(X_B / X_A) of the rate that the page is about, if that is not the steady-phase rate. Unless
  // it is negligible, the difference becomes a row named `outside` (empty: a name that suits the
  // runs).
  std::optional<double> log_ratio;
  std::string outside;
  uint64_t seed = 20261122;
  size_t draws = 300;  // of the bootstrap
};

// The level of every interval of an attribution.
inline constexpr double kAttributionLevel = 0.95;

// The logarithmic mean: parts of (b - a) over it are parts of ln(b / a). 0 where a total is 0.
double LogMean(double a, double b);

// Nothing can be said, and why.
Attribution UnavailableAttribution(std::string why);

// Sorts the rows of `result` and adds those that close the sum. `measured` is the ln(B / A) that
// the existing rows divide up. Two rows are added: the difference between the rate that the page is
// about (`options.log_ratio`) and `measured`, named `options.outside` or else `outside`; and what
// is left of `measured` (`unexplained`, with its interval), named `unexplained_name`. On entry the
// interval of `result.log_ratio` is around `measured`, on return around the ratio asked for.
void CloseRows(const AttributionOptions& options, double measured, const std::string& outside,
               const std::string& unexplained_name, const SharePart& unexplained,
               Attribution* result);

}  // namespace headrace::analysis
