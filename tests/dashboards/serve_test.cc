// The server: who may ask, what is answered, and what is refused.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <random>

#include "dashboards/serve/event_stream.h"
#include "tests/dashboards/served_site.h"

namespace headrace::dashboards {
namespace {

using nlohmann::json;
using testing::HasSubstr;

// ---------------------------------------------------------------- access

TEST(Access, OnlyItsOwnNamesAndPagesAsk) {
  const struct {
    const char* name;
    std::map<std::string, std::string> headers;
    const char* method;
    int status;  // 0: it may be answered
  } kCases[] = {
      {"number", {{"host", "127.0.0.1:7070"}}, "GET", 0},
      {"localhost", {{"host", "localhost:7070"}}, "GET", 0},
      {"capitals", {{"host", "LocalHost:7070"}}, "GET", 0},
      {"IPv6", {{"host", "[::1]:7070"}}, "GET", 0},
      {"no host", {}, "GET", 403},
      {"another name, as rebinding has it", {{"host", "evil.example:7070"}}, "GET", 403},
      {"another port, as a tunnel has it", {{"host", "127.0.0.1:8080"}}, "GET", 0},
      {"no port", {{"host", "127.0.0.1"}}, "GET", 0},
      {"IPv6 without a port", {{"host", "[::1]"}}, "GET", 0},
      {"no port but a word", {{"host", "localhost:x"}}, "GET", 403},
      {"two ports", {{"host", "localhost:1:2"}}, "GET", 403},
      {"a name that begins as ours", {{"host", "127.0.0.1.evil.example:7070"}}, "GET", 403},
      {"own origin", {{"host", "localhost:7070"}, {"origin", "http://localhost:7070"}}, "GET", 0},
      {"foreign origin",
       {{"host", "localhost:7070"}, {"origin", "http://evil.example"}},
       "GET",
       403},
      {"the origin of a tunnel",
       {{"host", "localhost:8080"}, {"origin", "http://localhost:8080"}},
       "GET",
       0},
      {"another port of this machine as origin",
       {{"host", "localhost:7070"}, {"origin", "http://localhost:8080"}},
       "GET",
       403},
      {"no origin in words", {{"host", "localhost:7070"}, {"origin", "null"}}, "GET", 403},
      {"a form", {{"host", "localhost:7070"}, {"content-type", "text/plain"}}, "POST", 415},
      {"JSON", {{"host", "localhost:7070"}, {"content-type", "application/json"}}, "POST", 0},
      {"JSON with a charset",
       {{"host", "localhost:7070"}, {"content-type", "application/json; charset=utf-8"}},
       "POST",
       0},
      {"PUT", {{"host", "localhost:7070"}}, "PUT", 405},
      {"TRACE", {{"host", "localhost:7070"}}, "TRACE", 405}};
  const AccessRules rules{.port = kPort};
  for (const auto& each : kCases) {
    const auto refused = Refuse({each.method, "/api/runs", each.headers, ""}, "/api/runs", rules);
    EXPECT_EQ(refused ? refused->status : 0, each.status) << each.name;
  }
}

TEST(Access, ATokenIsAskedForDataAndNotForPages) {
  const AccessRules rules{.port = kPort, .token = MakeToken()};
  EXPECT_EQ(rules.token.size(), 64u);
  EXPECT_NE(rules.token, MakeToken());
  const auto status = [&](const std::string& path, const std::string& header,
                          const std::string& value) {
    HttpRequest request = Get(path);
    if (!header.empty()) request.headers[header] = value;
    const auto refused = Refuse(request, path, rules);
    return refused ? refused->status : 0;
  };
  EXPECT_EQ(status("/", "", ""), 0);
  EXPECT_EQ(status("/app.js", "", ""), 0);
  EXPECT_EQ(status("/api/runs", "", ""), 401);
  EXPECT_EQ(status("/metrics", "", ""), 401);
  EXPECT_EQ(status("/api/runs", "authorization", "Bearer " + rules.token), 0);
  EXPECT_EQ(status("/api/runs", "authorization", "Bearer " + rules.token + "0"), 401);
  EXPECT_EQ(status("/api/runs", "authorization", "Bearer "), 401);
  EXPECT_EQ(status("/api/runs", "authorization", "bearer " + rules.token), 0);
  EXPECT_EQ(status("/api/runs", "cookie", "a=b; headrace_session_7070=" + rules.token), 0);
  EXPECT_EQ(status("/api/runs", "cookie", "headrace_session_7070=x" + rules.token), 401);
  EXPECT_EQ(status("/api/runs", "cookie", "headrace_session_7071=" + rules.token), 401);
}

TEST(Access, ASessionIsOpenedWithTheTokenAlone) {
  const AccessRules rules{.port = kPort, .token = "secret"};
  EXPECT_EQ(OpenSession(Post("/api/session", R"({"token":"secret"})"), rules).status, 204);
  for (const char* body :
       {"", "{}", R"({"token":"Secret"})", R"({"token":""})", R"({"token":7})", "[]", "{"}) {
    EXPECT_EQ(OpenSession(Post("/api/session", body), rules).status, 401) << body;
  }
}

TEST(Targets, AreDecodedOrRefused) {
  const struct {
    const char* target;
    bool valid;
    const char* path;
  } kCases[] = {{"/", true, "/"},
                {"/run/1?t=1-2&op=a%20b", true, "/run/1"},
                {"", false, ""},
                {"run", false, ""},
                {"http://evil.example/", false, ""},
                {"/../etc/passwd", false, ""},
                {"/a/../../etc/passwd", false, ""},
                {"/%2e%2e/etc/passwd", false, ""},
                {"/..%2fetc/passwd", false, ""},
                {"/..\\etc", false, ""},
                {"/%00", false, ""},
                {"/%zz", false, ""},
                {"/%2", false, ""},
                {"/a?x=%zz", false, ""}};
  for (const auto& each : kCases) {
    const Target parsed = ParseTarget(each.target);
    EXPECT_EQ(parsed.valid, each.valid) << each.target;
    if (each.valid) {
      EXPECT_EQ(parsed.path, each.path);
    }
  }
  const Target parsed = ParseTarget("/x?a=1&b=&=3&c=d+e%26&a=2");
  EXPECT_EQ(parsed.query,
            (std::map<std::string, std::string>{{"a", "2"}, {"b", ""}, {"c", "d e&"}}));
}

// ---------------------------------------------------------------- answers

TEST_F(ServedSite, EveryViewIsTheSamePage) {
  for (const char* path : {"/", "/run/1", "/run/1/operators", "/sql", "/compare", "/compare/3"}) {
    const HttpResponse response = site_->Answer(Get(path));
    EXPECT_EQ(response.status, 200) << path;
    EXPECT_THAT(response.type, HasSubstr("text/html"));
    EXPECT_THAT(response.body, HasSubstr("/app.js"));
  }
  EXPECT_THAT(site_->Answer(Get("/app.js")).type, HasSubstr("javascript"));
  EXPECT_FALSE(site_->Answer(Get("/style.css")).body.empty());
}

TEST_F(ServedSite, WhatIsNotThereIsSaid) {
  for (const char* path : {"/nothing", "/api/nothing", "/api/runs/1/nothing", "/api/runs/x/report",
                           "/api/runs/-1/report", "/api/runs/99999999999999999999/report",
                           "/api/runs/7/report", "/api/comparisons/1", "/api/comparisons/x"}) {
    const HttpResponse response = site_->Answer(Get(path));
    EXPECT_EQ(response.status, 404) << path;
    EXPECT_FALSE(json::parse(response.body)["error"]["what"].get<std::string>().empty());
  }
  EXPECT_EQ(site_->Answer(Get("/../runs.db")).status, 400);
}

TEST_F(ServedSite, RunsAreListedAndFound) {
  {
    collectors::RunStore store(files_.path());
    StoreRun(store, analysis::Record(SlowFetch(), 4, 4), "two");
    store.SetTags(2, "nightly fast");
  }
  const json all = Json(Get("/api/runs"));
  ASSERT_EQ(all["runs"].size(), 2u);
  EXPECT_EQ(all["runs"][0]["name"], "two") << "newest first";
  EXPECT_TRUE(all["next"].is_null());
  EXPECT_GT(all["runs"][0]["rows_per_second"].get<double>(), 0);
  const json first = Json(Get("/api/runs?limit=1"));
  EXPECT_EQ(first["next"], 2);
  EXPECT_EQ(Json(Get("/api/runs?limit=1&after=2"))["runs"][0]["name"], "one");
  EXPECT_EQ(Json(Get("/api/runs?q=NIGHTLY"))["runs"].size(), 1u);
  EXPECT_EQ(Json(Get("/api/runs?q=%25"))["runs"].size(), 0u) << "a word, not a pattern";
}

TEST_F(ServedSite, ARunOfAComparisonHasItsVerdict) {
  collectors::RunStore store(files_.path());
  EXPECT_EQ(Json(Get("/api/runs"))["runs"][0]["comparison_verdict"], "");
  const int64_t id = store.BeginComparison({"c", "a", "b", "7", 1000});
  store.SetComparisonRun(id, {0, 0, 'a', 1, ""});
  store.FinishComparison(id, collectors::ComparisonState::kComplete, 5, "faster", "{}");
  const json run = Json(Get("/api/runs"))["runs"][0];
  EXPECT_EQ(run["comparison"], id);
  EXPECT_EQ(run["comparison_verdict"], "faster");
}

// As their first page says it: who computes nothing is no trainer that waits.
TEST_F(ServedSite, ARunWithoutATrainerIsNotListedAsOneThatWaits) {
  {
    collectors::RunStore store(files_.path());
    analysis::SimulatedPipeline pipeline = SlowFetch();
    pipeline.consumer_s = 1e-7;
    StoreRun(store, analysis::Record(pipeline, 4, 4), "alone");
  }
  const json runs = Json(Get("/api/runs"))["runs"];
  EXPECT_EQ(runs[0]["trains"], false);
  EXPECT_TRUE(runs[0]["stall_ratio"].is_null());
  EXPECT_EQ(runs[1]["trains"], true);
  EXPECT_GT(runs[1]["stall_ratio"].get<double>(), 0.1);
  const json report = Json(Get("/api/runs/2/report"));
  EXPECT_EQ(report["page"]["badge"], "NO TRAINER");
}

TEST_F(ServedSite, AnAnswerThatIsKnownIsNotSentAgain) {
  const HttpResponse response = site_->Answer(Get("/api/runs/1/report"));
  ASSERT_EQ(response.status, 200);
  std::string tag;
  for (const auto& [name, value] : response.headers) {
    if (name == "ETag") tag = value;
  }
  HttpRequest again = Get("/api/runs/1/report");
  again.headers["if-none-match"] = tag;
  EXPECT_EQ(site_->Answer(again).status, 304);
  {
    collectors::RunStore store(files_.path());
    store.SetTags(1, "changed");
  }
  EXPECT_EQ(site_->Answer(again).status, 200);
}

// What is said of a run depends on others, so another run makes it new.
TEST_F(ServedSite, ANewRunMakesAnswersNew) {
  const auto tag = [&] {
    for (const auto& [name, value] : site_->Answer(Get("/api/runs/1/report")).headers) {
      if (name == "ETag") return value;
    }
    return std::string();
  };
  const std::string before = tag();
  EXPECT_EQ(tag(), before);
  {
    collectors::RunStore store(files_.path());
    StoreRun(store, analysis::Record(SlowFetch(), 4, 4), "two");
  }
  EXPECT_NE(tag(), before);
}

// Nothing of a store gets into headers or events as it is.
TEST_F(ServedSite, AHostileStateEndsNoHeader) {
  {
    collectors::RunStore store(files_.path());
    store.database().Execute("PRAGMA ignore_check_constraints = ON");
    store.database().Execute("UPDATE runs SET state = 'x' || char(13, 10) || 'Set-Cookie: a=b'");
  }
  for (const auto& [name, value] : site_->Answer(Get("/api/runs/1/course")).headers) {
    EXPECT_EQ(value.find('\n'), std::string::npos) << name;
  }
  EventStream stream(site_->cache(), 1, "");
  const std::string text = stream.Next();
  EXPECT_EQ(text.find("\nSet-Cookie"), std::string::npos) << text;
}

// What the program's control group waits for is a part of what the machine does.
TEST_F(ServedSite, PressureIsTheMachines) {
  constexpr int64_t kSecond = 1'000'000'000;
  collectors::MeasurementBatch batch;
  batch.metrics.push_back({"pressure_ns", "ns", "counter", "counter", "", "h"});
  for (const char* subject : {"", "/a/group"}) {
    collectors::MeasurementRow row;
    row.id = static_cast<int64_t>(batch.definitions.size());
    row.metric = "pressure_ns";
    row.source = "counter";
    row.subject = subject;
    row.cause = "cpu some";
    batch.totals.push_back({row.id, kSecond, 4e8, 4e8, 4e8, 4e8, {}});
    batch.intervals.push_back({row.id, 0, kSecond, 4e8});
    batch.definitions.push_back(std::move(row));
  }
  const analysis::RunView run = analysis::Record(SlowFetch(), 8, 3);
  collectors::RunStore store(files_.path());
  const int64_t id = store.BeginRun(InfoOf(run, "pressed"));
  store.Append(id, {SampleOf(run, run.windows[0])}, batch);
  store.FinishRun(id, collectors::RunState::kComplete);
  const json answer = Json(Get("/api/runs/" + std::to_string(id) + "/resources"));
  for (const json& series : answer["series"]) {
    if (series["key"] != "psi_cpu") continue;
    EXPECT_EQ(series["v"], json({0.4}));
    return;
  }
  FAIL() << "no pressure is shown: " << answer;
}

TEST_F(ServedSite, SqlReadsAndDoesNothingElse) {
  const json good = Json(Post("/api/sql", R"({"sql":"SELECT 1 AS one, NULL, 'x'"})"));
  EXPECT_EQ(good["columns"][0], "one");
  EXPECT_EQ(good["rows"], json::parse(R"([[1,null,"x"]])"));
  EXPECT_FALSE(good["truncated"].get<bool>());
  const char* refused[] = {"DROP TABLE runs",
                           "DELETE FROM runs",
                           "INSERT INTO runs SELECT * FROM runs",
                           "UPDATE runs SET name = 'x'",
                           "REPLACE INTO runs SELECT * FROM runs",
                           "CREATE TABLE x (a)",
                           "CREATE TEMP VIEW x AS SELECT 1",
                           "ALTER TABLE runs RENAME TO x",
                           "ATTACH '/etc/passwd' AS x",
                           "DETACH main",
                           "PRAGMA journal_mode = DELETE",
                           "VACUUM INTO '/tmp/headrace-should-not-be'",
                           "BEGIN IMMEDIATE",
                           "SELECT load_extension('x')",
                           "SELECT 1; DROP TABLE runs",
                           "REINDEX",
                           "",
                           "SELEC 1"};
  for (const char* sql : refused) {
    const HttpResponse response = site_->Answer(Post("/api/sql", json({{"sql", sql}}).dump()));
    EXPECT_EQ(response.status, 400) << sql;
    EXPECT_FALSE(json::parse(response.body)["error"]["what"].get<std::string>().empty());
  }
  EXPECT_EQ(Json(Get("/api/runs"))["runs"].size(), 1u);
  for (const char* body : {"", "{}", "[]", "{\"sql\": 3}", "{"}) {
    EXPECT_EQ(site_->Answer(Post("/api/sql", body)).status, 400) << body;
  }
  const json many =
      Json(Post("/api/sql", R"({"sql":"WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 )"
                            R"(FROM n) SELECT i FROM n","limit":10})"));
  EXPECT_EQ(many["rows"].size(), 10u);
  EXPECT_TRUE(many["truncated"].get<bool>());
  const HttpResponse large = site_->Answer(
      Post("/api/sql", R"({"sql":"WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n )"
                       R"(LIMIT 90) SELECT hex(zeroblob(50000)) FROM n"})"));
  EXPECT_TRUE(json::parse(large.body)["truncated"].get<bool>());
  EXPECT_LT(large.body.size(), 5u << 18);
}

