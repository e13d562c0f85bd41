// The page Fleet: what /api/fleet answers of a file with a job, and of one without.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "collectors/store/fleet_store.h"
#include "dashboards/serve/site.h"
#include "tests/dashboards/stored_run.h"

namespace headrace::dashboards {
namespace {

constexpr int64_t kJobSecondNs = 1'000'000'000;

HttpRequest AskFleet(const std::string& target) {
  HttpRequest request;
  request.method = "GET";
  request.target = target;
  request.headers = {{"host", "127.0.0.1:7070"}};
  return request;
}

// A rank that waited half of its time for one worker.
void KeepJob(const std::string& path, int64_t seconds = 6) {
  collectors::JobRow row;
  row.job = "ctr";
  row.fingerprint = "f";
  row.mode = "lockstep";
  row.rows = 1000;
  collectors::RunInfo info;
  info.program = "dispatcher";
  collectors::FleetStore fleet(path, row, info);
  for (int64_t second = 0; second < seconds; ++second) {
    collectors::Shipment s;
    s.interval.start_ns = second * kJobSecondNs;
    s.interval.duration_ns = kJobSecondNs;
    s.role = "rank";
    s.rank = 0;
    s.interval.steps.steps = 5;
    s.interval.steps.rows = 100;
    s.interval.steps.wait_ns = s.interval.steps.compute_ns = kJobSecondNs / 2;
    fleet.Add("r", s, 0);
    s.interval.steps = {};
    s.role = "worker";
    s.rank.reset();
    fleet.Add("w", s, 0);
    collectors::JobInterval interval;
    interval.start_ns = second * kJobSecondNs;
    interval.duration_ns = interval.running_ns = interval.serving_ns = kJobSecondNs;
    fleet.AddInterval(interval);
  }
}

TEST(FleetPage, SaysWhatTheReportSays) {
  TemporaryStore files;
  KeepJob(files.path());
  Site site(files.path(), "headrace", "", AccessRules{.port = 7070});
  const auto answer = nlohmann::json::parse(site.Answer(AskFleet("/api/fleet")).body);
  EXPECT_EQ(answer["schema"], "headrace.fleet_page/1");
  EXPECT_EQ(answer["jobs"][0]["job"], "ctr");
  EXPECT_EQ(answer["job"]["verdict"]["limit"], "workers");
  EXPECT_EQ(answer["first"]["severity"], "high");
  for (const char* card : {"workers", "ranks", "course", "events"})
    EXPECT_FALSE(answer["cards"][card]["answer"].get<std::string>().empty()) << card;
  EXPECT_EQ(site.Answer(AskFleet("/api/fleet/1")).status, 200);
  for (const char* nothing : {"/api/fleet/2", "/api/fleet/x", "/api/fleet/", "/api/fleet/1/2"})
    EXPECT_EQ(site.Answer(AskFleet(nothing)).status, 404) << nothing;
  EXPECT_EQ(site.Answer(AskFleet("/fleet/1")).status, 200);  // the page itself
}

TEST(FleetPage, AShortJobIsNotJudgedButShown) {
  TemporaryStore files;
  KeepJob(files.path(), 3);
  Site site(files.path(), "headrace", "", AccessRules{.port = 7070});
  const auto answer = nlohmann::json::parse(site.Answer(AskFleet("/api/fleet")).body);
  EXPECT_EQ(answer["first"]["badge"], "NO VERDICT");
  EXPECT_EQ(answer["job"]["workers"].size(), 1u);
  const auto text = answer["cards"]["workers"]["answer"].get<std::string>();
  EXPECT_NE(text.find("Not judged"), std::string::npos) << text;
}

TEST(FleetPage, OfAJobsDecisionsTheNewestAreRead) {
  TemporaryStore files;
  KeepJob(files.path());
  {
    collectors::RunStore store(files.path());
    for (int64_t index = 0; index < 1003; ++index) {
      collectors::DecisionRow row;
      row.index = index;
      row.at_ns = index * 1000;
      store.SetDecision(1, row);  // the dispatcher's run
    }
  }
  Site site(files.path(), "headrace", "", AccessRules{.port = 7070});
  const auto answer = nlohmann::json::parse(site.Answer(AskFleet("/api/fleet")).body);
  const auto& job = answer["job"];
  EXPECT_EQ(job["decisions_left_out_count"], 3);
  ASSERT_EQ(job["decisions"].size(), 1000u);
  EXPECT_EQ(job["decisions"][0]["at_ns"], 3000);
  EXPECT_EQ(job["decisions"].back()["at_ns"], 1'002'000);
}

TEST(FleetPage, WithoutAJobItSaysSo) {
  TemporaryStore files;
  { collectors::RunStore store(files.path()); }
  Site site(files.path(), "headrace", "", AccessRules{.port = 7070});
  const auto answer = nlohmann::json::parse(site.Answer(AskFleet("/api/fleet")).body);
  EXPECT_TRUE(answer["job"].is_null());
  EXPECT_FALSE(answer["cards"]["none"]["empty"].get<std::string>().empty());
}

}  // namespace
}  // namespace headrace::dashboards
