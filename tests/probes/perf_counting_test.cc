// Counter groups, turns and scaling, against scripts and a simulated PMU whose truth is known.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <random>
#include <set>

#include "probes/perf/backend.h"
#include "probes/perf/counting.h"
#include "probes/perf/group.h"
#include "probes/perf/process_counters.h"
#include "tests/probes/perf_simulated_pmu.h"
#include "tests/seed.h"

namespace headrace::probes::perf {
namespace {

constexpr uint64_t kRange = uint64_t{1} << 48;

EventPlan PlanOf(const std::vector<std::vector<EventCode>>& groups) {
  EventPlan plan;
  for (const auto& codes : groups) {
    EventPlan::Group group;
    for (const EventCode& code : codes) {
      group.names.push_back(fmt::format("{}:{:x}", code.type, code.config));
      group.codes.push_back(code);
    }
    plan.groups.push_back(group);
  }
  return plan;
}

TEST(CounterDelta, WrapsAt48BitsAndRefusesFalls) {
  struct Case {
    uint64_t before, now;
    bool ok;
    uint64_t delta;
  };
  for (const Case& c : {Case{0, 0, true, 0},
                        {5, 7, true, 2},
                        {kRange - 3, 4, true, 7},
                        {kRange - 1, 0, true, 1},
                        {100, 50, false, 0},
                        {kRange + 5, 7, false, 0},  // wider than 48 bits: it does not wrap there
                        {kRange - 3, kRange + 4, true, 7},
                        {UINT64_MAX, 0, false, 0}}) {
    uint64_t delta = 0;
    EXPECT_EQ(CounterDelta(c.before, c.now, &delta), c.ok) << c.before << " " << c.now;
    if (c.ok) {
      EXPECT_EQ(delta, c.delta);
    }
  }
}

TEST(CounterGroup, GivesDeltasOfScriptedReadings) {
  FakeBackend fake;
  fake.scripts[kCycles] = {0, 0, {{100, 10, 10}, {250, 30, 20}, {250, 40, 20}, {300, 60, 40}}, -1};
  fake.scripts[kInstructions] = {0, 0, {{1000, 0, 0}, {1500, 0, 0}, {1500, 0, 0}, {1, 0, 0}}, -1};
  CounterGroup group(fake);
  ASSERT_TRUE(group.Open({}, std::vector<EventCode>{kCycles, kInstructions}).ok());
  GroupDelta d = group.Read();
  EXPECT_EQ(d.status, GroupDelta::Status::kCounted);
  EXPECT_EQ(d.counts, (std::vector<uint64_t>{100, 1000}));
  d = group.Read();
  EXPECT_EQ(d.counts, (std::vector<uint64_t>{150, 500}));
  EXPECT_EQ(d.enabled_ns, 20u);
  EXPECT_EQ(d.running_ns, 10u);
  d = group.Read();  // enabled, never on the PMU: unknown, not 0
  EXPECT_EQ(d.status, GroupDelta::Status::kNotScheduled);
  EXPECT_TRUE(d.counts.empty());
  EXPECT_EQ(d.enabled_ns, 10u);
  EXPECT_EQ(group.Read().status, GroupDelta::Status::kDamaged);  // 1500 -> 1
  group.Close();
  EXPECT_EQ(fake.num_open(), 0u);
  EXPECT_EQ(group.Read().status, GroupDelta::Status::kFailed);
}

TEST(CounterGroup, ClosesAllWhenOneIsRefused) {
  FakeBackend fake;
  fake.scripts[kCycles].open_errno = 0;
  fake.scripts[kInstructions].member_errno = EINVAL;
  CounterGroup group(fake);
  const auto opened = group.Open({}, std::vector<EventCode>{kCycles, kInstructions});
  EXPECT_EQ(opened.error, EINVAL);
  EXPECT_EQ(opened.refused, 1u);
  EXPECT_EQ(fake.num_open(), 0u);
}

// A backend that gives back whatever a test wants.
class DamagedBackend final : public PerfBackend {
 public:
  std::vector<uint64_t> words;
  int64_t size = 0;
  int Open(const OpenRequest&) override { return 7 + num_++; }
  uint64_t Id(int handle) override { return static_cast<uint64_t>(handle); }
  int64_t Read(int, uint64_t* to, size_t num_words) override {
    std::copy_n(words.begin(), std::min(words.size(), num_words), to);
    return size;
  }
  int Enable(int) override { return 0; }
  int Disable(int) override { return 0; }
  void Close(int) override {}

