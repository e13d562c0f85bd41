// Recommendations about reads of storage (R4 to R7, R13), and what a read costs.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <string>

#include "analysis/advice/recommendations.h"
#include "analysis/model/bottleneck.h"
#include "analysis/model/limits/limit_kind.h"
#include "analysis/run/reads.h"
#include "tests/analysis/advice/judged_runs.h"

namespace headrace::analysis {
namespace {

using testing::HasSubstr;

// Of a store that two runs show to be full, fewer reads shorten the waits for it as well.
TEST(StorageRecommendations, FewerReadsOfAFullStore) {
  RunView run = ReadingStripes(0.05, 6, 20000, 0, kReads);
  const double rate = 64 * Judge(run).statements->model->demands().rate;
  run.stage_rates.push_back({"fetch", 1, 1, rate, true});
  run.stage_rates.push_back({"fetch", 4, 1, rate, false});
  const Judged judged = Judge(run);
  const auto& resources = judged.statements->model->resources();
  ASSERT_TRUE(std::any_of(resources.begin(), resources.end(), [](const ResourceModel& resource) {
    return resource.name == "the store of fetch" && resource.counted_s;
  }));
  const Recommendation& fewer = judged.Of("R5");
  ASSERT_TRUE(fewer.outcome);
  // Between nothing and a sixth of the requests: by the middle 7 of 12.
  EXPECT_NEAR(fewer.outcome->gain, 12.0 / 7 - 1, 0.2);
  EXPECT_GT(fewer.outcome->gain_interval.high, 4);
  EXPECT_LT(fewer.outcome->gain_interval.high, 6.5);
  // It is asked where the store is named, and where the stage is that waits for it.
  int named = 0;
  for (const Finding& finding : judged.statements->bottleneck->findings) {
    if (finding.limit.name != "fetch" && finding.limit.name != "the store of fetch") continue;
    ++named;
    EXPECT_EQ(finding.limit.kind->Recommended(*judged.statements->model, finding.limit), "R5")
        << finding.limit.name;
  }
  EXPECT_EQ(named, 2);
}

// Where bytes cost all of the storage's time, reading what lies between is a loss.
TEST(StorageRecommendations, FewerReadsMayLose) {
  for (const bool is_full : {false, true}) {
    SCOPED_TRACE(is_full);
    RunView run = ReadingStripes(0.05, 6, 20000, 0, kReads);
    AddOperator(&run, "fetch.stored", "stored", "fetch").bytes_out_bytes =
        Operator(&run, "fetch").bytes_in_bytes * 2;
    if (is_full) {
      const double rate = 64 * Judge(run).statements->model->demands().rate;
      run.stage_rates.push_back({"fetch", 1, 1, rate, true});
      run.stage_rates.push_back({"fetch", 4, 1, rate, false});
    }
    EXPECT_LT(Judge(run).Of("R5").outcome->gain_interval.low, -0.2);
  }
}

// Its pieces end late, so that a few windows hold most of its cost: by that it would do less than
// was observed. What halves the cost gains all the same.
TEST(StorageRecommendations, GainsAreOverWhatWasObservedWhereABoundSaysLess) {
  RunView run = ReadingStripes(0.05, 6, 20000, 0, kReads);
  for (size_t i = 0; i < run.windows.size(); i += 8) {
    OperatorCounters& io = run.windows[i].operators.back();
    io.busy_ns *= 8;
    for (Count* part : {&io.blocked_ns, &io.blocked_low_ns, &io.blocked_high_ns}) {
      if (*part) **part *= 8;
    }
  }
  const Judged judged = Judge(run);
  const PipelineModel& model = *judged.statements->model;
  EXPECT_LT(judged.statements->bottleneck->findings[0].limit.bound, 0.8 * model.demands().rate);
  EXPECT_GT(judged.Of("R5").outcome->gain, 0.3);
}

TEST(StorageRecommendations, NoBreakEvenOfNothing) {
  const Judged judged = Judge(ReadingStripes(0.05, 2, 1e6, 0.5, kFreeRequests));
  for (const Recommendation& one : judged.all) {
    EXPECT_THAT(one.why, testing::Not(HasSubstr("as much as 0 B"))) << one.id;
  }
  const Recommendation& gap = judged.Of("R5");
  EXPECT_THAT(gap.command, HasSubstr("source.coalesce_gap=0"));
  // Half of the bytes gone where bytes alone cost, and the storage limits.
  EXPECT_NEAR(gap.outcome->gain, 1, 0.15);
  // Where a request is worth 20 KB, holes up to that long stay.
  std::map<std::string, std::string> dear_requests = kReads;
  dear_requests["source.device.ns_per_request"] = "1000000";
  dear_requests["source.device.ns_per_byte"] = "50";
  const Judged dear = Judge(ReadingStripes(0.05, 2, 1e6, 0.5, dear_requests));
  EXPECT_THAT(dear.Of("R5").command, HasSubstr("source.coalesce_gap=19KiB"));
  EXPECT_LT(dear.Of("R5").outcome->gain, gap.outcome->gain);
  EXPECT_GT(dear.Of("R5").outcome->gain, 0.1);
  EXPECT_TRUE(dear.Of("R5").outcome->between);
}

TEST(ReadCost, FromACalibrationOfTheTablesFolder) {
  RunView run = ReadingStripes(0.05, 6, 20000, 0, kReads);
  run.run.pipeline_path = "/data/rm1/pipeline.toml";
  run.run.settings_text = "";
  EXPECT_FALSE(ReadCostOf(run));
  // 1 ms a request and 10 ns a byte.
  for (const double size : {4096.0, 65536.0, 1048576.0}) {
    run.storage_points.push_back({"/data", size, 1, size / (0.001 + 1e-8 * size)});
    run.storage_points.push_back({"/other", size, 1, size / 5});
  }
  const auto cost = ReadCostOf(run);
  ASSERT_TRUE(cost.has_value());
  EXPECT_NEAR(cost->request_s, 0.001, 1e-6);
  EXPECT_NEAR(cost->byte_s, 1e-8, 1e-11);
  EXPECT_THAT(cost->told_by, HasSubstr("/data"));
  // What memory answered was not paid for.
  for (OperatorRow& op : run.operators) {
    if (op.name == "fetch.io") op.busy_ns /= 100;
  }
  EXPECT_LT(ReadCostOf(run)->request_s, 0.0005);
}

}  // namespace
}  // namespace headrace::analysis
