// Who gets how many workers of a pool, and what stays where it is when jobs and machines come and
// go.
#include "reader/service/pool.h"

#include <gtest/gtest.h>

#include <initializer_list>
#include <map>
#include <random>
#include <set>
#include <string>
#include <vector>

namespace headrace::reader::service {
namespace {

constexpr int64_t kSecond = 1'000'000'000;

std::vector<double> Shares(const std::vector<Claim>& claims, double workers, double least = 1) {
  return FairShares(claims, workers, least);
}

TEST(FairShares, FollowWeightsAndLeaveNobodyMoreThanItWants) {
  const auto near = [](const std::vector<double>& is, const std::vector<double>& wanted) {
    ASSERT_EQ(is.size(), wanted.size());
    for (size_t i = 0; i < is.size(); ++i) EXPECT_NEAR(is[i], wanted[i], 1e-9) << i;
  };
  near(Shares({{1, 8}, {1, 8}}, 8), {4, 4});
  near(Shares({{3, 8}, {1, 8}}, 8), {6, 2});
  near(Shares({{3, 2}, {1, 8}}, 8), {2, 6});         // what one does not want the other gets
  near(Shares({{9, 8}, {1, 8}}, 8), {7, 1});         // one at least
  near(Shares({{9, 8}, {1, 8}}, 8, 0), {7.2, 0.8});  // where there are not as many workers
  near(Shares({{1, 8}, {2, 8}}, 8), {8.0 / 3, 16.0 / 3});
  near(Shares({{1, 3}, {5, 2}}, 8), {3, 2});  // all that they want
  near(Shares({{1, 0}, {1, 8}}, 8), {0, 8});
  near(Shares({{1, 8}}, 0, 0), {0});
  near(Shares({}, 8), {});
}

// Jobs and machines by their names, and what they were told.
class PoolWorld {
 public:
  explicit PoolWorld(PoolOptions options = {}) : pool(options) {}

  void Wants(const std::string& job, uint32_t workers, uint32_t weight = 1,
             const std::string& machine = "") {
    Send(PeerOf("job " + job), Want{job, PlaceOf(job, machine), machine, job, weight, workers});
  }
  // A folder can be reached on its machine alone.
  static std::string PlaceOf(const std::string& job, const std::string& machine = "") {
    return machine.empty() ? "tls:" + job + ":1" : "/" + job;
  }
  void Lends(const std::string& machine, uint32_t workers, std::vector<WorkersAt> running = {}) {
    const uint64_t peer = PeerOf("machine " + machine);
    offers[peer] = Offer{peer, machine, workers, std::move(running)};
    Send(peer, offers[peer]);
  }
  // One machine with so many workers, and jobs that each want all of them.
  void Begin(uint32_t workers, std::initializer_list<const char*> jobs) {
    Lends("a", workers);
    for (const char* job : jobs) Wants(job, workers);
    After(1);
  }
  void Send(uint64_t peer, const Message& message) {
    for (const Addressed& one : pool.Handle(peer, message, now))
      if (const auto* refused = std::get_if<Refused>(&one.message)) refusals.push_back(*refused);
  }
  uint64_t PeerOf(const std::string& name) { return peers.try_emplace(name, ++last).first->second; }
  void Loses(const std::string& name) {
    pool.Gone(peers.at(name), now);
    offers.erase(peers.at(name));
    peers.erase(name);
  }
  void After(double seconds) {
    for (const int64_t until = now + static_cast<int64_t>(seconds * kSecond); now < until;) {
      now += kSecond / 10;
      for (const auto& [peer, offer] : offers)
        if (!silent.contains(peer)) Send(peer, Alive{});
      for (const Addressed& one : pool.Tick(now)) {
        if (const auto* assign = std::get_if<Assign>(&one.message)) {
          assigned[one.peer] = assign->workers;
          ++assignments;
          if (!offers.contains(one.peer) || is_slow || silent.contains(one.peer)) continue;
          offers[one.peer].running = assign->workers;  // at once
          Send(one.peer, offers[one.peer]);
        } else if (const auto* grant = std::get_if<Grant>(&one.message)) {
          granted[one.peer] = *grant;
        }
      }
    }
  }
  uint32_t Has(const std::string& job) { return granted[peers.at("job " + job)].workers; }
  // What the machine was told to run for the job.
  uint32_t Runs(const std::string& machine, const std::string& job) {
    for (const WorkersAt& some : assigned[peers.at("machine " + machine)])
      if (some.place == "/" + job || some.place == PlaceOf(job)) return some.workers;
    return 0;
  }

