// What pages say of accelerators beside the trainer's waits: the same sentence for people and
// programs, and no limit in the loading where busy devices speak against it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <sstream>

#include "analysis/model/bottleneck.h"
#include "analysis/thresholds.h"
#include "dashboards/render/first_page_text.h"
#include "dashboards/render/render.h"
#include "dashboards/report/make_report.h"
#include "tests/analysis/accelerators.h"
#include "tests/analysis/outside_run.h"
#include "tests/analysis/synthetic_run.h"
#include "tests/dashboards/example_pipeline.h"
#include "tests/dashboards/golden.h"
#include "tests/dashboards/page_lines.h"

namespace headrace::dashboards {
namespace {

using analysis::AddDevice;
using analysis::AddUser;
using analysis::RunView;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

Report ReportOf(const RunView& run) { return MakeReport(run, analysis::MakeStatements(run)); }

nlohmann::json JsonOf(const RunView& run) {
  return nlohmann::json::parse(RenderJson(ReportOf(run), run));
}

RunView InputBound() { return analysis::Loader(2, 0.15, 0.8, 0.95, 0, 0.03).view; }
RunView TrainerBound() { return analysis::Loader(4, 0.97, 0.01, 0.1, 0, 0.88).view; }

RunView Accounted(double trainer_s) {
  analysis::SimulatedPipeline pipeline = DecodeLimits();
  pipeline.consumer_s = trainer_s;
  return analysis::Record(pipeline, 20, 3);
}

TEST(AcceleratorPage, SaysHowMuchOfTheIdleTimeTheTrainerWaits) {
  RunView run = InputBound();
  AddDevice(&run, "gpu0", 0.29);
  ExpectGolden("outside_gpu.txt", RenderText(ReportOf(run), {80, true, false, true}));
  const Report report = ReportOf(run);
  EXPECT_THAT(LineOf(report.first, "gpu"),
              AllOf(StartsWith("GPU 0 is idle 7"), HasSubstr("; the trainer waits for data in ")));
  EXPECT_THAT(LineOf(report.first, "unseen"), Not(HasSubstr("accelerator")));
  EXPECT_TRUE(report.decided);
  const nlohmann::json json = JsonOf(run);
  EXPECT_EQ(json["verdict"]["accelerator"]["text"].get<std::string>() + ".",
            LineOf(report.first, "gpu"));
  EXPECT_EQ(json["verdict"]["accelerator"]["story"], "plain");
  EXPECT_NEAR(json["verdict"]["accelerator"]["idle_ratio"], 0.71, 0.01);
  EXPECT_LE(json["verdict"]["accelerator"]["idle_waiting_least_ratio"],
            json["verdict"]["accelerator"]["idle_waiting_most_ratio"]);
  EXPECT_NEAR(json["accelerators"][0]["use_ratio"], 0.29, 1e-9);
  EXPECT_NEAR(json["accelerators"][0]["wait_ratio"], 0.82, 0.03);
}

TEST(AcceleratorPage, WithoutADeviceThePageIsAsItWas) {
  const Report report = ReportOf(InputBound());
  EXPECT_EQ(LineOf(report.first, "gpu"), "");
  EXPECT_THAT(LineOf(report.first, "unseen"),
              HasSubstr("whether an accelerator computes while the trainer waits for it"));
  EXPECT_FALSE(JsonOf(InputBound())["verdict"].contains("accelerator"));
  RunView short_use = InputBound();  // the driver told nothing while the trainer took batches
  AddDevice(&short_use, "gpu0", 0.3);
  short_use.accelerator_use.clear();
  EXPECT_EQ(LineOf(ReportOf(short_use).first, "gpu"), "");
  EXPECT_THAT(LineOf(ReportOf(short_use).first, "unseen"), HasSubstr("accelerator"));
}

TEST(AcceleratorPage, ABusyDeviceSpeaksAgainstALimitInTheLoading) {
  RunView run = InputBound();
  ASSERT_TRUE(ReportOf(run).decided);
  AddDevice(&run, "gpu0", 0.96);
  const Report report = ReportOf(run);
  EXPECT_FALSE(report.decided);
  EXPECT_THAT(LineOf(report.first, "limit"),
              StartsWith("undecided: the workers (probability 0.50)"));
  EXPECT_THAT(
      LineOf(report.first, "gpu"),
      AllOf(StartsWith("GPU 0 is busy 9"), HasSubstr("The two disagree"),
            HasSubstr("Faster loading gains 4 % at most if no other program uses the GPU")));
  EXPECT_THAT(LineOf(report.first, "check"), HasSubstr("torch.cuda.synchronize()"));
  EXPECT_EQ(LineOf(report.first, "fix"), "");
  // The workers use what others keep busy: nothing follows.
  AddUser(&run, "gpu0", 100);
  AddUser(&run, "gpu0", 0, "others");
  EXPECT_TRUE(ReportOf(run).decided);
  EXPECT_THAT(LineOf(ReportOf(run).first, "gpu"), HasSubstr("Other programs use it, too"));
}

TEST(AcceleratorPage, TheDeviceBoundsWhatFasterLoadingGains) {
  RunView run = InputBound();
  EXPECT_THAT(LineOf(ReportOf(run).first, "next"), HasSubstr("at some 5.5 times"));
  AddDevice(&run, "gpu0", 0.5, 0);
  EXPECT_THAT(LineOf(ReportOf(run).first, "next"), HasSubstr("at some 5.5 times"))
      << "it may be others' work";
  AddUser(&run, "gpu0", 100);
  EXPECT_THAT(LineOf(ReportOf(run).first, "next"), HasSubstr("at some 2.0 times"));
  EXPECT_THAT(LineOf(ReportOf(run).first, "gpu"), HasSubstr("Faster loading gains 100 % at most"));
}

TEST(AcceleratorPage, AnIdleDeviceBesideATrainerThatNeverWaitsIsHeldUpByTheStep) {
  RunView run = TrainerBound();
  AddDevice(&run, "gpu0", 0.4);
  const Report report = ReportOf(run);
  EXPECT_TRUE(report.decided) << "the trainer is the limit all the same";
  EXPECT_THAT(LineOf(report.first, "gpu"),
              AllOf(StartsWith("GPU 0 is idle 6"), HasSubstr("although the trainer hardly waits"),
                    HasSubstr("Probably not the GPU but work of the step on the CPU")));
}

TEST(AcceleratorPage, SeveralDevicesAreOneSentence) {
  RunView run = InputBound();
  for (const auto& [device, busy] :
       {std::pair{"gpu0", 0.2}, {"gpu1", 0.3}, {"gpu2", 0.4}, {"gpu3", 0.0}}) {
    AddDevice(&run, device, busy, 0);
  }
  EXPECT_THAT(
      LineOf(ReportOf(run).first, "gpu"),
      StartsWith("3 GPUs are idle 70.0 % of the time on average (GPU 2 60.0 % to GPU 0 80.0 "
                 "%); the trainer waits for data in "));
  EXPECT_EQ(JsonOf(run)["accelerators"].size(), 4u) << "the table has the unused one as well";
  RunView unused = InputBound();
  AddDevice(&unused, "gpu0", 0);
  EXPECT_EQ(LineOf(ReportOf(unused).first, "gpu"), "GPU 0 is not used: hardly any kernel ran.");
}

TEST(AcceleratorPage, RunsWithAccountsAreToldTheSame) {
  RunView run = Accounted(0.001);
  ASSERT_TRUE(ReportOf(run).decided);
  const std::string fix = LineOf(ReportOf(run).first, "fix");
  AddDevice(&run, "gpu0", 0.1);
  EXPECT_TRUE(ReportOf(run).decided);
  EXPECT_EQ(LineOf(ReportOf(run).first, "fix"), fix);
  EXPECT_THAT(LineOf(ReportOf(run).first, "gpu"), StartsWith("GPU 0 is idle "));
  RunView busy = Accounted(0.001);
  AddDevice(&busy, "gpu0", 0.97);
  const analysis::Statements statements = analysis::MakeStatements(busy);
  EXPECT_EQ(statements.bottleneck->verdict, analysis::Verdict::kUndecided);
  EXPECT_LE(statements.bottleneck->findings[0].probability, analysis::kDeviceDisagrees);
  EXPECT_EQ(LineOf(ReportOf(busy).first, "fix"), "");
  EXPECT_THAT(LineOf(ReportOf(busy).first, "check"), HasSubstr("torch.cuda.synchronize()"));
  // Where the run is known to have it for itself, nothing but the device can bring more.
  AddUser(&busy, "gpu0", 100);
  EXPECT_THAT(LineOf(ReportOf(busy).first, "limit"), StartsWith("the GPU"));
  EXPECT_THAT(LineOf(ReportOf(busy).first, "fix"),
              StartsWith("Nothing in the pipeline: the GPU is busy"));
  AddUser(&busy, "gpu0", 0, "others");
  EXPECT_THAT(LineOf(ReportOf(busy).first, "limit"), Not(StartsWith("the GPU")));
  RunView trainer = Accounted(0.02);
  AddDevice(&trainer, "gpu0", 0.97);
  EXPECT_TRUE(ReportOf(trainer).decided)
      << "a busy device beside a busy trainer is as it should be";
}

TEST(AcceleratorPage, FitsTheFirstPage) {
  RunView run = InputBound();
  for (int i = 0; i < 8; ++i) AddDevice(&run, "gpu" + std::to_string(i), 0.1 * i + 0.05);
  for (const int width : {60, 80, 120}) {
    std::istringstream text(RenderText(ReportOf(run), {width, true, false, true}));
    size_t lines = 0;
    for (std::string line; std::getline(text, line); ++lines) {
      if (line.find("headrace ") != std::string::npos) continue;
      EXPECT_LE(line.size(), static_cast<size_t>(width)) << line;
    }
    EXPECT_LE(lines, kFirstPageLines);
  }
}

}  // namespace
}  // namespace headrace::dashboards
