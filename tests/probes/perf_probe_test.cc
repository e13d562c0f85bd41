// The counter probes on this machine: with the kernel's software events in the place of hardware
// ones, and without a PMU.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <linux/perf_event.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cmath>
#include <filesystem>
#include <map>
#include <thread>
#include <utility>

#include "base/clock.h"
#include "base/registry.h"
#include "probes/account/account.h"
#include "probes/bpf/followed.h"
#include "probes/bpf/program.h"
#include "probes/perf/counter_set.h"
#include "probes/perf/counters_probe.h"
#include "probes/perf/operator_counters.h"
#include "probes/perf/user_read.h"
#include "probes/probe.h"
#include "tests/probes/perf_simulated_pmu.h"
#include "tests/sanitized.h"
#include "tests/stolen_time.h"

namespace headrace::probes::perf {
namespace {

struct CollectedCounters final : Sink {
  std::map<std::pair<std::string, Labels>, double> values;
  std::map<std::pair<std::string, Labels>, double> ratios;
  std::map<std::string, int64_t> lost;
  void Add(const Measurement& m) override {
    ASSERT_NE(FindMetric(m.metric), nullptr) << m.metric;
    values[{std::string(m.metric), m.labels}] += m.value;
    if (m.running_ratio) ratios[{std::string(m.metric), m.labels}] = *m.running_ratio;
  }
  void AddStack(const StackSample&) override {}
  void Lost(std::string_view what, int64_t count, std::optional<int64_t>) override {
    lost[std::string(what)] += count;
  }
  double Sum(const std::string& metric, std::optional<uint32_t> operator_index = {},
             int64_t pid = 0) const {
    double sum = 0;
    for (const auto& [key, value] : values) {
      if (key.first != metric || (pid != 0 && key.second.pid != pid)) continue;
      if (operator_index && key.second.operator_index != operator_index) continue;
      sum += value;
    }
    return sum;
  }
};

int64_t CpuNs(clockid_t clock = CLOCK_THREAD_CPUTIME_ID) {
  timespec t;
  clock_gettime(clock, &t);
  return t.tv_sec * int64_t{1'000'000'000} + t.tv_nsec;
}
void Spin(int64_t ns) {
  for (const int64_t begin = CpuNs(); CpuNs() - begin < ns;) RunKnownLoop(1000);
}

TEST(TaskClock, AgreesWithTheProcessClockAcrossThreadsAndForks) {
  TaskClockProbe probe;
  Target target;
  target.root_pid = getpid();
  target.pids = {getpid()};
  const Host host;
  const Availability available = probe.Start(host, target);
  if (!available.usable()) GTEST_SKIP() << available.reason;
  const int64_t before = CpuNs(CLOCK_PROCESS_CPUTIME_ID);
  std::thread one([] { Spin(30'000'000); }), two([] {
    std::thread nested([] { Spin(20'000'000); });
    nested.join();
  });
  one.join();
  two.join();
  int pipe_fds[2];
  ASSERT_EQ(pipe(pipe_fds), 0);
  const pid_t child = fork();
  if (child == 0) {
    char byte;
    if (read(pipe_fds[0], &byte, 1) != 1) _exit(1);
    Spin(20'000'000);
    _exit(0);
  }
  target.pids = {getpid(), child};
  {
    CollectedCounters first;
    probe.Read(first);
  }
  ASSERT_EQ(write(pipe_fds[1], "x", 1), 1);
  int status;
  waitpid(child, &status, 0);
  CollectedCounters seen;
  const int64_t spent = CpuNs(CLOCK_PROCESS_CPUTIME_ID) - before;
  probe.Read(seen);
  EXPECT_NEAR(seen.Sum("task_clock_ns", {}, getpid()), static_cast<double>(spent),
              0.02 * static_cast<double>(spent) + 3e6);
  EXPECT_GT(seen.Sum("task_clock_ns", {}, child), 19e6);
  EXPECT_LT(seen.Sum("task_clock_ns", {}, child), 40e6);
  EXPECT_TRUE(seen.ratios.empty());
  for (const auto& [what, count] : seen.lost) EXPECT_EQ(count, 0) << what;
  const size_t open = Host().List("/proc/self/fd").size();
  probe.Stop();
  EXPECT_LT(Host().List("/proc/self/fd").size(), open);
  close(pipe_fds[0]);
  close(pipe_fds[1]);
}

// A processor whose "cycles" are nanoseconds on a CPU and whose other events are page faults.
const CpuFamily& SoftwareFamily() {
  static const CpuFamily family = [] {
    CpuFamily f;
    f.name = "software events";
    const auto event = [](std::string_view word, uint64_t config) {
      return CatalogueEvent{word, {PERF_TYPE_SOFTWARE, config, 0, 0}, "", ""};
    };
    f.events = {event("cycles", PERF_COUNT_SW_CPU_CLOCK),
                event("instructions", PERF_COUNT_SW_TASK_CLOCK),
                event("branches", PERF_COUNT_SW_PAGE_FAULTS),
                event("llc_misses", PERF_COUNT_SW_PAGE_FAULTS_MIN)};
    f.groups.resize(3);
    f.groups[0].name = "base";
    f.groups[0].words = {"cycles", "instructions"};
    f.groups[0].formulas.push_back({"ipc_ratio", Expression("instructions / cycles"), false, ""});
    f.groups[1].name = "branches";
    f.groups[1].words = {"branches"};
    f.groups[2].name = "llc";
    f.groups[2].words = {"llc_misses"};
    return f;
  }();
  return family;
}

EventPlan SoftwarePlan(const CounterSet& set) {
  EventPlan plan;
  const auto add = [&](const WishedGroup& wished) {
    EventPlan::Group group;
    for (const WishedEvent& e : wished.events) {
      group.names.push_back(e.name);
      group.codes.push_back(e.code);
    }
    plan.groups.push_back(group);
  };
  add(set.base);
  for (const WishedGroup& group : set.rotated) add(group);
  plan.inherit = true;
  return plan;
}

constexpr size_t kPage = 4096;

// Takes page faults of new memory until `stop`; returns how many.
int64_t TouchPages(int64_t most) {
  const size_t bytes = static_cast<size_t>(most) * kPage;
  void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return 0;
  madvise(memory, bytes, MADV_NOHUGEPAGE);
  for (size_t at = 0; at < bytes; at += kPage) static_cast<volatile char*>(memory)[at] = 1;
  munmap(memory, bytes);
  return most;
}

TEST(HardwareCounters, CountAProcessGroupsInTurns) {
  if (kThreadSanitizer) GTEST_SKIP() << "ThreadSanitizer takes page faults of its own";
  CountersProbe::Options options;
  options.set = CounterSet(SoftwareFamily());
  options.plan = SoftwarePlan(*options.set);
  CountersProbe probe(options);
  Target target;
  target.root_pid = getpid();
  target.pids = {getpid()};
  const Host host;
  const Availability available = probe.Start(host, target);
  if (!available.usable()) GTEST_SKIP() << available.reason;
  EXPECT_THAT(available.reason, testing::HasSubstr("cycles, instructions, branches, llc misses"));
  const int64_t before = CpuNs(CLOCK_PROCESS_CPUTIME_ID);
  const double stolen_before = StolenNs();
  // The two groups take turns: one counts in the even windows, the other in the odd ones. What a
  // group counted stands for its window and the one before, as long as the machine made them.
  std::array<double, 2> expected = {}, counted_ns = {}, unsettled_ns = {};
  CollectedCounters seen;
  for (size_t window = 0; window < 8; ++window) {
    int64_t touched = 0;
    std::thread([&] {
      for (int i = 0; i < 20; ++i) {
        touched += TouchPages(100);
        Spin(500'000);
      }
    }).join();
    const double ran_before = seen.Sum("cycles_count");
    seen = CollectedCounters();
    probe.Read(seen);
    const double ran_ns = seen.Sum("cycles_count") - ran_before;
    for (double& ns : unsettled_ns) ns += ran_ns;
    const size_t group = window % 2;
    counted_ns[group] += ran_ns;
    expected[group] +=
        static_cast<double>(touched) * std::exchange(unsettled_ns[group], 0) / ran_ns;
  }
  const auto spent = static_cast<double>(CpuNs(CLOCK_PROCESS_CPUTIME_ID) - before);
  const double stolen = StolenNsSince(stolen_before);
  EXPECT_NEAR(seen.Sum("cycles_count"), spent, 0.1 * spent + stolen);
  EXPECT_NEAR(seen.Sum("instructions_count"), seen.Sum("cycles_count"), 0.02 * spent);
  EXPECT_NEAR(seen.Sum("ipc_ratio"), 1, 0.02);
  const std::array<const char*, 2> counts = {"branches_count", "llc_misses_count"};
  for (size_t i = 0; i < 2; ++i) {
    EXPECT_NEAR(seen.Sum(counts[i]), expected[i], 0.05 * expected[i]) << counts[i];
  }
  for (const auto& [key, ratio] : seen.ratios) {
    const bool base = key.first == "cycles_count" || key.first == "instructions_count" ||
                      key.first == "ipc_ratio";
    const double part = counted_ns[key.first == counts[0] ? 0 : 1] / seen.Sum("cycles_count");
    EXPECT_NEAR(ratio, base ? 1 : part, 0.02) << key.first;
  }
}

TEST(Shares, GiveAllOfTheAmountAsTheSamplesFall) {
  Shares shares;
  std::map<uint32_t, double> given;
  const auto give = [&](uint32_t word, double part) { given[word] += part; };
  shares.Add(300);
  shares.Share(give);  // without samples it waits
  EXPECT_TRUE(given.empty());
  EXPECT_EQ(shares.waiting(), 300);
  shares.Sample(1, 10);
  shares.Sample(2, 20);
  shares.Share(give);
  EXPECT_NEAR(given[1], 100, 1e-9);
  EXPECT_NEAR(given[2], 200, 1e-9);
  EXPECT_EQ(shares.waiting(), 0);
  shares.Sample(3, 5);  // samples wait for their amount, too
  shares.Share(give);
  EXPECT_EQ(given.count(3), 0u);
  shares.Add(7);
  shares.Share(give);
  EXPECT_NEAR(given[3], 7, 1e-9);
}

class Operators : public testing::Test {
 protected:
  void SetUp() override {
    target_.root_pid = getpid();
    target_.pids = {getpid()};
    ASSERT_EQ(hr_account_open("perf_test"), 0);
    stage_ = hr_stage("stage", 2, 0);
  }
  void TearDown() override {
    probe_.reset();
    hr_account_close();
  }
  bool Start(uint64_t period) {
    target_.accounts = {{getpid(), bpf::FindSegmentAddress(host_, getpid())}};
    OperatorCounters::Options options;
    options.set = CounterSet(SoftwareFamily());
    options.plan = SoftwarePlan(*options.set);
    options.base_period = period;
    options.set_period = 3;
    probe_ = std::make_unique<OperatorCounters>(options);
    available_ = probe_->Start(host_, target_);
    // Where BPF works, ours must load; elsewhere the test is skipped.
    EXPECT_TRUE(available_.usable() || !bpf::CheckBpf(host_).usable()) << available_.reason;
    return available_.usable();
  }
  CollectedCounters Read() {
    CollectedCounters sink;
    probe_->Read(sink);
    return sink;
  }
  Host host_;
  Target target_;
  uint32_t stage_ = 0;
  std::unique_ptr<OperatorCounters> probe_;
  Availability available_;
};

TEST_F(Operators, ShareAThreadsCountsAsItsOwnClockSaysTheyDid) {
  if (kThreadSanitizer) GTEST_SKIP() << "ThreadSanitizer takes page faults of its own";
  const std::array<uint32_t, 3> operators = {hr_operator("short", "test", stage_),
                                             hr_operator("long", "test", stage_),
                                             hr_operator("faults", "test", stage_)};
  if (!Start(100'000)) GTEST_SKIP() << available_.reason;
  EXPECT_TRUE(OperatorCountersActive());
  std::array<std::atomic<int64_t>, 3> truth = {};
  std::atomic<int64_t> touched = 0;
  std::atomic<bool> stop = false;
  const auto work = [&] {
    hr_thread_begin(stage_);
    while (!stop) {
      for (size_t i = 0; i < operators.size(); ++i) {
        const int64_t begin = CpuNs();
        hr_enter(operators[i]);
        if (i == 2) touched += TouchPages(30);
        Spin(i == 0 ? 300'000 : 1'500'000);
        hr_leave();
        truth[i] += CpuNs() - begin;
      }
      SleepUntilNs(MonotonicNs() + 100'000);
    }
    hr_thread_end();
  };
  const double stolen_before = StolenNs();
  std::thread one(work), two(work);
  CollectedCounters seen;
  for (int i = 0; i < 6; ++i) {
    SleepUntilNs(MonotonicNs() + 100'000'000);
    seen = Read();
  }
  stop = true;
  one.join();
  two.join();
  SleepUntilNs(MonotonicNs() + 2'000'000);
  seen = Read();
  const double stolen = StolenNsSince(stolen_before);
  double all = 0;
  for (size_t i = 0; i < operators.size(); ++i) {
    const auto expected = static_cast<double>(truth[i]);
    const double counted = seen.Sum("cycles_count", operators[i]);
    fmt::print("operator {}: {:.2f} ms counted, {:.2f} ms by its own clock\n", i, counted * 1e-6,
               expected * 1e-6);
    // A CPU's clock counts what the hypervisor takes, a thread's does not.
    EXPECT_NEAR(counted, expected, 0.15 * expected + 3e6 + stolen) << i;
    EXPECT_GT(seen.Sum("counter_samples_count", operators[i]), 10) << i;
    all += counted;
  }
  EXPECT_GT(all, 0);
  const auto faults = static_cast<double>(touched);
  EXPECT_NEAR(seen.Sum("branches_count", operators[2]), faults, 0.5 * faults);
  EXPECT_LT(seen.Sum("branches_count", operators[0]), 0.05 * faults);
  for (const auto& [what, count] : seen.lost) {
    if (!what.starts_with("counters:")) continue;
    // A sample that falls into another of the same CPU is not taken.
    EXPECT_LE(count, 5 + 0.02 * seen.Sum("counter_samples_count")) << what;
  }
  for (const auto& [key, value] : seen.values) {
    if (key.first.starts_with("bpf_")) continue;  // a program without events ran 0 times
    EXPECT_GT(value, key.first == "branches_count" || key.first == "llc_misses_count" ? -1 : 0)
        << key.first;
  }
  probe_->Stop();
  EXPECT_FALSE(OperatorCountersActive());
}

TEST_F(Operators, TheProcessProbeStandsAside) {
  if (!Start(1'000'000)) GTEST_SKIP() << available_.reason;
  CountersProbe process;
  const Availability answer = process.Start(host_, target_);
  EXPECT_TRUE(answer.usable());
  EXPECT_THAT(answer.reason, testing::HasSubstr("counters by operator"));
  CollectedCounters nothing;
  process.Read(nothing);
  EXPECT_TRUE(nothing.values.empty());
}

TEST_F(Operators, LeavesNoDescriptorBehind) {
  const size_t open = Host().List("/proc/self/fd").size();
  for (int i = 0; i < 2; ++i) {
    if (!Start(1'000'000)) GTEST_SKIP() << available_.reason;
    EXPECT_GT(Host().List("/proc/self/fd").size(), open);
    probe_.reset();
    EXPECT_EQ(Host().List("/proc/self/fd").size(), open);
  }
}

// Without a PMU (or the right to use it): said, with what would change it, and not one value.
TEST(NoCounters, AreUnavailableWithAReasonAndPrintNothing) {
  SimulatedPmu none(4);  // every event is refused with ENOENT
  const CounterSet set(SoftwareFamily());
  ProofOptions options;
  options.around.hypervisor = "QEMU";
  options.known_loop = [](uint64_t) {};
  const EventPlan plan = ProveEvents(none, set.base, set.rotated, options);
  CountersProbe::Options probe_options;
  probe_options.backend = &none;
  probe_options.set = set;
  probe_options.plan = plan;
  CountersProbe probe(probe_options);
  Target target;
  target.pids = {getpid()};
  const Host host;
  const Availability answer = probe.Start(host, target);
  EXPECT_EQ(answer.state, Availability::State::kUnavailable);
  EXPECT_THAT(answer.reason, testing::HasSubstr("No such file or directory: QEMU shows"));
  EXPECT_NE(answer.fix, "");
  CollectedCounters sink;
  probe.Read(sink);
  probe.Stop();
  EXPECT_TRUE(sink.values.empty());

  for (const char* name : {"hardware counters", "counters by operator", "task clock"}) {
    const ProbeInfo* info = Registry<ProbeInfo>::Global().Find(name);
    ASSERT_NE(info, nullptr) << name;
    const Availability here = info->check(host);
    fmt::print("{}: {} {}\n", name, here.reason, here.fix);
    EXPECT_NE(here.reason, "");
    if (here.state != Availability::State::kOk) {
      EXPECT_NE(here.fix, "") << name;
    }
    if (!here.usable()) {
      const auto made = info->make();
      EXPECT_FALSE(made->Start(host, target).usable()) << name;
    }
  }
}

TEST(NoCounters, UnderAnEmptyRootThereIsNoMachine) {
  std::string root = std::filesystem::temp_directory_path() / "hr_perf_XXXXXX";
  ASSERT_NE(mkdtemp(root.data()), nullptr);
  for (const char* name : {"hardware counters", "counters by operator", "task clock"}) {
    const Availability answer = Registry<ProbeInfo>::Global().Find(name)->check(Host(root));
    EXPECT_FALSE(answer.usable()) << name;
    EXPECT_NE(answer.reason, "");
  }
  std::filesystem::remove_all(root);
}

// Another user's process: refused by the kernel, told in words.
TEST(NoCounters, AnotherUsersProcessIsRefused) {
  if (getuid() != 0) GTEST_SKIP() << "needs root to become somebody else";
  int fds[2];
  ASSERT_EQ(pipe(fds), 0);
  const pid_t child = fork();
  if (child == 0) {
    if (setgid(65534) != 0 || setuid(65534) != 0) _exit(9);
    TaskClockProbe probe;
    Target target;
    target.pids = {getppid()};
    const Host host;
    const Availability answer = probe.Start(host, target);
    const bool right = !answer.usable() &&
                       answer.reason.find("Permission denied") != std::string::npos &&
                       !answer.fix.empty();
    const std::string text = answer.reason;
    if (write(fds[1], text.data(), text.size()) < 0) _exit(8);
    _exit(right ? 0 : 7);
  }
  close(fds[1]);
  char text[500] = {};
  const ssize_t size = read(fds[0], text, sizeof text - 1);
  close(fds[0]);
  int status;
  waitpid(child, &status, 0);
  EXPECT_EQ(WEXITSTATUS(status), 0)
      << std::string(text, static_cast<size_t>(std::max<ssize_t>(size, 0)));
}

TEST(UserRead, ReadsThePageAsTheKernelWritesIt) {
  perf_event_mmap_page page = {};
  uint64_t value = 0;
  const auto fixed = [](uint64_t raw) { return [raw](uint32_t) { return raw; }; };
  EXPECT_FALSE(user_read::ReadPage(&page, &value, fixed(5)));  // rdpmc is not allowed
  page.capabilities = 4;
  page.offset = 1000;
  page.pmc_width = 48;
  EXPECT_FALSE(user_read::ReadPage(&page, &value, fixed(5)));  // not on the PMU now
  page.index = 1;
  EXPECT_TRUE(user_read::ReadPage(&page, &value, fixed(5)));
  EXPECT_EQ(value, 1005u);
  // Counters run up from below zero: 48 bits, the uppermost set.
  EXPECT_TRUE(user_read::ReadPage(&page, &value, fixed((uint64_t{1} << 48) - 10)));
  EXPECT_EQ(value, 990u);
  page.pmc_width = 64;
  EXPECT_TRUE(user_read::ReadPage(&page, &value, fixed(7)));
  EXPECT_EQ(value, 1007u);
  page.pmc_width = 0;
  EXPECT_FALSE(user_read::ReadPage(&page, &value, fixed(7)));
  page.pmc_width = 65;
  EXPECT_FALSE(user_read::ReadPage(&page, &value, fixed(7)));
  // The kernel rewrites the page meanwhile: read again.
  page.pmc_width = 48;
  int times = 0;
  EXPECT_TRUE(user_read::ReadPage(&page, &value, [&](uint32_t) {
    if (times++ == 0) {
      page.lock++;
      page.offset = 2000;
    }
    return uint64_t{5};
  }));
  EXPECT_EQ(times, 2);
  EXPECT_EQ(value, 2005u);
  // A page that never rests gives nothing, and does not hang.
  EXPECT_FALSE(user_read::ReadPage(&page, &value, [&](uint32_t) {
    page.lock++;
    return uint64_t{5};
  }));
}

TEST(UserRead, FallsBackToACall) {
  UserCounters counters;
  uint64_t values[UserCounters::kMost] = {};
  EXPECT_FALSE(counters.Read(values));
  EXPECT_NE(counters.Open(nullptr, 0), 0);
  const UserEvent events[] = {{PERF_TYPE_SOFTWARE, PERF_COUNT_SW_TASK_CLOCK},
                              {PERF_TYPE_SOFTWARE, PERF_COUNT_SW_PAGE_FAULTS}};
  if (const int error = counters.Open(events, 2)) GTEST_SKIP() << std::strerror(error);
  EXPECT_FALSE(counters.in_user_space());  // software events never are
  // A hypervisor may take the CPU between the two clocks: the nearest of five counts.
  double nearest = 1;
  uint64_t counted_ns = 0;
  int64_t begin = CpuNs();
  for (int i = 0; i < 5; ++i) {
    TouchPages(50);
    Spin(5'000'000);
    ASSERT_TRUE(counters.Read(values));
    const int64_t now = CpuNs();
    const double ratio =
        static_cast<double>(values[0] - counted_ns) / static_cast<double>(now - begin);
    nearest = std::min(nearest, std::abs(ratio - 1));
    counted_ns = values[0];
    begin = now;
  }
  EXPECT_LT(nearest, 0.05);
  EXPECT_GE(values[1], 50u);
  counters.Close();
  EXPECT_FALSE(counters.Read(values));
  const UserEvent absent[] = {{PERF_TYPE_HARDWARE, 9999}};
  EXPECT_NE(counters.Open(absent, 1), 0);
}

}  // namespace
}  // namespace headrace::probes::perf