  Pool pool;
  int64_t now = kSecond;
  std::map<std::string, uint64_t> peers;
  uint64_t last = 0;
  std::map<uint64_t, Offer> offers;
  std::set<uint64_t> silent;  // machines that say nothing
  bool is_slow = false;       // machines do not what they are told
  std::map<uint64_t, std::vector<WorkersAt>> assigned;
  std::map<uint64_t, Grant> granted;
  std::vector<Refused> refusals;
  int assignments = 0;
};

TEST(Pool, GivesByWeightAndWhatOneDoesNotWantToOthers) {
  PoolWorld world;
  world.Lends("a", 8);
  world.Wants("x", 8, 3);
  world.After(1);
  EXPECT_EQ(world.Has("x"), 8u);
  world.Wants("y", 8, 1);
  world.After(1);
  EXPECT_EQ(world.Has("x"), 6u);
  EXPECT_EQ(world.Has("y"), 2u);
  EXPECT_EQ(world.Runs("a", "x"), 6u);
  EXPECT_EQ(world.Runs("a", "y"), 2u);
  world.Wants("x", 1, 3);
  world.After(1);
  EXPECT_EQ(world.Has("x"), 1u);
  EXPECT_EQ(world.Has("y"), 7u);
  EXPECT_EQ(world.granted[world.peers.at("job y")].of, 8u);
  world.Send(world.PeerOf("job y"), Bye{});
  world.Wants("x", 9, 3);
  world.After(1);
  EXPECT_EQ(world.Has("x"), 8u);
}

TEST(Pool, MovesNothingWhereNothingChanges) {
  PoolWorld world;
  world.Lends("a", 5);
  world.Lends("b", 3);
  world.Wants("x", 8);
  world.Wants("y", 8);
  world.After(1);
  EXPECT_EQ(world.Has("x") + world.Has("y"), 8u);
  const int before = world.assignments;
  world.After(600);
  world.Wants("x", 7);  // of which it cannot have more than now
  world.After(600);
  EXPECT_EQ(world.assignments, before);
}

TEST(Pool, AShareThatIsNoWholeNumberIsMadeUpOverTime) {
  PoolWorld world;
  world.Lends("a", 8);
  world.Wants("x", 8, 1);
  world.Wants("y", 8, 2);
  double x = 0, y = 0;
  for (int tenth = 0; tenth < 9000; ++tenth) {
    world.After(0.1);
    x += world.Has("x");
    y += world.Has("y");
    EXPECT_EQ(world.Has("x") + world.Has("y"), 8u);
  }
  EXPECT_NEAR(x / 9000, 8.0 / 3, 0.05);
  EXPECT_NEAR(y / 9000, 16.0 / 3, 0.05);
  EXPECT_LE(world.assignments, 2 + 900 / 30);
}

TEST(Pool, MoreJobsThanWorkersTakeTurns) {
  PoolWorld world;
  world.Lends("a", 1);
  for (const char* job : {"x", "y", "z"}) world.Wants(job, 4);
  std::map<std::string, double> sum;
  for (int tenth = 0; tenth < 9000; ++tenth) {
    world.After(0.1);
    for (const char* job : {"x", "y", "z"}) sum[job] += world.Has(job);
  }
  for (const char* job : {"x", "y", "z"}) EXPECT_NEAR(sum[job] / 9000, 1.0 / 3, 0.05) << job;
}

TEST(Pool, AJobThatOneMachineAloneCanServeIsServedThere) {
  PoolWorld world;
  world.Lends("a", 4);
  world.Lends("b", 4);
  world.Wants("free", 4);
  world.After(1);  // on both
  world.Wants("bound", 8, 1, "a");
  world.After(1);
  EXPECT_EQ(world.Has("bound"), 4u);
  EXPECT_EQ(world.Has("free"), 4u);
  EXPECT_EQ(world.Runs("a", "bound"), 4u);
  EXPECT_EQ(world.Runs("b", "free"), 4u);
  // Two of them share that machine by weight, and get nothing elsewhere.
  world.Wants("other", 8, 3, "a");
  world.After(1);
  EXPECT_EQ(world.Has("bound"), 1u);
  EXPECT_EQ(world.Has("other"), 3u);
  EXPECT_EQ(world.Has("free"), 4u);
}

TEST(Pool, AMachineThatLeavesOrIsLostIsReplacedByWhatIsLeft) {
  PoolWorld world;
  world.Lends("a", 4);
  world.Lends("b", 4);
  world.Wants("x", 8);
  world.Wants("y", 8);
  world.After(1);
  world.Send(world.peers.at("machine a"), Drain{});
  world.After(1);
  EXPECT_TRUE(world.assigned[world.peers.at("machine a")].empty());
  EXPECT_EQ(world.Has("x"), 2u);
  EXPECT_EQ(world.Has("y"), 2u);
  EXPECT_TRUE(world.pool.status().machines[0].is_leaving);
  world.Loses("machine b");
  world.After(1);
  EXPECT_EQ(world.Has("x"), 0u);
}

TEST(Pool, AJobWhoseDispatcherIsGoneKeepsItsWorkersForAWhile) {
  PoolWorld world;
  world.Begin(4, {"x", "y"});
  world.Loses("job x");
  world.After(9);
  EXPECT_EQ(world.Has("y"), 2u);
  world.Wants("x", 4);  // it is back
  world.After(20);
  EXPECT_EQ(world.Has("x"), 2u);
  world.Loses("job x");
  world.After(11);
  EXPECT_EQ(world.Has("y"), 4u);
}

TEST(Pool, ANewPoolLeavesWhatRunsUntilTheJobsHadTimeToCome) {
  PoolWorld world;
  world.Lends("a", 4, {{PoolWorld::PlaceOf("x"), 2}, {PoolWorld::PlaceOf("y"), 2}});
  world.Wants("x", 4);
  world.After(5);
  EXPECT_EQ(world.Has("x"), 2u);
  EXPECT_EQ(world.Runs("a", "y"), 2u);
  world.Wants("y", 4);
  world.After(20);
  EXPECT_EQ(world.Runs("a", "y"), 2u);
  world.Loses("job y");
  world.After(11);
  EXPECT_EQ(world.Has("x"), 4u);
}

TEST(Pool, AMachineThatComesAgainBeforeItsConnectionIsKnownToBeDeadCountsOnce) {
  PoolWorld world;
  world.Lends("a", 4);
  world.offers[99] = Offer{world.peers.at("machine a"), "a", 4, {}};
  world.Send(99, world.offers[99]);
  world.offers.erase(world.peers.at("machine a"));
  world.After(1);
  EXPECT_EQ(world.pool.status().workers, 4u);
}

TEST(Pool, RefusesWhatCannotBeTrueAndSaysWhatItIs) {
  PoolWorld world;
  world.Send(1, Want{"x", "/x", "a", "x", 0, 1});
  world.Send(1, Want{"", "/x", "a", "x", 1, 1});
  world.Send(1, Want{std::string(400, 'x'), "/x", "a", "x", 1, 1});
  world.Send(1, Offer{1, "a", 1'000'000, {}});
  world.Send(1, Offer{1, "a", 1, {{std::string(400, 'x'), 1}}});
  world.Send(1, Want{"x", "--insecure", "a", "x", 1, 1});
  world.Send(1, Alive{});
  world.Send(1, Register{});
  ASSERT_EQ(world.refusals.size(), 8u);
  EXPECT_NE(world.refusals.back().fix.find("service lend"), std::string::npos);
  EXPECT_TRUE(world.pool.status().jobs.empty());
  EXPECT_TRUE(world.pool.status().machines.empty());
}

// Of one name on two machines: their folders are two.
TEST(Pool, JobsOfTheSameFolderOnTwoMachinesAreTwo) {
  PoolWorld world;
  world.Lends("a", 2);
  world.Lends("b", 2);
  for (const char* machine : {"a", "b"})
    world.Send(world.PeerOf(std::string("job of ") + machine),
               Want{"train", "/train", machine, machine, 1, 4});
  world.After(1);
  EXPECT_EQ(world.Runs("a", "train"), 2u);
  EXPECT_EQ(world.Runs("b", "train"), 2u);
  EXPECT_EQ(world.pool.status().jobs.size(), 2u);
}

TEST(Pool, ADispatcherThatComesBackElsewhereTakesOverWhatItHad) {
  PoolWorld world;
  world.Begin(4, {"x", "y"});
  world.Loses("job x");
  world.Send(world.PeerOf("job x again"), Want{"x", "tls:x:2", "", "x", 1, Want::kAsBefore});
  world.After(1);
  EXPECT_EQ(world.pool.status().jobs.size(), 2u);
  EXPECT_EQ(world.granted[world.peers.at("job x again")].workers, 2u);
  // One that nobody has heard of before wants none yet, and is told so.
  world.Send(world.PeerOf("job z"), Want{"z", "tls:z:1", "", "z", 1, Want::kAsBefore});
  world.After(1);
  EXPECT_EQ(world.granted[world.peers.at("job z")].workers, 0u);
  EXPECT_EQ(world.granted[world.peers.at("job z")].of, 4u);
}

TEST(Pool, WhoComesAndGoesWithoutAShareMovesNothing) {
  PoolWorld world;
  world.Lends("a", 3);
  world.Wants("x", 3);
  world.Wants("y", 3);
  world.After(31);
  const int before = world.assignments;
  for (int again = 0; again < 10; ++again) {
    world.Wants("bound", 3, 1, "nowhere");
    world.After(1.3);
    world.Send(world.PeerOf("job bound"), Bye{});
    world.After(1.2);
  }
  EXPECT_LE(world.assignments, before + 1);  // of the turn that ends meanwhile
}

// What runs is what counts: a worker that drains for long is still its job's.
TEST(Pool, AJobWhoseWorkersDoNotComeIsOwedThem) {
  PoolWorld world;
  world.Begin(3, {"x"});
  world.is_slow = true;
  world.Wants("y", 3);
  world.After(25);
  EXPECT_EQ(world.pool.status().jobs[0].running, 3u);
  world.is_slow = false;
  world.After(31);
  EXPECT_EQ(world.Has("y"), 2u);
}

TEST(Pool, AMachineThatSaysNothingLendsNothing) {
  PoolWorld world;
  world.Lends("a", 2);
  world.Lends("b", 2);
  world.Wants("x", 4);
  world.After(1);
  world.silent.insert(world.peers.at("machine a"));
  world.After(6);
  EXPECT_EQ(world.Has("x"), 2u);
  EXPECT_EQ(world.pool.status().workers, 2u);
  world.silent.clear();
  world.After(1);
  EXPECT_EQ(world.Has("x"), 4u);
}

TEST(Pool, WhoComesWhileItPartsIsSentAway) {
  PoolWorld world;
  world.Lends("a", 2);
  world.Wants("x", 4);
  world.After(1);
  EXPECT_EQ(world.pool.BeginParting().size(), 1u);
  const auto said = world.pool.Handle(98, Offer{98, "b", 2, {}}, world.now);
  ASSERT_EQ(said.size(), 1u);
  EXPECT_TRUE(std::holds_alternative<Bye>(said[0].message));
  world.Wants("y", 4);
  world.After(1);
  EXPECT_EQ(world.Has("y"), 0u);
  EXPECT_EQ(world.Runs("a", "y"), 0u);
}

// Whatever comes and goes: no machine runs more than it lends, or anything for a job that it cannot
// serve; no job gets more than it wants; no worker is idle that somebody who may have it wants.
TEST(Pool, HoldsItsRulesWhateverComesAndGoes) {
  for (uint64_t seed = 1; seed <= 200; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937_64 draw(seed);
    const auto below = [&](uint64_t most) { return draw() % most; };
    PoolWorld world;
    std::map<std::string, Want> jobs;
    std::map<std::string, uint32_t> machines;
    for (int step = 0; step < 60; ++step) {
      const std::string name(1, static_cast<char>('a' + below(4)));
      switch (below(6)) {
        case 0:
          if (machines.erase(name) > 0) world.Loses("machine " + name);
          break;
        case 1:
        case 2:
          machines[name] = static_cast<uint32_t>(below(6));
          world.Lends(name, machines[name]);
          break;
        case 3:
          if (jobs.erase(name) > 0) {
            world.Send(world.PeerOf("job " + name), Bye{});
            world.peers.erase("job " + name);
          }
          break;
        default:
          jobs[name].job = name;
          jobs[name].machine =
              below(3) == 0 ? std::string(1, static_cast<char>('a' + below(4))) : "";
          jobs[name].weight = static_cast<uint32_t>(1 + below(4));
          jobs[name].workers = static_cast<uint32_t>(below(9));
          world.Wants(name, jobs[name].workers, jobs[name].weight, jobs[name].machine);
      }
      world.After(below(3) == 0 ? 40 : 0.2);
      std::map<std::string, uint32_t> got;
      std::map<std::string, uint32_t> free;
      for (const auto& [machine, lent] : machines) {
        uint32_t all = 0;
        for (const WorkersAt& some : world.assigned[world.peers.at("machine " + machine)]) {
          const Want& job =
              jobs.at(some.place.starts_with('/') ? some.place.substr(1) : some.place.substr(4, 1));
          EXPECT_TRUE(job.machine.empty() || job.machine == machine);
          all += some.workers;
          got[job.job] += some.workers;
        }
        EXPECT_LE(all, lent);
        free[machine] = lent - std::min(lent, all);
      }
      for (const auto& [name_of, job] : jobs) {
        EXPECT_LE(got[name_of], job.workers);
        EXPECT_EQ(got[name_of], world.Has(name_of));
        if (got[name_of] == job.workers) continue;
        for (const auto& [machine, room] : free) {
          if (!job.machine.empty() && job.machine != machine) continue;
          EXPECT_EQ(room, 0u) << machine;
        }
      }
    }
  }
}

}  // namespace
}  // namespace headrace::reader::service
