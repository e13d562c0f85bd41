// Settings of a DataLoader and of tf.data from runs: what people paste, golden, and that every
// figure has its ground in the run.
#include "analysis/advice/emit/emit.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "tests/analysis/made_runs.h"
#include "tests/analysis/outside_run.h"
#include "tests/analysis/synthetic_run.h"
#include "tests/dashboards/golden.h"

namespace headrace::analysis {
namespace {

using testing::HasSubstr;
using testing::Not;

constexpr double kMiB = 1 << 20;

// Resident memory: of the trainer, of each worker.
RunView WithMemory(RunView run, double trainer, double worker) {
  for (ProcessRow& process : run.processes) {
    process.maximum_rss_bytes = process.pid == 100 ? trainer : worker;
  }
  return run;
}

const EmittedSetting* Find(const Emitted& emitted, const std::string& name) {
  for (const EmittedSetting& setting : emitted.settings) {
    if (setting.name == name) return &setting;
  }
  return nullptr;
}

std::string Value(const Emitted& emitted, const std::string& name) {
  const EmittedSetting* setting = Find(emitted, name);
  return setting == nullptr ? "(none)" : setting->value;
}

bool IsUnknown(const Emitted& emitted, const std::string& name) {
  for (const NotEmitted& one : emitted.unknown) {
    if (one.name == name) return !one.why.empty();
  }
  return false;
}

// Loader's shares are, for the trainer: on CPU, stalled; for each worker: on CPU, on storage,
// waiting for requests.
RunView Slow() {
  return WithMemory(Loader(2, 0.3, 0.65, 0.95, 0, 0.02, 2.2).view, 900 * kMiB, 400 * kMiB);
}
RunView Idle() {
  return WithMemory(Loader(4, 0.95, 0.02, 0.2, 0, 0.75, 1.8).view, 900 * kMiB, 400 * kMiB);
}

// A wrapped loader: `workers` of them take `batch_s` for a batch, all on a CPU, the trainer
// `step_s`.
RunView Wrapped(int workers, double batch_s, double step_s, double cv = 0.1) {
  SimulatedPipeline pipeline;
  pipeline.cores = 8;
  SimulatedStage stage;
  stage.name = "workers";
  stage.parallelism = workers;
  stage.queue_capacity = 2 * workers;
  SimulatedOperator work;
  work.name = "getitem";
  work.cpu_s = batch_s;
  work.cv = cv;
  stage.operators.push_back(work);
  pipeline.stages.push_back(stage);
  pipeline.consumer_s = step_s;
  RunView run = Record(pipeline, 20, 3);
  run.run.pipeline_path.clear();
  run.queues[0].name = "batches";
  for (int i = 0; i <= workers; ++i) {
    ProcessRow process;
    process.process_id = process.pid = 100 + i;
    process.parent_pid = i == 0 ? 1 : 100;
    process.process = "python";
    process.has_accounts = true;
    run.processes.push_back(process);
  }
  return WithMemory(run, 900 * kMiB, 400 * kMiB);
}

// A trainer fed by `threads` threads of tf.data in its own process.
RunView TfData(int threads, double stall, double cpu, double idle, double runnable = 0.01,
               double cores_busy = 1.5) {
  OutsideRun run(10, cores_busy);
  run.Process(100, 1, "python", "python train.py");
  run.OnCpu(100, "python (main)", 1 - stall - 0.02);
  run.Waits(100, "python (main)", "lock", stall, "100/tf_data_private_threadpool");
  run.OnCpu(100, "tf_data_private_threadpool", threads * cpu);
  run.Runnable(100, "tf_data_private_threadpool", threads * runnable);
  run.Waits(100, "tf_data_private_threadpool", "lock", threads * idle, "100/python (main)");
  return WithMemory(run.view, 2000 * kMiB, 0);
}

TEST(Emit, ALoaderSeenFromOutside) {
  const RunView run = Slow();
  ExpectGolden("emit_outside.txt", EmitPython(run, EmitDataLoader(run, {})));
}

TEST(Emit, AWrappedLoader) {
  const RunView run = Wrapped(2, 0.02, 0.004);
  const Emitted emitted = EmitDataLoader(run, {});
  ASSERT_TRUE(emitted.predicted && emitted.now);
  EXPECT_GE(std::stoi(Value(emitted, "num_workers")), 4);
  EXPECT_GT(*emitted.predicted, 1.7 * *emitted.now);
  EXPECT_LE(emitted.predicted_interval.low, *emitted.predicted);
  EXPECT_GE(emitted.predicted_interval.high, *emitted.predicted);
  EXPECT_TRUE(emitted.gain_note.empty());
  ExpectGolden("emit_wrapped.txt", EmitPython(run, emitted));
}

TEST(Emit, FewerWorkersWhereTheyWaitForTheTrainer) {
  const Emitted seen = EmitDataLoader(Idle(), {});
  EXPECT_EQ(Value(seen, "num_workers"), "1");
  EXPECT_EQ(Find(seen, "num_workers")->was, "4");
  EXPECT_THAT(Find(seen, "num_workers")->why, HasSubstr("1 would do"));
  EXPECT_NEAR(*seen.workers_bytes, 400 * kMiB, 1);
  EXPECT_NEAR(*seen.workers_now_bytes, 4 * 400 * kMiB, 1);
  EXPECT_FALSE(seen.at_most);

  const Emitted wrapped = EmitDataLoader(Wrapped(6, 0.01, 0.01), {});
  EXPECT_LE(std::stoi(Value(wrapped, "num_workers")), 3);
  EXPECT_GT(*wrapped.predicted, 0.97 * *wrapped.now);
}

TEST(Emit, WorkersFitIntoTheMemory) {
  Budget budget;
  budget.memory_bytes = static_cast<uint64_t>(2300 * kMiB);  // 900 and two of 400, and some
  const Emitted emitted = EmitDataLoader(Wrapped(2, 0.02, 0.004), budget);
  EXPECT_EQ(Value(emitted, "num_workers"), "2");
  EXPECT_THAT(emitted.memory_note, HasSubstr("fit into"));
  budget.memory_bytes = static_cast<uint64_t>(1200 * kMiB);
  try {
    EmitDataLoader(Slow(), budget);
    ADD_FAILURE() << "no worker fits";
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), ExitCode::kInconclusive);
    EXPECT_THAT(e.what(), HasSubstr("--memory"));
  }
}