TEST_F(ServedSite, ADatabaseThatIsGoneIsSaid) {
  std::filesystem::remove(files_.path());
  const HttpResponse response = site_->Answer(Get("/api/runs"));
  EXPECT_EQ(response.status, 503);
  EXPECT_THAT(response.body, HasSubstr("error"));
}

// Whatever is asked, it is answered.
TEST_F(ServedSite, NoTargetBreaksIt) {
  const auto seed = std::random_device()();
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  std::mt19937 random(seed);
  const std::string parts[] = {"/api/runs/1/",
                               "course",
                               "stacks",
                               "?from=",
                               "&to=",
                               "&px=",
                               "1e9",
                               "-1",
                               "%",
                               "%41",
                               "\xff",
                               "operators/course",
                               "kind=",
                               "cpu",
                               "/",
                               "..",
                               "resources",
                               "0.5",
                               "99999999999999999999",
                               "nan"};
  for (int trial = 0; trial < 2000; ++trial) {
    std::string target = "/";
    const int count = std::uniform_int_distribution<int>(0, 8)(random);
    for (int i = 0; i < count; ++i) {
      target += parts[std::uniform_int_distribution<size_t>(0, std::size(parts) - 1)(random)];
    }
    const HttpResponse response = site_->Answer(Get(target));
    EXPECT_LT(response.status, 500) << target << ": " << response.body;
  }
}

