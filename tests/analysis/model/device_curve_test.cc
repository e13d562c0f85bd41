// The curve of a device from its calibration, and the bounds it puts on a pipeline that reads.
#include "analysis/model/device_curve.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "analysis/model/bottleneck.h"
#include "analysis/model/prediction.h"
#include "tests/analysis/synthetic_run.h"

namespace headrace::analysis {
namespace {

using testing::ElementsAre;
using testing::Pair;

TEST(ConcaveHull, IsConcaveAndNeverFalls) {
  EXPECT_THAT(ConcaveHull({}), ElementsAre());
  EXPECT_THAT(ConcaveHull({{4, 300}, {1, 100}}), ElementsAre(Pair(1, 100), Pair(4, 300)));
  // Below the line from its neighbours, and lower than one before.
  EXPECT_THAT(ConcaveHull({{1, 100}, {4, 120}, {16, 500}, {32, 400}}),
              ElementsAre(Pair(1, 100), Pair(16, 500)));
  // More than in proportion to the depth: a line from the origin.
  EXPECT_THAT(ConcaveHull({{1, 10}, {4, 400}}), ElementsAre(Pair(4, 400)));
  EXPECT_THAT(ConcaveHull({{2, 10}, {2, 30}, {2, 20}}), ElementsAre(Pair(2, 30)));
}

TEST(DeviceCurve, IsLinearBetweenItsPoints) {
  DeviceCurve curve;
  curve.points = {{1, 100}, {4, 250}, {16, 400}};
  EXPECT_DOUBLE_EQ(curve.At(0.5), 50);
  EXPECT_DOUBLE_EQ(curve.At(1), 100);
  EXPECT_DOUBLE_EQ(curve.At(2.5), 175);
  EXPECT_DOUBLE_EQ(curve.At(100), 400);
  EXPECT_DOUBLE_EQ(curve.Most(), 400);
  EXPECT_DOUBLE_EQ(curve.Slower(1, 1), 1);
  EXPECT_DOUBLE_EQ(curve.Slower(4, 1), 1.6);
  EXPECT_DOUBLE_EQ(curve.Slower(1, 4), 1 / 1.6);
  EXPECT_DOUBLE_EQ(curve.Slower(32, 16), 1);  // what waits for the plateau is no slower device
}

// A thread that reads 1 MB a batch, 10 ms each at depth 1, from a table in /data.
class ReadingRun : public testing::Test {
 protected:
  ReadingRun() {
    SimulatedPipeline pipeline;
    pipeline.cores = 4;
    pipeline.stages.push_back(
        {"fetch", 1, 4, {{"fetch", 1e-5, 0, 0, 0, 0, -1}, {"fetch.io", 0, 0.01, 0, 0, 0.1, -1}}});
    pipeline.stages.push_back({"work", 2, 4, {{"work", 0.001, 0, 0, 0, 0.1, -1}}});
    run_ = Record(pipeline, 20, 3);
    run_.run.settings["source.table"] = "/data/rm1";
    run_.operators[0].kind = "fetch";
    for (WindowRow& window : run_.windows) window.operators[1].bytes_out_bytes = 0;
    run_.operators[1].bytes_out_bytes = 0;
    for (WindowRow& window : run_.windows) {
      OperatorCounters& io = window.operators[1];
      io.bytes_out_bytes = 1'000'000 * io.completions_count;
      run_.operators[1].bytes_out_bytes += io.bytes_out_bytes;
    }
    Device(1);
    for (const auto& [depth, rate] :
         std::vector<std::pair<double, double>>{{1, 100e6}, {2, 180e6}, {4, 250e6}, {16, 250e6}}) {
      run_.storage_points.push_back({"/data", 1e6, depth, rate});
      run_.storage_points.push_back({"/", 1e6, depth, 10 * rate});  // less close to the table
    }
  }
  // The share of the bytes read that the device gave.
  void Device(double share) {
    HostRow row{"process_read_bytes", "bytes", "counter", {}, {}, {}, {}};
    row.last_value = share * static_cast<double>(run_.operators[1].bytes_out_bytes);
    std::erase_if(run_.hosts, [&](const HostRow& host) { return host.metric == row.metric; });
    run_.hosts.push_back(row);
  }
  static std::optional<DeviceCurve> CurveOf(const RunView& run) {
    return DeviceCurveOf(run, 0, run.run.duration_ns);
  }
  double RateWith(int threads) const {
    const PipelineModel model(run_);
    Settings settings = model.current();
    settings.parallelism[0] = threads;
    return Predictor(model).Predict({settings, {}}).rate;
  }
  RunView run_;
};

TEST_F(ReadingRun, ThreadsHaveNoMoreThanTheDeviceGives) {
  const auto curve = CurveOf(run_);
  ASSERT_TRUE(curve);
  EXPECT_EQ(curve->folder, "/data");
  EXPECT_NEAR(curve->Most(), 250e6, 1);
  EXPECT_NEAR(RateWith(1), 100, 4);
  EXPECT_NEAR(RateWith(2), 180, 9);
  EXPECT_NEAR(RateWith(4), 250, 13);
  EXPECT_NEAR(RateWith(8), 250, 13);
  const PipelineModel model(run_);
  Settings settings = model.current();
  settings.parallelism[0] = 8;
  const Prediction prediction = Predictor(model).Predict({settings, {}});
  EXPECT_EQ(prediction.limits[prediction.binding].kind_name(), kDeviceLimit);
  EXPECT_EQ(prediction.limits[prediction.binding].name, "storage");
}

TEST_F(ReadingRun, APageCacheIsNoDevice) {
  Device(0.01);
  EXPECT_FALSE(CurveOf(run_));
  EXPECT_NEAR(RateWith(4), 400, 20);
  Device(0.5);  // half of it: the device gives twice as many batches
  ASSERT_TRUE(CurveOf(run_));
  EXPECT_NEAR(CurveOf(run_)->from_device, 0.5, 1e-9);
}

TEST_F(ReadingRun, IsNotKnownWithoutCalibrationOrBehindAModel) {
  RunView other = run_;
  other.storage_points.clear();
  EXPECT_FALSE(CurveOf(other));
  other = run_;
  other.run.settings["source.table"] = "/elsewhere";
  std::erase_if(other.storage_points, [](const StoragePoint& p) { return p.folder == "/"; });
  EXPECT_FALSE(CurveOf(other));
  other = run_;
  other.resources.push_back({{}, "throttle", "device", 1});
  EXPECT_FALSE(CurveOf(other));
  other = run_;
  other.hosts.clear();
  EXPECT_FALSE(CurveOf(other));
}

TEST_F(ReadingRun, OnlyTheSteadyPhaseCounts) {
  // All that came from the device came in the first half.
  for (const WindowRow& window : run_.windows) {
    DeviceReadRow row{window.start_ns, window.duration_ns, 0};
    if (window.start_ns < run_.run.duration_ns / 2) {
      row.read_bytes = static_cast<double>(window.operators[1].bytes_out_bytes);
    }
    run_.device_reads.push_back(row);
  }
  const auto first = DeviceCurveOf(run_, 0, run_.run.duration_ns / 2);
  ASSERT_TRUE(first);
  EXPECT_NEAR(first->from_device, 1, 1e-9);
  EXPECT_FALSE(DeviceCurveOf(run_, run_.run.duration_ns / 2, run_.run.duration_ns));
}

TEST_F(ReadingRun, AFolderIsNoPrefixOfAName) {
  run_.run.settings["source.table"] = "/data1/rm1";
  ASSERT_TRUE(CurveOf(run_));
  EXPECT_EQ(CurveOf(run_)->folder, "/");
}

// Thirty-two threads on a device that is full with four: a read takes eight times as long.
TEST_F(ReadingRun, WaitingForAFullDeviceIsNoDemand) {
  SimulatedPipeline pipeline;
  pipeline.cores = 8;
  pipeline.resources = {{"queue", 1}};
  pipeline.stages.push_back(
      {"fetch",
       32,
       4,
       {{"fetch", 1e-5, 0, 0, 0, 0, -1}, {"fetch.io", 0, 0.006, 0, 0.004, 0.1, 0}}});
  pipeline.stages.push_back({"work", 4, 4, {{"work", 0.001, 0, 0, 0, 0.1, -1}}});
  RunView full = Record(pipeline, 20, 3);
  full.run.settings = run_.run.settings;
  full.storage_points = run_.storage_points;
  full.resources.clear();  // the accounts know no device
  for (WindowRow& window : full.windows) window.resources.clear();
  full.operators[0].kind = "fetch";
  full.operators[1].kind = "io";
  full.operators[1].bytes_out_bytes = 0;
  full.operators[1].lock_wait_ns = 0;
  for (WindowRow& window : full.windows) {
    OperatorCounters& io = window.operators[1];
    io.lock_wait_ns = 0;
    io.bytes_out_bytes = 1'000'000 * io.completions_count;
    full.operators[1].bytes_out_bytes += io.bytes_out_bytes;
  }
  run_ = full;
  Device(1);
  const PipelineModel model(run_);
  ASSERT_NEAR(model.demands().rate, 250, 8);
  EXPECT_NEAR(model.demands().stage_s[0], 0.010, 0.003);
  EXPECT_NEAR(RateWith(4), 250, 25);
  EXPECT_NEAR(RateWith(1), 100, 25);
}

TEST_F(ReadingRun, WhatTheRunGotWasThere) {
  for (StoragePoint& point : run_.storage_points) point.bytes_per_s /= 10;
  const auto curve = CurveOf(run_);
  ASSERT_TRUE(curve);
  EXPECT_NEAR(curve->Most(), 100e6, 3e6);
}

TEST_F(ReadingRun, ALinkCarriesNoMoreThanItCan) {
  run_.storage_points.clear();
  MeasurementRow use;
  use.metric = "nic_use_ratio";
  use.subject = "eth0";
  use.cause = "received";
  use.value = 0.4;
  run_.measurements.push_back(use);
  use.cause = "sent";
  use.value = 0.01;
  run_.measurements.push_back(use);
  const PipelineModel model(run_);
  ASSERT_EQ(model.resources().size(), 1u) << "not the direction that is hardly used";
  EXPECT_NEAR(RateWith(2), 200, 8);
  EXPECT_NEAR(RateWith(8), 250, 13);
  Settings settings = model.current();
  settings.parallelism[0] = 8;
  const Prediction prediction = Predictor(model).Predict({settings, {}});
  EXPECT_EQ(prediction.limits[prediction.binding].name, "network eth0 received");
}

}  // namespace
}  // namespace headrace::analysis
