// Why counters are not to be had, in words; and the proof that they count.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cerrno>
#include <filesystem>
#include <fstream>

#include "probes/perf/availability.h"
#include "probes/perf/backend.h"
#include "tests/probes/perf_simulated_pmu.h"

namespace headrace::probes::perf {
namespace {

using testing::HasSubstr;

TEST(CounterAvailability, SaysWhyAndWhatWouldChangeIt) {
  Surroundings bare, guest, strict, filtered, boxed, locked, watched;
  bare.paranoid = guest.paranoid = filtered.paranoid = boxed.paranoid = 2;
  guest.hypervisor = "QEMU";
  strict.paranoid = 4;
  filtered.seccomp = true;
  boxed.container = true;
  locked.lockdown = true;
  watched.nmi_watchdog = true;
  struct Case {
    int error;
    Role role;
    bool others;
    Surroundings around;
    CounterState state;
    const char *reason, *fix;
  };
  for (const Case& c : std::vector<Case>{
           {ENOENT, Role::kAlone, false, guest, CounterState::kNoPmu,
            "No such file or directory: QEMU shows this guest no PMU", "virtual PMU"},
           {ENOENT, Role::kAlone, false, bare, CounterState::kNoPmu, "knows no PMU", "PMU driver"},
           {ENODEV, Role::kAlone, false, guest, CounterState::kNoPmu, "No such device", "pmu=on"},
           {EOPNOTSUPP, Role::kAlone, false, bare, CounterState::kNoPmu, "not supported", "driver"},
           {ENOENT, Role::kMember, true, guest, CounterState::kNoSuchEvent,
            "this PMU does not count it", "a CPU"},
           {EACCES, Role::kAlone, false, strict, CounterState::kDenied,
            "Permission denied: kernel.perf_event_paranoid=4",
            "sysctl kernel.perf_event_paranoid=2"},
           {EACCES, Role::kAlone, false, bare, CounterState::kDenied, "paranoid=2",
            "target's own user"},
           {EPERM, Role::kAlone, false, filtered, CounterState::kDenied, "a seccomp filter",
            "--security-opt seccomp="},
           {EPERM, Role::kAlone, false, boxed, CounterState::kDenied, "the container",
            "--cap-add PERFMON"},
           {EPERM, Role::kAlone, false, bare, CounterState::kDenied, "Operation not permitted",
            "CAP_PERFMON"},
           {EPERM, Role::kAlone, false, locked, CounterState::kDenied, "lockdown", "integrity"},
           {EBUSY, Role::kAlone, false, watched, CounterState::kBusy, "another program",
            "kernel.nmi_watchdog=0"},
           {EBUSY, Role::kAlone, false, bare, CounterState::kBusy, "busy", "end other profilers"},
           {EINVAL, Role::kMember, true, watched, CounterState::kTooMany, "more events than",
            "nmi_watchdog"},
           {EINVAL, Role::kAlone, true, bare, CounterState::kRefused, "does not know the event",
            "newer kernel"},
           {EMFILE, Role::kAlone, true, bare, CounterState::kNoDescriptors, "Too many open files",
            "ulimit -n"},
           {ENFILE, Role::kAlone, true, bare, CounterState::kNoDescriptors, "in system",
            "fs.file-max"},
           {ENOSYS, Role::kAlone, false, bare, CounterState::kNoSystemCall, "not implemented",
            "CONFIG_PERF_EVENTS"},
           {ENOMEM, Role::kAlone, false, bare, CounterState::kRefused, "allocate memory", ""}}) {
    const CounterAvailability why = ExplainOpen(c.error, "cycles", c.role, c.others, c.around);
    EXPECT_EQ(why.state, c.state) << why.reason;
    EXPECT_THAT(why.reason, HasSubstr("perf_event_open(cycles): "));
    EXPECT_THAT(why.reason, HasSubstr(c.reason));
    EXPECT_THAT(why.fix, HasSubstr(c.fix)) << why.reason;
    EXPECT_NE(CounterStateName(why.state), "");
  }
  EXPECT_TRUE(ExplainOpen(0, "cycles", Role::kAlone, false, bare).ok());
}

TEST(LookAround, ReadsAFixture) {
  std::string root = std::filesystem::temp_directory_path() / "hr_perf_XXXXXX";
  mkdtemp(root.data());
  const auto write = [&](const std::string& path, std::string_view text) {
    std::filesystem::create_directories(std::filesystem::path(root + path).parent_path());
    std::ofstream(root + path) << text;
  };
  const Surroundings nothing = LookAround(Host(root));
  EXPECT_FALSE(nothing.paranoid);
  EXPECT_FALSE(nothing.seccomp || nothing.container || nothing.lockdown || nothing.nmi_watchdog);
  EXPECT_EQ(nothing.hypervisor, "");
  write("/proc/sys/kernel/perf_event_paranoid", "3\n");
  write("/proc/sys/kernel/nmi_watchdog", "1\n");
  write("/proc/self/status", "Name:\tx\nCapEff:\t0000004000000000\nSeccomp:\t2\n");
  write("/.dockerenv", "x");
  write("/sys/kernel/security/lockdown", "none integrity [confidentiality]\n");
  write("/proc/cpuinfo", "processor\t: 0\nflags\t\t: fpu hypervisor\nbugs\t: \n");
  write("/sys/class/dmi/id/sys_vendor", "QE\x01MU\n");
  const Surroundings all = LookAround(Host(root));
  EXPECT_EQ(all.paranoid, 3);
  EXPECT_TRUE(all.seccomp && all.container && all.lockdown && all.nmi_watchdog);
  EXPECT_TRUE(all.has_perfmon);
  EXPECT_EQ(all.hypervisor, "QEMU");
  std::filesystem::remove_all(root);
}

// Proofs: work done on a simulated PMU, where a nanosecond is two instructions.
class Proof : public testing::Test {
 protected:
  Proof() {
    pmu_.rates = {{kCycles, 1}, {kInstructions, 2}};
    options_.known_loop = [this](uint64_t n) { pmu_.Run(0, n); };
    options_.workout = [this] { pmu_.Run(0, 4'000'000); };
  }
  EventPlan Prove(const std::vector<WishedGroup>& rotated = {}) {
    return ProveEvents(pmu_, {{{"cycles", kCycles}, {"instructions", kInstructions}}, false},
                       rotated, options_);
  }
  std::string Missing(const EventPlan& plan) {
    std::string all;
    for (const auto& [name, why] : plan.missing) {
      all += fmt::format("{}:{} ", name, CounterStateName(why.state));
    }
    return all;
  }
  static std::string Groups(const EventPlan& plan) {
    std::string all;
    for (const auto& group : plan.groups) {
      for (const auto& name : group.names) all += name + " ";
      all += "| ";
    }
    return all;
  }
  void TearDown() override { EXPECT_EQ(pmu_.num_open(), 0u); }
  SimulatedPmu pmu_{6};
  ProofOptions options_;
};

TEST_F(Proof, AcceptsWhatCountsALoopOfKnownLength) {
  const EventPlan plan = Prove();
  EXPECT_TRUE(plan.base.ok());
  EXPECT_TRUE(plan.inherit);
  EXPECT_EQ(Groups(plan), "cycles instructions | ");
  pmu_.can_inherit = false;
  EXPECT_FALSE(Prove().inherit);
}

TEST_F(Proof, JudgesWhatTheBaseCounts) {
  struct Case {
    double cycles, instructions;
    CounterState state;
  };
  for (const Case& c : {Case{1, 2, CounterState::kOk},
                        {1, 2.03, CounterState::kOk},
                        {1, 2.06, CounterState::kImplausible},
                        {1, 1.99, CounterState::kImplausible},
                        {1, 0, CounterState::kSilent},
                        {0, 2, CounterState::kSilent},
                        {0.1, 2, CounterState::kImplausible}}) {  // 20 instructions a cycle
    pmu_.rates = {{kCycles, c.cycles}, {kInstructions, c.instructions}};
    const EventPlan plan = Prove();
    EXPECT_EQ(plan.base.state, c.state) << c.cycles << " " << c.instructions;
    EXPECT_EQ(plan.groups.empty(), !plan.base.ok());
  }
  pmu_.rates = {{kCycles, 1}, {kInstructions, 2}};
  options_.known_loop = [](uint64_t) {};  // the thread was never seen running
  EXPECT_EQ(Prove().base.state, CounterState::kNotScheduled);
  options_.known_loop = [this](uint64_t n) { pmu_.Run(0, n); };
  pmu_.take_pinned = true;
  const EventPlan busy = Prove();
  EXPECT_EQ(busy.base.state, CounterState::kBusy);
  EXPECT_THAT(busy.base.reason, HasSubstr("0 bytes"));
  pmu_.take_pinned = false;
  pmu_.rates.erase(kInstructions);
  const EventPlan half = Prove();
  EXPECT_EQ(half.base.state, CounterState::kNoSuchEvent);
  EXPECT_THAT(half.base.reason, HasSubstr("perf_event_open(instructions)"));
  pmu_.rates.clear();
  EXPECT_EQ(Prove().base.state, CounterState::kNoPmu);
}

TEST_F(Proof, LeavesOutWhatIsRefusedOrSilent) {
  for (uint64_t code : {1, 2, 3}) pmu_.rates[Raw(code)] = 0.01;
  pmu_.rates[Raw(3)] = 0;
  const EventPlan plan = Prove({{{{"instructions", kInstructions},
                                  {"llc_misses", Raw(1)},
                                  {"absent", Raw(9)},
                                  {"silent", Raw(3)},
                                  {"branches", Raw(2)}},
                                 false}});
  EXPECT_EQ(Groups(plan), "cycles instructions | instructions llc_misses branches | ");
  EXPECT_EQ(Missing(plan), "absent:no_such_event silent:opens_but_silent ");
}

TEST_F(Proof, SplitsGroupsThePmuRefusesOrNeverSchedules) {
  for (uint64_t code = 1; code <= 8; ++code) pmu_.rates[Raw(code)] = 0.01;
  WishedGroup wide{{{"instructions", kInstructions}}, false};
  for (uint64_t code = 1; code <= 8; ++code) {
    wide.events.push_back({fmt::format("e{}", code), Raw(code)});
  }
  // Six counters refuse the seventh event, and beside the base only four are free.
  const EventPlan plan = Prove({wide});
  EXPECT_EQ(Missing(plan), "");
  size_t events = 0;
  for (size_t g = 1; g < plan.groups.size(); ++g) {
    EXPECT_EQ(plan.groups[g].names[0], "instructions");  // what the others are set against
    EXPECT_LE(plan.groups[g].names.size(), 4u);
    events += plan.groups[g].names.size() - 1;
  }
  EXPECT_EQ(events, 8u);
}

TEST_F(Proof, WholeGroupsAreNotSplit) {
  for (uint64_t code = 1; code <= 8; ++code) pmu_.rates[Raw(code)] = 0.01;
  WishedGroup whole{{}, true};
  for (uint64_t code = 1; code <= 5; ++code) {
    whole.events.push_back({fmt::format("t{}", code), Raw(code)});
  }
  EventPlan plan = Prove({whole});
  EXPECT_EQ(plan.groups.size(), 1u);
  EXPECT_EQ(plan.missing.size(), 5u);
  whole.events.resize(4);
  plan = Prove({whole});
  EXPECT_EQ(plan.groups.size(), 2u);
  EXPECT_EQ(Missing(plan), "");
  pmu_.rates[Raw(2)] = 0;
  plan = Prove({whole});
  EXPECT_EQ(plan.groups.size(), 1u);
  EXPECT_EQ(plan.missing.size(), 4u);
}

TEST(KnownLoop, TheWorkoutEndsAndLeavesNothing) {
  RunKnownLoop(0);
  RunKnownLoop(1000);
  RunWorkout();
}

// What this machine really says: a proof or a reason, never a plan that counts nothing.
TEST(ProofOfThisMachine, IsAPlanOrAReason) {
  KernelBackend kernel;
  ProofOptions options;
  options.around = LookAround(Host());
  const EventPlan plan = ProveEvents(
      kernel, {{{"cycles", kCycles}, {"instructions", kInstructions}}, false}, {}, options);
  if (plan.base.ok()) {
    EXPECT_EQ(plan.groups.size(), 1u);
  } else {
    EXPECT_TRUE(plan.groups.empty());
    EXPECT_NE(plan.base.reason, "");
    fmt::print("{}: {}\n  to change it: {}\n", CounterStateName(plan.base.state), plan.base.reason,
               plan.base.fix);
  }
}

}  // namespace
}  // namespace headrace::probes::perf
