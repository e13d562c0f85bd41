// The bench hands analysis rows made in memory. Written into a run store and read back they must
// say the same, or the bench would judge something that no real run is.
#include "tests/validation/recorder.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <filesystem>

#include "analysis/model/bottleneck.h"
#include "analysis/run/read_run.h"
#include "collectors/store/store.h"
#include "tests/validation/generator.h"

namespace headrace::validation {
namespace {

collectors::OperatorSample SampleOf(const analysis::RunView& view, size_t index,
                                    const analysis::OperatorCounters& counters) {
  const analysis::OperatorRow& row = view.operators[index];
  collectors::OperatorSample op;
  op.id = static_cast<int64_t>(index);
  op.name = row.name;
  op.kind = row.kind;
  op.stage_id = row.stage_index;
  op.position = row.position_index;
  op.completions = counters.completions_count;
  op.rows = counters.rows_count;
  op.in_bytes = counters.bytes_in_bytes;
  op.out_bytes = counters.bytes_out_bytes;
  op.busy_ns = counters.busy_ns;
  op.lock_wait_ns = counters.lock_wait_ns;
  op.wait_in_ns = counters.wait_in_ns;
  op.wait_out_ns = counters.wait_out_ns;
  op.on_cpu_ns = counters.on_cpu_ns;
  op.runnable_ns = counters.runnable_ns;
  op.time_source = row.source;
  return op;
}

void AddStages(const analysis::RunView& view, const analysis::WindowRow& window,
               collectors::IntervalSample* interval) {
  for (size_t s = 0; s < view.stages.size(); ++s) {
    const analysis::StageRow& row = view.stages[s];
    const analysis::StageCounters& counters = window.stages[s];
    collectors::StageSample stage;
    stage.id = stage.index = row.stage_index;
    stage.name = row.name;
    stage.parallelism = row.last_parallelism_count;
    stage.max_parallelism = row.max_parallelism_count;
    stage.parallelism_ns = row.last_parallelism_count * window.duration_ns;
    stage.observed_ns = window.duration_ns;
    stage.lifetime_ns = counters.lifetime_ns;
    stage.on_cpu_ns = counters.on_cpu_ns;
    stage.runnable_ns = counters.runnable_ns;
    interval->stages.push_back(stage);
  }
}

void AddQueues(const analysis::RunView& view, const analysis::WindowRow& window,
               collectors::IntervalSample* interval) {
  const auto time = [&](const analysis::Real& ratio) {
    return std::llround(ratio.value_or(0) * static_cast<double>(window.duration_ns));
  };
  for (size_t q = 0; q < view.queues.size(); ++q) {
    const analysis::QueueRow& row = view.queues[q];
    const analysis::QueueCounters& counters = window.queues[q];
    collectors::QueueSample queue;
    queue.id = static_cast<int64_t>(q);
    queue.name = row.name;
    for (const analysis::StageRow& stage : view.stages) {
      if (stage.name == row.producer_stage) queue.producer_stage_id = stage.stage_index;
      if (stage.name == row.consumer_stage) queue.consumer_stage_id = stage.stage_index;
    }
    queue.capacity = row.capacity_count;
    queue.observed_ns = window.duration_ns;
    queue.capacity_ns = row.capacity_count * window.duration_ns;
    queue.occupancy_ns = row.capacity_count * time(counters.mean_occupancy_ratio);
    queue.full_ns = time(counters.full_ratio);
    queue.empty_ns = time(counters.empty_ratio);
    queue.puts = counters.puts_count;
    queue.gets = counters.gets_count;
    interval->queues.push_back(queue);
  }
}

collectors::IntervalSample SampleOf(const analysis::RunView& view,
                                    const analysis::WindowRow& window) {
  collectors::IntervalSample interval;
  interval.start_ns = window.start_ns;
  interval.duration_ns = window.duration_ns;
  AddStages(view, window, &interval);
  for (size_t i = 0; i < view.operators.size(); ++i) {
    interval.operators.push_back(SampleOf(view, i, window.operators[i]));
  }
  AddQueues(view, window, &interval);
  for (size_t r = 0; r < view.resources.size(); ++r) {
    const analysis::ResourceRow& row = view.resources[r];
    const analysis::ResourceCounters& counters = window.resources[r];
    interval.resources.push_back({static_cast<int64_t>(r), row.name, row.kind, row.servers_count,
                                  counters.acquisitions_count, counters.wait_ns, counters.hold_ns,
                                  counters.moved_bytes});
  }
  interval.steps.steps = window.steps.steps_count;
  interval.steps.rows = window.steps.rows_count;
  interval.steps.wait_ns = window.steps.wait_ns;
  interval.steps.compute_ns = window.steps.compute_ns;
  return interval;
}

collectors::MeasurementBatch HostsOf(const analysis::RunView& view) {
  collectors::MeasurementBatch batch;
  for (const analysis::HostRow& host : view.hosts) {
    if (host.metric == "process_cpu_ns") continue;  // a counter, whose growth is not in the rows
    collectors::MeasurementRow row;
    row.id = static_cast<int64_t>(batch.definitions.size());
    row.metric = host.metric;
    row.source = "counter";
    batch.definitions.push_back(row);
    batch.metrics.push_back({host.metric, host.unit, "gauge", "counter", "none", ""});
    const double value = host.mean_value.value_or(0);
    const int64_t weight_ns = view.run.duration_ns;
    batch.totals.push_back(
        {row.id, weight_ns, value * static_cast<double>(weight_ns), value, value, value, {}});
  }
  return batch;
}

class RecorderTest : public testing::TestWithParam<uint64_t> {
 protected:
  void SetUp() override {
    path_ = testing::TempDir() + "recorder_" + std::to_string(getpid()) + "_" +
            std::to_string(GetParam()) + ".db";
  }
  void TearDown() override {
    for (const char* suffix : {"", "-wal", "-shm"}) std::filesystem::remove(path_ + suffix);
  }
  std::string path_;
};

TEST_P(RecorderTest, AStoreGivesTheSameStatements) {
  const Planted planted = Generate(GetParam());
  const Recording how{5, 0.2, planted.level};
  const analysis::RunView direct = Record(planted.world, how, GetParam());
  {
    collectors::RunStore store(path_);
    collectors::RunInfo info;
    info.name = direct.run.name;
    info.pipeline_path = direct.run.pipeline_path;
    info.accounting_level = direct.run.accounting_level;
    info.cores_count = direct.run.cores_count;
    info.cores_bound_by = direct.run.cores_bound_by;
    info.memory_bytes = direct.run.memory_bytes;
    const int64_t id = store.BeginRun(info);
    std::vector<collectors::IntervalSample> intervals;
    for (const analysis::WindowRow& window : direct.windows) {
      intervals.push_back(SampleOf(direct, window));
    }
    store.Append(id, intervals, HostsOf(direct));
    store.FinishRun(id, collectors::RunState::kComplete);
  }
  const analysis::RunView stored = analysis::LoadRun(path_, "latest");
  ASSERT_EQ(stored.windows.size(), direct.windows.size());
  ASSERT_EQ(stored.operators.size(), direct.operators.size());
  const analysis::PipelineModel a(direct), b(stored);
  EXPECT_NEAR(a.demands().rate, b.demands().rate, 0.02 * a.demands().rate);
  for (size_t s = 0; s < a.stages().size(); ++s) {
    EXPECT_EQ(a.stages()[s].inputs, b.stages()[s].inputs);
    EXPECT_EQ(a.current().parallelism[s], b.current().parallelism[s]);
    EXPECT_EQ(a.current().queue_capacity[s], b.current().queue_capacity[s]);
    EXPECT_NEAR(a.demands().stage_s[s], b.demands().stage_s[s], 0.02 * a.demands().stage_s[s]);
    EXPECT_NEAR(a.stages()[s].firings, b.stages()[s].firings, 0.02 * a.stages()[s].firings);
  }
  EXPECT_NEAR(a.demands().cpu_s, b.demands().cpu_s, 0.02 * a.demands().cpu_s + 1e-6);
  for (size_t r = 0; r < a.resources().size(); ++r) {
    EXPECT_NEAR(a.demands().resources[r].hold_s, b.demands().resources[r].hold_s,
                0.02 * a.demands().resources[r].hold_s);
  }
  EXPECT_EQ(analysis::FindBottleneck(a).findings[0].limit.name,
            analysis::FindBottleneck(b).findings[0].limit.name);
}

INSTANTIATE_TEST_SUITE_P(Worlds, RecorderTest, testing::Values(3, 4, 10, 13, 21, 29));

}  // namespace
}  // namespace headrace::validation
