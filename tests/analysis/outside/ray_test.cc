// Programs of Ray, whose tasks hand over by its own daemons.
#include <gtest/gtest.h>

#include "analysis/outside/outside.h"
#include "base/library_processes.h"
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

// Between two tasks a worker is called idle, and its name is read then as often as not.
TEST(OutsideRay, AWorkerThatComputedIsNotIdleWhateverItIsCalled) {
  for (const std::string task : {"", "ray::MapBatches (main)"}) {
    OutsideRun run;
    run.Process(1, 0, "python", "python train.py").OnCpu(1, "python (main)", 0.1);
    run.Waits(1, "python (main)", "lock", 0.88, "1/python");
    run.OnCpu(1, "python", 0.05).Waits(1, "python", "lock", 0.9, "1/python (main)");
    run.Process(2, 1, "raylet").OnCpu(2, "raylet (main)", 0.04);
    run.Process(3, 2, "ray::IDLE").OnCpu(3, "ray::IDLE (main)", task.empty() ? 0.8 : 0.7);
    run.OnCpu(3, "python (main)", 0.15);  // while it loaded its modules
    if (!task.empty()) run.OnCpu(3, task, 0.1);
    const Outside seen = LookFromOutside(run.view);
    EXPECT_EQ(seen.findings[0].limit, OutsideLimit::kProducers);
    EXPECT_EQ(seen.units[seen.culprit].name,
              task.empty() ? "process ray::worker (3)" : "process ray::MapBatches (3)");
  }
}

// One that reads the files' footers before the training is no limit of the training.
TEST(OutsideRay, AWorkerThatLivedForAMomentFeedsNobody) {
  for (const double lives : {0.15, 0.9}) {
    OutsideRun run;
    run.Process(1, 0, "python", "python train.py").OnCpu(1, "python (main)", 0.6);
    run.Blocked(1, "python (main)", "sleep", 0.37);
    run.Process(2, 1, "raylet").OnCpu(2, "raylet (main)", 0.04);
    run.Process(3, 2, "ray::ReadFooters").OnCpu(3, "ray::ReadFooters (main)", lives);
    const Outside seen = LookFromOutside(run.view);
    EXPECT_EQ(seen.HasProducers(), lives > 0.5);
    EXPECT_EQ(seen.findings[0].limit == OutsideLimit::kProducers, lives > 0.5);
  }
}

TEST(OutsideRay, ADriverThatComputesIsTheLimit) {
  EXPECT_EQ(LookFromOutside(RayDriver(0.96, 0.4).view).findings[0].limit, OutsideLimit::kConsumer);
}

// It may wait for batches so, or for a daemon.
TEST(OutsideRay, ADriverThatMostlySleepsIsNotSurelyTheLimit) {
  for (const std::string other : {"raylet", "helper"}) {
    SCOPED_TRACE(other);
    OutsideRun run;
    run.Process(1, 0, "python", "python train.py").OnCpu(1, "python (main)", 0.3);
    run.Blocked(1, "python (main)", "sleep", 0.69);
    run.Process(2, 1, other).OnCpu(2, other + " (main)", 0.02);
    run.Process(3, 1, "worker").OnCpu(3, "worker (main)", 0.3);
    run.Waits(3, "worker (main)", "poll", 0.68, "1/python (main)");
    run.Waits(1, "python (main)", "poll", 0.01, "3/worker (main)");
    const Outside seen = LookFromOutside(run.view);
    EXPECT_EQ(seen.findings[0].limit, OutsideLimit::kConsumer);
    EXPECT_EQ(seen.decided, other == "helper") << seen.findings[0].probability;
  }
}

// It ends waits, as it hands references over, and sleeps between two looks.
TEST(OutsideRay, ADaemonThatSleepsIsNoLimit) {
  OutsideRun run;
  run.Process(1, 0, "python", "python train.py").OnCpu(1, "python (main)", 0.1);
  run.Waits(1, "python (main)", "poll", 0.4, "2/raylet (main)");
  run.Waits(1, "python (main)", "lock", 0.48, "3/ray::MapWorker(");
  run.Process(2, 1, "raylet").OnCpu(2, "raylet (main)", 0.02);
  run.Blocked(2, "raylet (main)", "sleep", 0.9);
  run.Process(3, 2, "ray::MapWorker(").OnCpu(3, "ray::MapWorker( (main)", 0.7);
  run.Waits(3, "ray::MapWorker( (main)", "poll", 0.28, "2/raylet (main)");
  const Outside seen = LookFromOutside(run.view);
  EXPECT_EQ(seen.findings[0].limit, OutsideLimit::kProducers);
  EXPECT_EQ(seen.units[seen.culprit].name, "process ray::MapWorker( (3)");
}

