// Figure: a quantity by which two runs are compared: its name in JSON and for people, its unit, and
// which direction is better.
#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace headrace::analysis {

// In the order in which a page shows them. The first eight are for a pipeline with accounts, the
// others for a command that ends by itself.
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
  const char* more;  // the word for "B has more of it": "faster", "more memory"
  const char* less;
  bool share;  // compared as a difference, not as a ratio
};
const FigureInfo& InfoOf(Figure figure);
std::optional<Figure> FigureByKey(std::string_view key);

}  // namespace headrace::analysis