TEST(Emit, PersistentWorkersWhereTheyWereStartedAgain) {
  RunView run = Slow();
  EXPECT_TRUE(IsUnknown(EmitDataLoader(run, {}), "persistent_workers"));
  // Three epochs: two workers each time, one generation after the other.
  OutsideRun epochs(30, 2.2);
  epochs.Process(100, 1, "python", "python train.py");
  epochs.OnCpu(100, "python (main)", 0.3);
  for (int w = 0; w < 6; ++w) {
    const int64_t pid = 200 + w;
    epochs.Process(pid, 100, "python");
    epochs.view.processes.back().started_ns = (w / 2) * int64_t{10'000'000'000};
    epochs.view.processes.back().ended_ns = (w / 2 + 1) * int64_t{10'000'000'000};
    epochs.OnCpu(pid, "pt_data_worker (main)", 0.95 / 3);
    epochs.Waits(pid, "pt_data_worker (main)", "poll", 0.02 / 3, "100/python (main)");
    epochs.Waits(100, "python (main)", "poll", 0.65 / 6,
                 std::to_string(pid) + "/pt_data_worker (main)");
  }
  const Emitted emitted = EmitDataLoader(epochs.view, {});
  ASSERT_EQ(Value(emitted, "persistent_workers"), "True");
  EXPECT_EQ(Find(emitted, "persistent_workers")->why.substr(0, 49),
            "the run started 6 worker processes, 2 at a time: ");
  EXPECT_EQ(Find(emitted, "num_workers")->was, "2");
}

TEST(Emit, NothingIsSetThatWasNotMeasured) {
  for (const RunView& run : {Slow(), Idle(), Wrapped(2, 0.02, 0.004)}) {
    const Emitted emitted = EmitDataLoader(run, {});
    EXPECT_EQ(Find(emitted, "pin_memory"), nullptr);
    EXPECT_TRUE(IsUnknown(emitted, "pin_memory"));
    EXPECT_EQ(Find(emitted, "multiprocessing_context"), nullptr);
    for (const EmittedSetting& setting : emitted.settings) {
      EXPECT_FALSE(setting.why.empty()) << setting.name;
    }
  }
  // No core count, no memory: neither more workers nor their bytes.
  RunView blind = Loader(2, 0.3, 0.65, 0.95, 0, 0.02, 2.2).view;
  blind.hosts.clear();
  blind.run.cores_count.reset();
  const Emitted emitted = EmitDataLoader(blind, {});
  EXPECT_EQ(Value(emitted, "num_workers"), "2");
  EXPECT_FALSE(emitted.worker_bytes);
  EXPECT_THAT(EmitPython(blind, emitted), Not(HasSubstr(" 0 B")));
}

TEST(Emit, TheTrainerThatMakesItsBatchesItself) {
  RunView run = Wrapped(1, 0.02, 0.004);
  run.stages[0].name = "loader";
  for (OperatorRow& op : run.operators) op.stage = "loader";
  run.queues[0].producer_stage = "loader";
  const Emitted emitted = EmitDataLoader(run, {});
  EXPECT_EQ(Value(emitted, "num_workers"), "5");
  EXPECT_EQ(Find(emitted, "num_workers")->was, "0");
  EXPECT_FALSE(emitted.predicted);
  EXPECT_GT(*emitted.at_most, 3);
  EXPECT_THAT(EmitPython(run, emitted), HasSubstr("not predicted: no worker was seen at work"));
}

// The page says what to try; what is pasted says the same, and how to find out.
TEST(Emit, APlanThatMayGainNothingIsToTry) {
  RunView run = RecordOneThread({.load_cpu_s = 0.001, .load_blocked_s = 0.04}, 20, 3);
  run.run.pipeline_path.clear();
  run.run.command = "python train.py";
  const Emitted sure = EmitDataLoader(run, {});
  EXPECT_GE(std::stoi(Value(sure, "num_workers")), 2);
  EXPECT_EQ(sure.doubt, "");
  MeasurementRow waits;
  waits.metric = "off_cpu_ns";
  waits.operator_name = run.operators[0].name;
  waits.stage = "loader";
  waits.cause = "network";
  waits.value = static_cast<double>(run.operators[0].busy_ns);
  run.measurements.push_back(waits);
  const Emitted unsure = EmitDataLoader(run, {});
  EXPECT_GE(std::stoi(Value(unsure, "num_workers")), 2);
  EXPECT_LE(unsure.gain_interval.low, 0);
  EXPECT_THAT(EmitPython(run, unsure),
              HasSubstr("# not sure: what stage loader waits for may have no more to give. Try it, "
                        "and compare:\n#   headrace compare --a-cmd 'python train.py' --b-cmd "));
  // It was tried, and brought nothing.
  std::map<std::string, std::string> now{{"loader.parallelism", "0"}};
  std::map<std::string, std::string> then{{"loader.parallelism", Value(unsure, "num_workers")}};
  run.tried = {{run.run.run_id, 1000, now}, {7, 980, then}};
  const Emitted in_vain = EmitDataLoader(run, {});
  EXPECT_EQ(Value(in_vain, "num_workers"), "0");
  EXPECT_THAT(Find(in_vain, "num_workers")->why, HasSubstr("Run 7 had these settings"));
}

TEST(Emit, TfDataSeenFromOutside) {
  const RunView run = TfData(2, 0.7, 0.9, 0.05);
  Budget budget;
  budget.memory_bytes = uint64_t{8} << 30;
  const Emitted emitted = EmitTfData(run, budget);
  EXPECT_EQ(Value(emitted, "options.threading.private_threadpool_size"), "5");
  EXPECT_TRUE(IsUnknown(emitted, "options.deterministic"));
  ExpectGolden("emit_tfdata.txt", EmitPython(run, emitted));
  // Limited by the machine's own memory: no limit to be told.
  EXPECT_TRUE(IsUnknown(EmitTfData(run, {}), "options.autotune.ram_budget"));
}

TEST(Emit, TfDataFromStages) {
  RunView run = Wrapped(1, 0.02, 0.004);
  run.stages[0].name = "decode";
  for (OperatorRow& op : run.operators) op.stage = "decode";
  run.queues[0].producer_stage = "decode";
  const Emitted emitted = EmitTfData(run, {});
  ASSERT_NE(Find(emitted, "decode: num_parallel_calls"), nullptr);
  EXPECT_GE(std::stoi(Value(emitted, "decode: num_parallel_calls")), 4);
  EXPECT_TRUE(emitted.predicted);
}

TEST(Emit, ANameDoesNotLeaveItsComment) {
  Emitted emitted;
  emitted.target = EmitTarget::kTfData;
  emitted.basis = emitted.gain_note = emitted.memory_note = "of a stage 'a\nimport os'";
  emitted.settings.push_back({"options.deterministic", "False", "True", "a\nimport os"});
  emitted.unknown.push_back({"prefetch", "a\nimport os"});
  RunView run;
  run.run.name = "a\nimport os";
  EXPECT_THAT(EmitPython(run, emitted), Not(HasSubstr("\nimport os")));
}

TEST(Emit, RunsOfSomethingElseAreRefused) {
  RunView other = Wrapped(1, 0.02, 0.004);
  other.stages[0].name = "decode";
  for (OperatorRow& op : other.operators) op.stage = "decode";
  other.queues[0].producer_stage = "decode";
  const RunView torch = Slow(), tf = TfData(2, 0.7, 0.9, 0.05);
  RunView nothing;
  const auto refused = [](const auto& what) {
    try {
      what();
    } catch (const Error& e) {
      EXPECT_EQ(e.code(), ExitCode::kInconclusive);
      EXPECT_FALSE(e.fix().empty()) << e.what();
      return true;
    }
    return false;
  };
  EXPECT_TRUE(refused([&] { EmitDataLoader(other, {}); }));
  EXPECT_TRUE(refused([&] { EmitDataLoader(tf, {}); }));
  EXPECT_TRUE(refused([&] { EmitTfData(torch, {}); }));
  EXPECT_TRUE(refused([&] { EmitDataLoader(nothing, {}); }));
  EXPECT_TRUE(refused([&] { EmitTfData(nothing, {}); }));
}

}  // namespace
}  // namespace headrace::analysis
