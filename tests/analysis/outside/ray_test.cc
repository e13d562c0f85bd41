// Programs of Ray, whose tasks hand over by its own daemons.
#include <gtest/gtest.h>

#include "analysis/outside/outside.h"
#include "tests/analysis/outside_run.h"

namespace headrace::analysis {
namespace {

// A driver that computes for so long and waits the rest of its time, beside Ray's daemon and a
// worker that computes for so long.
OutsideRun RayDriver(double driver_cpu, double worker_cpu) {
  OutsideRun run;
  run.Process(1, 0, "python", "python train.py").OnCpu(1, "python (main)", driver_cpu);
  run.Waits(1, "python (main)", "lock", 0.98 - driver_cpu, "1/python");
  run.OnCpu(1, "python", 0.05).Waits(1, "python", "lock", 0.9, "1/python (main)");
  run.Process(2, 1, "raylet").OnCpu(2, "raylet (main)", 0.04);
  run.Process(3, 2, "ray::MapWorker(").OnCpu(3, "ray::MapWorker( (main)", worker_cpu);
  run.Waits(3, "ray::MapWorker( (main)", "lock", 1 - worker_cpu, "3/ray::MapWorker(");
  return run;
}

TEST(OutsideRay, AWorkerFeedsItsDriver) {
  OutsideRun run = RayDriver(0.1, 0.95);
  run.Process(4, 2, "ray::IDLE").OnCpu(4, "ray::IDLE (main)", 0.04);
  run.Waits(4, "ray::IDLE (main)", "poll", 0.95, "2/raylet (main)");
  const Outside seen = LookFromOutside(run.view);
  EXPECT_EQ(seen.findings[0].limit, OutsideLimit::kProducers);
  EXPECT_EQ(seen.units[seen.culprit].name, "process ray::MapWorker( (3)");
}

TEST(OutsideRay, ADriverThatComputesIsTheLimit) {
  EXPECT_EQ(LookFromOutside(RayDriver(0.96, 0.4).view).findings[0].limit, OutsideLimit::kConsumer);
}

}  // namespace
}  // namespace headrace::analysis
