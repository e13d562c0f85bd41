// What people read of each kind of limit: why it limits, what to do where no setting helps, why it
// does not limit, and what relieving it means. Phrases that pages rarely print stand only here.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <string>

#include "analysis/model/limits/bounds.h"
#include "analysis/model/limits/limit.h"
#include "analysis/model/limits/limit_kind.h"
#include "analysis/model/pipeline_model.h"
#include "tests/analysis/made_runs.h"
#include "tests/analysis/synthetic_run.h"

namespace headrace::analysis {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

const LimitKind* Kind(const std::string& name) {
  for (const LimitKind* kind : LimitKinds()) {
    if (kind->name() == name) return kind;
  }
  return nullptr;
}

// fetch, of one thread, and decode, of two, which hold a lock.
RunView Locked() {
  SimulatedPipeline pipeline;
  pipeline.cores = 4;
  pipeline.consumer_s = 0.001;
  pipeline.resources = {{"table", 1}};
  pipeline.stages.push_back({"fetch", 1, 4, {{"fetch", 0.002, 0, 0, 0, 0.1, -1}}});
  pipeline.stages.push_back({"decode", 2, 4, {{"decode", 0.005, 0, 0.001, 0, 0.1, 0}}});
  for (SimulatedStage& stage : pipeline.stages) stage.ordered = true;
  RunView run = Record(pipeline, 10, 1);
  run.run.element_order = "file";
  ReceiveBy(&run, "eth0", 0.4);
  return run;
}

struct Words {
  const char* kind;
  const char* name;     // of the row
  size_t index;         // of its stage or resource
  const char* subject;  // "... limits"
  const char* no_setting;
  const char* unlimited;
};

TEST(LimitWords, ProcessesThatTakeTheCoresAreToRunElsewhere) {
  RunView run = Locked();
  const auto process = [&](const char* name, bool has_accounts, int64_t cpu_s) {
    ProcessRow row;
    row.process = name;
    row.has_accounts = has_accounts;
    row.cpu_ns = cpu_s * 1'000'000'000;
    run.processes.push_back(row);
  };
  const auto advice = [&] {
    const PipelineModel model(run);
    for (const LimitKind* kind : LimitKinds()) {
      if (kind->name() == kCoresLimit)
        return kind->WithoutSetting(model, Limit{kind, 0, kind->name(), 0}, "");
    }
    return std::string();
  };
  process("python", true, 4);
  process("pack", false, 3);
  EXPECT_EQ(advice(), "No setting is faster: threads do not add cores.");
  process("pack", false, 2);
  EXPECT_EQ(advice(),
            "No setting is faster: most of the cores go to 2 processes pack without "
            "instrumentation. Where training does not need them, run them elsewhere or give them "
            "less priority (nice). Where it does, make their work cheaper.");
}

TEST(LimitWords, OfEveryKind) {
  const RunView run = Locked();
  const PipelineModel model(run);
  constexpr const char* kNothingHeld = "nothing was held";
  const Words words[] = {
      {"consumer", "consumer", 0, "the trainer",
       "Nothing in the pipeline: it keeps up. Only a cheaper training step is faster.",
       "the trainer computes nothing"},
      {"accelerator", "the GPU", 0, "the GPU",
       "Nothing in the pipeline: the GPU is busy. Make its part of a step cheaper: lower "
       "precision, larger batches, compiled kernels.",
       kNothingHeld},
      {"cores", "cores", 0, "the number of cores",
       "No setting is faster: threads do not add cores.", "the core budget was not recorded"},
      {"stage", "decode", 1, "stage decode", "No setting within the budget gains 3 % or more.",
       "no work was recorded in it"},
      {"lock", "table", 0, "lock table",
       "No setting helps: hold lock table for less time, or split it. More threads only wait.",
       kNothingHeld},
      {"device", "disk", 0, "device disk",
       "No setting helps: read fewer bytes from disk, or use a faster one.", kNothingHeld},
      {"memory bandwidth", "memory bandwidth", 0, "memory bandwidth",
       "No setting helps, and more cores alone do not: move fewer bytes in decode, or use a "
       "machine with more memory bandwidth.",
       kNothingHeld},
      {"network", "network eth0 received", 1, "network eth0 received",
       "No setting helps: send fewer bytes over network eth0 received, or use a faster link.",
       "nothing was carried"},
      {"cache_disk", "cache disk", 0, "the disk of the cache",
       "No setting helps: use less of the disk of the cache, or get more of it.", kNothingHeld},
      {"memory budget", "memory budget", 0, "the memory budget",
       "More threads do not help: raise pipeline.memory.", "no split waited for room"},
      {"interpreter", "Python's interpreter", 0, "the lock of Python's interpreter (GIL)",
       "More threads only wait for each other. Run decode in processes instead of threads "
       "(ProcessPoolExecutor, multiprocessing.Pool).",
       "no threads of Python were seen to run in turn"},
      {"held step", "consumer", 0, "the lock of Python's interpreter (GIL)",
       "Run what other threads of the trainer's process compute in a process of its own, or let it "
       "rest between turns.",
       kNothingHeld},
      {"order", "order", 1, "the order",
       "Give stage decode a longer queue, or set pipeline.order = \"any\" if the order of batches "
       "does not matter.",
       "no stage waits for the order"},
      {"uneven workers", "uneven workers", 1, "the slowest worker",
       "No setting helps. Give each worker as much work as the others: mix long and short items in "
       "every shard.",
       kNothingHeld},
      {"idle pool", "idle pool", 1, "too few calls ahead of the trainer",
       "Ask the pool for results ahead of the one that is taken (submit, apply_async, imap): at "
       "least as many as it has workers, and one more.",
       kNothingHeld},
      {"pauses", "decode", 1, "pauses of decode",
       "Shorten what stops decode now and then, or let it work further ahead.",
       "the queue lasts over every pause"},
      {"thread", "thread", 0, "the thread that loads and computes in turn",
       "A worker beside the trainer gains less than 3 %. Only a cheaper training step is faster.",
       "no stage runs on the trainer's thread"}};
  std::map<std::string, int> told;
  for (const Words& each : words) {
    SCOPED_TRACE(each.kind);
    ++told[each.kind];
    const LimitKind* kind = Kind(each.kind);
    ASSERT_NE(kind, nullptr);
    const Limit row{kind, each.index, each.name, 100};
    EXPECT_EQ(Describe(row), each.subject);
    EXPECT_EQ(kind->WithoutSetting(model, row, "decode"), each.no_setting);
    EXPECT_EQ(kind->WhyUnlimited(model), each.unlimited);
  }
  for (const LimitKind* kind : LimitKinds()) {
    if (kind->name() == "memory") continue;  // it has room, and bounds no rate
    EXPECT_EQ(told[kind->name()], 1) << kind->name();
  }
  const Limit some{Kind("uneven workers"), 1, "workers with data", 100};
  EXPECT_EQ(Describe(some), "the workers that have the data");
  EXPECT_EQ(some.kind->WithoutSetting(model, some, "decode"),
            "More workers do not help. Divide the data into shards of equal size, one for each "
            "worker.");
  // Where nothing is known to blame.
  const auto blames_nothing = [&](const char* kind) {
    return Kind(kind)->WithoutSetting(model, {Kind(kind), 0, kind, 100}, "");
  };
  EXPECT_THAT(blames_nothing("memory bandwidth"), HasSubstr("move fewer bytes, or use a machine"));
  EXPECT_THAT(blames_nothing("interpreter"), HasSubstr("Run the work in processes"));
}

TEST(LimitWords, OfTheLargerPartOfTheTrainersThread) {
  OneThread costs;
  for (const double step_s : {0.001, 0.01}) {
    SCOPED_TRACE(step_s);
    costs.step_cpu_s = step_s;
    const RunView run = RecordOneThread(costs, 10, 1);
    const PipelineModel model(run);
    const Limit row{Kind("thread"), 0, "thread", 100};
    const std::string rest = step_s < costs.load_cpu_s ? "Make the loading cheaper."
                                                       : "Only a cheaper training step is faster.";
    EXPECT_EQ(row.kind->WithoutSetting(model, row, ""),
              "A worker beside the trainer gains less than 3 %. " + rest);
  }
}

TEST(LimitWords, WhyItLimits) {
  const RunView run = Locked();
  const PipelineModel model(run);
  const auto why = [&](const char* kind, const char* name, size_t index) {
    const Limit row{Kind(kind), index, name, 100};
    return row.kind->Because(model, row, 0.5);
  };
  EXPECT_THAT(why("consumer", "consumer", 0),
              testing::MatchesRegex("the trainer computes .* ms per step: 100 batches/s at most"));
  EXPECT_EQ(why("accelerator", "the GPU", 0),
            "the GPU computes 50.0 % of the time: 100 batches/s at most");
  EXPECT_THAT(
      why("cores", "cores", 0),
      testing::MatchesRegex("CPU cores allow 100 batches/s: .* of 4.00 cores are in use, .* "
                            "% of it by decode"));
  EXPECT_EQ(why("stage", "decode", 1), "decode can deliver 100 batches/s with 2 threads");
  EXPECT_EQ(why("lock", "table", 0),
            "lock table is held 50.0 % of the time: 100 batches/s at most");
  EXPECT_EQ(why("network", "network eth0 received", 1),
            "network eth0 received is 50.0 % full: 100 batches/s at most");
  EXPECT_EQ(why("memory bandwidth", "memory bandwidth", 0),
            "50.0 % of memory bandwidth is in use (accounted bytes, in and out of operators): 100 "
            "batches/s at most");
  EXPECT_EQ(why("interpreter", "Python's interpreter", 0),
            "threads of one Python process run in turn and use one core together: 100 batches/s at "
            "most");
  EXPECT_EQ(
      why("order", "order", 1),
      "batches leave in order, the 2 threads of decode wait for the slowest, and the queue is "
      "too short for the others: 100 batches/s at most");
  EXPECT_THAT(why("thread", "thread", 0),
              testing::MatchesRegex("one thread loads and computes in turn, and loads .* % of the "
                                    "time: 100 batches/s at most"));
  EXPECT_EQ(
      why("device", "the store of fetch", 0),
      "the store of fetch gives 100 batches/s at most, as runs with fewer and more threads show");
}

TEST(LimitWords, OfAStageThatMayHaveNoMoreThreads) {
  RunView run = Locked();
  run.stages[1].max_parallelism_count = run.stages[1].last_parallelism_count;
  const PipelineModel model(run);
  const auto advice = [&](const char* stage, const char* culprit) {
    return Kind("stage")->WithoutSetting(model, {Kind("stage"), 1, stage, 100}, culprit);
  };
  EXPECT_EQ(advice("decode", "decode"),
            "No setting helps: stage decode has as many threads as it may. Make decode cheaper.");
  EXPECT_EQ(advice("tf.data prefetch", "Buses.__getitem__"),
            "Give Buses workers (its argument workers; with use_multiprocessing=True where it "
            "computes in Python): now one thread of Keras calls it, one batch at a time. Or make "
            "it cheaper.");
}

TEST(LimitWords, WhatRelievesIt) {
  const RunView run = Locked();
  const PipelineModel model(run);
  const Variant now{model.current(), {}};
  const auto what = [&](const char* kind, const char* name, size_t index) {
    const Limit row{Kind(kind), index, name, 100};
    return row.kind->Relieve(model, now, row, Step::kUnit).what;
  };
  EXPECT_EQ(what("consumer", "consumer", 0), "10 % faster");
  EXPECT_EQ(what("cores", "cores", 0), "5 cores instead of 4");
  EXPECT_EQ(what("stage", "decode", 1), "3 threads instead of 2");
  EXPECT_EQ(what("memory budget", "memory budget", 0), "10.0 % more memory");
  EXPECT_EQ(what("order", "order", 1), "queues and window 4 times as long");
  EXPECT_EQ(what("thread", "thread", 0), "a worker that loads while the trainer computes");
  EXPECT_EQ(what("uneven workers", "uneven workers", 1), "workers 9 % less uneven");
  EXPECT_EQ(what("idle pool", "idle pool", 1), "9 % less time in which its workers have no call");
  EXPECT_EQ(what("memory", "memory", 0), "more memory");
}

// The ladder's rows of what has no rate of its own.
TEST(LimitWords, OfRowsWithoutABound) {
  RunView run = Locked();
  run.measurements.clear();
  const auto row = [&](const char* kind) {
    const PipelineModel model(run);
    return Kind(kind)->Unbounded(model);
  };
  EXPECT_EQ(row("network")->attainable.reason(), "no interface was counted");
  MeasurementRow nic;
  nic.metric = "nic_received_bytes";
  run.measurements.push_back(nic);
  EXPECT_EQ(row("network")->attainable.reason(), "the driver does not report the link's speed");
  nic.metric = "nic_use_ratio";
  nic.subject = "eth0";
  nic.cause = "sent";
  nic.value = 0;
  run.measurements.push_back(nic);
  EXPECT_EQ(row("network")->name, "network eth0 sent");
  EXPECT_EQ(row("network")->note, "the interface, all processes");
  EXPECT_EQ(row("network")->attainable.reason(), "nothing of it was used");

  EXPECT_EQ(row("memory bandwidth")->attainable.reason(),
            "this machine was not calibrated: headrace doctor --calibrate");

  std::erase_if(run.hosts, [](const HostRow& host) { return host.metric == "process_rss_bytes"; });
  EXPECT_EQ(row("memory")->attainable.reason(), "the process's memory was not recorded");
  run.hosts.push_back(
      {"process_rss_bytes", "bytes", "counter", 1e9, {}, 1.0 * (1 << 30), {}, "", ""});
  run.run.memory_bytes.reset();
  EXPECT_EQ(row("memory")->attainable.reason(), "no memory limit was recorded");
  run.run.memory_bytes = int64_t{2} << 30;
  EXPECT_THAT(row("memory")->attainable.reason(),
              testing::AnyOf("elements of the slowest stage have no recorded size",
                             StartsWith("memory allows a number of threads, not a rate: ")));
}

}  // namespace
}  // namespace headrace::analysis
