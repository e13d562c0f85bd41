// What the pages show of a run: the answers that the server and the report in one file give.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <random>

#include "base/error.h"
#include "dashboards/pages/assets.h"
#include "dashboards/pages/course.h"
#include "dashboards/pages/page_run.h"
#include "dashboards/pages/report_file.h"
#include "dashboards/pages/short_number.h"
#include "dashboards/render/render.h"
#include "tests/dashboards/stored_run.h"

namespace headrace::dashboards {
namespace {

using nlohmann::json;
using testing::HasSubstr;
using testing::Not;

// fetch blocks and limits, decode computes.
analysis::SimulatedPipeline Fetching() {
  analysis::SimulatedPipeline pipeline;
  pipeline.cores = 2;
  pipeline.stages = {{"fetch", 1, 4, {{"fetch", 0.0002, 0.008, 0, 0, 0.2, -1}}},
                     {"decode", 1, 4, {{"decode", 0.001, 0, 0, 0, 0.1, -1}}},
                     {"batch", 1, 8, {{"batch", 0.0005, 0, 0, 0, 0.1, -1}}}};
  pipeline.consumer_s = 0.004;
  return pipeline;
}

class Pages : public testing::Test {
 protected:
  void SetUp() override {
    run_ = analysis::Record(Fetching(), 8, 3);
    collectors::RunStore store(files_.path());
    id_ = StoreRun(store, run_, "pages");
  }

  json Ask(const std::string& name, const PageQuery& query = {}) {
    collectors::ReadStore store(files_.path());
    const PageRun page(store, id_, [&] {
      return LoadForPages(files_.path(), std::to_string(id_), {.program = "headrace"});
    });
    return json::parse(Registry<PageAnswer>::Global().Find(name)->make(page, query));
  }

