// A loader that is fast enough on average, but stops now and then for longer than the batches made
// ahead last.
#include "analysis/run/pauses.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "analysis/advice/next_step.h"
#include "analysis/advice/statements.h"
#include "analysis/model/bottleneck.h"
#include "analysis/model/prediction.h"
#include "tests/analysis/made_runs.h"

namespace headrace::analysis {
namespace {

using testing::HasSubstr;

constexpr double kStepS = 0.010, kPauseS = 0.180;

// One step in `each` waits for kPauseS, and the trainer computes for kStepS in all of them.
RunView RecordPausing(int64_t each, double make_s = 0.005) {
  Received costs;
  costs.workers = 1;
  costs.make_cpu_s = 0.001;
  costs.make_blocked_s = make_s - costs.make_cpu_s;
  costs.step_cpu_s = kStepS;
  costs.wait_s = kPauseS / static_cast<double>(each);
  costs.epochs = 0;
  RunView run = RecordReceived(costs, 20, 1);
  run.run.pipeline_path.clear();
  run.queues[0].mean_occupancy_ratio = 0.8;
  const int64_t long_steps = run.steps.steps_count / each;
  run.step_times = {{Ns(kStepS), run.steps.steps_count - long_steps},
                    {Ns(kStepS + kPauseS), long_steps}};
  return run;
}

std::string LimitNamedOf(const RunView& run) {
  return FindBottleneck(PipelineModel(run)).findings[0].limit.kind_name();
}

TEST(Pauses, AreNamedAndALongerQueueIsPredicted) {
  const RunView run = RecordPausing(40);
  const PipelineModel model(run);
  ASSERT_TRUE(model.pauses());
  EXPECT_NEAR(model.pauses()->pauses.wait_s, kPauseS, 0.001);
  const Bottleneck bottleneck = FindBottleneck(model);
  EXPECT_EQ(bottleneck.findings[0].limit.kind_name(), "pauses");
  EXPECT_NEAR(bottleneck.findings[0].limit.bound, 1 / (kStepS + kPauseS / 40), 1);
  EXPECT_EQ(model.QueueOverPauses(), 2 + 18);

  const Predictor predictor(model);
  double before = model.demands().rate;
  for (const int queue : {4, 8, 16, 20}) {
    Settings settings = model.current();
    settings.queue_capacity[0] = queue;
    const double rate = predictor.Rate({settings, {}});
    EXPECT_GT(rate, before) << "queue of " << queue;
    before = rate;
  }
  EXPECT_NEAR(before, 1 / kStepS, 0.06 / kStepS);
  const NextStep next = NextStepOf(run, MakeStatements(run));
  EXPECT_THAT(next.text, HasSubstr("prefetch_factor 2 -> "));
}

TEST(Pauses, AreNoneWhereNothingPauses) {
  EXPECT_EQ(LimitNamedOf(RecordPausing(40)), "pauses");
  {
    RunView run = RecordPausing(40);  // nobody recorded how long steps took
    run.step_times.clear();
    EXPECT_NE(LimitNamedOf(run), "pauses");
  }
  {
    RunView run = RecordPausing(40);  // nothing is ahead between them
    run.queues[0].mean_occupancy_ratio = 0.1;
    EXPECT_NE(LimitNamedOf(run), "pauses");
  }
  EXPECT_NE(LimitNamedOf(RecordPausing(5)), "pauses") << "often is no pause";
  EXPECT_NE(LimitNamedOf(RecordPausing(40, 0.014)), "pauses") << "it is too slow on average";
  {
    RunView run = RecordPausing(40);  // costs vary
    const int64_t some = run.step_times[1].steps_count;
    run.step_times[0].steps_count -= 12 * some;
    run.step_times.insert(run.step_times.begin() + 1, {Ns(2.5 * kStepS), 12 * some});
    EXPECT_NE(LimitNamedOf(run), "pauses");
  }
  {
    RunView run = RecordPausing(40);  // the trainer computed
    std::swap(run.steps.wait_ns, run.steps.compute_ns);
    EXPECT_FALSE(FindPauses(RecordPausing(400), 0)) << "they take little";
    run.steps.wait_ns = 0;
    EXPECT_FALSE(FindPauses(run, 0));
  }
  EXPECT_FALSE(FindPauses(RecordPausing(40), RecordPausing(40).step_times[1].steps_count))
      << "workers were started";
}

}  // namespace
}  // namespace headrace::analysis
