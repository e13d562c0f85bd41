// Fuzzes the reader of stored comparisons: any bytes are refused by an Error, or are a comparison
// that is computed, printed and written again; what is written again reads as the same.
//
// fuzz run: share=2 length=16384
// fuzz layers: base
// fuzz libs: Boost::headers fmt::fmt nlohmann_json::nlohmann_json
// fuzz sources: analysis/thresholds.cc analysis/comparison/comparison.cc analysis/run/figure.cc
// fuzz sources: analysis/statistics/distributions.cc analysis/statistics/paired.cc
// fuzz sources: analysis/statistics/sequential.cc analysis/statistics/statistics.cc
// fuzz sources: dashboards/comparison.cc dashboards/comparison_json.cc
// fuzz sources: dashboards/render/first_page_text.cc dashboards/render/json.cc
// fuzz sources: dashboards/json_number.cc dashboards/render/safe_text.cc
// fuzz sources: dashboards/render/table_layout.cc dashboards/render/text.cc
#include <cstdint>
#include <string>

#include "analysis/comparison/comparison.h"
#include "base/check.h"
#include "base/error.h"
#include "dashboards/comparison.h"
#include "dashboards/comparison_json.h"
#include "dashboards/render/render.h"

using namespace headrace;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  try {
    dashboards::StoredComparison stored = dashboards::ReadComparison(text, "fuzz");
    stored.input.planned_pairs = 0;  // a plan takes seconds under the sanitizers
    const analysis::Comparison comparison = analysis::Compare(stored.input);
    const dashboards::ComparisonPage page{stored.input, comparison, stored.notes};
    dashboards::RenderText(dashboards::MakeComparisonReport(page), {100, true});
    const std::string once = dashboards::ComparisonJson(page);
    const dashboards::StoredComparison again = dashboards::ReadComparison(once, "fuzz");
    HR_CHECK(dashboards::ComparisonJson(
                 {again.input, analysis::Compare(again.input), again.notes}) == once,
             "a comparison that was read is written as it was");
  } catch (const Error& error) {
    HR_CHECK(error.code() == ExitCode::kBadData || error.code() == ExitCode::kInconclusive,
             error.what());
    HR_CHECK(std::string(error.what()).find('\n') == std::string::npos, "one line");
  }
  return 0;
}
