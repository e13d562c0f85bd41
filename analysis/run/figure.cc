#include "analysis/run/figure.h"

namespace headrace::analysis {
namespace {

constexpr FigureInfo kInfo[kFigures] = {
    {"rows_per_s", "rows/s", "rows/s", true, "faster", "slower", false},
    {"wait_ratio", "trainer wait", "ratio", false, "more waiting", "less waiting", true},
    {"cpu_s_per_row", "CPU per row", "s", false, "more CPU", "less CPU", false},
    {"peak_rss_bytes", "peak RSS", "bytes", false, "more memory", "less memory", false},
    {"step_p50_s", "p50 step", "s", false, "longer p50 step", "shorter p50 step", false},
    {"step_p99_s", "p99 step", "s", false, "longer p99 step", "shorter p99 step", false},
    {"read_bytes_per_row", "read per row", "bytes", false, "more reading", "less reading", false},
    {"device_bytes_per_row", "from device per row", "bytes", false, "more from devices",
     "less from devices", false},
    {"elapsed_s", "elapsed", "s", false, "slower", "faster", false},
    {"cpu_s", "CPU time", "s", false, "more CPU", "less CPU", false},
    {"device_bytes", "read from device", "bytes", false, "more from devices", "less from devices",
     false},
};

}  // namespace

const FigureInfo& InfoOf(Figure figure) { return kInfo[static_cast<size_t>(figure)]; }

std::optional<Figure> FigureByKey(std::string_view key) {
  for (size_t i = 0; i < kFigures; ++i) {
    if (key == kInfo[i].key) return static_cast<Figure>(i);
  }
  return std::nullopt;
}

}  // namespace headrace::analysis