 private:
  int num_ = 0;
};

TEST(CounterGroup, SurvivesDamagedReadings) {
  using Status = GroupDelta::Status;
  struct Case {
    std::vector<uint64_t> words;
    int64_t size;
    Status status;
  };
  const uint64_t huge = UINT64_MAX;
  for (const Case& c : std::vector<Case>{
           {{2, 9, 9, 1, 7, 2, 8}, 56, Status::kCounted},
           {{2, 9, 9, 2, 8, 1, 7}, 56, Status::kCounted},  // another order
           {{2, 9, 9, 1, 7, 2, 7}, 56, Status::kDamaged},  // an id that is not ours
           {{2, 9, 9, 1, 7, 2, 8}, 40, Status::kDamaged},  // short
           {{3, 9, 9, 1, 7, 2, 8}, 56, Status::kDamaged},  // another number of events
           {{huge, 9, 9, 1, 7, 2, 8}, 56, Status::kDamaged},
           {{2, 9, huge, 1, 7, 2, 8}, 56, Status::kDamaged},  // ran longer than it was enabled
           {{2, 9, 0, 1, 7, 2, 8}, 56, Status::kNotScheduled},
           {{}, 0, Status::kLost},
           {{}, -EBADF, Status::kFailed}}) {
    DamagedBackend backend;
    CounterGroup group(backend);
    ASSERT_TRUE(group.Open({}, std::vector<EventCode>{kCycles, kInstructions}).ok());
    backend.words = c.words;
    backend.size = c.size;
    const GroupDelta d = group.Read();
    EXPECT_EQ(d.status, c.status);
    EXPECT_EQ(d.counts.empty(), c.status != Status::kCounted);
    if (!d.counts.empty()) {
      EXPECT_EQ(d.counts, (std::vector<uint64_t>{1, 2}));
    }
  }
}

TEST(Recorded, CountsDamagedLinesAndPlaysTheRest) {
  RecordedBackend recorded(
      "# a machine\nevent 0 0 ok\nevent 0 0x1 ok\nread 0 0 100 10 10\nread 0 1 200 10 10\n"
      "event 4 0x37 2\nread 9 9 1 1 1\nnonsense\nevent 0 0\nevent 5000000000 0 ok\nread 0 0 x 1 1\n"
      "\x01\xff\n");
  EXPECT_EQ(recorded.damaged_lines(), 6);
  CounterGroup group(recorded);
  ASSERT_TRUE(group.Open({}, std::vector<EventCode>{kCycles, kInstructions}).ok());
  EXPECT_EQ(group.Read().counts, (std::vector<uint64_t>{100, 200}));
  EXPECT_EQ(group.Open({}, std::vector<EventCode>{Raw(0x37)}).error, ENOENT);
}

double Scaled(const Totals& totals, size_t group, size_t event) {
  return totals[group].scaled[event];
}

TEST(ThreadCounters, PropertyScaledSumsEqualTheTruth) {
  std::mt19937_64 random(TestSeed());
  const auto pick = [&](uint64_t from, uint64_t to) {
    return std::uniform_int_distribution<uint64_t>(from, to)(random);
  };
  for (int round = 0; round < 60; ++round) {
    SimulatedPmu pmu(pick(4, 8));
    std::vector<std::vector<EventCode>> groups = {{kCycles, kInstructions}};
    pmu.rates[kCycles] = 3;
    pmu.rates[kInstructions] = 1.0 + static_cast<double>(pick(0, 100)) / 25;
    uint64_t code = 1;
    for (uint64_t g = pick(0, 5); g > 0; --g) {
      std::vector<EventCode> group = {kInstructions};
      for (uint64_t e = pick(1, 3); e > 0; --e) {
        group.push_back(Raw(code));
        pmu.rates[Raw(code++)] = static_cast<double>(pick(1, 1000)) / 1000;
      }
      if (group.size() > 2 + 0u) group.resize(std::min<size_t>(group.size(), 2 + pick(0, 2)));
      groups.push_back(group);
    }
    const EventPlan plan = PlanOf(groups);
    ThreadCounters counters(pmu, plan);
    OpenRequest where;
    where.tid = 100;
    ASSERT_EQ(counters.Open(where, false), 0);
    Totals totals = MakeTotals(plan);
    size_t active = plan.groups.size() > 1 ? 1 : 0;
    counters.Rotate(active);
    const uint64_t windows = plan.groups.size() * pick(3, 12);
    for (uint64_t w = 0; w < windows; ++w) {
      pmu.Run(100, pick(0, 3) == 0 ? 0 : pick(1, 200) * 1'000'000);
      BeginInterval(&totals);
      ASSERT_TRUE(counters.Read(&totals));
      if (plan.groups.size() > 1) counters.Rotate(active = active % (plan.groups.size() - 1) + 1);
    }
    // One more turn for each, so that no time is left that its group has not settled.
    for (size_t g = 0; g < plan.groups.size(); ++g) {
      pmu.Run(100, 50'000'000);
      ASSERT_TRUE(counters.Read(&totals));
      if (plan.groups.size() > 1) counters.Rotate(active = active % (plan.groups.size() - 1) + 1);
    }
    for (size_t g = 0; g < plan.groups.size(); ++g) {
      // Time since the last turn of a group waits for its next one.
      const double waiting = g == 0 ? 0 : 50e6 * static_cast<double>(plan.groups.size());
      for (size_t e = 0; e < plan.groups[g].codes.size(); ++e) {
        const EventCode& c = plan.groups[g].codes[e];
        const double truth = pmu.truth.at(c);
        const bool fits = g == 0 || 2 + plan.groups[g].codes.size() <= 4;
        if (!totals[g].known()) {
          EXPECT_EQ(Scaled(totals, g, e), 0);  // unknown: nothing is said of it
          EXPECT_FALSE(fits);
          continue;
        }
        EXPECT_LE(Scaled(totals, g, e), truth * 1.000001 + 10) << g << " " << e;
        EXPECT_GE(Scaled(totals, g, e), truth - pmu.rates.at(c) * waiting - 10) << g << " " << e;
        EXPECT_GT(totals[g].running_ratio(), 0);
        EXPECT_LE(totals[g].running_ratio(), 1);
      }
      if (g > 0 && totals[g].fresh && totals[g].turn_base[1] > 0) {
        // Co-scheduled: the ratio within a turn is exact.
        EXPECT_NEAR(totals[g].turn[0] / totals[g].turn_base[1], 1, 1e-3);
      }
    }
    EXPECT_EQ(totals[0].running_ratio(), 1);
  }
}

TEST(ThreadCounters, OneGroupTakesTurnsAtATime) {
  FakeBackend fake;
  for (const EventCode& c : {kCycles, kInstructions, Raw(1), Raw(2), Raw(3)}) {
    fake.scripts[c] = {0, 0, {{1, 1, 1}}, -1};
  }
  const EventPlan plan = PlanOf({{kCycles, kInstructions}, {Raw(1)}, {Raw(2)}, {Raw(3)}});
  ThreadCounters counters(fake, plan);
  ASSERT_EQ(counters.Open({}, false), 0);
  EXPECT_EQ(fake.num_enabled(), 1u);
  for (size_t g : {1, 2, 3, 1}) {
    counters.Rotate(g);
    EXPECT_EQ(fake.num_enabled(), 2u);  // the base and one other
  }
  EXPECT_EQ(counters.num_handles(), 5u);
  EXPECT_TRUE(fake.requests()[0].pinned);
  EXPECT_FALSE(fake.requests()[2].pinned);
  counters.Close();
  EXPECT_EQ(fake.num_open(), 0u);
}

TEST(ThreadCounters, NeverScheduledStaysUnknown) {
  SimulatedPmu pmu(4);
  pmu.rates = {{kCycles, 3}, {kInstructions, 2}, {Raw(1), 1}, {Raw(2), 1}, {Raw(3), 1}};
  const EventPlan plan = PlanOf({{kCycles, kInstructions}, {Raw(1), Raw(2), Raw(3)}});
  ThreadCounters counters(pmu, plan);  // 2 + 3 counters do not fit 4
  OpenRequest where;
  where.tid = 1;
  ASSERT_EQ(counters.Open(where, false), 0);
  counters.Rotate(1);
  Totals totals = MakeTotals(plan);
  pmu.Run(1, 100'000'000);
  ASSERT_TRUE(counters.Read(&totals));
  EXPECT_TRUE(totals[0].known());
  EXPECT_FALSE(totals[1].known());
  EXPECT_FALSE(totals[1].fresh);
  EXPECT_EQ(totals[1].running_ratio(), 0);
}

TEST(ThreadCounters, ReopensALostBaseAndGivesUpInTheEnd) {
  SimulatedPmu pmu(4);
  pmu.rates = {{kCycles, 3}, {kInstructions, 2}};
  const EventPlan plan = PlanOf({{kCycles, kInstructions}});
  ThreadCounters counters(pmu, plan);
  OpenRequest where;
  where.tid = 1;
  ASSERT_EQ(counters.Open(where, false), 0);
  Totals totals = MakeTotals(plan);
  pmu.Run(1, 10'000'000);
  ASSERT_TRUE(counters.Read(&totals));
  EXPECT_EQ(Scaled(totals, 0, 0), 30e6);
  pmu.take_pinned = true;
  pmu.Run(1, 10'000'000);
  ASSERT_TRUE(counters.Read(&totals));  // lost, and opened anew
  pmu.take_pinned = false;
  pmu.Run(1, 10'000'000);
  ASSERT_TRUE(counters.Read(&totals));
  EXPECT_EQ(Scaled(totals, 0, 0), 60e6);  // what nobody counted is not invented
  EXPECT_EQ(counters.reopens(), 1);
  pmu.take_pinned = true;
  bool counts = true;
  for (int i = 0; i < 5 && counts; ++i) {
    pmu.Run(1, 10'000'000);
    counts = counters.Read(&totals);
  }
  EXPECT_FALSE(counts);
  EXPECT_EQ(pmu.num_open(), 0u);
}

// A root folder with processes and threads in /proc.
class FakeProcesses {
 public:
  FakeProcesses() {
    std::string name = std::filesystem::temp_directory_path() / "hr_perf_XXXXXX";
    root_ = mkdtemp(name.data());
  }
  ~FakeProcesses() { std::filesystem::remove_all(root_); }
  void Add(int64_t pid, const std::vector<int64_t>& tids) {
    for (const int64_t tid : tids) {
      std::filesystem::create_directories(fmt::format("{}/proc/{}/task/{}", root_, pid, tid));
    }
  }
  void Remove(int64_t pid, int64_t tid) {
    std::filesystem::remove_all(fmt::format("{}/proc/{}/task/{}", root_, pid, tid));
  }
  Host host() const { return Host(root_); }

