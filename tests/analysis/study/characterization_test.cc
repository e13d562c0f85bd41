// Characterization: sizes, signs and demands by hand; what limits a worker from runs whose limit is
// known; that nothing unmeasured is a figure, and that published values find their figures.
#include "analysis/study/characterization.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "analysis/study/published.h"
#include "tests/analysis/synthetic_run.h"

namespace headrace::analysis {
namespace {

using testing::HasSubstr;

TEST(Sizes, PercentilesOfAHandfulByHand) {
  const SizeFigures sizes = SizesOf({30, 10, 20, 50, 40});
  EXPECT_EQ(sizes.count, 5u);
  EXPECT_DOUBLE_EQ(sizes.mean, 30);
  EXPECT_NEAR(sizes.deviation, std::sqrt(250), 1e-9);
  EXPECT_DOUBLE_EQ(sizes.p5, 12);
  EXPECT_DOUBLE_EQ(sizes.p25, 20);
  EXPECT_DOUBLE_EQ(sizes.p50, 30);
  EXPECT_DOUBLE_EQ(sizes.p95, 48);
  EXPECT_EQ(SizesOf({}).count, 0u);
}

TEST(Sign, OfARatioAgainstThePublishedFactor) {
  struct Case {
    const char* name;
    std::optional<Interval> published;
    Interval measured;
    const char* sign;
  };
  const Case cases[] = {
      {"nothing was published", std::nullopt, {1.2, 1.4}, ""},
      {"both faster", Interval{2, 2}, {1.7, 1.8}, "same"},
      {"both slower", Interval{0.03, 0.03}, {0.09, 0.1}, "same"},
      {"faster was published, slower measured", Interval{1.15, 1.15}, {0.8, 0.9}, "OPPOSITE"},
      {"slower was published, faster measured", Interval{0.27, 0.27}, {1.1, 1.2}, "OPPOSITE"},
      {"a modelled disk that does the same, a shade below",
       Interval{1.8, 1.8},
       {0.9999995, 0.9999995},
       "no change"},
      {"and a shade above", Interval{1.8, 1.8}, {1.0000006, 1.0000006}, "no change"},
      {"the interval holds 1", Interval{1.2, 1.4}, {0.95, 1.3}, "not resolved"},
      {"no change was published, little measured", Interval{1, 1}, {0.94, 1.05}, "same (none)"},
      {"no change was published, how much is open", Interval{1, 1}, {1.0, 1.2}, "not resolved"},
      {"no change was published, much measured",
       Interval{1, 1},
       {0.8, 0.85},
       "differs: none published"},
  };
  for (const Case& c : cases) EXPECT_EQ(SignOf(c.published, c.measured), c.sign) << c.name;
}

TEST(Demand, StepAsksForThePublishedBytesScaledByCores) {
  // 16.5 GB/s for 56 cores: 2 cores are asked for 589 MB/s, and a batch of that size is a second.
  EXPECT_NEAR(*ScaledStepSeconds("rm1", 16.5e9 * 2 / 56, 2), 1, 1e-9);
  EXPECT_FALSE(ScaledStepSeconds("mine", 1e6, 2));
  EXPECT_FALSE(ScaledStepSeconds("rm1", 0, 2));
  EXPECT_FALSE(ScaledStepSeconds("rm1", 1e6, 0));
}

TEST(Published, EachValueOnceAndOfAFigureThatSheetsHave) {
  SheetInputs inputs;
  inputs.name = inputs.model = "rm1";
  const Sheet sheet = MakeSheet(inputs);
  std::set<std::pair<std::string, std::string>> seen;
  for (const PublishedValue& value : AllPublished()) {
    EXPECT_TRUE(seen.insert({value.key, value.model}).second) << value.key << " " << value.model;
    EXPECT_GT(value.value, 0) << value.key;
    EXPECT_NE(std::string(value.source), "") << value.key;
    EXPECT_NE(sheet.Find(value.key), nullptr) << value.key << " is on no sheet";
  }
  for (const char* model : kPublishedModels) EXPECT_NE(FindPublishedLimit(model), nullptr) << model;
  EXPECT_EQ(FindPublishedLimit("rm9"), nullptr);
  EXPECT_EQ(FindPublished("bytes_used_ratio", "rm9"), nullptr);
  EXPECT_DOUBLE_EQ(FindPublished("bytes_used_ratio", "rm2")->value, 0.34);
}

TEST(Sheet, WithoutRunsNothingMeasuredIsAFigure) {
  SheetInputs inputs;
  inputs.name = "mine";
  inputs.no_fed = "it was not run";
  inputs.no_ceiling = "it has no trainer";
  inputs.table.sample_reason = "no sample";
  inputs.table.hot_reason = "no log";
  inputs.table.duplication_reason = "no sessions";
  const Sheet sheet = MakeSheet(inputs);
  // What is counted in a table may be 0: the others have a reason.
  const std::set<std::string> counted = {"dataset", "features", "selectivity"};
  for (const FigurePart& part : sheet.parts) {
    for (const SheetFigure& figure : part.figures) {
      if (figure.here.available()) {
        EXPECT_TRUE(counted.count(part.key) > 0) << part.key << " " << figure.key;
      } else {
        EXPECT_NE(figure.here.reason(), "") << figure.key;
      }
      EXPECT_TRUE(figure.difference.empty()) << figure.key;
    }
  }
  EXPECT_FALSE(sheet.limit.decided);
  EXPECT_EQ(sheet.Find("coverage_ratio")->here.reason(), "no sample");
  EXPECT_EQ(sheet.Find("hot_bytes_ratio")->here.reason(), "no log");
  EXPECT_EQ(sheet.Find("no such figure"), nullptr);
  // Beside all published models, as it is none of them.
  EXPECT_EQ(sheet.Find("bytes_used_ratio")->published.size(), 3u);
}

TEST(Sheet, PublishedValuesAreScaledWhereTheScaleIsKnownAndDifferencesTold) {
  SheetInputs inputs;
  inputs.name = inputs.model = "rm1";
  inputs.feature_fraction = 1.0 / 16;
  inputs.table.stored_dense = 757;
  inputs.table.stored_sparse = 110;
  inputs.table.used_dense = 76;
  inputs.table.used_sparse = 19;
  inputs.table.feature_bytes = 1000;
  inputs.table.used_bytes = 300;
  inputs.table.coverage = 0.455;
  const Sheet sheet = MakeSheet(inputs);
  const SheetFigure* stored = sheet.Find("stored_dense_features");
  ASSERT_EQ(stored->published.size(), 1u);
  EXPECT_NEAR(stored->published[0].scaled.value(), 12115.0 / 16, 1e-9);
  EXPECT_EQ(stored->difference, "");
  EXPECT_EQ(sheet.Find("bytes_used_ratio")->difference, "-7.0 points");
  EXPECT_EQ(sheet.Find("coverage_ratio")->difference, "") << "within a point";
  EXPECT_NEAR(sheet.Find("features_used_ratio")->here.value(), 95.0 / 867, 1e-12);
}

// A run of two stages, of which the second or the first is the dearer.
RunView Recorded(double fetch_blocked_s, double decode_cpu_s, double cores) {
  SimulatedPipeline pipeline;
  pipeline.cores = cores;
  SimulatedStage fetch, decode;
  fetch.name = "fetch";
  decode.name = "decode";
  SimulatedOperator read, work;
  read.name = "fetch";
  read.blocked_s = fetch_blocked_s;
  work.name = "decode";
  work.cpu_s = decode_cpu_s;
  fetch.operators = {read};
  decode.operators = {work};
  fetch.parallelism = 1;
  decode.parallelism = 2;
  fetch.queue_capacity = decode.queue_capacity = 4;
  pipeline.stages = {fetch, decode};
  RunView run = Record(pipeline, 10, 7);
  run.operators[0].kind = "fetch";
  run.operators[1].kind = "decode";
  return run;
}

TEST(WorkerLimit, CoresAndStagesAreTheBottlenecksOwnWords) {
  const WorkerLimit cores = FindWorkerLimit(Recorded(1e-4, 0.02, 1));
  EXPECT_EQ(cores.resource, "cores") << cores.evidence;
  EXPECT_TRUE(cores.decided);
  const WorkerLimit stage = FindWorkerLimit(Recorded(0.02, 1e-3, 4));
  EXPECT_EQ(stage.resource, "stage") << stage.evidence;
  EXPECT_THAT(stage.words, HasSubstr("fetch"));
}

// The same run, in which the source is said to have waited for room although the queue behind it
// had some, and to have been slower than its stages.
TEST(WorkerLimit, MemoryLimitsWhereTheSourceIsHeldBackAndNoRowExplainsTheRate) {
  const auto held = [](double share, double full, const char* memory, double slower) {
    RunView run = Recorded(1e-3, 1e-3, 4);
    run.run.settings["pipeline.memory"] = memory;
    run.operators[0].wait_out_ns =
        static_cast<int64_t>(share * static_cast<double>(run.stages[0].lifetime_ns));
    run.queues[0].full_ratio = full;
    // Less work was done in the same time.
    const auto fewer = [&](int64_t* count) {
      *count = static_cast<int64_t>(static_cast<double>(*count) / slower);
    };
    const auto less = [&](OperatorCounters* op) {
      for (int64_t* value : {&op->completions_count, &op->rows_count, &op->busy_ns}) fewer(value);
      if (op->on_cpu_ns) fewer(&*op->on_cpu_ns);
    };
    for (OperatorRow& op : run.operators) less(&op);
    fewer(&run.steps.steps_count);
    fewer(&run.steps.rows_count);
    for (WindowRow& window : run.windows) {
      for (OperatorCounters& op : window.operators) less(&op);
      fewer(&window.steps.steps_count);
      fewer(&window.steps.rows_count);
    }
    return FindWorkerLimit(run);
  };
  const WorkerLimit memory = held(0.9, 0.0, "64MiB", 3);
  EXPECT_EQ(memory.resource, "memory_capacity") << memory.evidence;
  EXPECT_THAT(memory.evidence, HasSubstr("90.0 % of its time for the memory budget of 64.0 MiB"));
  EXPECT_NE(held(0.9, 0.9, "64MiB", 3).resource, "memory_capacity") << "it waited for the queue";
  EXPECT_NE(held(0.9, 0.0, "0", 3).resource, "memory_capacity") << "there is no budget";
  EXPECT_NE(held(0.9, 0.0, "64MiB", 1).resource, "memory_capacity")
      << "its stages explain the rate";
  EXPECT_NE(held(0.3, 0.0, "64MiB", 3).resource, "memory_capacity") << "it hardly waited";
}

// A device that holds the fetching thread all the time.
TEST(WorkerLimit, ADeviceThatOnlyHasABandwidthIsALinkAndOneThatSeeksAStorage) {
  const auto with = [](const char* bandwidth, const char* iops, const char* seek) {
    RunView run = Recorded(0.02, 1e-3, 4);
    run.run.settings = {{"source.throttle.bandwidth", bandwidth},
                        {"source.throttle.iops", iops},
                        {"source.throttle.seek", seek}};
    ResourceRow device;
    device.name = "throttle";
    device.kind = "device";
    device.acquisitions_count = run.operators[0].completions_count;
    device.hold_ns = run.operators[0].busy_ns;
    run.resources = {device};
    for (WindowRow& window : run.windows)
      window.resources = {
          {window.operators[0].completions_count, 0, window.operators[0].busy_ns, 0}};
    run.operators[0].kind = "io";
    return FindWorkerLimit(run);
  };
  EXPECT_EQ(with("1MB/s", "0", "0").resource, "nic_ingress");
  EXPECT_EQ(with("1MB/s", "0", "8ms").resource, "storage");
  EXPECT_EQ(with("1MB/s", "100", "0").resource, "storage");
}

TEST(RowRate, HasAnIntervalThatHoldsItAndNoneWithoutWindows) {
  RunView run = Recorded(1e-3, 1e-3, 2);
  const Quantity rate = RowRate(run);
  ASSERT_TRUE(rate.available());
  ASSERT_TRUE(rate.has_interval());
  EXPECT_LE(rate.low(), rate.value());
  EXPECT_GE(rate.high(), rate.value());
  run.windows.clear();
  EXPECT_FALSE(RowRate(run).has_interval());
  run.steps.rows_count = 0;
  EXPECT_FALSE(RowRate(run).available());
}

}  // namespace
}  // namespace headrace::analysis
