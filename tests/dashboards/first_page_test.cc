// The first page of fixed runs: as people read it, and what holds for every one of them.
#include "dashboards/report/first_page.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <sstream>

#include "analysis/advice/statements.h"
#include "analysis/model/bottleneck.h"
#include "analysis/model/limits/limit_kind.h"
#include "base/error.h"
#include "dashboards/render/first_page_text.h"
#include "dashboards/render/render.h"
#include "dashboards/report/limit_words.h"
#include "dashboards/report/make_report.h"
#include "tests/analysis/made_runs.h"
#include "tests/analysis/outside_run.h"
#include "tests/analysis/synthetic_run.h"
#include "tests/dashboards/example_pipeline.h"
#include "tests/dashboards/golden.h"

namespace headrace::dashboards {
namespace {

using analysis::RunView;
using analysis::SimulatedPipeline;
using testing::HasSubstr;
using testing::Not;

SimulatedPipeline Consuming() {
  SimulatedPipeline pipeline = DecodeLimits();
  pipeline.consumer_s = 0.02;
  return pipeline;
}

SimulatedPipeline WithoutTrainer() {
  SimulatedPipeline pipeline = DecodeLimits();
  pipeline.consumer_s = 0;
  return pipeline;
}

SimulatedPipeline OfManyStages() {
  SimulatedPipeline pipeline = DecodeLimits();
  const auto batch = pipeline.stages.back();
  for (int i = 0; i < 12; ++i) {
    pipeline.stages.push_back(batch);
    pipeline.stages.back().name = "a_transform_with_a_long_name_" + std::to_string(i);
  }
  return pipeline;
}

RunView Recorded(const SimulatedPipeline& pipeline, double others = 0.1) {
  RunView run = analysis::Record(pipeline, 8, 3);
  run.run.pipeline_path = "p.toml";
  run.run.settings_text = "";
  double own = 0;
  for (const analysis::StageRow& stage : run.stages) {
    own += static_cast<double>(stage.on_cpu_ns.value_or(0));
  }
  const double busy = own / static_cast<double>(run.run.duration_ns) + others;
  run.hosts = {{"collector_cpu_ns", "ns", "counter", {}, {}, {}, 48e6},
               {"host_cores", "cores", "counter", {}, {}, {}, 2},
               {"host_peer_cpu_ns",
                "ns",
                "counter",
                {},
                {},
                {},
                others * static_cast<double>(run.run.duration_ns)},
               {"host_busy_cores", "cores", "counter", busy, busy, busy, busy}};
  return run;
}

// The first stage waits for room in a memory budget 8 ms of 10; one split fits.
RunView WaitingForMemory() {
  SimulatedPipeline pipeline = DecodeLimits();
  pipeline.stages[0].operators[0].cpu_s = 0.0005;
  pipeline.stages[0].operators[0].blocked_s = 0.0095;
  pipeline.stages[0].parallelism = 1;
  for (auto& op : pipeline.stages[1].operators) op.blocked_s = 0;
  pipeline.consumer_s = 0.001;
  RunView run = Recorded(pipeline);
  analysis::WaitForMemory(&run, 1, 0.01);
  return run;
}

// Two ranks that step together; the second waits for its batches.
RunView WithASlowRank() {
  RunView run = Recorded(Consuming());
  run.run.pipeline_path.clear();
  int64_t pid = 500;
  for (const double wait_ratio : {0.01, 0.4}) {
    const auto put = [&](const char* metric, double value) {
      analysis::MeasurementRow row;
      row.metric = metric;
      row.process_id = row.pid = pid;
      row.process = "python";
      row.value = value;
      run.measurements.push_back(row);
    };
    put("rank_steps_count", 400);
    put("rank_wait_ns", wait_ratio * 8e9);
    put("rank_compute_ns", (1 - wait_ratio) * 8e9);
    ++pid;
  }
  return run;
}

Report Make(const RunView& run) { return MakeReport(run, analysis::MakeStatements(run)); }

std::string Page(const Report& report, int width, bool color = false) {
  TextOptions options;
  options.width = width;
  options.color = color;
  options.first_only = true;
  return RenderText(report, options);
}

std::vector<std::string> Lines(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

TEST(FirstPage, AsPeopleReadIt) {
  const struct {
    const char* name;
    RunView run;
  } cases[] = {{"first_page_decode.txt", Recorded(DecodeLimits())},
               {"first_page_trainer.txt", Recorded(Consuming())},
               {"first_page_alone.txt", Recorded(WithoutTrainer())},
               {"first_page_busy.txt", Recorded(DecodeLimits(), 1.5)},
               {"first_page_memory.txt", WaitingForMemory()},
               {"first_page_slow_rank.txt", WithASlowRank()}};
  for (const auto& c : cases) {
    SCOPED_TRACE(c.name);
    ExpectGolden(c.name, Page(Make(c.run), 80));
  }
}

// Commands are for pasting: they alone may be longer.
TEST(FirstPage, FitsASmallTerminal) {
  RunView interrupted = Recorded(DecodeLimits(), 1.5);
  interrupted.run.state = "interrupted";
  SimulatedPipeline named = OfManyStages();
  for (auto& stage : named.stages) {
    stage.name += std::string(40, 'x');
    stage.operators[0].name = "op_" + stage.name;
  }
  RunView worst = Recorded(named, 1.5);
  worst.run.state = "interrupted";
  worst.run.name = std::string(300, 'n');
  const RunView runs[] = {Recorded(DecodeLimits()),
                          Recorded(Consuming()),
                          Recorded(WithoutTrainer()),
                          Recorded(OfManyStages()),
                          interrupted,
                          analysis::Record(DecodeLimits(), 0.1, 3),
                          worst};
  for (const RunView& run : runs) {
    for (const int width : {60, 80, 120}) {
      const std::string page = Page(Make(run), width);
      SCOPED_TRACE(page);
      const std::vector<std::string> lines = Lines(page);
      EXPECT_LE(lines.size(), width < 80 ? 2 * kFirstPageLines : kFirstPageLines);
      for (const std::string& line : lines) {
        if (line.find("headrace ") != std::string::npos) continue;
        EXPECT_LE(line.size(), static_cast<size_t>(std::min(width, 100))) << line;
      }
    }
  }
}

// Every line that a page can have, each as long as a sentence gets.
TEST(FirstPage, ShortensWhatIsTooLong) {
  std::string sentence;
  for (int i = 0; i < 60; ++i) sentence += "of everything that could be said of it ";
  Report report = Make(Recorded(DecodeLimits()));
  report.title = sentence;
  FirstPage& page = report.first;
  page.verdict = sentence;
  page.conditions = {sentence, sentence, sentence, sentence};
  page.lines.clear();
  for (const char* label : {"limit", "why", "but", "check", "fix", "next", "plan", "also"}) {
    page.lines.push_back({label, sentence});
  }
  page.lines.push_back({"", "headrace apply 1", true});
  page.lines.push_back({"more", "headrace report 1 --full", true});
  for (const int width : {60, 80, 120}) {
    const std::string text = Page(report, width);
    SCOPED_TRACE(text);
    const std::vector<std::string> lines = Lines(text);
    EXPECT_LE(lines.size(), kFirstPageLines);
    for (const std::string& line : lines) EXPECT_LE(line.size(), static_cast<size_t>(width));
    for (const char* kept : {" limit ", " why ", " fix ", " next ", "headrace apply 1", "--full"}) {
      EXPECT_THAT(text, HasSubstr(kept));
    }
    EXPECT_THAT(text, HasSubstr(" ..."));
  }
}

TEST(FirstPage, AVerdictWithoutAnExplanationAdvisesNothing) {
  const RunView run = Recorded(DecodeLimits());
  analysis::Statements statements = analysis::MakeStatements(run);
  analysis::Bottleneck& bottleneck = *statements.bottleneck;
  bottleneck.verdict = analysis::Verdict::kUndecided;
  bottleneck.unexplained = true;
  bottleneck.measure = "record one pipeline at a time";
  for (const double bound : {100.0, std::numeric_limits<double>::infinity()}) {
    bottleneck.findings[0].limit.bound = bound;
    for (const PageLine& line : MakeFirstPage(run, statements).lines) {
      EXPECT_THAT(line.text, Not(HasSubstr("0.99")));
      EXPECT_THAT(line.text, Not(HasSubstr("inf ")));
      EXPECT_NE(line.label, "fix");
      EXPECT_NE(line.label, "next");
    }
  }
}

// A bound below the rate beside it is a riddle, too.
TEST(FirstPage, ABoundThatTheRunDoesNotShowWellIsSaidToBeSo) {
  const RunView run = Recorded(DecodeLimits());
  analysis::Statements statements = analysis::MakeStatements(run);
  analysis::Finding& first = statements.bottleneck->findings[0];
  const auto why = [&](double bound) {
    first.limit.bound = bound * statements.model->demands().rate;
    first.bound_interval = {0.3 * first.limit.bound, 3 * first.limit.bound};
    for (const PageLine& line : MakeFirstPage(run, statements).lines) {
      if (line.label == "why") return line.text;
    }
    return std::string();
  };
  EXPECT_THAT(why(1), Not(HasSubstr("does not show it well")));
  EXPECT_THAT(why(0.5), HasSubstr("This run does not show it well: "));
  EXPECT_THAT(why(0.5), HasSubstr(" may deliver between "));
  statements.bottleneck->unexplained = true;
  EXPECT_THAT(why(0.5), Not(HasSubstr("does not show it well")));
}

// An operator's name says what kind of work uses the cores; its samples say which, unless they are
// of waits.
TEST(FirstPage, CoresSayWhereInTheProgramTheyAreUsed) {
  SimulatedPipeline pipeline = DecodeLimits();
  pipeline.cores = 1;
  pipeline.stages[1] = {"workers", 4, 4, {{"getitem", 0.01, 0, 0, 0, 0.1, -1}}};
  pipeline.consumer_s = 0.001;
  RunView run = Recorded(pipeline);
  analysis::Sample("MainThread",
                   "_MapItems.__getitem__ (headrace/_loader.py:91);Rows.__getitem__ (train.py:40, "
                   "no loop)",
                   3, &run);
  const analysis::Statements statements = analysis::MakeStatements(run);
  const analysis::Finding& first = statements.bottleneck->findings[0];
  ASSERT_TRUE(first.limit.Is(analysis::kCoresLimit));
  ASSERT_TRUE(first.culprit);
  analysis::OperatorRow& op = run.operators[*first.culprit];
  const auto limit = [&] {
    const analysis::Statements now = analysis::MakeStatements(run);
    EXPECT_TRUE(now.bottleneck->findings[0].limit.Is(analysis::kCoresLimit));
    EXPECT_EQ(now.bottleneck->findings[0].culprit, first.culprit);
    return LimitLine(*now.model, *now.bottleneck);
  };
  EXPECT_THAT(LimitLine(*statements.model, *statements.bottleneck),
              HasSubstr("CPU cores, mostly used by workers (getitem) (probability "));
  op.runnable_ns = op.busy_ns - *op.on_cpu_ns;
  EXPECT_THAT(limit(),
              HasSubstr(": getitem is in Rows.__getitem__ (train.py:40) 100 % of its time"));
  op.runnable_ns = 0;
  op.busy_ns = 2 * *op.on_cpu_ns;
  EXPECT_THAT(limit(), Not(HasSubstr("getitem is in")));
  op.runnable_ns.reset();
  EXPECT_THAT(limit(), Not(HasSubstr("getitem is in")));
}

// "1084 % higher" is a riddle.
TEST(FirstPage, ALimitFarAboveTheNextIsAFactor) {
  const RunView run = Recorded(DecodeLimits());
  analysis::Statements statements = analysis::MakeStatements(run);
  ASSERT_TRUE(statements.allocation);
  const auto next = [&](double times) {
    statements.allocation->next_bound = times * statements.allocation->limited_by.bound;
    for (const PageLine& line : MakeFirstPage(run, statements).lines) {
      if (line.label == "next") return line.text;
    }
    return std::string();
  };
  EXPECT_THAT(next(1.5), HasSubstr(" at a rate 50 % higher"));
  EXPECT_THAT(next(2.5), HasSubstr(" at 2.5 times that rate"));
  EXPECT_THAT(next(120), HasSubstr(" at 120 times that rate"));
}

TEST(FirstPage, DrawsThePipelineWithItsLimit) {
  const std::string page = Page(Make(Recorded(DecodeLimits())), 80);
  EXPECT_THAT(page, HasSubstr("[decode x1 "));
  EXPECT_THAT(page, HasSubstr("> trainer "));
  EXPECT_LT(page.find("fetch x2"), page.find("[decode"));
}

TEST(FirstPage, TheSharesOfAThreadThatLoadsAndTrainsAreAllOfItsTime) {
  RunView run = analysis::RecordOneThread({.load_cpu_s = 0.018, .outside_s = 0.0005}, 10, 3);
  const analysis::Statements statements = analysis::MakeStatements(run);
  const Report report = MakeReport(run, statements);
  double all = 0;
  for (const PicturePart& part : report.first.picture) {
    if (part.kind == PicturePart::Kind::kStage) all += part.ratio.value_or(0);
  }
  EXPECT_NEAR(all, 1, 1e-9);
}

// A thread that loads for so long and steps for 10 ms, of process 100, which took the batches.
RunView OneTrainer(double load_cpu_s) {
  RunView run = analysis::RecordOneThread({.load_cpu_s = load_cpu_s, .step_cpu_s = 0.01}, 10, 3);
  analysis::MeasurementRow took;
  took.metric = "rank_steps_count";
  took.process_id = 100;
  took.value = 1000;
  run.measurements.push_back(took);
  return run;
}

// All lines say so, not only one.
TEST(FirstPage, ATrainerThatMostlyValidatesIsToldSo) {
  for (const bool validates : {false, true}) {
    SCOPED_TRACE(validates);
    RunView run = OneTrainer(0.00005);
    const std::string main = "<module> (train.py:40, no loop);main (train.py:30, loop 28)";
    const std::string evaluate = validates ? ";evaluate (train.py:12, loop 11)" : "";
    analysis::Sample("MainThread",
                     main + evaluate + ";Linear.forward (torch/nn/modules/linear.py:125)", 6, &run);
    analysis::Sample("MainThread", main + ";Tensor.backward (torch/_tensor.py:623)", 3, &run);
    const std::string page = Page(MakeReport(run, analysis::MakeStatements(run)), 200);
    for (const char* words : {"the trainer, validating (probability",
                              ": 67 % of what the trainer does is validation, in",
                              "Validate less often, or on less data: that is 67 % of"}) {
      EXPECT_EQ(page.find(words) != std::string::npos, validates) << words << "\n" << page;
    }
    EXPECT_EQ(page.find(analysis::kOnlyTheStep) != std::string::npos, !validates) << page;
  }
}

// What is around the loader is loading, too: no line says that the input keeps up.
TEST(FirstPage, ATrainerThatLoadsByItselfIsInputBound) {
  RunView run = OneTrainer(0.00005);
  const std::string main = "<module> (train.py:40, no loop);main (train.py:30, loop 28";
  analysis::Sample("MainThread", main + ", next);day_by_day (train.py:12, loop 10)", 8, &run);
  analysis::Sample("MainThread", main + ");Tensor.backward (torch/_tensor.py:623)", 2, &run);
  const analysis::Statements statements = analysis::MakeStatements(run);
  EXPECT_NEAR(analysis::LoadingRatio(statements), 0.8, 0.02);
  const std::string page = Page(MakeReport(run, statements), 200);
  for (const char* words :
       {"HIGHLY input-bound", "in loading of its own, and waits", "the trainer, loading (prob",
        "The loader keeps up, and the trainer loads in day_by_day (train.py:12) by itself: move"}) {
    EXPECT_THAT(page, HasSubstr(words));
  }
  // A copy to a device waits for what that computes.
  analysis::AcceleratorUseRow use;
  use.device = "GPU 0";
  use.duration_ns = run.run.duration_ns;
  use.use_ratio = 0.9;
  run.accelerator_use.push_back(use);
  EXPECT_LT(analysis::LoadingRatio(analysis::MakeStatements(run)), 0.1);
}

// A part of what the trainer does stands beside its step, and does not take its place.
TEST(FirstPage, ATrainerThatAlsoSavesIsToldBoth) {
  RunView run = OneTrainer(0.00005);
  const std::string main = "<module> (train.py:40, no loop);main (train.py:30, loop 28)";
  analysis::Sample("MainThread", main + ";Tensor.backward (torch/_tensor.py:623)", 6, &run);
  analysis::Sample("MainThread", main + ";save_checkpoint (train.py:12, no loop)", 3, &run);
  const std::string page = Page(MakeReport(run, analysis::MakeStatements(run)), 200);
  EXPECT_THAT(page, HasSubstr("the trainer (probability 0.95): its step is in main (train.py:30)"));
  EXPECT_THAT(page, HasSubstr("what the trainer does is saving, in save_checkpoint"));
  EXPECT_THAT(page, HasSubstr("Only a cheaper training step is faster, or less"));
}

// Loading in the trainer's own thread that is as tight as its step is no second limit: the line
// says where the step is all the same.
TEST(FirstPage, AStepBesideALittleLoadingInItsThreadIsPlaced) {
  RunView run = OneTrainer(0.0011);
  const std::string main = "<module> (train.py:40, no loop);main (train.py:30, loop 28)";
  analysis::Sample("MainThread", main + ";score (train.py:12, no loop)", 9, &run);
  analysis::Statements statements = analysis::MakeStatements(run);
  ASSERT_TRUE(statements.bottleneck);
  analysis::Bottleneck& bottleneck = *statements.bottleneck;
  ASSERT_GE(bottleneck.findings.size(), 2u);
  bottleneck.verdict = analysis::Verdict::kBalanced;
  const std::string page = Page(MakeReport(run, statements), 200);
  EXPECT_THAT(page, HasSubstr("of its thread's time; the step is in score (train.py:12)"));
}

TEST(FirstPage, APipelineTooLongToDrawKeepsItsEndsAndItsLimit) {
  const std::string page = Page(Make(Recorded(OfManyStages())), 80);
  EXPECT_THAT(page, HasSubstr("fetch"));
  EXPECT_THAT(page, HasSubstr("[decode"));
  EXPECT_THAT(page, HasSubstr(" stages)"));
  EXPECT_THAT(page, HasSubstr("trainer"));
}

TEST(FirstPage, ABusyMachineIsSaidRightAfterTheVerdict) {
  const Report report = Make(Recorded(DecodeLimits(), 1.5));
  EXPECT_TRUE(report.first.conditional);
  const std::vector<std::string> lines = Lines(Page(report, 100));
  const auto verdict = std::find_if(lines.begin(), lines.end(), [](const std::string& line) {
    return line.find("input-bound") != std::string::npos;
  });
  ASSERT_NE(verdict, lines.end());
  ASSERT_NE(verdict + 1, lines.end());
  EXPECT_THAT(*(verdict + 1), HasSubstr("BUSY MACHINE"));
  EXPECT_FALSE(Make(Recorded(DecodeLimits(), 0.1)).first.conditional);
}

TEST(FirstPage, HasColoursOnlyWhereTheyAreAskedFor) {
  const Report report = Make(Recorded(DecodeLimits()));
  EXPECT_THAT(Page(report, 80, true), HasSubstr("\x1b[1;97;41m HIGHLY input-bound "));
  EXPECT_THAT(Page(report, 80, false), Not(HasSubstr("\x1b")));
}

TEST(FirstPage, NeverShowsRulesThatDidNotFireNorReaderMachines) {
  for (const RunView& run : {Recorded(DecodeLimits()), Recorded(Consuming())}) {
    const std::string page = Page(Make(run), 80);
    for (const char* word :
         {"reported elsewhere", "not worth it", "workers like this one", "R1 "}) {
      EXPECT_THAT(page, Not(HasSubstr(word)));
    }
  }
}

// The widest interval that the plan could have: what could be slower is no advice.
TEST(FirstPage, AFixThatMayNotHelpIsNoAdvice) {
  const RunView run = Recorded(DecodeLimits());
  analysis::Statements statements = analysis::MakeStatements(run);
  ASSERT_TRUE(statements.allocation.has_value());
  ASSERT_FALSE(statements.allocation->changes.empty());
  const auto fix = [&] {
    for (const PageLine& line : MakeFirstPage(run, statements).lines) {
      if (line.label == "fix") return line.text;
    }
    return std::string();
  };
  EXPECT_THAT(fix(), testing::StartsWith("decode threads 1 -> "));
  statements.allocation->predicted = 1.04 * statements.allocation->now;
  statements.allocation->gain_interval = {-0.12, 0.18};
  EXPECT_THAT(fix(), testing::StartsWith("No change is sure to help."));
}

TEST(FirstPage, EvidenceIsFoundByName) {
  const Report report = Make(Recorded(DecodeLimits()));
  const Report only = OnlySections(report, {"queues", "operators"});
  ASSERT_EQ(only.sections.size(), 2u);
  EXPECT_EQ(only.sections[0].name, "queues");
  EXPECT_TRUE(only.first.badge.empty());
  try {
    OnlySections(report, {"operator"});
    FAIL() << "a section that does not exist was found";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::kUsage);
    EXPECT_THAT(error.what(), HasSubstr("Did you mean 'operators'"));
  }
}

}  // namespace
}  // namespace headrace::dashboards