// Ray gives a worker's task to a thread of its pool; others of that name have nothing to do.
TEST(OutsideRay, AWorkersPoolThreadIsNamedByItsFunction) {
  OutsideRun run;
  run.Process(1, 0, "python", "python train.py").OnCpu(1, "python (main)", 0.15);
  run.Waits(1, "python (main)", "lock", 0.83, "1/python");
  run.OnCpu(1, "python", 0.05).Waits(1, "python", "lock", 0.9, "1/python (main)");
  run.Process(2, 1, "raylet").OnCpu(2, "raylet (main)", 0.04);
  run.Process(3, 2, "ray::MapWorker(").OnCpu(3, "ray::MapWorker( (main)", 0.02);
  run.Waits(3, "ray::MapWorker( (main)", "lock", 0.95, "3/ray::MapWorker(");
  run.OnCpu(3, "ray::MapWorker(", 0.85);
  run.Waits(3, "ray::MapWorker(", "lock", 2.1, "3/ray::MapWorker(");
  EXPECT_NE(LookFromOutside(run.view).findings[0].limit, OutsideLimit::kProducers);
  const auto sample = [&](int64_t process, const std::string& thread, const std::string& frames) {
    Sample(thread, frames, 9, &run.view);
    run.view.stacks.back().process_id = process;
  };
  const std::string waits = "Condition.wait (threading.py:327)";
  sample(1, "MainThread", "main (train.py:9, loop 8);Queue.get (queue.py:171);" + waits);
  sample(3, "MainThread",
         "_SingleThreadedWrapper.__call__ (ray/data/_internal/execution/util.py:123);"
         "Future.result (concurrent/futures/_base.py:451);" +
             waits);
  sample(3, "ThreadPoolExecutor-0",
         "_WorkItem.run (concurrent/futures/thread.py:58);Denoise.__call__ (train.py:5, no loop)");
  const Outside seen = LookFromOutside(run.view);
  EXPECT_EQ(seen.findings[0].limit, OutsideLimit::kProducers);
  EXPECT_EQ(seen.units[seen.culprit].name, "process ray::MapWorker( (3)");
  EXPECT_EQ(seen.activity_place, "Denoise.__call__ (train.py:5)");
}

// Beside a child of the program that has the same name and parent, and is the limit.
TEST(OutsideRay, AServiceIsTakenForNoChildOfTheProgram) {
  OutsideRun run;
  run.Process(1, 0, "python", "python train.py").OnCpu(1, "python (main)", 0.1);
  run.Waits(1, "python (main)", "pipe", 0.88, "3/python (main)");
  run.Process(2, 1, "python", "python -u /venv/ray/_private/log_monitor.py --logs-dir=/tmp");
  run.OnCpu(2, "python (main)", 0.01).Blocked(2, "python (main)", "sleep", 0.97);
  run.Process(3, 1, "python", "python train.py").OnCpu(3, "python (main)", 0.98);
  const Outside seen = LookFromOutside(run.view);
  EXPECT_EQ(seen.findings[0].limit, OutsideLimit::kProducers);
  EXPECT_EQ(seen.units[seen.culprit].name, "process python (3)");
}

TEST(OutsideRay, NamesTellWhoRunsTasks) {
  EXPECT_TRUE(IsRayWorker("ray::MapBatches"));
  EXPECT_TRUE(IsRayWorker("ray::Denoiser.go"));
  EXPECT_TRUE(IsRayWorker("ray::_RayTrainW"));
  EXPECT_TRUE(IsRayWorker("ray::_load"));
  EXPECT_EQ(ServiceName("ray::Denoiser.go", ""), "");
  for (const char* own :
       {"ray::IDLE", "ray::_StatsActo", "ray::SplitCoord", "ray::DashboardA", "ray::ActorLocat"}) {
    EXPECT_FALSE(IsRayWorker(own)) << own;
    EXPECT_EQ(ServiceName(own, ""), own);
  }
  EXPECT_EQ(ServiceName("raylet", ""), "raylet");
  EXPECT_EQ(ServiceName("python", "/bin/python /lib/ray/dashboard/dashboard.py --host=127.0.0.1"),
            "ray dashboard.py");
  EXPECT_EQ(ServiceName("python", "python train.py"), "");
}

}  // namespace
}  // namespace headrace::analysis
