// The page of a fleet, as people read it, and its JSON.
#include "dashboards/fleet.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <regex>

#include "dashboards/fleet_json.h"
#include "dashboards/render/render.h"
#include "tests/analysis/synthetic_run.h"
#include "tests/dashboards/golden.h"

namespace headrace::dashboards {
namespace {

using analysis::FleetPlan;
using analysis::NodesFile;
using analysis::RowCost;
using testing::HasSubstr;
using testing::Not;

RowCost Cost() {
  RowCost cost;
  cost.operators = {{"decode", "decode"}, {"hash", "transform"}};
  cost.figures.operator_cpu_s = {60e-6, 25e-6};
  cost.figures.other_cpu_s = 5e-6;
  cost.figures.blocked_s = 40e-6;
  cost.figures.stored_bytes = 68.8e3;
  cost.figures.stored_requests = 0.02;
  cost.figures.sent_bytes = 58.5e3;
  cost.no_traffic = "the run counted no traffic to memory";
  cost.batch_rows = 512;
  cost.split_rows = 5120;
  cost.cores = 2;
  cost.cpu_model = "here";
  cost.batch_cv = 0.25;
  cost.process_bytes = 2e9;
  cost.thread_bytes = 6e7;
  cost.assumptions = {"bytes sent are those of the batches in memory"};
  for (int i = 0; i < 200; ++i) {
    cost.draws.push_back(cost.figures);
    *cost.draws.back().stored_bytes *= 0.99 + 0.0001 * i;
  }
  return cost;
}

NodesFile Nodes(const std::string& rest) {
  return analysis::ParseNodes(
      "[[node]]\nname = \"c-v1\"\nprice_per_hour = 0.8\ncores = 18\nspeed = 0.9\n"
      "memory = \"64GiB\"\nnic = \"12.5Gbit/s\"\nwatts_idle = 110\nwatts_peak = 280\nmax = 60\n"
      "rack = 8\n"
      "[[node]]\nname = \"c-v3\"\nprice_per_hour = 1.5\ncores = 36\nnic = \"25Gbit/s\"\n"
      "watts_idle = 150\nwatts_peak = 420\nhave = 30\n" +
          rest,
      "nodes.toml");
}

constexpr const char* kShared =
    "[storage]\nbandwidth = \"30GB/s\"\nlatency = \"3ms\"\n"
    "[clients]\ncount = 16\nnic = \"100Gbit/s\"\ndemand = \"17625rows/s\"\nbuffer = 8\n"
    "[dispatcher]\nrequests_per_second = 20000\nlatency = \"300us\"\n";

struct Made {
  analysis::RunView run;
  RowCost cost = Cost();
  NodesFile nodes;
  FleetPlan plan;
  std::optional<analysis::FleetSimulation> simulation;
  FleetPage page() const { return {run, cost, nodes, plan, simulation ? &*simulation : nullptr}; }
};

Made Make(const std::string& rest, std::optional<double> target, bool simulate = true) {
  Made made;
  made.run.run.run_id = 7;
  made.run.run.name = "rm1";
  made.nodes = Nodes(rest);
  made.plan = analysis::PlanFleet(made.cost, made.nodes, target);
  if (simulate) made.simulation = analysis::SimulatePlan(made.cost, made.nodes, made.plan);
  return made;
}

std::string Text(const Made& made, int width = 200) {
  return RenderText(MakeFleetReport(made.page()), {.width = width});
}
nlohmann::json Json(const Made& made) { return nlohmann::json::parse(FleetJson(made.page())); }

TEST(FleetPage, ComparesTheModelWithTheJobOfTheRun) {
  const Made made = Make(kShared, {}, false);
  analysis::PlanCheck check;
  check.job = "ctr";
  check.workers = 30;
  check.hosts = 30;
  check.measured = 5e6;
  check.measured_interval = {4.9e6, 5.1e6};
  check.predicted = 6e6;
  check.predicted_interval = {5.6e6, 6.4e6};
  check.error_ratio = 0.2;
  FleetPage page = made.page();
  page.check = &check;
  const auto text = [&] { return RenderText(MakeFleetReport(page), {.width = 400}); };
  EXPECT_THAT(text(),
              HasSubstr("job 'ctr' took 5.00 M rows/s [4.90 M, 5.10 M] with 30 workers on 30 hosts "
                        "(its ranks' steps); the model puts 30 x c-v3 at 6.00 M rows/s [5.60 M, "
                        "6.40 M]: 20.0 % more, and the intervals do not overlap"));
  auto json = nlohmann::json::parse(FleetJson(page));
  EXPECT_EQ(json["check"]["measured"]["rows_per_second"], 5e6);
  EXPECT_EQ(json["check"]["agrees"], false);
  EXPECT_THAT(text(), HasSubstr("the model runs as many threads as the cores carry"));
  check.limit = analysis::JobLimit::kStorage;
  EXPECT_THAT(text(), HasSubstr("the job was limited by storage"));
  EXPECT_EQ(text().find("as many threads"), std::string::npos);
  EXPECT_EQ(text().find("the nodes file says nothing"), std::string::npos);
  check.lacks_storage = true;
  EXPECT_THAT(text(), HasSubstr("by storage, of which the nodes file says nothing: write [storage] "
                                "bandwidth, iops or latency"));
  check.lacks_storage = false;
  check.limit = analysis::JobLimit::kWorkers;
  check.workers = 128.04;
  check.planned_workers = 256;
  EXPECT_THAT(text(), HasSubstr("with 128 workers on 30 hosts"));
  EXPECT_THAT(text(), HasSubstr("do not overlap; the model puts 256 workers on them"));
  check.workers = 1.52;
  EXPECT_THAT(text(), HasSubstr("with 1.5 workers on 30 hosts"));
  check.unavailable = "no rank has sent measurements";
  check.fix = "Report it again.";
  EXPECT_THAT(text(), HasSubstr("against job 'ctr': unavailable (no rank has sent measurements)"));
  json = nlohmann::json::parse(FleetJson(page));
  EXPECT_FALSE(json["check"].contains("measured"));
  EXPECT_FALSE(Json(made).contains("check"));
}

// No figure of a page may be one that is not a number.
void ExpectNoInfinity(const std::string& text) {
  EXPECT_FALSE(std::regex_search(text, std::regex("\\b(inf|nan)\\b"))) << text;
}

TEST(FleetPage, ReadsAsIntended) {
  const Made made = Make(kShared, {});
  ExpectGolden("fleet.txt", Text(made, 100));
  ExpectGolden("fleet.md", RenderMarkdown(MakeFleetReport(made.page())));
  ExpectNoInfinity(Text(made));
}

TEST(FleetPage, NothingReachesTheTarget) {
  const Made made = Make("[storage]\nbandwidth = \"10GB/s\"\n", 282000);
  ExpectGolden("fleet_short.txt", Text(made, 100));
  ExpectNoInfinity(Text(made));
  const nlohmann::json json = Json(made);
  EXPECT_EQ(json["feasible"], false);
  EXPECT_EQ(json["shortage"]["resource"], "storage_bandwidth");
  EXPECT_NEAR(json["shortage"]["most_rows_per_second"].get<double>(), 0.9 * 10e9 / 68.8e3, 1);
  EXPECT_FALSE(MakeFleetReport(made.page()).decided);
}

TEST(FleetPage, JsonHasWhatThePageSays) {
  const Made made = Make(kShared, {});
  const nlohmann::json json = Json(made);
  EXPECT_EQ(json["schema"], "headrace.fleet/1");
  EXPECT_EQ(json["run"], 7);
  EXPECT_EQ(json["target_rows_per_second"], 282000);
  EXPECT_EQ(json["counts"]["c-v1"], made.plan.counts[0]);
  EXPECT_EQ(json["row"]["memory_traffic_bytes"], nullptr);
  EXPECT_EQ(json["row"]["memory_traffic_bytes_unavailable"], Cost().no_traffic);
  EXPECT_EQ(json["not_limited_by"], nlohmann::json({"storage_requests"}));
  EXPECT_EQ(json["limits"][0]["resource"],
            analysis::FleetResourceKey(made.plan.bounds[0].resource));
  EXPECT_EQ(json["simulation"]["scenarios"].size(), made.simulation->scenarios.size());
  EXPECT_NEAR(json["simulation"]["rows_per_second"].get<double>(), 282000, 3000);
  EXPECT_EQ(json["nodes"].size(), 2u);
}

TEST(FleetPage, StarvedSurplusAndWorthlessNodesAreSaid) {
  const std::string starved = Text(Make(kShared, 100000, false));
  EXPECT_THAT(starved, HasSubstr("STARVED  the clients could take 282 k rows/s"));
  EXPECT_THAT(Text(Make(kShared, 400000, false)), HasSubstr("SURPLUS  the fleet could carry"));
  // 30 of c-v3 run, and the storage allows little more than they do.
  const std::string bound = Text(Make("[storage]\nbandwidth = \"20GB/s\"\n", 1, false));
  EXPECT_THAT(bound, HasSubstr("NOW      30 x c-v3 run at 45.00 USD an hour and carry"));
  EXPECT_THAT(bound, HasSubstr("more than the target; the plan saves"));
}

TEST(FleetPage, AShortageSaysOneRateAndWhoseItIs) {
  const std::string text = Text(Make(
      std::string("[storage]\nbandwidth = \"10GB/s\"\n") + "[clients]\ndemand = \"400000rows/s\"\n",
      {}));
  EXPECT_THAT(text, HasSubstr("DO       lower [clients] demand, or raise [storage] bandwidth"));
  EXPECT_THAT(text, HasSubstr("clients, slowed to 131 k rows/s, wait"));
  EXPECT_THAT(text, HasSubstr("STARVED  the clients could take 400 k rows/s: at 131 k rows/s they "
                              "wait 67.3 % of their time"));
}

TEST(FleetPage, SpeedsOfOperatorsThatAreNotThereAreSaid) {
  Made made = Make(kShared, {}, false);
  made.nodes.types[0].speed_of = {{"decod", 2}, {"hash", 2}, {"transform", 3}};
  const std::string text = Text(made, 300);
  EXPECT_THAT(text, HasSubstr("the speed of 'decod' that 'c-v1' gives cannot be used: the run has "
                              "the operators decode, hash"));
  EXPECT_THAT(text, Not(HasSubstr("the speed of 'transform'")));
}

TEST(FleetPage, WhatWasCutShortIsUnavailable) {
  Made made = Make(kShared, {});
  made.simulation->most_rows_per_s.reset();
  made.simulation->no_most = "its simulation took too many events";
  for (analysis::FleetScenario& scenario : made.simulation->scenarios)
    scenario.unavailable = "its simulation took too many events";
  const std::string text = Text(made, 300);
  EXPECT_THAT(text, HasSubstr("if clients took all is unavailable (its simulation took too many"));
  EXPECT_THAT(text, testing::ContainsRegex("LOSS .*: unavailable .its simulation took too many"));
  EXPECT_THAT(text, HasSubstr("lost: its simulation took too many events"));
  const nlohmann::json json = Json(made);
  EXPECT_EQ(json["simulation"]["most_rows_per_second"], nullptr);
  EXPECT_EQ(json["simulation"]["scenarios"][0]["rows_per_second_after"], nullptr);
  EXPECT_EQ(json["simulation"]["scenarios"][0]["unavailable"],
            "its simulation took too many events");
  made.simulation->unavailable = "it is too large";
  EXPECT_THAT(Text(made), HasSubstr("RUN      unavailable (it is too large)"));
  EXPECT_FALSE(Json(made).contains("simulation"));
  EXPECT_EQ(Json(made)["simulation_unavailable"], "it is too large");
}

TEST(FleetPage, NodesWithoutWattsHaveNoPower) {
  Made made;
  made.nodes = analysis::ParseNodes("[[node]]\nname = \"a\"\nprice_per_hour = 1\ncores = 4\n", "n");
  made.plan = analysis::PlanFleet(made.cost, made.nodes, 1e5);
  EXPECT_THAT(Text(made), HasSubstr("POWER    unavailable ('a' has no watts_idle and watts_peak)"));
  EXPECT_EQ(Json(made)["watts"], nullptr);
  EXPECT_THAT(Text(made), Not(HasSubstr("RUN ")));
  EXPECT_FALSE(Json(made).contains("simulation"));
}

}  // namespace
}  // namespace headrace::dashboards
