// RunFigures: the headline figures of one recorded run, as two runs are compared by them: of the
// steady phase where the pipeline keeps accounts (the phases are found, docs/report.md), else of
// the whole command.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "analysis/run_view.h"

namespace headrace::analysis {

// In the order of a page. The first eight are of a pipeline with accounts, the others of a command
// that ends by itself.
enum class Figure : uint8_t {
  kRowsPerSecond,
  kWait,  // share of the consumer's time that it waits for data
  kCpuPerRow,
  kPeakRss,
  kStepP50,
  kStepP99,
  kReadPerRow,    // bytes asked of files
  kDevicePerRow,  // bytes that devices delivered
  kElapsed,
  kCpu,
  kRead,  // bytes that devices delivered
};
inline constexpr size_t kFigures = 11;

struct FigureInfo {
  const char* key;    // in JSON and in --fail-on: "rows_per_s"
  const char* title;  // for people: "rows/s"
  const char* unit;   // "rows/s", "ratio", "s", "bytes"
  bool higher_is_better;
  const char* more;  // in words, where B has more of it: "faster", "more memory"
  const char* less;
  bool share;  // compared as a difference, not as a ratio
};
const FigureInfo& InfoOf(Figure figure);
std::optional<Figure> FigureByKey(std::string_view key);

// SI base units (seconds, bytes, shares). Empty: not measured, for the reason of the same index.
struct RunFigures {
  std::array<Real, kFigures> values;
  std::array<std::string, kFigures> reasons;
  // The steady phase that the figures are of, since the run began; both 0: the whole run, because
  // no steady phase was found.
  int64_t steady_first_ns = 0, steady_last_ns = 0;
  size_t steady_windows = 0;

  const Real& Of(Figure figure) const { return values[static_cast<size_t>(figure)]; }
  const std::string& ReasonOf(Figure figure) const { return reasons[static_cast<size_t>(figure)]; }
};

// Never throws; what was not recorded is empty, with its reason.
RunFigures FiguresOf(const RunView& run);

// The steady phase in blocks of at least `block_ns`: figures that windows hold (rows a second, the
// consumer's wait, CPU per row), the others empty. A rest shorter than half a block joins the last
// one; none: there is no steady phase.
std::vector<RunFigures> BlocksOf(const RunView& run, int64_t block_ns);

}  // namespace headrace::analysis
