// headrace top without a terminal: the screen as text for fixed runs and sizes, what holds for
// every screen, keys, and the reading of a store while it is written.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <filesystem>
#include <iterator>
#include <memory>
#include <nlohmann/json.hpp>
#include <random>
#include <sstream>
#include <thread>

#include "analysis/advice/statements.h"
#include "analysis/run/read_run.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/terminal_text.h"
#include "collectors/store/store.h"
#include "dashboards/render/render.h"
#include "dashboards/render/safe_text.h"
#include "dashboards/report/make_report.h"
#include "dashboards/terminal/bars.h"
#include "dashboards/terminal/keys.h"
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
#include "tests/seed.h"

namespace headrace::dashboards {
namespace {

using analysis::RunView;
using analysis::SimulatedPipeline;
using testing::HasSubstr;
using testing::Not;

constexpr int64_t kSecondNs = 1'000'000'000;

// fetch, decode and batch with decode on one thread.
SimulatedPipeline DecodeLimits() {
  SimulatedPipeline pipeline;
  pipeline.cores = 2;
  pipeline.stages = {
      {"fetch", 2, 4, {{"fetch", 0.0002, 0.003, 0, 0, 0.2, -1}}},
      {"decode",
       1,
       4,
       {{"decompress", 0.002, 0.002, 0, 0, 0.1, -1}, {"decode", 0.001, 0.003, 0, 0, 0.1, -1}}},
      {"batch", 1, 4, {{"batch", 0.0005, 0, 0, 0, 0.1, -1}}}};
  pipeline.consumer_s = 0.005;
  return pipeline;
}

SimulatedPipeline WithManyStages(int stages) {
  SimulatedPipeline pipeline = DecodeLimits();
  pipeline.cores = 64;
  const auto batch = pipeline.stages.back();
  for (int i = 0; i < stages; ++i) {
    pipeline.stages.push_back(batch);
    pipeline.stages.back().name = "a_transform_with_a_long_name_" + std::to_string(i);
  }
  return pipeline;
}

RunView RecordedForTop(const SimulatedPipeline& pipeline, double seconds = 8) {
  RunView run = analysis::Record(pipeline, seconds, 3);
  run.run.pipeline_path = "p.toml";
  run.run.settings_text = "";
  run.run.pid = 26603;
  const auto split = [](analysis::OperatorCounters* op) {
    op->runnable_ns = 0;
    op->blocked_ns = op->busy_ns - op->on_cpu_ns.value_or(0);
  };
  for (analysis::OperatorRow& op : run.operators) split(&op);
  for (analysis::WindowRow& window : run.windows) {
    for (analysis::OperatorCounters& op : window.operators) split(&op);
  }
  double own = 0;
  for (const analysis::StageRow& stage : run.stages) {
    own += static_cast<double>(stage.on_cpu_ns.value_or(0));
  }
  const double busy = own / static_cast<double>(run.run.duration_ns) + 0.1;
  run.hosts = {{"collector_cpu_ns", "ns", "counter", {}, {}, {}, 48e6},
               {"host_cores", "cores", "counter", {}, {}, {}, 2},
               {"host_busy_cores", "cores", "counter", busy, busy, busy, busy}};
  return run;
}

// The run as a live view has read it, with figures of the machine.
LiveFigures Live(const RunView& run, const char* state = "recording") {
  LiveFigures live;
  live.run = run;
  live.run.run.state = state;
  live.rss_bytes = 94371840;
  for (const analysis::WindowRow& window : run.windows) {
    const auto ns = static_cast<double>(window.duration_ns);
    const auto add = [&](MachineFigure course, double value) {
      live.courses[course].push_back({window.start_ns, window.duration_ns, value});
    };
    add(MachineFigure::kProcessCpu, 0.62 * ns);
    add(MachineFigure::kCpuPressure, window.start_ns < 4 * kSecondNs ? 0.1 * ns : 0.6 * ns);
    if (window.start_ns % (2 * kSecondNs) == 0) add(MachineFigure::kDeviceRead, 1e6);
  }
  return live;
}

TopModel ModelOf(const RunView& run, const char* state = "recording") {
  RunView judged = run;
  judged.run.state = state;
  const TopVerdict verdict = MakeTopVerdict(judged);
  return MakeTopModel(Live(run, state), &verdict, 10 * kSecondNs);
}

std::string ScreenText(const TopModel& model, size_t width, size_t height, bool ascii = false,
                       const TopState& state = {}) {
  return TextOf(LayOutTop(model, state, {width, height, ascii, false}), false);
}

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
  EXPECT_THAT(text, HasSubstr("trainer"));
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

// ---------------------------------------------------------------- parts

TEST(TopParts, Bars) {
  struct Case {
    std::optional<double> ratio;
    const char *blocks, *ascii;
  };
  for (const Case& c :
       {Case{0.0, "░░░░", "...."}, Case{1.0, "████", "####"}, Case{0.5, "██░░", "##.."},
        Case{0.001, "▏░░░", "#..."}, Case{7.0, "████", "####"}, Case{-1.0, "░░░░", "...."},
        Case{std::nullopt, "    ", "    "}, Case{NAN, "    ", "    "}}) {
    EXPECT_EQ(Bar(c.ratio, 4, false), c.blocks);
    EXPECT_EQ(Bar(c.ratio, 4, true), c.ascii);
  }
}

TEST(TopParts, SparksKeepGaps) {
  EXPECT_EQ(Spark({0.0, 0.5, 1.0}, 5, 1, true), "  _=#");
  EXPECT_EQ(Spark({1.0, std::nullopt, 1.0}, 3, 1, true), "# #");
  EXPECT_EQ(Spark({1.0, 1.0, std::nullopt, std::nullopt, 0.0, 0.0}, 3, 1, true), "# _");
  EXPECT_EQ(Spark({0.0, 2.0}, 2, 0, false), "▁█");  // the largest is full
  EXPECT_EQ(Spark({}, 3, 1, false), "   ");
}

TEST(TopParts, CoursesSpreadIntervalsOfAnyLength) {
  CourseMaker course(0, 120);
  course.Add(60, 30, 15, 30);      // half of it, in values 60 to 89
  course.Add(90, 1, 1, 1);         // all of it
  course.Add(100, 0, 1, 1);        // no time
  course.Add(119, 1000, 0, 1000);  // reaches beyond the end
  const TimeCourse values = course.Finish();
  ASSERT_EQ(values.size(), 60u) << "before the first known value there is nothing";
  EXPECT_NEAR(*values[0], 0.5, 1e-9);
  EXPECT_NEAR(*values[29], 0.5, 1e-9);
  EXPECT_NEAR(*values[30], 1, 1e-9);
  EXPECT_FALSE(values[31]) << "a gap is a gap";
  EXPECT_NEAR(*LastOf(values), 0, 1e-9);
  EXPECT_TRUE(CourseMaker(5, 5).Finish().empty());
}

TEST(TopParts, PercentCells) {
  EXPECT_EQ(PercentCell(0.0), "  0 %");
  EXPECT_EQ(PercentCell(0.004), " <1 %");
  EXPECT_EQ(PercentCell(0.97), " 97 %");
  EXPECT_EQ(PercentCell(1.2), "100 %");
  EXPECT_EQ(PercentCell(std::nullopt), "    -");
}

TEST(TopParts, NamesAreCutInTheMiddleAndNumbersNever) {
  EXPECT_EQ(FitName("decode", 8), "decode  ");
  EXPECT_EQ(FitName("storage_latency_of_all", 12), "storage..all");
  EXPECT_EQ(TextColumns(FitName("取得取得取得取得", 9)), 9u);
  EXPECT_EQ(FitName("abcdef", 3), "...");
  EXPECT_EQ(RightAlign("123456789", 4), "123456789");
  EXPECT_EQ(TextColumns("e\u0301"), 1u);
  EXPECT_EQ(InAscii("▶取é a"), "???? a");
  EXPECT_THAT(WrapColumns("one two three", 8), testing::ElementsAre("one two", "three"));
  EXPECT_THAT(WrapColumns("abcdefghij kl", 4), testing::ElementsAre("abcd", "efgh", "ij", "kl"));
}

TEST(TopKeys, DoWhatTheHelpSays) {
  using Kind = Key::Kind;
  const auto press = [](const std::vector<Key>& keys, TopState state = {}) {
    for (const Key& key : keys) Press(key, 3, &state);
    return state;
  };
  const auto c = [](const char* text) { return Key{Kind::kCharacter, text}; };
  EXPECT_TRUE(press({c("q")}).quit);
  EXPECT_TRUE(press({c("p")}).frozen);
  EXPECT_FALSE(press({c("p"), c("p")}).frozen);
  EXPECT_EQ(press({c("s")}).sort, TopSort::kBusy);
  EXPECT_EQ(press({c("s"), c("s"), c("s"), c("s")}).sort, TopSort::kPipeline);
  EXPECT_EQ(press({c("/"), c("d"), c("q"), {Kind::kEnter}}).filter, "dq");
  EXPECT_FALSE(press({c("/"), c("q")}).quit);
  EXPECT_EQ(press({c("/"), c("é"), {Kind::kBackspace}}).filter, "");
  EXPECT_EQ(press({c("/"), c("d"), {Kind::kEscape}}).filter, "");
  EXPECT_EQ(press({c("/"), c("\x1b")}).filter, "");
  EXPECT_EQ(press({c("+")}).interval_ns, 2 * kSecondNs);
  EXPECT_EQ(press({c("-"), c("-"), c("-"), c("-")}).interval_ns, kLeastIntervalNs);
  EXPECT_TRUE(press({c("?")}).help);
  EXPECT_FALSE(press({c("?"), {Kind::kEscape}}).help);
  // The first press shows where the selection is; it stays within the stages.
  EXPECT_EQ(press({{Kind::kDown}}).selected, 0u);
  EXPECT_EQ(press({{Kind::kDown}, {Kind::kDown}}).selected, 1u);
  EXPECT_EQ(press({{Kind::kEnd}, {Kind::kDown}, {Kind::kDown}}).selected, 2u);
  EXPECT_EQ(press({{Kind::kUp}, {Kind::kUp}}).selected, 0u);
  EXPECT_TRUE(press({{Kind::kEnter}}).operators);
  EXPECT_FALSE(press({{Kind::kEnter}, {Kind::kEnter}}).operators);
  EXPECT_TRUE(press({{Kind::kClosed}}).quit);
  EXPECT_FALSE(press({{Kind::kResize}, c("x"), c("\x01")}).quit);
}

TEST(TopKeys, ACommandThatRunsIsAskedAbout) {
  using Kind = Key::Kind;
  const auto press = [](const std::vector<const char*>& keys) {
    TopState state;
    state.asks = true;
    for (const char* key : keys) Press({Kind::kCharacter, key}, 1, &state);
    return state;
  };
  EXPECT_FALSE(press({"q"}).quit);
  EXPECT_TRUE(press({"q", "e"}).quit);
  EXPECT_TRUE(press({"q", "e"}).end_command);
  EXPECT_TRUE(press({"q", "l"}).quit);
  EXPECT_FALSE(press({"q", "l"}).end_command);
  EXPECT_FALSE(press({"q", "x"}).quit);
  EXPECT_FALSE(press({"q", "x"}).asking);
}

TEST(TopKeys, FilterAndSort) {
  const TopModel model = ModelOf(RecordedForTop(DecodeLimits()));
  TopState state;
  EXPECT_THAT(ShownStages(model, state), testing::ElementsAre(0, 1, 2));
  state.filter = "DECOMP";  // an operator of decode
  EXPECT_THAT(ShownStages(model, state), testing::ElementsAre(1));
  state.filter = "nothing";
  EXPECT_TRUE(ShownStages(model, state).empty());
  EXPECT_THAT(ScreenText(model, 80, 24, false, state), HasSubstr("no stage or operator"));
  state.filter = "";
  state.sort = TopSort::kAllows;
  EXPECT_EQ(ShownStages(model, state)[0], 1u);
  state.sort = TopSort::kName;
  EXPECT_THAT(ShownStages(model, state), testing::ElementsAre(2, 1, 0));
}

// ---------------------------------------------------------------- the thread of verdicts

TEST(TopVerdicts, TheLastOneStaysWhileTheNextFails) {
  std::atomic<int> made{0};
  VerdictMaker maker(
      [&] {
        if (++made > 1) throw Error(ExitCode::kBadData, "the store is\x1b[2J gone");
        TopVerdict verdict;
        verdict.title = "first";
        return verdict;
      },
      0);
  EXPECT_EQ(maker.latest(), nullptr);
  maker.Want();
  while (maker.latest() == nullptr) std::this_thread::yield();
  maker.Want();
  while (maker.failure().empty()) std::this_thread::yield();
  EXPECT_EQ(maker.latest()->title, "first");
  EXPECT_THAT(maker.failure(), Not(HasSubstr("\x1b")));
  EXPECT_TRUE(maker.Finish(60 * kSecondNs));
}

TEST(TopVerdicts, TheyAreSpaced) {
  std::atomic<int> made{0};
  VerdictMaker maker(
      [&] {
        ++made;
        return TopVerdict{};
      },
      3600 * kSecondNs);
  maker.Want();
  while (made == 0) std::this_thread::yield();
  for (int i = 0; i < 100; ++i) maker.Want();
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  EXPECT_EQ(made, 1);
}

TEST(TopVerdicts, LeavingDoesNotWaitForALongOne) {
  auto release = std::make_shared<std::atomic<bool>>(false);
  auto begun = std::make_shared<std::atomic<bool>>(false);
  auto ended = std::make_shared<std::atomic<bool>>(false);
  {
    VerdictMaker maker(
        [=] {
          *begun = true;
          while (!*release) std::this_thread::yield();
          *ended = true;
          return TopVerdict{};
        },
        0);
    maker.Want();
    while (!*begun) std::this_thread::yield();
    EXPECT_TRUE(maker.working());
    EXPECT_FALSE(maker.Finish(1'000'000));
  }
  *release = true;
  while (!*ended) std::this_thread::yield();
}

// ---------------------------------------------------------------- a store that is written
// meanwhile

class TopStore : public testing::Test {
 protected:
  void SetUp() override {
    char folder[] = "/tmp/headrace-top-XXXXXX";
    folder_ = mkdtemp(folder);
    path_ = folder_ + "/t.db";
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  static collectors::RunInfo Info(const std::string& name) {
    collectors::RunInfo info;
    info.name = name;
    info.pid = 4242;
    info.program = "p";
    info.started_realtime_ns = 1;
    info.accounting_level = 2;
    info.cores_count = 2;
    char host[256] = "";
    gethostname(host, sizeof host - 1);
    info.hostname = host;
    return info;
  }

  // An interval of a fifth of a second: decode works for 80 % of it, then waits for input.
  static collectors::IntervalSample Interval(int64_t number) {
    constexpr int64_t kLength = 200'000'000;
    collectors::IntervalSample t;
    t.start_ns = number * kLength;
    t.duration_ns = kLength;
    collectors::StageSample stage;
    stage.id = 0;
    stage.name = "decode";
    stage.parallelism = 1;
    stage.parallelism_ns = stage.observed_ns = stage.lifetime_ns = kLength;
    stage.on_cpu_ns = kLength / 2;
    stage.runnable_ns = 0;
    t.stages.push_back(stage);
    collectors::OperatorSample op;
    op.id = 0;
    op.name = "zstd";
    op.kind = "decompress";
    op.stage_id = 0;
    op.completions = 10;
    op.rows = 640;
    op.busy_ns = 160'000'000;
    op.on_cpu_ns = 100'000'000;
    op.runnable_ns = 0;
    op.wait_in_ns = 40'000'000;
    t.operators.push_back(op);
    t.steps = {10, 640, 50'000'000, 150'000'000, t.start_ns, t.start_ns + kLength, {20'000'000}};
    return t;
  }

  std::string folder_, path_;
};

TEST_F(TopStore, ReadsWhatIsNewAndNothingTwice) {
  collectors::RunStore store(path_);
  const int64_t id = store.BeginRun(Info("live"));
  LiveRun run(path_, id);
  EXPECT_TRUE(run.figures().recording());
  EXPECT_TRUE(run.figures().run.windows.empty());
  int64_t next = 0;
  for (int round = 0; round < 5; ++round) {
    std::vector<collectors::IntervalSample> more;
    for (int i = 0; i <= round; ++i) more.push_back(Interval(next++));
    store.Append(id, more);
    EXPECT_TRUE(run.Read());
    EXPECT_FALSE(run.Read()) << "nothing is new";
    ASSERT_EQ(run.figures().run.windows.size(), static_cast<size_t>(next));
  }
  // The same windows as who reads the whole run.
  const RunView whole = analysis::LoadRun(path_, std::to_string(id));
  ASSERT_EQ(whole.windows.size(), run.figures().run.windows.size());
  for (size_t i = 0; i < whole.windows.size(); ++i) {
    const analysis::WindowRow &a = whole.windows[i], &b = run.figures().run.windows[i];
    EXPECT_EQ(a.start_ns, b.start_ns);
    EXPECT_EQ(a.operators[0].busy_ns, b.operators[0].busy_ns);
    EXPECT_EQ(a.operators[0].on_cpu_ns, b.operators[0].on_cpu_ns);
    EXPECT_EQ(a.operators[0].blocked_ns, b.operators[0].blocked_ns);
    EXPECT_EQ(a.stages[0].lifetime_ns, b.stages[0].lifetime_ns);
    EXPECT_EQ(a.steps.wait_ns, b.steps.wait_ns);
  }
  const TopModel model = MakeTopModel(run.figures(), nullptr, kSecondNs);
  EXPECT_EQ(model.window_ns, kSecondNs);
  EXPECT_NEAR(*model.stages[0].shares.busy, 0.8, 1e-9);
  EXPECT_NEAR(*model.wait_ratio, 0.25, 1e-9);
  EXPECT_NEAR(*model.rows_per_s, 3200, 1e-6);
  store.FinishRun(id, collectors::RunState::kComplete);
  EXPECT_TRUE(run.Read());
  EXPECT_FALSE(run.figures().recording());
}

TEST_F(TopStore, AStageThatAppearsLaterIsShown) {
  collectors::RunStore store(path_);
  const int64_t id = store.BeginRun(Info("live"));
  store.Append(id, {Interval(0)});
  LiveRun run(path_, id);
  ASSERT_EQ(run.figures().run.stages.size(), 1u);
  collectors::IntervalSample more = Interval(1);
  collectors::StageSample late = more.stages[0];
  late.id = 1;
  late.name = "late";
  late.index = 1;
  more.stages.push_back(late);
  store.Append(id, {more});
  EXPECT_TRUE(run.Read());
  ASSERT_EQ(run.figures().run.stages.size(), 2u);
  EXPECT_EQ(run.figures().run.windows.size(), 2u);
  const TopModel model = MakeTopModel(run.figures(), nullptr, kSecondNs);
  EXPECT_EQ(model.stages[1].name, "late");
}

TEST_F(TopStore, KeepsTheEndOfALongRunOnly) {
  collectors::RunStore store(path_);
  const int64_t id = store.BeginRun(Info("long"));
  std::vector<collectors::IntervalSample> all;
  for (int64_t i = 0; i < 1500; ++i) all.push_back(Interval(i));  // five minutes
  store.Append(id, all);
  LiveRun run(path_, id);
  EXPECT_EQ(run.figures().run.windows.size(), 600u);
  EXPECT_EQ(run.figures().run.windows.back().start_ns, Interval(1499).start_ns);
  store.Append(id, {Interval(1500)});
  EXPECT_TRUE(run.Read());
  EXPECT_EQ(run.figures().run.windows.size(), 600u);
}

TEST_F(TopStore, WhichRunIsMeant) {
  EXPECT_THROW(ChooseLiveRun(path_, ""), Error);
  collectors::RunStore store(path_);
  EXPECT_THROW(ChooseLiveRun(path_, ""), Error);
  const int64_t first = store.BeginRun(Info("first"));
  store.FinishRun(first, collectors::RunState::kComplete);
  EXPECT_EQ(ChooseLiveRun(path_, "").run_id, first);
  EXPECT_THAT(ChooseLiveRun(path_, "").note, HasSubstr("No run is being recorded"));
  const int64_t second = store.BeginRun(Info("second"));
  const int64_t third = store.BeginRun(Info("third"));
  store.FinishRun(third, collectors::RunState::kComplete);
  EXPECT_EQ(ChooseLiveRun(path_, "").run_id, second) << "the one that is being recorded";
  EXPECT_EQ(ChooseLiveRun(path_, "").note, "");
  EXPECT_EQ(ChooseLiveRun(path_, "latest").run_id, third);
  EXPECT_EQ(ChooseLiveRun(path_, "first").run_id, first);
  EXPECT_EQ(ChooseLiveRun(path_, std::to_string(second)).run_id, second);
  EXPECT_THROW(ChooseLiveRun(path_, "nobody"), Error);
}

TEST_F(TopStore, ARunThatIsRemovedIsAnErrorAndTheViewStays) {
  collectors::RunStore store(path_);
  const int64_t id = store.BeginRun(Info("gone"));
  store.Append(id, {Interval(0)});
  LiveRun run(path_, id);
  store.FinishRun(id, collectors::RunState::kComplete);
  store.RemoveRun(id);
  EXPECT_THROW(run.Read(), Error);
  EXPECT_EQ(run.figures().run.windows.size(), 1u);
}

}  // namespace
}  // namespace headrace::dashboards
