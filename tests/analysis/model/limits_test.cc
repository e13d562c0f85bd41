// Rows that bound a rate: every kind has its words and its relief, and each row is one for all who
// ask: report, plan, what-if and the ladder.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>

#include "analysis/advice/statements.h"
#include "analysis/model/bottleneck.h"
#include "analysis/model/limits/bounds.h"
#include "analysis/model/limits/limit.h"
#include "analysis/model/limits/limit_kind.h"
#include "analysis/model/resource_ladder.h"
#include "analysis/model/sensitivity.h"
#include "analysis/model/what_if.h"
#include "base/error.h"
#include "tests/analysis/synthetic_run.h"

namespace headrace::analysis {
namespace {

using testing::HasSubstr;

// 2 ms, 6 ms on two threads, and a consumer of 1 ms, on four cores.
SimulatedPipeline Chain() {
  SimulatedPipeline pipeline;
  pipeline.cores = 4;
  pipeline.consumer_s = 0.001;
  pipeline.stages.push_back({"fetch", 1, 4, {{"fetch", 0.002, 0, 0, 0, 0.1, -1}}});
  pipeline.stages.push_back({"decode", 2, 4, {{"decode", 0.006, 0, 0, 0, 0.1, -1}}});
  return pipeline;
}

// A run that moved `moved` bytes a second on a machine whose best is `ceiling`.
RunView Moving(double moved, double ceiling) {
  RunView run = Record(Chain(), 10, 1);
  MeasurementRow row;
  row.metric = "memory_bytes";
  row.value = moved * static_cast<double>(run.run.duration_ns) * 1e-9;
  row.source = "counter";
  row.cause = "memory controllers";
  run.measurements.push_back(row);
  run.memory_ceiling_bytes_per_s = ceiling;
  return run;
}

// One pipeline that has a row of nearly every kind: a lock, order, a network.
RunView Mixed() {
  SimulatedPipeline pipeline = Chain();
  pipeline.resources = {{"table", 1}};
  pipeline.stages[1].operators[0].held_cpu_s = 0.001;
  pipeline.stages[1].operators[0].resource = 0;
  for (SimulatedStage& stage : pipeline.stages) stage.ordered = true;
  RunView run = Record(pipeline, 10, 1);
  run.run.element_order = "file";
  ReceiveBy(&run, "eth0", 0.4);
  WaitForMemory(&run, 3, 0.01);
  return run;
}

std::optional<Limit> RowOf(const std::vector<Limit>& rows, std::string_view kind) {
  for (const Limit& row : rows) {
    if (row.Is(kind)) return row;
  }
  return std::nullopt;
}

TEST(LimitKinds, EveryFileOfTheFolderIsRegistered) {
  const std::filesystem::path folder =
      std::filesystem::path(HEADRACE_SOURCE_DIR) / "analysis/model/limits";
  size_t files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    const std::string name = entry.path().filename();
    // What others need has a header beside it; a kind has none.
    const bool is_kind =
        !std::filesystem::exists(std::filesystem::path(entry).replace_extension(".h"));
    if (!name.ends_with(".cc") || !is_kind) continue;
    std::ifstream file(entry.path());
    std::stringstream text;
    text << file.rdbuf();
    EXPECT_THAT(text.str(), HasSubstr("\nHR_LIMIT(")) << name;
    ++files;
  }
  EXPECT_EQ(LimitKinds().size(), files);
  std::set<int> places;
  for (const LimitKind* kind : LimitKinds()) {
    EXPECT_TRUE(places.insert(kind->place()).second) << kind->name();
    EXPECT_GT(kind->prediction_error(), 0) << kind->name();
    EXPECT_LT(kind->prediction_error(), 0.2) << kind->name();
  }
}

TEST(LimitKinds, ThePublishedSchemasKnowEveryKind) {
  for (const char* schema : {"what_if", "plan"}) {
    std::ifstream file(std::filesystem::path(HEADRACE_SOURCE_DIR) / "docs/schema" /
                       (std::string(schema) + ".schema.json"));
    std::stringstream text;
    text << file.rdbuf();
    for (const LimitKind* kind : LimitKinds()) {
      if (kind->name() == "memory") continue;  // it has room, and bounds no rate
      EXPECT_THAT(text.str(), HasSubstr("\"" + kind->name() + "\"")) << schema;
    }
  }
}

TEST(LimitKinds, EveryRowHasWordsAndRelievingItLosesNothing) {
  const RunView run = Mixed();
  const PipelineModel model(run);
  const Predictor predictor(model);
  const Variant now{model.current(), {{Scaled::kCacheDisk, 0, 0.0001}}};
  const Demands demands = Apply(model, model.demands(), now.scales);
  std::set<std::string> seen;
  for (const Limit& row : Bounds(model, demands, now.settings)) {
    seen.insert(row.kind_name());
    EXPECT_FALSE(Describe(row).empty()) << row.name;
    EXPECT_FALSE(row.kind->ShortName(row).empty()) << row.name;
    EXPECT_FALSE(row.kind->SizedName(model, row).empty()) << row.name;
    EXPECT_FALSE(row.kind->WhyUnlimited(model).empty()) << row.name;
    EXPECT_FALSE(row.kind->ResourceClass(model, row).empty()) << row.name;
    EXPECT_FALSE(row.kind->WithoutSetting(model, row, "decode").empty()) << row.name;
    EXPECT_THAT(row.kind->Because(model, row, 0.5), HasSubstr("batches/s")) << row.name;
    if (!std::isfinite(row.bound)) continue;
    for (const Step step : {Step::kUnit, Step::kTenth, Step::kQuarter}) {
      const Relief relief = row.kind->Relieve(model, now, row, step);
      EXPECT_FALSE(relief.what.empty()) << row.name;
      EXPECT_FALSE(relief.variant == now) << row.name;
      const Demands then = Apply(model, model.demands(), relief.variant.scales);
      for (const Limit& relieved : Bounds(model, then, relief.variant.settings)) {
        if (!SameRow(relieved, row)) continue;
        // What an estimate allows may be the same.
        const double least = row.kind->estimated() ? row.bound : row.bound * (1 + 1e-9);
        EXPECT_GE(relieved.bound, least) << row.name << ", " << relief.what;
      }
    }
  }
  EXPECT_THAT(seen, testing::IsSupersetOf({"consumer", "cores", "stage", "lock", "network",
                                           "cache_disk", "order", "memory budget"}));
}

// 8 ms of 10 the first stage waits for room; nothing else takes more than 3 ms.
RunView Admitted(int fit) {
  SimulatedPipeline pipeline = Chain();
  pipeline.stages[0].operators[0].blocked_s = 0.008;
  RunView run = Record(pipeline, 10, 1);
  WaitForMemory(&run, fit, 0.01);
  return run;
}

TEST(MemoryBudgetRow, IsNamedWhereFewSplitsFitAndNoThreadIsAdvised) {
  const RunView run = Admitted(1);
  const Statements statements = MakeStatements(run);
  ASSERT_TRUE(statements.bottleneck) << statements.withheld;
  const Bottleneck& bottleneck = *statements.bottleneck;
  ASSERT_FALSE(bottleneck.findings.empty());
  const Limit& first = bottleneck.findings[0].limit;
  EXPECT_EQ(first.kind_name(), kMemoryBudgetLimit);
  const double rate = statements.model->demands().rate;
  EXPECT_GT(first.bound, 0.95 * rate);
  EXPECT_LT(first.bound, 1.2 * rate) << "it waits four fifths of the time";
  EXPECT_THAT(first.kind->Because(*statements.model, first, 0.8),
              HasSubstr("memory budget of 200 MiB has room for 1 split of 95.4 MiB at a time"));
  ASSERT_TRUE(statements.allocation);
  EXPECT_TRUE(statements.allocation->changes.empty()) << "threads make no room";
  const Predictor predictor(*statements.model);
  const Prediction more =
      predictor.Predict(ParseWhatIf(*statements.model, {"decode.parallelism=4"}));
  EXPECT_EQ(more.limits[more.binding].kind_name(), kMemoryBudgetLimit);
}

TEST(MemoryBudgetRow, IsNotNamedWhereSplitsPileUpBeforeASlowerStage) {
  const RunView run = Admitted(40);
  const PipelineModel model(run);
  const auto row = RowOf(Bounds(model, model.demands(), model.current()), kMemoryBudgetLimit);
  ASSERT_TRUE(row);
  EXPECT_GT(row->bound, 10 * model.demands().rate);
}

TEST(MemoryBudgetRow, IsThereOnlyWithABudget) {
  const RunView run = Record(Chain(), 10, 1);
  const PipelineModel model(run);
  EXPECT_FALSE(RowOf(Bounds(model, model.demands(), model.current()), kMemoryBudgetLimit));
}

TEST(MemoryBandwidthRow, IsNamedByTheReportThePlanTheWhatIfAndTheLadder) {
  const RunView run = Moving(1.96e9, 2e9);  // 2 % are left
  const Statements statements = MakeStatements(run);
  ASSERT_TRUE(statements.bottleneck) << statements.withheld;
  const Bottleneck& bottleneck = *statements.bottleneck;
  EXPECT_EQ(bottleneck.verdict, Verdict::kLimited) << bottleneck.measure;
  EXPECT_EQ(bottleneck.findings[0].limit.kind_name(), kMemoryBandwidthLimit);
  EXPECT_NEAR(bottleneck.findings[0].utilisation, 0.98, 0.02);
  ASSERT_TRUE(statements.allocation);
  EXPECT_EQ(statements.allocation->limited_by.kind_name(), kMemoryBandwidthLimit);
  EXPECT_TRUE(statements.allocation->changes.empty()) << "threads move no more bytes";

  const PipelineModel& model = *statements.model;
  const Predictor predictor(model);
  const Prediction more = predictor.Predict(ParseWhatIf(model, {"decode.parallelism=4"}));
  EXPECT_EQ(more.limits[more.binding].kind_name(), kMemoryBandwidthLimit);
  EXPECT_LE(more.rate, 1.06 * model.demands().rate);
  // What moves is taken to go with what is computed.
  const Prediction half = predictor.Predict(ParseWhatIf(model, {"stage:decode.cost=0.5"}));
  EXPECT_GT(RowOf(half.limits, kMemoryBandwidthLimit)->bound,
            1.5 * RowOf(more.limits, kMemoryBandwidthLimit)->bound);

  size_t rungs = 0;
  for (const Rung& rung : ResourceLadder(model, bottleneck)) {
    if (rung.kind != kMemoryBandwidthLimit) continue;
    ++rungs;
    EXPECT_TRUE(rung.binding);
    EXPECT_NEAR(rung.used_ratio.value(), 0.98, 0.02);
  }
  EXPECT_EQ(rungs, 1u) << "one quantity, one row";
}

TEST(MemoryBandwidthRow, IsNoRowWhereTheMachineWasNotCalibrated) {
  const RunView run = Moving(1.9e9, 0);
  const PipelineModel model(run);
  EXPECT_FALSE(RowOf(Bounds(model, model.demands(), model.current()), kMemoryBandwidthLimit));
  const Bottleneck bottleneck = FindBottleneck(model);
  for (const Rung& rung : ResourceLadder(model, bottleneck)) {
    if (rung.kind != kMemoryBandwidthLimit) continue;
    EXPECT_FALSE(rung.attainable.available());
    EXPECT_THAT(rung.attainable.reason(), HasSubstr("doctor --calibrate"));
  }
}

TEST(MemoryBandwidthRow, NoBoundIsBelowWhatWasObserved) {
  // Counters of the whole machine over the whole run, and a ceiling that was measured another day.
  const RunView run = Moving(2.4e9, 2e9);
  const PipelineModel model(run);
  const std::optional<Limit> row =
      RowOf(Bounds(model, model.demands(), model.current()), kMemoryBandwidthLimit);
  ASSERT_TRUE(row);
  EXPECT_GE(row->bound, model.demands().rate * (1 - 1e-9));
}

TEST(LeastBound, LeavesOutEstimates) {
  const RunView run = Mixed();
  const PipelineModel model(run);
  std::vector<Limit> rows = Bounds(model, model.demands(), model.current());
  double least = INFINITY;
  for (Limit& row : rows) {
    if (row.kind->estimated()) {
      row.bound = 1e-3;
    } else {
      least = std::min(least, row.bound);
    }
  }
  EXPECT_EQ(LeastBound(rows), least);
}

}  // namespace
}  // namespace headrace::analysis
