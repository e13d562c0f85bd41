// Limits of control groups from files to statements: a tree of version 2 is read by the probe, and
// what it gave is the quota, the stops and the memory that analysis speaks of.
#include "analysis/run/control_groups.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>

#include "analysis/run/cpu_quota.h"
#include "base/registry.h"
#include "probes/probe.h"

namespace headrace::analysis {
namespace {

namespace fs = std::filesystem;

// A copy of the fixture whose process 4242 is in /pipeline/job below /pipeline.
class GroupTree {
 public:
  GroupTree() {
    std::string pattern = testing::TempDir() + "/headrace-groups-XXXXXX";
    root_ = mkdtemp(pattern.data());
    fs::copy(fs::path(HEADRACE_SOURCE_DIR) / "tests/data/host/full", root_,
             fs::copy_options::recursive | fs::copy_options::copy_symlinks);
  }
  ~GroupTree() { fs::remove_all(root_); }

  void Write(const std::string& file, const std::string& text) const {
    std::ofstream(root_ / "sys/fs/cgroup" / file) << text;
  }
  const fs::path& root() const { return root_; }

 private:
  fs::path root_;
};

// The run's rows as the store would have them at its end.
class RowSink : public probes::Sink {
 public:
  explicit RowSink(RunView* run) : run_(run) {}
  void Add(const probes::Measurement& m) override {
    MeasurementRow row;
    row.metric = m.metric;
    row.subject = m.labels.subject;
    row.cause = m.labels.cause;
    row.value = row.last_value = m.value;
    run_->measurements.push_back(row);
  }
  void AddStack(const probes::StackSample&) override {}
  void Lost(std::string_view, int64_t, std::optional<int64_t>) override {}

 private:
  RunView* run_;
};

// A run in the tree in which `during` changes its files.
RunView RunIn(const GroupTree& tree, const std::function<void()>& during) {
  RunView run;
  run.run.cores_count = 16;
  run.run.cores_bound_by = "affinity";
  run.run.memory_bytes = int64_t{64} << 30;
  run.run.memory_bound_by = "physical memory";
  const probes::Host host(tree.root());
  probes::Target target;
  target.root_pid = 4242;
  target.pids = {4242};
  const auto probe = Registry<probes::ProbeInfo>::Global().Find("cgroup")->make();
  EXPECT_TRUE(probe->Start(host, target).usable());
  during();
  RowSink sink(&run);
  probe->Read(sink);
  return run;
}

TEST(ControlGroups, TheQuotaOfVersionTwoIsTheCapacity) {
  const GroupTree tree;
  tree.Write("pipeline/cpu.stat",
             "usage_usec 1\nnr_periods 100\nnr_throttled 10\nthrottled_usec 7\n");
  RunView run = RunIn(tree, [&] {
    tree.Write("pipeline/cpu.stat",
               "usage_usec 1\nnr_periods 200\nnr_throttled 85\nthrottled_usec 4000007\n");
  });
  const std::optional<CpuQuota> quota = CpuQuotaOf(run, 1.4);
  ASSERT_TRUE(quota);
  EXPECT_DOUBLE_EQ(quota->cores, 1.5) << "of the group above";
  EXPECT_NEAR(quota->stopped_ratio.value_or(-1), 0.75, 1e-9) << "of the periods of that group";
  const CoreBudget budget = CoreBudgetOf(run, 1.4);
  EXPECT_DOUBLE_EQ(budget.cores.value_or(0), 1.5);
  EXPECT_EQ(budget.bound_by, "CPU quota");
  EXPECT_FALSE(CpuQuotaOf(run, 6.0)) << "processes that used more had another one";
}

TEST(ControlGroups, TheLeastMemoryOfVersionTwoIsTheRoom) {
  const GroupTree tree;  // memory.max of 8 GiB above, memory.high of 6 GiB in it
  RunView run = RunIn(tree, [] {});
  EXPECT_EQ(MemoryOfGroups(run), 6442450944.0);
  LowerToGroups(&run);
  EXPECT_EQ(run.run.memory_bytes, 6442450944);
  EXPECT_EQ(run.run.memory_bound_by, "cgroup limit");
  tree.Write("pipeline/memory.high", "1073741824\n");
  run = RunIn(tree, [] {});
  EXPECT_EQ(MemoryOfGroups(run), 1073741824.0) << "it binds the group below as well";
}

TEST(ControlGroups, WithoutLimitsTheMachineIsTheRoom) {
  const GroupTree tree;
  for (const char* file : {"pipeline/memory.max", "pipeline/job/memory.high"}) {
    tree.Write(file, "max\n");
  }
  tree.Write("pipeline/cpu.max", "max 100000\n");
  RunView run = RunIn(tree, [] {});
  EXPECT_FALSE(MemoryOfGroups(run));
  EXPECT_FALSE(CpuQuotaOf(run, 1.0));
  LowerToGroups(&run);
  EXPECT_EQ(run.run.memory_bytes, int64_t{64} << 30);
  EXPECT_EQ(run.run.memory_bound_by, "physical memory");
}

TEST(ControlGroups, LimitsSideBySideBindNobodyAlone) {
  EXPECT_TRUE(EachWithinTheOther({}));
  EXPECT_TRUE(EachWithinTheOther({"/a/b/c", "/", "/a"}));
  EXPECT_TRUE(EachWithinTheOther({"/a", "/a"}));
  EXPECT_FALSE(EachWithinTheOther({"/a", "/b"}));
  EXPECT_FALSE(EachWithinTheOther({"/a", "/ab"})) << "a name that begins alike";
  RunView run;
  for (const char* group : {"/a", "/b"}) {
    MeasurementRow row;
    row.metric = "cgroup_memory_limit_bytes";
    row.subject = group;
    row.value = row.last_value = 1e9;
    run.measurements.push_back(row);
  }
  EXPECT_FALSE(MemoryOfGroups(run));
}

}  // namespace
}  // namespace headrace::analysis