 private:
  std::string root_;
};

TEST(ProcessCounters, FollowsProcessesAndThreads) {
  for (const bool inherit : {true, false}) {
    FakeProcesses processes;
    processes.Add(10, {10, 11});
    SimulatedPmu pmu(4);
    pmu.rates = {{kCycles, 3}, {kInstructions, 2}};
    pmu.can_inherit = inherit;
    EventPlan plan = PlanOf({{kCycles, kInstructions}});
    plan.inherit = inherit;
    ProcessCounters counters(pmu, plan);
    Target target;
    target.pids = {10};
    const Host host = processes.host();
    const auto read = [&] {
      counters.Follow(host, target);
      counters.Read();
    };
    read();
    pmu.Run(10, 5'000'000);
    pmu.Run(11, 5'000'000);
    processes.Add(10, {12});  // inherited: counted with its parent
    processes.Add(20, {20});
    target.pids = {10, 20};
    read();
    EXPECT_EQ(counters.threads_attached(), inherit ? 3 : 4);
    EXPECT_EQ(counters.processes().at(10).totals[0].scaled[0], 30e6);
    EXPECT_FALSE(counters.processes().at(20).totals[0].known());
    pmu.Run(20, 1'000'000);
    processes.Remove(10, 11);
    target.pids = {10};
    read();  // 20 has ended: what it counted is still there, its files are not
    EXPECT_EQ(counters.processes().at(20).totals[0].scaled[1], 2e6);
    EXPECT_EQ(counters.num_handles(), 4u);
    read();
    EXPECT_EQ(counters.processes().count(20), 0u);
    EXPECT_EQ(pmu.num_open(), counters.num_handles());
    counters.Close();
    EXPECT_EQ(pmu.num_open(), 0u);
  }
}

TEST(ProcessCounters, HoldsTheBoundOfOpenFiles) {
  FakeProcesses processes;
  std::vector<int64_t> tids;
  for (int64_t tid = 100; tid < 400; ++tid) tids.push_back(tid);
  processes.Add(100, tids);
  SimulatedPmu pmu(6);
  pmu.rates = {{kCycles, 3}, {kInstructions, 2}, {Raw(1), 1}, {Raw(2), 1}};
  const EventPlan plan = PlanOf({{kCycles, kInstructions}, {Raw(1)}, {Raw(2)}});
  ProcessCounters counters(pmu, plan, {{}, 101, true});
  Target target;
  target.pids = {100};
  counters.Follow(processes.host(), target);
  EXPECT_LE(pmu.num_open(), 101u);
  EXPECT_EQ(counters.num_handles(), pmu.num_open());
  EXPECT_EQ(counters.threads_attached(), 25);
  EXPECT_EQ(counters.threads_without_room(), 275);
  counters.Close();
  // The kernel's own bound is met the same way.
  pmu.open_limit = 9;
  ProcessCounters few(pmu, plan, {{}, 4096, true});
  few.Follow(processes.host(), target);
  EXPECT_EQ(few.last_error(), EMFILE);
  EXPECT_GT(few.threads_attached(), 0);
  EXPECT_EQ(few.threads_attached() + few.threads_without_room(), 300);
}

TEST(ProcessCounters, CountsThreadsThatMayNotBeCounted) {
  FakeProcesses processes;
  processes.Add(10, {10, 11});
  SimulatedPmu pmu(4);
  pmu.rates = {{kCycles, 3}, {kInstructions, 2}};
  pmu.refused_tids = {11};
  ProcessCounters counters(pmu, PlanOf({{kCycles, kInstructions}}));
  Target target;
  target.pids = {10};
  counters.Follow(processes.host(), target);
  EXPECT_EQ(counters.threads_attached(), 1);
  EXPECT_EQ(counters.threads_refused(), 1);
  EXPECT_EQ(counters.last_error(), EACCES);
}

}  // namespace
}  // namespace headrace::probes::perf