// ---------------------------------------------------------------- events

TEST(Events, ARecordingIsFollowedWithoutAGap) {
  TemporaryStore files;
  const analysis::RunView run = analysis::Record(SlowFetch(), 8, 3);
  collectors::RunStore store(files.path());
  const int64_t id = store.BeginRun(InfoOf(run, "live"));
  RunCache cache(files.path(), "headrace", "");
  std::vector<double> starts;
  const auto take = [&](const std::string& text) {
    for (size_t at = text.find("event: course\n"); at != std::string::npos;
         at = text.find("event: course\n", at + 1)) {
      const size_t data = text.find("data: ", at) + 6;
      const json course = json::parse(text.substr(data, text.find('\n', data) - data));
      for (const json& start : course["t"]) starts.push_back(start);
    }
  };
  auto stream = std::make_unique<EventStream>(cache, id, "");
  std::string last;
  for (size_t i = 0; i < run.windows.size(); ++i) {
    store.Append(id, {SampleOf(run, run.windows[i])});
    const std::string text = stream->Next();
    take(text);
    const size_t at = text.find("id: ");
    if (at != std::string::npos) last = text.substr(at + 4, text.find('\n', at) - at - 4);
    // Its connection broke: another one goes on where it was.
    if (i == run.windows.size() / 2) stream = std::make_unique<EventStream>(cache, id, last);
  }
  EXPECT_FALSE(stream->ended());
  EXPECT_TRUE(stream->Next().empty()) << "nothing is new";
  store.FinishRun(id, collectors::RunState::kComplete);
  EXPECT_THAT(stream->Next(), HasSubstr("\"state\":\"complete\""));
  EXPECT_TRUE(stream->ended());
  ASSERT_EQ(starts.size(), run.windows.size());
  for (size_t i = 0; i < starts.size(); ++i) {
    EXPECT_NEAR(starts[i], static_cast<double>(run.windows[i].start_ns) / 1e9, 1e-3);
  }
}

TEST(Events, ARunThatWasRemovedEndsItsStream) {
  TemporaryStore files;
  { collectors::RunStore store(files.path()); }
  RunCache cache(files.path(), "headrace", "");
  EventStream stream(cache, 5, "not a number");
  EXPECT_THAT(stream.Next(), HasSubstr("removed"));
  EXPECT_TRUE(stream.ended());
}

}  // namespace
}  // namespace headrace::dashboards