  TemporaryStore files_;
  analysis::RunView run_;
  int64_t id_ = 0;
};

TEST_F(Pages, EveryAnswerOfEveryRunIsJson) {
  for (const auto& [name, answer] : Registry<PageAnswer>::Global().entries()) {
    if (answer.takes_body) continue;
    EXPECT_TRUE(Ask(name).is_object()) << name;
  }
}

TEST_F(Pages, TheReportIsTheSameAsTheCommands) {
  const auto loaded = LoadForPages(files_.path(), std::to_string(id_), {});
  const json command = json::parse(RenderJson(loaded->report, loaded->run)), page = Ask("report");
  for (const auto& [key, value] : command.items()) EXPECT_EQ(page[key], value) << key;
  EXPECT_THAT(page["page"]["verdict"].get<std::string>(), HasSubstr("The trainer waited"));
}

TEST_F(Pages, EveryCardAnswersOrSaysWhyNot) {
  const json cards = Ask("report")["cards"];
  EXPECT_GE(cards.size(), 11u);
  for (const auto& [key, card] : cards.items()) {
    SCOPED_TRACE(key);
    EXPECT_TRUE(card["question"].get<std::string>().ends_with("?"));
    const std::string said = card.value(card.contains("answer") ? "answer" : "empty", "");
    EXPECT_FALSE(said.empty());
    EXPECT_TRUE(said.ends_with(".")) << said;
    EXPECT_FALSE(said[0] >= 'a' && said[0] <= 'z' && said.find(' ') == std::string::npos) << said;
    if (!card.contains("sql")) continue;
    collectors::ReadStore store(files_.path());
    EXPECT_NO_THROW(store.QueryUntrusted(card["sql"].get<std::string>()));
  }
  EXPECT_THAT(cards["pipeline"]["answer"].get<std::string>(), HasSubstr("fetch is busy"));
}

TEST_F(Pages, ABriefReportKeepsTimesAndCountsWhole) {
  const json full = Ask("report"), brief = Ask("report", {.values = {{"brief", "1"}}, .body = ""});
  EXPECT_LT(brief.dump().size(), full.dump().size());
  EXPECT_EQ(brief["run"]["started_seconds"], full["run"]["started_seconds"]);
  EXPECT_EQ(brief["page"], full["page"]);
  // The server keeps an answer under what was said, and an empty word says nothing.
  EXPECT_EQ(Ask("report", {.values = {{"brief", ""}}, .body = ""}), full);
  EXPECT_EQ(Ask("questions")["questions"], full["questions"]);
}

TEST_F(Pages, EveryQuestionOfTheConsoleCanBeAsked) {
  const json questions = Ask("report")["questions"];
  EXPECT_GE(questions.size(), 5u);
  collectors::ReadStore store(files_.path());
  for (const json& question : questions) {
    EXPECT_NO_THROW(store.QueryUntrusted(question["sql"].get<std::string>())) << question;
  }
}

TEST_F(Pages, TheDrawingMarksTheLimit) {
  const json drawing = Ask("report")["pipeline"];
  ASSERT_EQ(drawing["stages"].size(), 3u);
  EXPECT_EQ(drawing["stages"][0]["name"], "fetch");
  EXPECT_TRUE(drawing["stages"][0]["limit"].get<bool>());
  EXPECT_FALSE(drawing["stages"][1]["limit"].get<bool>());
  EXPECT_EQ(drawing["stages"][1]["input"], json({"fetch"}));
  EXPECT_GT(drawing["trainer"]["wait_ratio"].get<double>(), 0.2);
  for (const json& stage : drawing["stages"]) {
    const double parts =
        stage["c"].get<double>() + stage["b"].get<double>() + stage["q"].get<double>();
    EXPECT_NEAR(parts, stage["busy"].get<double>(), 1e-9) << stage;
  }
}

TEST_F(Pages, TheCourseHoldsWhatWasRecorded) {
  const json course = Ask("course");
  const size_t windows = course["t"].size();
  EXPECT_EQ(windows, run_.windows.size());
  ASSERT_EQ(course["stages"].size(), 3u);
  EXPECT_EQ(course["stages"][0]["name"], "fetch");
  int64_t steps = 0;
  for (size_t i = 0; i < windows; ++i) {
    steps += course["steps"]["count"][i].get<int64_t>();
    const double busy = course["stages"][0]["busy"][i];
    EXPECT_GE(busy, 0);
    EXPECT_LE(busy, 1);
    const double split = course["stages"][0]["c"][i].get<double>() +
                         course["stages"][0]["b"][i].get<double>() +
                         course["stages"][0]["q"][i].get<double>();
    EXPECT_NEAR(split, busy, 0.003);
  }
  EXPECT_EQ(steps, run_.steps.steps_count);
  EXPECT_FALSE(course["steps"]["p50"][windows / 2].is_null());
}

// However finely it is divided, and whatever range is asked for in parts, nothing is lost or twice.
TEST_F(Pages, PartsOfTheCourseAddUp) {
  const auto seed = std::random_device()();
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  std::mt19937 random(seed);
  collectors::ReadStore store(files_.path());
  for (int trial = 0; trial < 20; ++trial) {
    const double px = std::uniform_int_distribution<int>(1, 40)(random);
    const RunCourse course = ReadCourse(store, id_, RangeOf(0, 0, px, 8));
    int64_t steps = 0, end_ns = 0;
    double busy = 0;
    for (size_t i = 0; i < course.windows.size(); ++i) {
      EXPECT_GE(course.windows[i].start_ns, end_ns) << "windows overlap";
      end_ns = course.windows[i].start_ns + course.windows[i].duration_ns;
      steps += course.windows[i].steps;
      for (const auto& lane : course.stage_values) busy += lane[i].busy_ns;
    }
    EXPECT_EQ(steps, run_.steps.steps_count) << px;
    double expected = 0;
    for (const analysis::OperatorRow& op : run_.operators) {
      expected += static_cast<double>(op.busy_ns);
    }
    EXPECT_NEAR(busy, expected, 1e-6 * expected);
    EXPECT_LE(course.windows.size(), 41u + 2u) << "at most as many windows as were asked for";
  }
}

TEST_F(Pages, ARangeBeginsInTheWindowThatReachesIntoIt) {
  const json course = Ask("course", {{{"from", "2.2"}, {"to", "4.1"}, {"px", "1000"}}, ""});
  ASSERT_FALSE(course["t"].empty());
  EXPECT_LE(course["t"].front().get<double>(), 2.2);
  EXPECT_LT(course["t"].back().get<double>(), 4.1);
}

TEST_F(Pages, QuestionsThatCannotBeAreRefused) {
  const std::map<std::string, std::string> kQueries[] = {{{"from", "3"}, {"to", "1"}},
                                                         {{"from", "nan"}},
                                                         {{"from", "-1"}},
                                                         {{"px", "x"}},
                                                         {{"to", "1e400"}}};
  for (const auto& query : kQueries) {
    EXPECT_THROW(Ask("course", {query, ""}), Error) << query.begin()->second;
  }
  EXPECT_THROW(Ask("stacks", {{{"kind", "none"}}, ""}), Error);
  for (const char* body :
       {"", "[]", "{", "{\"set\": 3}", "{\"set\": {\"fetch.parallelism\": \"2\"}}",
        "{\"set\": {\"nothing.parallelism\": 2}}", "{\"set\": {\"fetch.parallelism\": -1}}"}) {
    EXPECT_THROW(Ask("whatif", {{}, body}), Error) << body;
  }
}

TEST_F(Pages, WhatIfPredictsAndNamesTheCommand) {
  const json now = Ask("whatif", {{}, "{\"set\": {}}"});
  const json more = Ask("whatif", {{}, "{\"set\": {\"fetch.parallelism\": 2}}"});
  EXPECT_GT(more["predicted"]["batches_per_second"].get<double>(),
            1.3 * now["predicted"]["batches_per_second"].get<double>());
  EXPECT_THAT(more["command"].get<std::string>(),
              HasSubstr("--a fetch.parallelism=1 --b fetch.parallelism=2"));
  EXPECT_EQ(more["set"]["fetch.parallelism"], 2);
  const json best = Ask("whatif", {{}, "{\"best\": true}"});
  EXPECT_FALSE(best["set"].empty());
}

TEST_F(Pages, SettingsBeginWhereTheRunWas) {
  const json settings = Ask("settings")["settings"];
  ASSERT_FALSE(settings.empty());
  for (const json& setting : settings) {
    EXPECT_LE(setting["min"], setting["value"]) << setting;
    EXPECT_GE(setting["max"], setting["value"]) << setting;
  }
}

TEST_F(Pages, OneFileHoldsAllAndAsksNobody) {
  const std::string html = ReportFile(files_.path(), LoadForPages(files_.path(), "pages", {}));
  EXPECT_THAT(html, HasSubstr("<script type=\"application/json\" id=\"data\">"));
  EXPECT_THAT(html, Not(HasSubstr("unsafe-")));
  EXPECT_THAT(html, Not(HasSubstr("src=\"http")));
  EXPECT_THAT(html, HasSubstr("default-src 'none'"));
  const size_t begin = html.find("id=\"data\">") + 10, end = html.find("</script>", begin);
  const json data = json::parse(html.substr(begin, end - begin));
  EXPECT_TRUE(data.contains("/api/runs/1/report"));
  EXPECT_TRUE(data.contains("/api/runs/1/course"));
  EXPECT_LT(html.size(), 300u << 10);
  // Pages that ask a server are in the bundle of the server alone.
  for (const char* asked : {"/api/sql", "/api/comparisons", "/api/fleet"}) {
    EXPECT_THAT(html, Not(HasSubstr(asked)));
    EXPECT_THAT(std::string(AppScript()), HasSubstr(asked));
  }
}

// A name that would end the element or the attribute that it stands in.
TEST(PagesOfHostileRuns, NamesEndNoElement) {
  TemporaryStore files;
  analysis::SimulatedPipeline pipeline = Fetching();
  pipeline.stages[0].name = "</script><script>alert(1)</script>";
  pipeline.stages[0].operators[0].name = "\"><img src=x onerror=alert(1)>\xff\x1b[31m";
  const analysis::RunView run = analysis::Record(pipeline, 8, 3);
  {
    collectors::RunStore store(files.path());
    StoreRun(store, run, "</script>");
  }
  const std::string html = ReportFile(files.path(), LoadForPages(files.path(), "1", {}));
  EXPECT_THAT(html, Not(HasSubstr("<script>alert")));
  EXPECT_THAT(html, Not(HasSubstr("<img")));
  const size_t begin = html.find("id=\"data\">") + 10, end = html.find("</script>", begin);
  EXPECT_NO_THROW(json::parse(html.substr(begin, end - begin)));
}

TEST(PagesOfRunsWithLittle, ARunWithoutInstrumentationHasItsPage) {
  TemporaryStore files;
  {
    collectors::RunStore store(files.path());
    analysis::RunView none;
    StoreRun(store, none, "outside");
  }
  collectors::ReadStore store(files.path());
  const PageRun page(store, 1, [&] { return LoadForPages(files.path(), "1", {}); });
  for (const auto& [name, answer] : Registry<PageAnswer>::Global().entries()) {
    if (answer.takes_body || name == "settings") continue;
    EXPECT_NO_THROW(json::parse(answer.make(page, {}))) << name;
  }
  const json cards =
      json::parse(Registry<PageAnswer>::Global().Find("report")->make(page, {}))["cards"];
  for (const char* key : {"pipeline", "ladder", "when", "operators", "stacks"}) {
    EXPECT_TRUE(cards[key].contains("empty")) << key << ": " << cards[key];
  }
}

// A stage's course in runs of an earlier version is that of its operators.
TEST(PagesOfOldRuns, TheCourseOfStagesIsAddedUp) {
  TemporaryStore files;
  const analysis::RunView run = analysis::Record(Fetching(), 4, 3);
  {
    collectors::RunStore store(files.path());
    StoreRun(store, run, "old");
  }
  collectors::ReadStore now(files.path());
  const RunCourse recorded = ReadCourse(now, 1, RangeOf(0, 0, 100, 4));
  {
    collectors::RunStore store(files.path());
    store.database().Execute(
        "UPDATE stage_intervals SET busy_ns = NULL, operators_on_cpu_ns = NULL");
  }
  collectors::ReadStore then(files.path());
  const RunCourse added = ReadCourse(then, 1, RangeOf(0, 0, 100, 4));
  ASSERT_EQ(added.stage_values.size(), recorded.stage_values.size());
  for (size_t s = 0; s < added.stage_values.size(); ++s) {
    for (size_t i = 0; i < added.windows.size(); ++i) {
      EXPECT_EQ(added.stage_values[s][i].busy_ns, recorded.stage_values[s][i].busy_ns);
      EXPECT_EQ(added.stage_values[s][i].on_cpu_ns, recorded.stage_values[s][i].on_cpu_ns);
      EXPECT_EQ(added.stage_values[s][i].wait_in_ns, recorded.stage_values[s][i].wait_in_ns);
    }
  }
}

TEST(PageNumbers, KeepFourDigits) {
  for (const auto& [value, text] : {std::pair(0.0, "0.0"),
                                    {123456.0, "123500.0"},
                                    {0.000123456, "0.0001235"},
                                    {-1.5, "-1.5"},
                                    {99999.0, "100000.0"},
                                    {1e-12, "1e-12"}}) {
    EXPECT_EQ(nlohmann::json(FourDigits(value)).dump(), text);
  }
  EXPECT_TRUE(ShortNumber(std::nullopt).is_null());
  EXPECT_TRUE(ShortNumber(1.0 / 0.0).is_null());
}

}  // namespace
}  // namespace headrace::dashboards
