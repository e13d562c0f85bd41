// Words of the first page that no golden shows: what is advised for each limit of a run seen from
// outside, what is said of the trainer's own thread, and pages without a verdict.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "analysis/advice/statements.h"
#include "analysis/outside/outside.h"
#include "dashboards/report/first_page.h"
#include "dashboards/report/losses.h"
#include "dashboards/report/outside_advice.h"
#include "dashboards/report/own_work_words.h"
#include "tests/analysis/outside_run.h"
#include "tests/analysis/synthetic_run.h"
#include "tests/dashboards/example_pipeline.h"

namespace headrace::dashboards {
namespace {

using analysis::Outside;
using analysis::OutsideLimit;
using testing::HasSubstr;

// Two loaders of a torch program limit it.
analysis::RunView LimitedByWorkers() { return analysis::Loader(2, 0.15, 0.8, 0.95, 0, 0.03).view; }

TEST(OutsideWords, EachLimitHasItsAdvice) {
  const analysis::RunView run = LimitedByWorkers();
  const Outside workers = analysis::LookFromOutside(run);
  ASSERT_FALSE(workers.findings.empty());
  const auto advice = [&](OutsideLimit limit, void (*change)(Outside*) = nullptr) {
    Outside seen = workers;
    seen.findings[0].limit = limit;
    if (change != nullptr) change(&seen);
    return Advice(run, seen);
  };
  EXPECT_THAT(advice(OutsideLimit::kProducers), HasSubstr("num_workers 2 -> "));
  EXPECT_THAT(advice(OutsideLimit::kProducers, [](Outside* seen) { seen->cores_free = 0; }),
              HasSubstr("a cheaper __getitem__ or collate_fn: no core is left for more of them"));
  EXPECT_THAT(advice(OutsideLimit::kProducers, [](Outside* seen) { seen->cores_free.reset(); }),
              HasSubstr("more of the workers, while cores are left; or "));
  EXPECT_THAT(advice(OutsideLimit::kProducers,
                     [](Outside* seen) {
                       seen->compute_place = "recv (multiprocessing/connection.py:250)";
                     }),
              HasSubstr("more processes do not help, as one thread unpickles what all of them"));
  EXPECT_THAT(advice(OutsideLimit::kProducers,
                     [](Outside* seen) {
                       seen->is_busy_thread = true;
                       seen->python_threads.emplace().busy_function = "pack (feed.py:4)";
                     }),
              HasSubstr("make pack (feed.py:4) cheaper, or divide its work among several"));
  EXPECT_THAT(advice(OutsideLimit::kProducers,
                     [](Outside* seen) {
                       seen->is_busy_thread = true;
                       seen->python_threads.emplace().busy_function =
                           "Pool._handle_tasks (multiprocessing/pool.py:531)";
                     }),
              HasSubstr("exchange less with the pool's processes, or share memory with them"));
  EXPECT_THAT(advice(OutsideLimit::kProducers,
                     [](Outside* seen) { seen->workers.emplace().start_ratio = 0.8; }),
              HasSubstr("persistent_workers=True in the DataLoader, so that workers are started"));
  EXPECT_THAT(advice(OutsideLimit::kCores),
              HasSubstr("or more cores: more threads or processes do not help"));
  EXPECT_THAT(advice(OutsideLimit::kCores, [](Outside* seen) { seen->cores_others = 2; }),
              HasSubstr("keep other programs off these cores: they use 2.0; else a cheaper"));
  EXPECT_THAT(advice(OutsideLimit::kCores,
                     [](Outside* seen) {
                       seen->core_budget.quota = analysis::CpuQuota{0.5, 0.3};
                     }),
              HasSubstr("raise the CPU quota of 0.50 cores, or "));
  EXPECT_THAT(advice(OutsideLimit::kStorage), HasSubstr("larger or fewer reads, more of them"));
  EXPECT_THAT(advice(OutsideLimit::kNetwork),
              HasSubstr("more requests at once, larger ones, or a copy nearby"));
  EXPECT_THAT(advice(OutsideLimit::kInterpreter),
              HasSubstr("processes instead of threads: one thread of a process runs Python"));
  EXPECT_THAT(advice(OutsideLimit::kLock), HasSubstr("hold the lock for less time or split it"));
  EXPECT_THAT(advice(OutsideLimit::kSleep),
              HasSubstr("find what sleeps: a retry, a rate limit or polling"));
  EXPECT_THAT(advice(OutsideLimit::kConsumer),
              HasSubstr("its waits come in bursts, which a longer queue may remove"));
  EXPECT_THAT(advice(OutsideLimit::kPauses), HasSubstr("a longer queue may bridge the pauses"));
  EXPECT_THAT(advice(OutsideLimit::kAlone),
              HasSubstr("if it loads data: num_workers 0 -> 1 or more, so that loading runs beside "
                        "the step; one brings at most 2 times the rate"));
  EXPECT_EQ(advice(OutsideLimit::kNone), "");
}

TEST(OutsideWords, EachOperatorOfTheTrainersThreadHasItsAdvice) {
  Outside seen = analysis::LookFromOutside(LimitedByWorkers());
  const struct {
    const char* name;
    const char* advice;
  } kCases[] = {{"sampler", "Make the sampler cheaper"},
                {"unpickle", "Send fewer and larger objects, as tensors"},
                {"start_workers", "persistent_workers=True: workers are started again and again"},
                {"pin_memory", "pin_memory=False, or fewer and larger tensors"},
                {"getitem", "num_workers 0 -> 1 or more, so that loading runs beside the step"},
                {"collate", "num_workers 0 -> 1 or more, or a cheaper collate_fn"},
                {"", "Move this work into the processes that load"}};
  analysis::PythonTime& python = seen.python.emplace();
  python.function = "load (train.py:12)";
  for (const auto& each : kCases) {
    python.operator_name = each.name;
    const std::string advice = AdviceForOwnWork(seen);
    EXPECT_THAT(advice, HasSubstr(each.advice));
    EXPECT_THAT(advice, testing::EndsWith(" (load, train.py:12)"));
  }
  seen.units.resize(1);
  EXPECT_THAT(AdviceForOwnWork(seen), HasSubstr("Load ahead, in another process or in a thread"));
}

TEST(OutsideWords, TheTrainersThreadIsNamedByItsFunctions) {
  Outside seen;
  analysis::PythonTime& python = seen.python.emplace();
  python.function = "load (train.py:12)";
  EXPECT_EQ(OwnWorkWord(seen, "the trainer"),
            "the trainer's own thread, loading in load, train.py:12");
  python.operator_name = "collate";
  EXPECT_EQ(OwnWorkWord(seen, "the trainer"), "the trainer's own thread, operator collate");
  python.operator_name = "start_workers";
  EXPECT_EQ(OwnWorkWord(seen, "the trainer"),
            "the start of the workers, in the trainer's own thread");
  python.seconds = 10;
  python.loads_s = 6;
  python.waits_s = 1;
  python.step_s = 2;
  python.unknown_s = 1;
  EXPECT_EQ(
      SampledWords(python),
      "By its sampled functions it loads 60.0 % of its time (load, train.py:12), waits 10.0 % "
      "and is in its step 20.0 %; 10.0 % may be either.");
  python.has_loader = true;  // what is unknown is done with its batches
  EXPECT_THAT(SampledWords(python), testing::EndsWith("and is in its step 30.0 %."));
}

// The lines "fix" of pages without a verdict, by what the run was.
TEST(PagesWithoutAVerdict, SayWhatToRecord) {
  const auto text = [](const analysis::RunView& run) {
    std::string all;
    for (const PageLine& line : MakeFirstPage(run, analysis::MakeStatements(run)).lines)
      all += line.text + "\n";
    return all;
  };
  analysis::RunView run = analysis::Record(DecodeLimits(), 0.1, 3);
  run.run.pipeline_path = "p.toml";
  EXPECT_THAT(text(run), HasSubstr("Record it for longer:\n"));
  EXPECT_THAT(text(run), HasSubstr(" run p.toml --duration 10s"));
  run.run.pipeline_path.clear();
  EXPECT_THAT(text(run), HasSubstr("Record it while it takes batches.\n"));
  run.run.kind = "ceiling";
  EXPECT_THAT(text(run), HasSubstr("record the pipeline itself, with the same settings"));
  analysis::SiblingRow whole;
  whole.run_id = 4;
  whole.kind = "pipeline";
  run.siblings.push_back(whole);
  EXPECT_THAT(text(run), HasSubstr("this run repeats one batch; read the full run:\n"));
  EXPECT_THAT(text(run), HasSubstr(" report 4"));
}

TEST(LossWords, OfWhatTheRecorderCounts) {
  const struct {
    const char* what;
    const char* affected;
  } kCases[] = {
      {"offcpu: run queue waits", "run-queue latency: too few waits"},
      {"offcpu: thread times", "CPU time by thread (Threads): too low"},
      {"follow: processes", "children of the target: their figures by eBPF missing"},
      {"off_cpu_stack: copies", "off-CPU stacks: more of them truncated"},
      {"cpu_stack: samples", "CPU stacks: too few samples, or stacks without names"},
      {"block_io: histogram rows", "histograms of block requests: too low"},
      {"file_io: pages", "page cache and read-ahead by operator: too low"},
      {"socket: softirqs", "softirq time: too low"},
      {"socket: calls", "network by socket and operator: too low"},
      {"fork events", "Processes: short-lived ones missing"},
      {"processes over the limit", "Processes: some missing, their figures are the root's"},
      {"operators over the limit", "operators, queues and resources beyond the limit: not listed"},
      {"ring seconds beyond its memory", "detail around stalls: shorter than asked"},
      {"ranges of detail released", "detail around stalls: the oldest ranges given up"},
      {"stacks beyond the limit of a run", "stacks: some missing"},
      {"measurements beyond the limit of a run", "figures beyond the limit of a run: missing"}};
  for (const auto& each : kCases) EXPECT_EQ(AffectedBy(each.what), each.affected) << each.what;
}

}  // namespace
}  // namespace headrace::dashboards
