#include "cli/layout_advise.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <vector>

#include "analysis/statistics/statistics.h"
#include "base/error.h"
#include "base/units.h"
#include "experiments/interrupt.h"
#include "reader/dwrf/codec.h"
#include "reader/dwrf/file_reader.h"

namespace headrace::cli {
namespace {

namespace dwrf = reader::dwrf;
using workloads::AdvisedLayout;

struct Range {
  double median = 0, low = 0, high = 0;  // median, tenth, ninetieth percentile
};
Range RangeOf(const std::vector<double>& values) {
  return {analysis::Quantile(values, 0.5), analysis::Quantile(values, 0.1),
          analysis::Quantile(values, 0.9)};
}
// Round by round.
Range RatioTo(const AdvisedLayout& of, const AdvisedLayout& to) {
  std::vector<double> ratios;
  for (size_t i = 0; i < of.cpu_ns.size(); ++i) ratios.push_back(of.cpu_ns[i] / to.cpu_ns[i]);
  return RangeOf(ratios);
}

const char* NameOf(const AdvisedLayout& layout) {
  return layout.goal == dwrf::LayoutGoal::kFixed ? "as it is" : dwrf::LayoutGoalName(layout.goal);
}

void PrintText(const std::string& name, const std::vector<AdvisedLayout>& layouts) {
  const AdvisedLayout& now = layouts[0];
  fmt::print("{}: the first {} rows, copied in each layout and scanned {} times in turn\n\n",
             Printable(name), now.rows, now.cpu_ns.size());
  fmt::print("{:<10}{:>7}{:>13}{:>15}{:>13}{:>11}   {}\n", "layout", "codec", "stripe rows",
             "stored B/row", "read B/row", "CPU ns/row", "CPU beside as it is");
  for (const AdvisedLayout& layout : layouts) {
    const Range ns = RangeOf(layout.cpu_ns);
    fmt::print("{:<10}{:>7}{:>13}{:>15.1f}{:>13.1f}{:>11.0f}", NameOf(layout),
               dwrf::CodecName(layout.compression), layout.stripe_rows, layout.stored_bytes,
               layout.read_bytes, ns.median);
    if (&layout != &now) {
      const Range ratio = RatioTo(layout, now);
      fmt::print("   {:.2f} [{:.2f}, {:.2f}]", ratio.median, ratio.low, ratio.high);
    }
    fmt::print("\n");
  }
  fmt::print(
      "\nStored: all columns. Read: the streams of the projection. CPU: to fetch them from the "
      "page "
      "cache,\ndecompress, decode and align them by rows, on one thread. Beside: median of the "
      "rounds [10 %, 90 %].\n");
}

// By the goal's own price of a byte.
bool Gains(const AdvisedLayout& layout, const AdvisedLayout& now) {
  constexpr double kWorthwhile = 0.95;
  const auto cost = [&](const AdvisedLayout& of) {
    return dwrf::LayoutCost{of.read_bytes, RangeOf(of.cpu_ns).median}.At(layout.goal);
  };
  return cost(layout) <= kWorthwhile * cost(now);
}

void PrintNext(const std::string& name, const std::vector<AdvisedLayout>& layouts) {
  const AdvisedLayout& now = layouts[0];
  std::string first;  // balanced comes before the others
  for (const AdvisedLayout& layout : layouts) {
    if (&layout == &now || !Gains(layout, now)) continue;
    if (first.empty()) first = NameOf(layout);
    fmt::print(
        "Rewriting for {} gains, a byte read at {:g} ns: {} of the CPU time, {} of the bytes read, "
        "{} of the bytes stored.\n",
        NameOf(layout), dwrf::ByteNs(layout.goal), FormatPercent(RatioTo(layout, now).median),
        FormatPercent(layout.read_bytes / now.read_bytes),
        FormatPercent(layout.stored_bytes / now.stored_bytes));
  }
  if (first.empty()) {
    fmt::print("Rewriting gains this job less than 5 % by any goal: keep the table as it is.\n");
    return;
  }
  fmt::print(stderr, "next: {} rewrite {} -o DIR --optimize {} --explain\n",
             ShellWord(ProgramName()), ShellWord(name), first);
}

void PrintJson(const std::string& name, const std::vector<AdvisedLayout>& layouts) {
  nlohmann::ordered_json out = {{"schema", "headrace.layout_advice/1"}, {"table", name}};
  out["layouts"] = nlohmann::ordered_json::array();
  for (const AdvisedLayout& layout : layouts) {
    const Range ns = RangeOf(layout.cpu_ns), ratio = RatioTo(layout, layouts[0]);
    out["layouts"].push_back({{"optimize", NameOf(layout)},
                              {"compression", dwrf::CodecName(layout.compression)},
                              {"stripe_rows_count", layout.stripe_rows},
                              {"rows_count", layout.rows},
                              {"stored_bytes_per_row", layout.stored_bytes},
                              {"read_bytes_per_row", layout.read_bytes},
                              {"cpu_ns_per_row", ns.median},
                              {"cpu_ratio", ratio.median},
                              {"cpu_low_ratio", ratio.low},
                              {"cpu_high_ratio", ratio.high}});
  }
  fmt::print("{}\n", out.dump(2, ' ', false, nlohmann::json::error_handler_t::replace));
}

}  // namespace

void PrintAdvice(const reader::Table& table, const std::string& name,
                 const dwrf::Projection& projection, workloads::LayoutAdviceOptions options,
                 bool json) {
  experiments::InstallInterruptHandler();
  options.check = [] {
    if (experiments::Interrupted())
      throw Error(ExitCode::kInterrupted, "interrupted; the copies are gone");
  };
  const std::vector<AdvisedLayout> layouts = workloads::AdviseLayout(table, projection, options);
  if (json) return PrintJson(name, layouts);
  PrintText(name, layouts);
  PrintNext(name, layouts);
}

}  // namespace headrace::cli
