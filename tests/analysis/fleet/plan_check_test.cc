// What a model says of a job's nodes, beside what the job did.
#include "analysis/fleet/plan_check.h"

#include <gtest/gtest.h>

namespace headrace::analysis {
namespace {

constexpr int64_t kCheckedNs = 1'000'000'000;
constexpr int kCheckedSeconds = 20;

// Workers on `hosts` machines, and a rank that takes `rows` a second and waits for so much of it.
JobView JobOf(size_t hosts, int64_t rows, double wait) {
  JobView job;
  job.name = "made up";
  job.state = "complete";
  const auto add = [&](const char* role, const std::string& host) {
    Member member;
    member.role = role;
    member.host = host;
    member.host_cores = 8;
    member.duration_ns = kCheckedSeconds * kCheckedNs;
    member.stages = {"decode"};
    for (int second = 0; second < kCheckedSeconds; ++second) {
      MemberInterval one;
      one.start_ns = second * kCheckedNs;
      one.duration_ns = kCheckedNs;
      one.rows = rows + second % 3;
      one.steps = 10;
      one.wait_ns = static_cast<int64_t>(wait * kCheckedNs);
      one.compute_ns = kCheckedNs - one.wait_ns;
      one.stages = {{"decode", true, kCheckedNs, kCheckedNs, 0, 0, kCheckedNs, 0, 1}};
      member.intervals.push_back(one);
    }
    job.members.push_back(std::move(member));
  };
  for (size_t host = 0; host < hosts; ++host) add("worker", "node" + std::to_string(host));
  add("rank", "trainer");
  for (int second = 0; second < kCheckedSeconds; ++second) {
    JobInterval one;
    one.start_ns = second * kCheckedNs;
    one.duration_ns = one.running_ns = kCheckedNs;
    one.serving_ns = static_cast<int64_t>(hosts) * kCheckedNs;
    job.intervals.push_back(one);
  }
  return job;
}

struct Case {
  NodesFile nodes;
  FleetPlan plan;
};

// Nodes of eight cores that carry 8000 rows/s each, give or take 10 %.
Case CaseOf(int have) {
  RowCost cost;
  cost.operators = {{"decode", "decode"}};
  cost.figures.operator_cpu_s = {1e-3};
  cost.batch_rows = 100;
  cost.split_rows = 1000;
  cost.cores = 2;
  for (int i = 0; i < 200; ++i) cost.draws.push_back(cost.figures);
  Case made;
  made.nodes = ParseNodes(
      "[[node]]\nname = \"c\"\nprice_per_hour = 1\ncores = "
      "8\nspeed = 1\nhave = " +
          std::to_string(have) + "\n",
      "nodes.toml");
  made.plan = PlanFleet(cost, made.nodes, 1000);
  return made;
}

PlanCheck CheckOf(const JobView& job, const Case& made) {
  return CheckPlan(job, made.nodes, made.plan);
}

TEST(PlanCheck, ComparesTheNodesThatTheJobRanOnWithTheJob) {
  const PlanCheck near = CheckOf(JobOf(2, 15'800, 0.5), CaseOf(2));
  ASSERT_EQ(near.unavailable, "");
  EXPECT_NEAR(near.predicted, 16'000, 1);
  EXPECT_NEAR(near.measured, 15'801, 1);
  EXPECT_LE(near.measured_interval.low, near.measured);
  EXPECT_GE(near.measured_interval.high, near.measured);
  EXPECT_LT(near.predicted_interval.low, 15'500);
  EXPECT_NEAR(near.error_ratio, 0.0126, 1e-3);
  EXPECT_TRUE(near.agrees);
  // A storage that they share, whose bytes a row are as uncertain as the run's windows.
  Case shared = CaseOf(2);
  shared.plan.bounds.push_back({.resource = FleetResource::kStorageBandwidth,
                                .rows_per_s = 9'000,
                                .interval = {7'900, 9'900}});
  shared.plan.present->rows_per_s = 9'000;
  const PlanCheck stored = CheckOf(JobOf(2, 8'000, 0.5), shared);
  EXPECT_EQ(stored.predicted_interval.low, 7'900);
  EXPECT_EQ(stored.predicted_interval.high, 9'900);
  EXPECT_TRUE(stored.agrees);
  const PlanCheck far = CheckOf(JobOf(2, 8'000, 0.5), CaseOf(2));
  ASSERT_EQ(far.unavailable, "");
  EXPECT_NEAR(far.error_ratio, 1, 1e-3);
  EXPECT_FALSE(far.agrees);
  EXPECT_EQ(far.planned_workers, 2);
}

// Workers start and open the table before the first step: that is no rate of the nodes.
TEST(PlanCheck, ComparesWithTheJobFromItsFirstStepOn) {
  JobView job = JobOf(2, 16'000, 0.5);
  MemberInterval& first = job.members.back().intervals.front();
  first.rows = 100;
  first.steps = 1;
  first.wait_ns = 0;
  first.compute_ns = kCheckedNs / 100;
  EXPECT_NEAR(CheckOf(job, CaseOf(2)).measured, 16'001, 1);
  // One that was there all the time and got little is part of it.
  first.wait_ns = kCheckedNs - first.compute_ns;
  EXPECT_NEAR(CheckOf(job, CaseOf(2)).measured, 15'206, 1);
}

// Nobody's latency is exact.
TEST(PlanCheck, RequestsInFlightAreAsUncertainAsOtherLimits) {
  const NodesFile nodes = ParseNodes(
      "[storage]\nlatency = \"500ms\"\n[dispatcher]\nin_flight = 4\n"
      "[[node]]\nname = \"c\"\nprice_per_hour = 1\ncores = 8\nspeed = 1\nhave = 1\n",
      "nodes.toml");
  RowCost cost;
  cost.operators = {{"decode", "decode"}};
  cost.figures.operator_cpu_s = {1e-5};
  cost.figures.stored_bytes = 100;
  cost.split_rows = 1000;
  cost.cores = 2;
  const NodeFit fit = FitNode(cost, nodes.types[0], nodes);
  ASSERT_EQ(fit.bounds[0].resource, NodeResource::kRequests);
  EXPECT_EQ(fit.full_rows_per_s, 8000);
  EXPECT_NEAR(fit.bounds[0].interval.low, 8000 * 0.92, 200);
  EXPECT_NEAR(fit.bounds[0].interval.high, 8000 * 1.086, 200);
}

TEST(PlanCheck, SaysWhyAJobDoesNotShowWhatItsNodesCarry) {
  const auto why = [](const JobView& job, const Case& made) {
    const PlanCheck check = CheckOf(job, made);
    EXPECT_FALSE(check.fix.empty());
    EXPECT_EQ(check.predicted, 0);
    return check.unavailable;
  };
  EXPECT_EQ(why(JobOf(2, 8'000, 0.5), CaseOf(0)),
            "the nodes file does not say which nodes the job ran on");
  EXPECT_EQ(why(JobOf(2, 8'000, 0.5), CaseOf(3)),
            "the nodes file has 3 nodes that run now, and the job's workers "
            "ran on 2");
  JobView other = JobOf(2, 8'000, 0.5);
  other.members[1].host_cores = 64;
  EXPECT_EQ(
      why(other, CaseOf(2)),
      "the nodes that run now have 8 cores each in the nodes file, and the hosts of the job's "
      "workers 8 to 64");
  for (Member& member : other.members) member.cores = 8;  // all that it may use of its host
  EXPECT_EQ(CheckOf(other, CaseOf(2)).unavailable, "");
  // A quota that was the limit is the node, also on a host of as many cores as the file says.
  JobView quota = JobOf(1, 1'000, 0.5);
  for (Member& member : quota.members) {
    member.cores = 0.5;
    for (MemberInterval& one : member.intervals) one.throttled_ns = kCheckedNs / 2;
  }
  EXPECT_EQ(why(quota, CaseOf(1)),
            "a CPU quota left the job's workers 0.5 of their host's cores, and the nodes that run "
            "now have 8 each in the nodes file");
  for (Member& member : other.members) {
    for (MemberInterval& one : member.intervals) one.rows = 0;
  }
  EXPECT_EQ(why(other, CaseOf(2)), "the job's ranks took no rows");
  EXPECT_NE(why(JobOf(2, 8'000, 0.01), CaseOf(2)).find("the trainers themselves limited the job"),
            std::string::npos);
  JobView none;
  EXPECT_NE(why(none, CaseOf(2)).find("no rank has sent measurements"), std::string::npos);
}

}  // namespace
}  // namespace headrace::analysis
