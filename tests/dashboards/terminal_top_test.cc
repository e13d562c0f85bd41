// headrace top without a terminal: the screen as text for fixed runs and sizes, and what holds for
// every screen.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <memory>
#include <nlohmann/json.hpp>
#include <random>
#include <sstream>

#include "analysis/advice/statements.h"
#include "base/error.h"
#include "base/terminal_text.h"
#include "dashboards/render/render.h"
#include "dashboards/render/safe_text.h"
#include "dashboards/report/make_report.h"
#include "dashboards/terminal/layout.h"
#include "dashboards/terminal/live_run.h"
#include "dashboards/terminal/text_columns.h"
#include "dashboards/terminal/time_course.h"
#include "dashboards/terminal/top_json.h"
#include "dashboards/terminal/top_model.h"
#include "dashboards/terminal/top_table.h"
#include "dashboards/terminal/top_verdict.h"
#include "tests/analysis/outside_run.h"
#include "tests/analysis/synthetic_run.h"
#include "tests/dashboards/golden.h"
#include "tests/dashboards/top_runs.h"
#include "tests/seed.h"

namespace headrace::dashboards {
namespace {

using analysis::RunView;
using analysis::SimulatedPipeline;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

// ---------------------------------------------------------------- goldens

TEST(Top, AsPeopleSeeIt) {
  const TopModel model = ModelOf(RecordedForTop(DecodeLimits()));
  ExpectGolden("top_80x24.txt", ScreenText(model, 80, 24));
  ExpectGolden("top_60x20.txt", ScreenText(model, 60, 20));
  ExpectGolden("top_120x40.txt", ScreenText(model, 120, 40));
  ExpectGolden("top_80x24_ascii.txt", ScreenText(model, 80, 24, true));
  ExpectGolden("top_40x10.txt", ScreenText(model, 40, 10));
}

TEST(Top, AsPeopleSeeItInColour) {
  const TopModel model = ModelOf(RecordedForTop(DecodeLimits()));
  ExpectGolden("top_80x24_colour.txt", TextOf(LayOutTop(model, {}, {80, 24, false, false}), true));
}

TEST(Top, AFinishedRunShowsItsSteadyPart) {
  const RunView run = RecordedForTop(DecodeLimits());
  const TopModel model = ModelOf(run, "complete");
  EXPECT_TRUE(model.steady);
  ExpectGolden("top_finished_100.txt", TextOf(LayOutTop(model, {}, {100, 0, false, true}), false));
  // The share that the trainer waits is the report's.
  const analysis::Statements statements = analysis::MakeStatements(run);
  ASSERT_TRUE(statements.model);
  EXPECT_NEAR(*model.wait_ratio, statements.model->stall_ratio(), 1e-9);
  for (const TopStage& stage : model.stages) {
    for (const analysis::StageModel& judged : statements.model->stages()) {
      if (judged.name == stage.name) {
        EXPECT_NEAR(*stage.shares.busy, judged.busy_ratio, 1e-9) << stage.name;
      }
    }
  }
}

TEST(Top, OperatorsOfAStage) {
  const TopModel model = ModelOf(RecordedForTop(DecodeLimits()));
  TopState state;
  state.operators = state.selecting = true;
  state.selected = 1;
  ExpectGolden("top_operators_120x40.txt", ScreenText(model, 120, 40, false, state));
  TopState help;
  help.help = true;
  ExpectGolden("top_help_80x30.txt", ScreenText(model, 80, 30, false, help));
}

TEST(Top, SeenFromOutside) {
  analysis::OutsideRun run;
  run.Process(1, 0, "python").Process(2, 1, "python");
  run.OnCpu(2, "python (main)", 0.97).Blocked(2, "python (main)", "pipe", 0.02);
  run.OnCpu(1, "python (main)", 0.05);
  run.Waits(1, "python (main)", "pipe", 0.9, "2/python (main)");
  const TopModel model = ModelOf(run.view);
  ASSERT_TRUE(model.page);
  EXPECT_FALSE(model.units.empty());
  const std::string text = ScreenText(model, 100, 30);
  EXPECT_THAT(text, HasSubstr("from outside"));
  EXPECT_THAT(text, HasSubstr("THREADS"));
  EXPECT_THAT(text, HasSubstr("python's main thread  consumer"));
  EXPECT_THAT(text, Not(HasSubstr("trainer"))) << "nothing shows that it trains";
  const TopModel torch = ModelOf(analysis::Loader(2, 0.15, 0.8, 0.95, 0, 0.03).view);
  EXPECT_THAT(ScreenText(torch, 100, 30),
              AllOf(HasSubstr("python's main thread        trainer"), Not(HasSubstr("consumer"))));
}

TEST(Top, FewOfManyIdleKindsOfThreads) {
  TopModel model = ModelOf(RecordedForTop(DecodeLimits()));
  model.stages.clear();
  for (int i = 0; i < 10; ++i) {
    model.units.push_back({"idle " + std::to_string(i), "idle", 0.1, 0, "input", 0.9});
  }
  model.units.push_back({"4 processes worker", "producer", 0.9, 0.1, "", 0});
  const std::string text = TextOf(UnitTable(model, 80, true), false);
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 6);
  EXPECT_LT(text.find("worker"), text.find("idle 0"));
  EXPECT_THAT(text, HasSubstr("(7 more kinds of idle threads)"));
}

// ---------------------------------------------------------------- before there is enough

TEST(Top, WithoutAVerdictItSaysWhatItWaitsFor) {
  LiveFigures live;
  live.run.run.name = "young";
  live.run.run.state = "recording";
  live.run.run.pid = 7;
  TopModel model = MakeTopModel(live, nullptr, 10 * kSecondNs);
  model.waiting = "looking for what limits it ...";
  const std::string text = ScreenText(model, 80, 24);
  EXPECT_THAT(text, HasSubstr("no figures yet"));
  EXPECT_THAT(text, HasSubstr("waiting for its first figures"));
  EXPECT_THAT(text, HasSubstr("looking for what limits it ..."));
  EXPECT_THAT(text, Not(HasSubstr("0 rows/s")));
  EXPECT_THAT(text, Not(HasSubstr("0.0 %")));
  // A run too short for a verdict says so in the report's own words.
  const RunView short_run = RecordedForTop(DecodeLimits(), 0.1);
  EXPECT_THAT(ScreenText(ModelOf(short_run), 80, 24), HasSubstr("NO VERDICT"));
}

TEST(Top, UnknownFiguresAreNull) {
  LiveFigures live;
  live.run.run.name = "young";
  live.run.run.state = "recording";
  const auto json = nlohmann::json::parse(TopJson(MakeTopModel(live, nullptr, kSecondNs)));
  EXPECT_EQ(json["schema"], "headrace.top/1");
  for (const char* key : {"window", "step_seconds", "stall_ratio", "rows_per_second",
                          "wanted_rows_per_second", "cores_used", "rss_bytes", "trainer",
                          "recording_machine_ratio", "events_lost_count", "verdict"}) {
    EXPECT_TRUE(json[key].is_null()) << key << " is " << json[key];
  }
}

TEST(Top, JsonHasTheSameFigures) {
  const TopModel model = ModelOf(RecordedForTop(DecodeLimits()));
  const auto json = nlohmann::json::parse(TopJson(model));
  ASSERT_EQ(json["stages"].size(), 3u);
  EXPECT_EQ(json["stages"][1]["stage"], "decode");
  EXPECT_EQ(json["stages"][1]["limit"], true);
  EXPECT_EQ(json["stages"][0]["limit"], false);
  EXPECT_EQ(json["stages"][1]["operators"].size(), 2u);
  EXPECT_NEAR(json["stages"][1]["busy_ratio"].get<double>(), *model.stages[1].shares.busy, 1e-12);
  EXPECT_EQ(json["verdict"]["badge"], model.page->badge);
  EXPECT_GT(json["trainer"]["allows_batches_per_second"].get<double>(), 100);
  // The parts of a stage's time are its busy time.
  for (const auto& stage : json["stages"]) {
    EXPECT_NEAR(stage["busy_ratio"].get<double>(),
                stage["on_cpu_ratio"].get<double>() + stage["blocked_ratio"].get<double>() +
                    stage["runnable_ratio"].get<double>(),
                0.02)
        << stage["stage"];
  }
}

// ---------------------------------------------------------------- the report's own words

std::vector<std::string> WordsIn(const std::string& text) {
  std::istringstream in(text);
  return {std::istream_iterator<std::string>(in), {}};
}

TEST(Top, TheSentencesAreThoseOfTheReport) {
  SimulatedPipeline waits = DecodeLimits(), alone = DecodeLimits();
  waits.consumer_s = 0.02;
  alone.consumer_s = 0;
  for (const auto& [name, pipeline] : {std::pair("decode", DecodeLimits()),
                                       std::pair("trainer", waits), std::pair("alone", alone)}) {
    RunView run = RecordedForTop(pipeline);
    const TopVerdict verdict = MakeTopVerdict(run);
    const Report report = SafeToPrint(MakeReport(run, analysis::MakeStatements(run)));
    EXPECT_EQ(verdict.page.badge, report.first.badge) << name;
    EXPECT_EQ(verdict.page.verdict, report.first.verdict) << name;
    EXPECT_EQ(verdict.page.conditions, report.first.conditions) << name;
    ASSERT_EQ(verdict.page.lines.size(), report.first.lines.size()) << name;
    for (size_t i = 0; i < report.first.lines.size(); ++i) {
      EXPECT_EQ(verdict.page.lines[i].text, report.first.lines[i].text) << name;
    }
    // All words of every sentence are on a screen with room, in order.
    const TopModel model = MakeTopModel(Live(run, "complete"), &verdict, kSecondNs);
    const std::vector<std::string> shown =
        WordsIn(TextOf(LayOutTop(model, {}, {100, 0, false, true}), false));
    for (const PageLine& line : report.first.lines) {
      if (line.label == "more") continue;
      const std::vector<std::string> words = WordsIn(line.text);
      EXPECT_NE(std::search(shown.begin(), shown.end(), words.begin(), words.end()), shown.end())
          << name << ": " << line.text;
    }
  }
}

// ---------------------------------------------------------------- what holds for every screen

// No cell beyond the width, no line beyond the height, nothing that a terminal obeys.
void ExpectFits(const std::vector<StyledLine>& lines, size_t width, size_t height,
                const std::string& what) {
  EXPECT_EQ(lines.size(), height) << what;
  for (const StyledLine& line : lines) {
    const std::string text = line.Text();
    EXPECT_LE(TextColumns(text), width) << what << ": " << text;
    for (size_t at = 0; at < text.size();) {
      const CodePoint point = CodePointAt(text, at);
      ASSERT_GT(point.length, 0u) << what << ": not UTF-8";
      EXPECT_FALSE(IsObeyed(point.value)) << what << ": " << text;
      at += point.length;
    }
  }
}

TEST(Top, EverySizeFits) {
  const TopModel few = ModelOf(RecordedForTop(DecodeLimits()));
  const TopModel many = ModelOf(RecordedForTop(WithManyStages(30), 4));
  for (const TopModel* model : {&few, &many}) {
    for (const size_t width : {20, 40, 59, 60, 61, 79, 80, 100, 101, 119, 120, 160, 250}) {
      for (const size_t height : {4, 10, 19, 20, 24, 30, 40, 70}) {
        for (const bool ascii : {false, true}) {
          TopState state;
          state.operators = height % 3 == 0;
          state.help = height % 7 == 0;
          ExpectFits(LayOutTop(*model, state, {width, height, ascii, false}), width, height,
                     std::to_string(width) + "x" + std::to_string(height));
        }
      }
    }
  }
}

TEST(Top, TheLimitIsShownHoweverManyStagesThereAre) {
  const TopModel many = ModelOf(RecordedForTop(WithManyStages(30), 4));
  const std::string text = ScreenText(many, 80, 24);
  EXPECT_THAT(text, HasSubstr("▶decode"));
  EXPECT_THAT(text, HasSubstr("more lines"));
}

// Names and texts as a stranger might choose them.
std::string HostileName(std::mt19937_64* random) {
  static const std::vector<std::string> parts = {"a",
                                                 "decode",
                                                 "\x1b[2J",
                                                 "\n",
                                                 "\t",
                                                 "取得",
                                                 "\xff",
                                                 "é",
                                                 "e\u0301",
                                                 "\u202e",
                                                 "\u200b",
                                                 "%s",
                                                 "{}",
                                                 "\r",
                                                 "\U0001F600",
                                                 "0",
                                                 " ",
                                                 "\u009b31m",
                                                 "very_long_name_of_something",
                                                 "\x7f"};
  std::string name;
  const size_t count = (*random)() % 12;
  for (size_t i = 0; i < count; ++i) name += parts[(*random)() % parts.size()];
  return name;
}

TEST(Top, HostileNamesStayInTheirPlace) {
  std::mt19937_64 random(TestSeed());
  for (int round = 0; round < 40; ++round) {
    RunView run = RecordedForTop(DecodeLimits(), 3);
    run.run.name = HostileName(&random);
    run.run.program = HostileName(&random);
    for (size_t s = 0; s < run.stages.size(); ++s) {
      // Stages are told apart by name.
      const std::string name = HostileName(&random) + std::to_string(s);
      for (analysis::OperatorRow& op : run.operators) {
        if (op.stage == run.stages[s].name) op.stage = name;
      }
      for (analysis::QueueRow& queue : run.queues) {
        if (queue.producer_stage == run.stages[s].name) queue.producer_stage = name;
        if (queue.consumer_stage == run.stages[s].name) queue.consumer_stage = name;
      }
      run.stages[s].name = name;
    }
    for (analysis::OperatorRow& op : run.operators) op.name = HostileName(&random) + op.name;
    for (analysis::QueueRow& queue : run.queues) queue.name = HostileName(&random);
    TopModel model = ModelOf(run);
    model.notes = {Printable(HostileName(&random))};
    TopState state;
    state.filter = random() % 4 == 0 ? Printable(HostileName(&random), 20) : "";
    state.typing = random() % 2 == 0;
    state.selecting = random() % 2 == 0;
    state.operators = random() % 3 == 0;
    state.sort = static_cast<TopSort>(random() % 4);
    const size_t width = 20 + random() % 140, height = 4 + random() % 50;
    ExpectFits(LayOutTop(model, state, {width, height, random() % 2 == 0, false}), width, height,
               "round " + std::to_string(round) + ", " + std::to_string(width) + "x" +
                   std::to_string(height));
  }
}

TEST(Top, AnyNumberFits) {
  std::mt19937_64 random(TestSeed());
  const double values[] = {0, 1e-12, 0.004, 1, 999.5, 99999, 1e9, 1e18, 1e300, -1, NAN, INFINITY};
  const auto any = [&]() -> std::optional<double> {
    const size_t i = random() % (std::size(values) + 1);
    return i < std::size(values) ? std::optional<double>(values[i]) : std::nullopt;
  };
  TopModel model = ModelOf(RecordedForTop(DecodeLimits()));
  for (int round = 0; round < 200; ++round) {
    model.step_ns = any();
    model.wait_ratio = any();
    model.rows_per_s = any();
    model.wanted_rows_per_s = any();
    model.cores_used = any();
    model.rss_bytes = any();
    model.lost_count = any();
    model.recorded_ns = static_cast<int64_t>(random() >> 1);
    for (TopStage& stage : model.stages) {
      stage.threads_count = any();
      stage.shares = {any(), any(), any(), any(), any(), any()};
      stage.allows = any();
      if (stage.queue) *stage.queue = {"q", 4, any(), any(), any()};
      for (auto& value : stage.busy) value = any();
    }
    const size_t width = 40 + random() % 120;
    ExpectFits(LayOutTop(model, {}, {width, 30, false, false}), width, 30,
               "round " + std::to_string(round));
    EXPECT_FALSE(TopJson(model).empty());
  }
}

}  // namespace
}  // namespace headrace::dashboards
