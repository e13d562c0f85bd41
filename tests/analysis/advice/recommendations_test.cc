// Recommendations: every rule fires on a run made for it and stays silent on one that is not, gains
// agree with a simulation of the pipeline with that work gone, and nothing fires where the consumer
// limits.
#include "analysis/advice/recommendations.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <set>

#include "analysis/model/resource_ladder.h"
#include "analysis/model/work_split.h"
#include "analysis/run/operator_class.h"
#include "analysis/run/reads.h"
#include "analysis/run/settings.h"
#include "analysis/thresholds.h"
#include "tests/analysis/advice/judged_runs.h"
#include "tests/analysis/made_runs.h"
#include "tests/analysis/process_figure.h"
#include "tests/analysis/synthetic_run.h"

namespace headrace::analysis {
namespace {

using testing::HasSubstr;

// decode limits on one thread, the consumer wants more.
RunView Decoding() {
  return Recorded(Pipeline({{"load", 2, 0.0002, 0.002}, {"decode", 1, 0.001, 0.007}}, 0.004));
}
RunView Consuming(int threads = 1) {
  return Recorded(Pipeline({{"load", threads, 0.0002, 0.002}, {"decode", 1, 0.001, 0.003}}, 0.01));
}
// An operator of that name and kind limits with its CPU time, on one thread.
RunView Computing(const std::string& name, const std::string& kind, double cpu_s = 0.006) {
  RunView run = Recorded(Pipeline({{"load", 2, 0.0002, 0.001}, {name, 1, cpu_s, 0}}, 0.002));
  Operator(&run, name).kind = kind;
  return run;
}
// Decompressing limits; a sample says what lz4 would make of it. 0: there was no sample.
RunView Decompressing(double cpu, double bytes) {
  RunView run = Computing("decompress", "decompress");
  if (cpu > 0) run.run.facts = {{"lz4_decompress_ratio", cpu}, {"lz4_bytes_ratio", bytes}};
  return run;
}
RunView Fused(const std::string& first, const std::string& second, double kept) {
  SimulatedPipeline pipeline = Pipeline({{"load", 2, 0.0002, 0.001}, {"work", 1, 0.003, 0}}, 0.002);
  pipeline.stages[1].operators = {{first, 0.004, 0, 0, 0, 0.2, -1},
                                  {second, 0.002, 0, 0, 0, 0.2, -1}};
  RunView run = Recorded(pipeline);
  OperatorRow& op = Operator(&run, second);
  op.bytes_out_bytes = static_cast<int64_t>(static_cast<double>(op.bytes_in_bytes) * kept);
  return run;
}
RunView With(RunView run, const std::function<void(RunView*)>& change) {
  change(&run);
  return run;
}

void AddStacks(RunView* run, const std::string& op, const std::vector<int64_t>& leaves) {
  for (size_t i = 0; i < leaves.size(); ++i) {
    StackRow stack;
    stack.kind = "cpu";
    stack.operator_name = stack.stage = op;
    stack.folded = "main;work;leaf" + std::to_string(i);
    stack.time_ns = leaves[i];
    stack.samples_count = 10 * leaves[i];
    run->stacks.push_back(stack);
  }
}
void AddAccelerator(RunView* run, double busy) {
  MeasurementRow row;
  row.metric = "gpu_use_ratio";
  row.subject = "gpu0";
  row.cause = "compute";
  row.source = "counter";
  row.value = busy;
  run->measurements.push_back(row);
}
RunView Duplicates(double factor) {
  RunView run = Computing("sigrid_hash", "transform");
  OperatorRow& group = AddOperator(&run, "dedup.g", "dedup", "load");
  group.bytes_out_bytes = 1'000'000;
  group.bytes_in_bytes = static_cast<int64_t>(1e6 * factor);
  return run;
}
// Elements and memory such that no second thread of decode fits.
RunView Tight(int64_t memory) {
  SimulatedPipeline pipeline =
      Pipeline({{"load", 1, 0.0002, 0.002}, {"decode", 1, 0.001, 0.007}}, 0.004);
  for (SimulatedStage& stage : pipeline.stages) stage.queue_capacity = 1;
  RunView run = Recorded(pipeline);
  for (OperatorRow& op : run.operators) op.bytes_out_bytes = op.completions_count * 50'000'000;
  run.run.memory_bytes = memory;
  return run;
}
// That share of the time of stage b's threads on the cores is not in its operator.
RunView Handing(double outside) {
  RunView run = Recorded(Pipeline({{"a", 2, 0.001, 0}, {"b", 2, 0.002, 0}}, 0.0002, /*cores=*/1));
  const auto less = [&](OperatorCounters* op) {
    const auto taken = static_cast<int64_t>(static_cast<double>(*op->on_cpu_ns) * outside);
    *op->on_cpu_ns -= taken;
    op->busy_ns -= taken;
  };
  less(&Operator(&run, "b"));
  for (WindowRow& window : run.windows) less(&window.operators[1]);
  return run;
}
RunView Ordered(const std::string& order) {
  RunView run = Recorded(Pipeline({{"a", 8, 0.00001, 0.02, 1.0}, {"b", 1, 0.0001, 0}}, 0.0005, 8));
  run.run.element_order = order;
  return run;
}
// The first stage waits for memory 8 ms of 10.
RunView Admitted(int fit) {
  RunView run = Recorded(Pipeline({{"load", 1, 0.001, 0.008}, {"decode", 1, 0.003, 0}}, 0.001));
  WaitForMemory(&run, fit, 0.01);
  return run;
}
// A pool's process computes 20 us in each task, or so many times as long, and hands over its
// result.
RunView PoolOf(double send_s, int64_t items, double longer = 1) {
  SimulatedPipeline pipeline = Pipeline({{"Pool", 2, 0.001, 0}}, 0.00001);
  pipeline.stages[0].operators = {{"beat", 0.00002 * longer, 0, 0, 0, 0.2, -1},
                                  {"send", send_s * longer, 0, 0, 0, 0.2, -1}};
  RunView run = Recorded(pipeline);
  run.run.pipeline_path.clear();
  Operator(&run, "send").kind = "serialize";
  OperatorRow& calls = Operator(&run, "beat");
  calls.kind = "call";
  calls.rows_count = calls.completions_count * items;
  return run;
}
// A pool of two processes, a call for each batch, whose trainer waits 4 ms and computes 2.
RunView Asking(double call_s, double empty_ratio = 0.5) {
  Received costs;
  costs.make_cpu_s = call_s;
  costs.wait_s = 0.004;
  costs.cores = 4;
  RunView run = RecordReceived(costs, 10, 1);
  run.operators[0].kind = "call";
  run.queues[0].consumer_stage = "trainer";
  run.queues[0].empty_ratio = empty_ratio;
  return run;
}
RunView Starting(double start_s) {
  Received costs;
  costs.start_s = start_s;
  return RecordReceived(costs, 10, 1);
}
RunView Receiving(double bytes) {
  Received costs;
  costs.receive_cpu_s = 0.05;
  costs.receive_bytes = bytes;
  return RecordReceived(costs, 10, 1);
}
// A trainer that computes for 2 ms and waits so long for the memory of a batch's tensors.
RunView Unpickling(double blocked_s) {
  Received costs;
  costs.unpickle_blocked_s = blocked_s;
  return RecordReceived(costs, 10, 1);
}
// Each epoch of 20 batches begins with a wait of so many seconds.
RunView FirstBatches(double wait_s) {
  RunView run = Starting(wait_s / 20);
  for (OperatorRow& op : run.operators) {
    if (op.kind == "start") op.kind = kFirstBatchKind;
  }
  return run;
}

// Two workers whose batches are taken in turn: 6 ms each on average, 9 and 3 ms where they differ.
RunView InTurn(bool uneven) {
  Received costs;
  costs.make_cpu_s = 0.006;
  costs.cores = 8;
  costs.order_s = uneven ? 0.0014 : 0;
  costs.wait_s = 1 / (uneven ? 2 / 0.0092 : 2 / 0.0062) - 0.0001 - 0.002 - costs.order_s;
  RunView run = RecordReceived(costs, 10, 1);
  const auto batches = static_cast<double>(run.steps.steps_count) / 2;
  for (int64_t worker = 0; worker < 2; ++worker) {
    const double batch_s = uneven ? (worker == 0 ? 0.009 : 0.003) : 0.006;
    const int64_t pid = 100 + worker;
    AddProcessFigure(&run, pid, "worker_batches_count", batches);
    AddProcessFigure(&run, pid, "worker_work_ns", batches * batch_s * 1e9);
    AddProcessFigure(&run, pid, "worker_wait_ns", std::max(0.0, 10 - batches * batch_s) * 1e9);
  }
  return run;
}
// Two workers before the one that limits, with or without a bound on what they make.
RunView Ahead(int queue) {
  SimulatedPipeline pipeline = Pipeline({{"Pool", 2, 0.004, 0}, {"pad", 1, 0.018, 0}}, 0.0005, 2);
  pipeline.stages[0].queue_capacity = queue;
  RunView run = Recorded(pipeline);
  if (queue > 1000) run.queues[0].capacity_count = 0;
  return run;
}
RunView Epochs(const std::string& epochs) {
  RunView run = Computing("transform", "transform");
  run.run.settings["source.epochs"] = epochs;
  return run;
}
RunView Locked() {
  SimulatedPipeline pipeline =
      Pipeline({{"load", 2, 0.0002, 0.002}, {"decode", 4, 0.001, 0}}, 0.004);
  pipeline.resources = {{"table", 1}};
  pipeline.stages[1].operators[0].resource = 0;
  pipeline.stages[1].operators[0].held_blocked_s = 0.009;
  return Recorded(pipeline);
}
RunView Shallow(double cv) {
  SimulatedPipeline pipeline =
      Pipeline({{"a", 1, 0.0001, 0.005, cv}, {"b", 1, 0.0001, 0.005, cv}}, 0.0005);
  for (SimulatedStage& stage : pipeline.stages) stage.queue_capacity = 1;
  return Recorded(pipeline);
}
RunView Maps(double kept) {
  RunView run = Fused("decode", "extract", kept);
  Operator(&run, "decode").kind = "decode";
  Operator(&run, "extract").kind = "extract";
  return run;
}

TEST(Recommendations, EachFiresWhereItShouldAndOnlyThere) {
  // What may gain nothing is to be tried.
  const Advice fires = Advice::kFires, tries = Advice::kTry, silent = Advice::kDoesNotFire,
               unknown = Advice::kCannotSay;
  std::map<std::string, std::string> gap_auto = kDisk;
  gap_auto["source.coalesce_gap"] = "auto";
  std::map<std::string, std::string> free_auto = kFreeRequests;
  free_auto["source.coalesce_gap"] = "auto";
  const struct {
    std::string id, name;
    RunView run;
    Advice advice;
    std::string says;  // in its reason
  } cases[] = {
      {"R1", "a lock limits each worker", Locked(), fires, "limited by lock table"},
      {"R1", "threads are enough", Decoding(), silent, "one worker is enough"},
      {"R1", "the consumer computes nothing", Recorded(Pipeline({{"a", 1, 0.0001, 0.003}}, 0)),
       unknown, "computes nothing"},
      {"R1", "a device limits all",
       With(ReadingStripes(0.05, 6, 20000, 0, kDisk),
            [](RunView* run) {
              ResourceRow disk;
              disk.name = "throttle";
              disk.kind = "device";
              disk.acquisitions_count = 100;
              disk.hold_ns = run->run.duration_ns;
              run->resources.push_back(disk);
              for (WindowRow& window : run->windows) {
                window.resources.push_back({10, 0, window.duration_ns, 0});
              }
            }),
       silent, "stop adding: device throttle"},
      {"R2", "decode has one thread", Decoding(), fires, "decode"},
      {"R2", "the consumer limits", Consuming(), silent, "trainer"},
      {"R3", "costs vary and queues hold one", Shallow(1.2), fires, "empty"},
      {"R3", "costs hardly vary", Shallow(0.05), silent, "would gain"},
      {"R4", "a fifth of the decoded is wanted", Maps(0.2), fires, "20.0 % of their bytes kept"},
      {"R4", "all of it is wanted", Maps(1), silent, "keeps 100 %"},
      {"R4", "no extract", Decoding(), unknown, "extract"},
      {"R5", "small requests to a disk", ReadingStripes(0.05, 6, 20000, 0, kDisk), tries,
       "requests take"},
      {"R5", "joined as they cost", ReadingStripes(0.05, 6, 20000, 0, gap_auto), silent, "auto"},
      {"R5", "the same, half over-read", ReadingStripes(0.05, 2, 1e6, 0.5, free_auto), silent,
       "auto"},
      {"R5", "the gap is far too large", ReadingStripes(0.05, 2, 1e6, 0.5, kFreeRequests), fires,
       "over holes up to 128 KiB, and 50.0 % of what is read is over-read"},
      {"R5", "the same, all of a stripe in one", ReadingStripes(0.05, 1, 1e6, 0.5, kFreeRequests),
       fires, "costs the storage nothing besides its bytes"},
      {"R5", "too large, yet little over-read", ReadingStripes(0.05, 2, 1e6, 0.05, kFreeRequests),
       silent, "only 5.0 %"},
      {"R6", "a smaller gap does it", ReadingStripes(0.05, 2, 1e6, 0.5, kFreeRequests), silent,
       "a smaller gap"},
      {"R5", "cost unknown", ReadingStripes(0.05, 6, 20000, 0, kReads), tries, "not known"},
      {"R5", "cost unknown, large reads", ReadingStripes(0.05, 6, 1e6, 0, kReads), unknown,
       "not known"},
      {"R6", "half is over-read", ReadingStripes(0.05, 2, 1e6, 0.5, kReads), tries, "50.0 %"},
      {"R6", "little is over-read", ReadingStripes(0.05, 2, 1e6, 0.05, kReads), silent, "5.0 %"},
      {"R7", "short streams on a disk", ReadingStripes(0.009, 1, 20000, 0, kDisk), tries,
       "64 rows"},
      {"R7", "long streams", ReadingStripes(0.06, 1, 8e6, 0, kDisk), silent, "as much as"},
      {"R8", "rows as maps", Computing("rowmap", "rowmap"), fires, "rowmap takes"},
      {"R8", "columns only", Decoding(), silent, "no operator converts"},
      {"R9", "one hot function",
       With(Computing("parse", "spin"),
            [](RunView* run) {
              AddStacks(run, "parse", {80, 20});
            }),
       tries, "80.0 % of the CPU samples"},
      {"R9", "a flat profile",
       With(Computing("parse", "spin"),
            [](RunView* run) {
              AddStacks(run, "parse", {10, 10, 10, 10, 10, 10, 10, 10, 10, 10});
            }),
       silent, "no hot spot"},
      {"R9", "few samples",
       With(Computing("parse", "spin"),
            [](RunView* run) {
              AddStacks(run, "parse", {8, 2});
            }),
       unknown, "100 samples, too few"},
      {"R9", "a library",
       With(Computing("parse", "spin"),
            [](RunView* run) {
              AddStacks(run, "parse", {80, 20});
              run->stacks[0].folded = "main;work;[libzstd.so.1.5.4+0x97000]";
            }),
       silent, "not code of the pipeline"},
      {"R9", "no stacks", Computing("parse", "spin"), unknown, "not known"},
      {"R10", "memory keeps a thread from running", Tight(1'130'000'000), fires,
       "of memory in use"},
      {"R10", "memory is plenty", Tight(int64_t{1} << 40), silent, "keeps no thread"},
      {"R11", "lists repeat four times", Duplicates(4), tries, "4.00 bytes of lists"},
      {"R11", "lists hardly repeat", Duplicates(1.05), silent, "repeat too little"},
      {"R11", "nothing compared them", Decoding(), unknown, "not known"},
      {"R11", "they would repeat by session",
       With(Duplicates(1.05), [](RunView* run) { run->run.facts["clustered_dedup_ratio"] = 4; }),
       tries, "if rows lay by session, 4.00 bytes"},
      {"R11", "they would repeat more by session than they do",
       With(Duplicates(1.1),
            [](RunView* run) {
              run->run.facts["clustered_dedup_ratio"] = 4.4;
              run->run.settings["dedup.mode"] = "auto";
            }),
       tries, "left out already: 1.10"},
      {"R11", "they lie by session already",
       With(Duplicates(4),
            [](RunView* run) {
              run->run.facts["clustered_dedup_ratio"] = 4.1;
              run->run.settings["dedup.mode"] = "auto";
            }),
       silent, "left out already: 4.00"},
      {"R11", "they lie by session, and nothing uses it",
       With(Duplicates(1.05),
            [](RunView* run) {
              run->run.facts["clustered_dedup_ratio"] = 4;
              run->run.facts["sample_dedup_ratio"] = 3.8;
            }),
       tries, "in the order that the rows have, 3.80"},
      {"R11", "they lie by session, and what is left out is little",
       With(Duplicates(1.1),
            [](RunView* run) {
              run->run.facts["clustered_dedup_ratio"] = 4.4;
              run->run.facts["sample_dedup_ratio"] = 4.3;
              run->run.settings["dedup.mode"] = "auto";
            }),
       silent, "left out already: 1.10"},
      {"R11", "they lie apart, and would repeat by session",
       With(Duplicates(1.05),
            [](RunView* run) {
              run->run.facts["clustered_dedup_ratio"] = 4;
              run->run.facts["sample_dedup_ratio"] = 2;
            }),
       tries, "if rows lay by session, 4.00 bytes"},
      {"R11", "nor would they by session",
       With(Decoding(), [](RunView* run) { run->run.facts["clustered_dedup_ratio"] = 1.1; }),
       silent, "even if rows lay by session"},
      {"R12", "three epochs", Epochs("3"), fires, "3 epochs"},
      {"R12", "one epoch", Epochs("1"), silent, "once"},
      {"R12", "no memory is free",
       With(Epochs("3"), [](RunView* run) { run->run.memory_bytes = 1'150'000'000; }), unknown,
       "no room"},
      {"R13", "endless epochs", ReadingStripes(0.05, 2, 1e6, 0, Endlessly(kReads)), fires,
       "endless"},
      {"R13", "one epoch", ReadingStripes(0.05, 2, 1e6, 0, kReads), unknown, "once"},
      {"R13", "a tier already",
       With(ReadingStripes(0.05, 2, 1e6, 0, Endlessly(kReads)),
            [](RunView* run) { AddOperator(run, "tier.hit", "cache", "fetch"); }),
       silent, "a tier already"},
      {"R14", "n-grams limit", Computing("ngram", "transform"), fires, "ngram"},
      {"R14", "only normalisation", Computing("sigrid_hash", "transform"), silent, "no transform"},
      {"R15", "rows are dropped late", Fused("parse", "filter", 0.3), fires, "keeps 30.0 %"},
      {"R15", "nothing shrinks", Fused("parse", "filter", 1), silent, "no operator"},
      {"R16", "handing over costs as much as the work", Handing(0.5), fires,
       "outside its operators"},
      {"R16", "handing over costs nothing", Handing(0), silent, "handing elements over"},
      {"R17", "serialising limits", Computing("serialize", "serialize"), fires, "another process"},
      {"R17", "in one process", Decoding(), silent, "does not matter"},
      {"R18", "in order", Ordered("file"), fires, "wait for the slowest"},
      {"R18", "in any order", Ordered("any"), silent, "any order already"},
      {"R19", "the same beside it",
       With(Decoding(), [](RunView* run) { run->same_pipeline_runs = 1; }), fires, "1 other run"},
      {"R19", "alone", With(Decoding(), [](RunView* run) { run->same_pipeline_runs = 0; }), silent,
       "no other"},
      {"R20", "an idle accelerator",
       With(Computing("ngram", "transform"), [](RunView* run) { AddAccelerator(run, 0.3); }), tries,
       "busy 30.0 %"},
      {"R20", "a busy accelerator",
       With(Computing("ngram", "transform"), [](RunView* run) { AddAccelerator(run, 0.97); }),
       silent, "busy 97.0 %"},
      {"R20", "none seen", Computing("ngram", "transform"), unknown, "no accelerator"},
      {"R21", "the cores limit", Recorded(Pipeline({{"a", 4, 0.004, 0}}, 0.0005, 1)), fires,
       "CPU cores are the limit"},
      {"R21", "a thread limits", Decoding(), silent, "no hardware row"},
      {"R22", "the consumer limits", Consuming(), fires, "takes all it can"},
      {"R22", "decode limits", Decoding(), silent, "decode limits"},
      {"R23", "four threads where one does", Consuming(4), fires, "3 threads more"},
      {"R23", "one thread each", Consuming(), silent, "no stage has a thread more"},
      {"R24", "one split fits", Admitted(1), fires, "room for 1 split"},
      {"R24", "many fit, and a stage is slower", Admitted(40), silent, "a stage is slower"},
      {"R24", "no budget",
       With(Decoding(), [](RunView* run) { run->run.settings["pipeline.memory"] = "0"; }), silent,
       "no memory budget"},
      {"R24", "not recorded", Decoding(), unknown, "not recorded"},
      {"R24", "the machine has no more",
       With(Admitted(1),
            [](RunView* run) {
              run->run.settings["pipeline.memory"] = "1GiB";
              run->run.memory_bytes = int64_t{1200} << 20;
            }),
       unknown, "may use"},
      {"R25", "workers are started for each epoch", Starting(0.1), fires, "starting and ending"},
      {"R25", "they are kept", Starting(0), silent, "would gain"},
      {"R26", "large batches through a pipe", Receiving(48e6), fires, "pickled through a pipe"},
      {"R26", "small ones", Receiving(1e3), silent, "that is little"},
      {"R30", "tensors that are asked for", Unpickling(0.006), fires, "the memory of tensors"},
      {"R30", "hardly ever", Unpickling(0.00002), silent, "that is little"},
      {"R31", "each epoch fills its buffers", FirstBatches(0.3), tries,
       "the first batch of each epoch of"},
      {"R31", "they are full at once", FirstBatches(0.0001), silent, "would gain"},
      {"R31", "no iterator begins again", Starting(0.1), silent, "no epoch was seen"},
      {"R32", "tiny tasks", PoolOf(0.0001, 1), fires, "of it for handing over its result"},
      {"R32", "that compute", PoolOf(0.000005, 1), silent, "20.0 %"},
      {"R32", "large results", PoolOf(0.0001, 1, 100), silent, "ms of CPU time, 83"},
      {"R32", "of several items", PoolOf(0.0001, 8), silent, "has 8 items already"},
      {"R32", "no pool", Decoding(), silent, "no pool of processes"},
      {"R33", "one call at a time", Asking(0.004), fires, "1.0 calls at once"},
      {"R33", "results are there", Asking(0.004, 0), silent, "no pool was seen"},
      {"R33", "as many as it can take", Asking(0.0118), silent, "no pool was seen"},
      {"R17", "a program's own pool", PoolOf(0.0001, 1), silent, "by its own means"},
      {"R17", "a program's own workers", Receiving(48e6), silent, "by its own means"},
      {"R29", "one worker has the long items", InTurn(true), fires, "1.5 times as long"},
      {"R29", "workers alike", InTurn(false), silent, "no worker was seen"},
      {"R28", "nobody sampled it", Decompressing(0, 0), unknown, "was not sampled"},
      {"R28", "a third of the CPU", Decompressing(0.3, 1.4), fires, "0.30 times the CPU"},
      {"R28", "as dear as now", Decompressing(0.98, 1.4), silent, "it would gain"},
      {"R28", "nothing decompresses", Decoding(), silent, "under an operator of its own"},
      {"R27", "results pile up", Ahead(1'000'000), fires, "nothing bounds how many wait"},
      {"R27", "a bounded queue", Ahead(4), silent, "no stage runs ahead"},
  };
  std::map<std::string, std::set<Advice>> seen;
  for (const auto& c : cases) {
    SCOPED_TRACE(c.id + ": " + c.name);
    const Judged judged = Judge(c.run);
    const Recommendation& one = judged.Of(c.id);
    EXPECT_EQ(AdviceName(one.advice), std::string(AdviceName(c.advice))) << one.why;
    EXPECT_THAT(one.why, HasSubstr(c.says));
    seen[c.id].insert(one.advice);
  }
  EXPECT_EQ(seen.size(), Registry<RecommendationRule>::Global().entries().size());
  for (const auto& [id, advices] : seen) {
    EXPECT_TRUE(advices.count(fires) + advices.count(tries) > 0) << id << " never fires";
    EXPECT_GT(advices.size(), 1u) << id << " always says the same";
  }
}

// Whatever the run, each of them says something that can be used.
TEST(Recommendations, NoneIsEmptyAndNothingUnmeasuredIsANumber) {
  for (const RunView& run : {Decoding(), Consuming(4), Locked(), Maps(0.2), Epochs("3"),
                             ReadingStripes(0.05, 6, 20000, 0.3, kDisk)}) {
    const Judged judged = Judge(run);
    ASSERT_EQ(judged.all.size(), Registry<RecommendationRule>::Global().entries().size());
    bool others = false;
    double before = std::numeric_limits<double>::infinity();
    for (const Recommendation& one : judged.all) {
      SCOPED_TRACE(one.id);
      EXPECT_NE(one.why, "");
      EXPECT_THAT(one.why, testing::Not(HasSubstr("nan")));
      EXPECT_THAT(one.why, testing::Not(HasSubstr("inf ")));
      if (one.advice == Advice::kCannotSay) {
        EXPECT_NE(one.record, "");
      }
      if (one.advice != Advice::kFires) {
        others = true;
        continue;
      }
      EXPECT_FALSE(others) << "what fires comes first";
      EXPECT_NE(one.act, "");
      if (!one.outcome) continue;
      EXPECT_LE(one.outcome->gain, before) << "the largest gain comes first";
      before = one.outcome->gain;
      EXPECT_GE(one.outcome->gain, kWorthwhileGain);
      EXPECT_LE(one.outcome->gain_interval.low, one.outcome->gain);
      EXPECT_GE(one.outcome->gain_interval.high, one.outcome->gain);
      const double before_it = one.outcome->over.empty() ? judged.statements->model->demands().rate
                                                         : judged.statements->allocation->predicted;
      EXPECT_NEAR(one.outcome->rate, before_it * (1 + one.outcome->gain), 1e-6 * one.outcome->rate);
      EXPECT_LT(one.outcome->gain_interval.low, one.outcome->gain_interval.high);
      // Memory was recorded, storage only where it was read.
      EXPECT_TRUE(one.effects.reader_memory.now.available());
      EXPECT_EQ(one.effects.storage_bytes.now.available(), ReadsOf(*judged.run).has_value());
    }
  }
}

// The same pipeline, simulated with that work gone, apart from the model that predicts it.
TEST(Recommendations, GainsAgreeWithASimulationOfTheChangedPipeline) {
  const auto rate = [](const SimulatedPipeline& pipeline) {
    return SimulatedRate(pipeline, 8000, 77).value();
  };
  const auto gain = [&](const SimulatedPipeline& before, const SimulatedPipeline& after) {
    return rate(after) / rate(before) - 1;
  };
  struct Case {
    std::string id;
    SimulatedPipeline before, after;
    std::function<void(RunView*)> as;
  };
  std::vector<Case> cases;
  const auto kind = [](const std::string& name, const std::string& kind) {
    return [=](RunView* run) { Operator(run, name).kind = kind; };
  };
  {
    Case c{"R8",
           Pipeline({{"load", 2, 0.0002, 0.003}, {"rowmap", 1, 0.006, 0}}, 0.0005),
           {},
           kind("rowmap", "rowmap")};
    c.after = c.before;
    c.after.stages[1].operators[0].cpu_s = 0;
    cases.push_back(c);
  }
  {
    Case c{"R14",
           Pipeline({{"load", 1, 0.0002, 0.003}, {"ngram", 1, 0.007, 0}}, 0.001),
           {},
           kind("ngram", "transform")};
    c.after = c.before;
    c.after.stages[1].operators[0].cpu_s = 0;
    cases.push_back(c);
  }
  {
    Case c{"R2",
           Pipeline({{"load", 2, 0.0002, 0.002}, {"decode", 1, 0.001, 0.007}}, 0.002),
           {},
           nullptr};
    c.after = c.before;
    cases.push_back(c);
  }
  {
    Case c{"R3",
           Pipeline({{"a", 1, 0.0001, 0.005, 1.2}, {"b", 1, 0.0001, 0.005, 1.2}}, 0.0005),
           {},
           nullptr};
    for (SimulatedStage& stage : c.before.stages) stage.queue_capacity = 1;
    c.after = c.before;
    for (SimulatedStage& stage : c.after.stages) stage.queue_capacity = 4;
    cases.push_back(c);
  }
  {
    Case c{"R21", Pipeline({{"a", 4, 0.004, 0}, {"b", 4, 0.002, 0}}, 0.0005, 2), {}, nullptr};
    c.after = c.before;
    c.after.cores = 3;
    cases.push_back(c);
  }
  {
    Case c{"R18",
           Pipeline({{"a", 8, 0.00001, 0.02, 0.7}, {"b", 1, 0.0001, 0}}, 0.0005, 8),
           {},
           [](RunView* run) { run->run.element_order = "file"; }};
    c.after = c.before;
    for (SimulatedStage& stage : c.before.stages) stage.ordered = true;
    cases.push_back(c);
  }
  for (Case& c : cases) {
    SCOPED_TRACE(c.id);
    RunView run = RecordedFor(60, c.before);  // how much costs vary is known by then
    if (c.as) c.as(&run);
    const Judged judged = Judge(run);
    const Recommendation& one = judged.Of(c.id);
    ASSERT_EQ(one.advice, Advice::kFires) << one.why;
    if (c.id == "R2") {  // what the plan says, simulated
      const Settings& plan = judged.statements->allocation->settings;
      for (size_t s = 0; s < c.after.stages.size(); ++s) {
        c.after.stages[s].parallelism = plan.parallelism[s];
        c.after.stages[s].queue_capacity = plan.queue_capacity[s];
      }
    }
    const double truth = gain(c.before, c.after);
    EXPECT_GT(truth, kWorthwhileGain);
    EXPECT_NEAR(std::log1p(one.outcome->gain), std::log1p(truth), 0.1)
        << one.outcome->gain << " predicted, " << truth << " simulated";
    EXPECT_GE(std::log1p(truth), std::log1p(one.outcome->gain_interval.low) - 0.02);
    EXPECT_LE(std::log1p(truth), std::log1p(one.outcome->gain_interval.high) + 0.02);
  }
}

TEST(Recommendations, NothingButRestFiresWhereTheConsumerLimits) {
  const uint64_t seed = 20261122;
  Random random(seed);
  for (int i = 0; i < 20; ++i) {
    SCOPED_TRACE(testing::Message() << "seed " << seed << ", pipeline " << i);
    std::vector<StageOfOne> steps;
    const size_t stages = 1 + random.Below(4);
    for (size_t s = 0; s < stages; ++s) {
      const int threads = 1 + static_cast<int>(random.Below(4));
      const double share = 0.1 + 0.6 * random.Uniform();  // of what its threads could do
      const double cpu = random.Uniform() * 0.3;
      steps.push_back({std::string(1, static_cast<char>('a' + s)), threads,
                       0.01 * share * threads * cpu, 0.01 * share * threads * (1 - cpu), 0.3});
    }
    RunView run = Recorded(Pipeline(steps, 0.01, 8));
    AddAccelerator(&run, 0.5);
    run.operators[0].kind = random.Below(2) == 0 ? "rowmap" : "transform";
    run.operators[0].name = "ngram";
    run.same_pipeline_runs = 0;
    const Judged judged = Judge(run);
    if (judged.statements->model->stall_ratio() >= 0.05) continue;
    EXPECT_EQ(judged.all[0].id, "R22");
    for (const Recommendation& one : judged.all) {
      if (one.id == "R22" || one.id == "R23") continue;
      EXPECT_NE(one.advice, Advice::kFires) << one.id << ": " << one.why;
    }
  }
}

// decode limits on one thread; on as many as fit the cores do, and the consumer wants more still.
TEST(Recommendations, WorkersAreThoseOfThePlanAndGainOverIt) {
  const Judged judged = Judge(
      Recorded(Pipeline({{"load", 1, 0.0002, 0.002}, {"decode", 1, 0.004, 0.006}}, 0.001, 2)));
  const Allocation& plan = *judged.statements->allocation;
  ASSERT_FALSE(plan.changes.empty());
  const Recommendation &workers = judged.Of("R1"), &threads = judged.Of("R2");
  ASSERT_EQ(workers.advice, Advice::kFires) << workers.why;
  EXPECT_THAT(workers.act, HasSubstr("with the settings of R2 ("));
  EXPECT_THAT(workers.act, HasSubstr("decode threads 1 -> "));
  EXPECT_THAT(workers.why, HasSubstr("one worker with the settings of R2"));
  EXPECT_EQ(workers.outcome->over, "the plan of R2");
  EXPECT_NEAR(workers.outcome->gain, workers.outcome->rate / plan.predicted - 1, 1e-9);
  EXPECT_NEAR(workers.outcome->rate, 1 / judged.statements->model->demands().consumer_s,
              1e-6 * workers.outcome->rate);
  EXPECT_GT(threads.outcome->rate, 1.5 * judged.statements->model->demands().rate);
  EXPECT_LT(workers.outcome->gain_interval.low, workers.outcome->gain);
  EXPECT_GT(workers.outcome->gain_interval.high, workers.outcome->gain);
  EXPECT_THAT(workers.only_if, HasSubstr("deliver the same rows"));
  EXPECT_THAT(workers.command, HasSubstr("plan 1 -o plan.json"));
  EXPECT_THAT(workers.command,
              HasSubstr("run pipeline.toml --plan plan.json --set delivery.to=unix:batches.sock"));
  EXPECT_THAT(workers.command, HasSubstr("consume unix:batches.sock --producers"));
  // Without a plan that changes anything, they are like this one.
  const Judged locked = Judge(Locked());
  EXPECT_THAT(locked.Of("R1").act, HasSubstr("workers like this one"));
  EXPECT_EQ(locked.Of("R1").outcome->over, "");
}

// Where only the two ends are known, the figure is neither: a promise of the best is none.
TEST(Recommendations, BetweenTwoEndsIsNotTheBetter) {
  const auto without = [](const std::string& name) {
    return [=](const Evidence& e) {
      Variant best = e.Now();
      best.scales.push_back({Scaled::kOperator, *e.FindName(name), 0});
      return best;
    };
  };
  const struct {
    std::string id;
    RunView run;
    std::function<Variant(const Evidence&)> best;
  } cases[] = {
      {"R7", ReadingStripes(0.009, 1, 20000, 0, kDisk),
       [](const Evidence& e) {
         Variant best = e.Now();
         // Three of four requests gone: 3/4 of their share of 8 ms and 20 kB at 150 MB/s.
         const double now = 0.008 + 20000 / 150e6;
         best.scales.push_back({Scaled::kOperator, e.reads()->io, 1 - 0.75 * 0.008 / now});
         return best;
       }},
      {"R11", Duplicates(4),
       [](const Evidence& e) {
         Variant best = e.Now();
         best.scales.push_back({Scaled::kOperator, *e.FindName("sigrid_hash"), 0.25});
         return best;
       }},
      {"R13", ReadingStripes(0.05, 2, 1e6, 0, Endlessly(kReads)), without("fetch.io")},
      {"R14", Computing("ngram", "transform", 0.03), without("ngram")},
  };
  for (const auto& c : cases) {
    SCOPED_TRACE(c.id);
    const Judged judged = Judge(c.run);
    const Recommendation& one = judged.Of(c.id);
    ASSERT_TRUE(one.advice == Advice::kFires || one.advice == Advice::kTry) << one.why;
    EXPECT_TRUE(one.outcome->between);
    const Evidence e(*judged.run, *judged.statements);
    const double best = e.Predict(c.best(e)).gain;
    EXPECT_LT(one.outcome->gain, 0.95 * best);
    EXPECT_GE(one.outcome->gain_interval.high, 0.95 * best);
  }
}

// Reading a cache back costs: the gain is below that of work which is simply gone, and the epoch
// that fills it counts.
TEST(Recommendations, ACacheIsPredictedWithItsReadingBack) {
  const auto gain = [](const std::string& epochs, int64_t bytes) {
    RunView run = Epochs(epochs);
    for (OperatorRow& op : run.operators) op.bytes_out_bytes = op.completions_count * bytes;
    const Judged judged = Judge(run);
    const Recommendation& one = judged.Of("R12");
    EXPECT_EQ(one.advice, Advice::kFires) << one.why;
    EXPECT_THAT(one.why, HasSubstr("taken at 3.00 GB/s"));
    EXPECT_THAT(one.command, HasSubstr("plan 1 --cache memory="));
    EXPECT_THAT(one.command, HasSubstr("--epoch-rows N"));
    EXPECT_THAT(one.only_if, HasSubstr("in place of a fast tier (R13)"));
    return one.outcome.value_or(Outcome{}).gain;
  };
  const double endless = gain("0", 65536);
  EXPECT_GT(endless, gain("3", 65536));
  EXPECT_GT(gain("3", 65536), gain("2", 65536));
  EXPECT_GT(endless, 1.3 * gain("0", 9'000'000)) << "3 ms to read back, of 6 ms to make";
  const Judged judged = Judge(ReadingStripes(0.05, 2, 1e6, 0, Endlessly(kReads)));
  EXPECT_THAT(judged.Of("R13").only_if, HasSubstr("in place of a cache (R12)"));
}

TEST(Recommendations, CommandsThatWouldBeRefusedAreNotPrinted) {
  RunView tight = Tight(1'130'000'000);
  EXPECT_EQ(Judge(tight).Of("R10").command, "");
  AddOperator(&tight, "rebatch", "rebatch", "decode");
  EXPECT_THAT(Judge(tight).Of("R10").command, HasSubstr("pipeline.worker_rows="));
  RunView run = Decoding();
  EXPECT_THAT(Judge(run).Of("R11").record, testing::Not(HasSubstr("layout")));
  run.run.settings["source.table"] = "t";
  EXPECT_THAT(Judge(run).Of("R11").record, HasSubstr("layout ./t --pipeline pipeline.toml"));
}

TEST(Recommendations, ARunWithoutAModelHasNone) {
  const RunView empty;
  EXPECT_TRUE(Recommend(empty, MakeStatements(empty)).empty());
}

// The page of transforms is printed from their registry: a new one must be classified here.
TEST(OperatorClass, EveryTransformHasOne) {
  std::ifstream in(std::string(HEADRACE_SOURCE_DIR) + "/docs/transforms.md");
  int found = 0;
  for (std::string line; std::getline(in, line);) {
    if (!line.starts_with("## ")) continue;
    const std::string name = line.substr(3);
    ++found;
    if (name == "sampling") continue;  // drops rows: neither generation nor normalisation
    EXPECT_NE(ClassOf("transform", name), OperatorClass::kTransform) << name;
  }
  EXPECT_GT(found, 15);
}

TEST(ByteFlow, CountsEachBorderAndSaysWhatNothingCounts) {
  const RunView run = ReadingStripes(0.01, 4, 1000, 0.25, kReads);
  const std::vector<ByteBorder> borders = ByteFlow(run, {});
  const double stripes = static_cast<double>(run.operators[0].completions_count);
  EXPECT_FALSE(FindBorder(borders, "stored")->bytes.available());
  EXPECT_NE(FindBorder(borders, "stored")->bytes.reason(), "");
  EXPECT_NEAR(FindBorder(borders, "selected")->bytes.value(), 3000 * stripes, stripes);
  EXPECT_NEAR(FindBorder(borders, "selected")->per_row.value(), 3000.0 / 64, 0.1);
  EXPECT_NEAR(FindBorder(borders, "read")->bytes.value(), 4000 * stripes, stripes);
  EXPECT_NEAR(FindBorder(borders, "over_read")->ratio.value(), 0.25, 1e-3);
  EXPECT_NEAR(FindBorder(borders, "read")->ratio.value(), 4.0 / 3, 1e-3);
  EXPECT_NEAR(FindBorder(borders, "decode")->per_row.value(), 1024, 1);
  EXPECT_FALSE(FindBorder(borders, "send")->bytes.available());
  EXPECT_EQ(FindBorder(borders, "unknown"), nullptr);
  Doubts doubts;
  doubts.operators = {"", "claims too much"};
  EXPECT_EQ(FindBorder(ByteFlow(run, doubts), "decode")->bytes.reason(), "claims too much");
}

TEST(ResourceLadder, LowestFirstAndTheLimitMarked) {
  const RunView run = Decoding();
  const Statements statements = MakeStatements(run);
  const std::vector<Rung> rungs = ResourceLadder(*statements.model, *statements.bottleneck);
  EXPECT_EQ(rungs[0].name, "stage decode (1 thread)");
  EXPECT_TRUE(rungs[0].binding);
  EXPECT_TRUE(rungs[0].attainable.has_interval());
  double before = 0;
  bool network = false;
  for (size_t i = 0; i < rungs.size(); ++i) {
    EXPECT_EQ(rungs[i].binding, i == 0) << rungs[i].name;
    network = network || rungs[i].kind == "network";
    if (!rungs[i].attainable.available()) {
      EXPECT_NE(rungs[i].attainable.reason(), "") << rungs[i].name;
      continue;
    }
    EXPECT_GE(rungs[i].attainable.value(), before);
    before = rungs[i].attainable.value();
  }
  EXPECT_TRUE(network);
}

TEST(ResourceLadder, MemorySaysHowManyThreadsFitAndNoRate) {
  for (const auto& [limit, says] : {std::pair{int64_t{1'300'000'000}, "4 more threads of decode"},
                                    {int64_t{1} << 40, "over 1000 more threads of decode"}}) {
    const RunView run = Tight(limit);
    const Statements statements = MakeStatements(run);
    int rows = 0;
    for (const Rung& rung : ResourceLadder(*statements.model, *statements.bottleneck)) {
      if (rung.kind != "memory") continue;
      ++rows;
      EXPECT_FALSE(rung.attainable.available());
      EXPECT_THAT(rung.attainable.reason(), HasSubstr(says));
      EXPECT_NEAR(rung.used_ratio.value(), 1.1e9 / static_cast<double>(limit), 1e-6);
    }
    EXPECT_EQ(rows, 1);
  }
}

TEST(WorkSplit, SharesAddUpAndSayWhatWasNotSplit) {
  RunView run = Fused("ngram", "sigrid_hash", 1);
  Operator(&run, "ngram").kind = Operator(&run, "sigrid_hash").kind = "transform";
  const PipelineModel model(run);
  double all = 0;
  for (const WorkShare& share : StageSplit(model)) {
    all += share.cpu_share.value();
    EXPECT_LE(share.cpu_share.low(), share.cpu_share.value());
  }
  EXPECT_NEAR(all, 1, 1e-6);
  const std::vector<WorkShare> classes = TransformClasses(model);
  ASSERT_EQ(classes.size(), 2u);
  EXPECT_EQ(classes[0].cls, OperatorClass::kGeneration);
  EXPECT_NEAR(classes[0].cpu_share.value(), 2.0 / 3, 0.05);
  EXPECT_EQ(Transforms(model)[1].name, "sigrid_hash");
  const CpuToConsumer cpu = CpuToConsumerOf(model);
  EXPECT_NEAR(cpu.cores_wanted.value(), (0.0002 + 0.006) / 0.002, 0.2);
  EXPECT_LT(cpu.cores_used.value(), cpu.cores_wanted.value());
  for (OperatorRow& op : run.operators) op.on_cpu_ns.reset();
  for (StageRow& stage : run.stages) stage.on_cpu_ns.reset();
  for (WindowRow& window : run.windows) {
    for (OperatorCounters& op : window.operators) op.on_cpu_ns.reset();
    for (StageCounters& stage : window.stages) stage.on_cpu_ns.reset();
  }
  const PipelineModel blind(run);
  EXPECT_FALSE(StageSplit(blind)[0].cpu_share.available());
  EXPECT_FALSE(CpuToConsumerOf(blind).cores_wanted.available());
}

}  // namespace
}  // namespace headrace::analysis
