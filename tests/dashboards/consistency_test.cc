// Every figure on a page lies within the interval that is printed beside it.
#include <gtest/gtest.h>

#include "analysis/advice/statements.h"
#include "dashboards/report/make_report.h"
#include "tests/analysis/made_runs.h"
#include "tests/analysis/outside_run.h"

namespace headrace::dashboards {
namespace {

void Check(const Value& value, const std::string& where) {
  const Quantity* quantity = std::get_if<Quantity>(&value);
  if (quantity == nullptr || !quantity->available() || !quantity->has_interval()) return;
  EXPECT_LE(quantity->low(), quantity->value() * (1 + 1e-9) + 1e-12) << where;
  EXPECT_GE(quantity->high(), quantity->value() * (1 - 1e-9) - 1e-12) << where;
}

void CheckPage(const analysis::RunView& run) {
  const Report report = MakeReport(run, analysis::MakeStatements(run));
  for (const Section& section : report.sections) {
    for (const Fact& fact : section.facts) Check(fact.value, section.key + "." + fact.key);
    for (const Table& table : section.tables) {
      for (const auto& row : table.rows) {
        for (size_t c = 0; c < row.size(); ++c) {
          Check(row[c], table.key + "." + table.columns[std::min(c, table.columns.size() - 1)].key);
        }
      }
    }
  }
}

TEST(PageConsistency, FiguresLieInTheirIntervals) {
  for (uint64_t seed = 1; seed <= 12; ++seed) {
    SCOPED_TRACE(seed);
    analysis::Random random(seed);
    analysis::SimulatedPipeline pipeline;
    pipeline.cores = 1 + static_cast<double>(random.Below(3));
    for (const char* name : {"fetch", "decode", "batch"}) {
      const double cost = 0.002 + 0.008 * random.Uniform();
      pipeline.stages.push_back({name,
                                 1 + static_cast<int>(random.Below(8)),
                                 1 + static_cast<int>(random.Below(4)),
                                 {{name, 0.5 * cost, 0.5 * cost, 0, 0, 2 * random.Uniform(), -1}}});
    }
    pipeline.consumer_s = 0.01 * random.Uniform();
    CheckPage(analysis::Record(pipeline, 6, seed));
  }
  CheckPage(analysis::RecordOneThread({}, 8, 1));
  for (const double stall : {0.02, 0.4, 0.9}) {
    CheckPage(analysis::Loader(3, 0.95 - stall, stall, 0.5, 0.2, 0.2).view);
  }
}

}  // namespace
}  // namespace headrace::dashboards
