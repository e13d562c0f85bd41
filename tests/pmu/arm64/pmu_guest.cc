// Runs in the emulated arm64 machine: the counters' code against loops of known length. One line a
// check: "@check ok|failed WHAT | DETAIL".
//
//   pmu_guest counters    groups, multiplexing, turns, reading without a system call
//   pmu_guest operators   counters by operator, with the BPF programs
//   pmu_guest programs    every BPF program is loaded and attached, or says why not
//   pmu_guest absent      on a machine without a PMU: what is said
#include <fcntl.h>
#include <fmt/format.h>
#include <linux/perf_event.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <functional>
#include <map>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "base/registry.h"
#include "probes/account/account.h"
#include "probes/bpf/followed.h"
#include "probes/bpf/program.h"
#include "probes/perf/availability.h"
#include "probes/perf/counters_probe.h"
#include "probes/perf/counting.h"
#include "probes/perf/group.h"
#include "probes/perf/operator_counters.h"
#include "probes/perf/user_read.h"
#include "probes/probe.h"

namespace headrace::probes::perf {
namespace {

const EventCode kCycles{PERF_TYPE_HARDWARE, PERF_COUNT_HW_CPU_CYCLES, 0, 0};
const EventCode kInstructions{PERF_TYPE_HARDWARE, PERF_COUNT_HW_INSTRUCTIONS, 0, 0};
const EventCode kRetired{PERF_TYPE_RAW, 0x08, 0, 0};        // instructions, by the PMU's number
const EventCode kBackendStalls{PERF_TYPE_RAW, 0x24, 0, 0};  // counts nothing in QEMU

int failed = 0;

void Check(bool good, const std::string& what, const std::string& detail) {
  fmt::print("@check {} {} | {}\n", good ? "ok" : "failed", what, detail);
  std::fflush(stdout);
  failed += good ? 0 : 1;
}

double Error(double value, double truth) { return value / truth - 1; }
std::string Percent(double error) { return fmt::format("{:+.4f} %", error * 100); }

struct Collected final : Sink {
  std::map<std::pair<std::string, Labels>, Measurement> values;
  std::map<std::string, int64_t> lost;
  void Add(const Measurement& m) override { values[{std::string(m.metric), m.labels}] = m; }
  void AddStack(const StackSample&) override {}
  void Lost(std::string_view what, int64_t count, std::optional<int64_t>) override {
    lost[std::string(what)] = count;
  }
  double Sum(std::string_view metric, const std::function<bool(const Labels&)>& of) const {
    double sum = 0;
    for (const auto& [key, m] : values) {
      if (key.first == metric && of(key.second)) sum += m.value;
    }
    return sum;
  }
  double Operator(std::string_view metric, uint32_t index) const {
    return Sum(metric, [&](const Labels& l) { return l.operator_index == index; });
  }
  double Process(std::string_view metric, int64_t pid) const {
    return Sum(metric, [&](const Labels& l) { return l.pid == pid; });
  }
};

void KnownLoopsInAGroup() {
  KernelBackend kernel;
  CounterGroup group(kernel);
  const std::vector<EventCode> events = {kCycles, kInstructions, kRetired, kBackendStalls};
  const auto opened = group.Open(OpenRequest{}, events);
  if (!opened.ok()) {
    Check(false, "a group of four events opens", std::strerror(opened.error));
    return;
  }
  group.Enable();
  for (const uint64_t n : {1'000'000u, 10'000'000u, 100'000'000u}) {
    group.Read();
    RunKnownLoop(n);
    const GroupDelta delta = group.Read();
    const double truth = static_cast<double>(kLoopInstructions * n);
    const bool counted = delta.status == GroupDelta::Status::kCounted;
    const auto extra = [&](size_t i) { return static_cast<double>(delta.counts[i]) - truth; };
    const auto near = [&](size_t i) { return extra(i) >= 0 && extra(i) < 2000; };
    Check(counted && near(0) && near(1) && near(2) && delta.counts[3] == 0,
          fmt::format("a loop of {} instructions, in one group", kLoopInstructions * n),
          counted
              ? fmt::format("cycles {:+.0f}, instructions {:+.0f}, by number {:+.0f}, stalls {}",
                            extra(0), extra(1), extra(2), delta.counts[3])
              : "not counted");
    Check(counted && delta.enabled_ns == delta.running_ns && delta.running_ns > 0,
          "  on the PMU all the time", fmt::format("{} ns", delta.running_ns));
  }
}

void MoreEventsThanCounters() {
  KernelBackend kernel;
  std::vector<CounterGroup> groups;
  for (int i = 0; i < 12; ++i) {
    groups.emplace_back(kernel);
    const EventCode code = i % 2 ? kRetired : kInstructions;
    if (!groups.back().Open(OpenRequest{}, {&code, 1}).ok()) {
      Check(false, "twelve events open", "");
      return;
    }
  }
  for (auto& group : groups) group.Enable();
  for (auto& group : groups) group.Read();
  const uint64_t n = 1'000'000'000;
  RunKnownLoop(n);
  double worst = 0, least = 1, most = 0;
  bool counted = true;
  for (auto& group : groups) {
    const GroupDelta delta = group.Read();
    if (delta.status != GroupDelta::Status::kCounted) {
      counted = false;
      continue;
    }
    const double share =
        static_cast<double>(delta.running_ns) / static_cast<double>(delta.enabled_ns);
    least = std::min(least, share);
    most = std::max(most, share);
    const double error =
        Error(static_cast<double>(delta.counts[0]) / share, static_cast<double>(2 * n));
    worst = std::abs(error) > std::abs(worst) ? error : worst;
  }
  Check(counted && most < 0.95 && std::abs(worst) <= 0.01,
        "twelve events on six counters: scaled within 1 %",
        fmt::format("worst {}, running {:.2f} to {:.2f}", Percent(worst), least, most));
}

// Our own turns: one set beside the base at a time.
void TurnsOfSets() {
  KernelBackend kernel;
  EventPlan plan;
  plan.groups.push_back({{"cycles", "instructions"}, {kCycles, kInstructions}});
  for (int i = 0; i < 3; ++i) plan.groups.push_back({{"retired"}, {kRetired}});
  ThreadCounters counters(kernel, plan);
  if (const int error = counters.Open(OpenRequest{}, false)) {
    Check(false, "sets in turns open", std::strerror(error));
    return;
  }
  Totals totals = MakeTotals(plan);
  const uint64_t n = 10'000'000, rounds = 60;
  for (uint64_t i = 0; i < rounds; ++i) {
    counters.Rotate(1 + i % 3);
    RunKnownLoop(n);
    BeginInterval(&totals);
    counters.Read(&totals);
  }
  const auto truth = static_cast<double>(rounds * n * kLoopInstructions);
  const double base = Error(totals[0].scaled[1], truth);
  Check(std::abs(base) < 1e-3, "the base counts through all turns", Percent(base));
  for (size_t g = 1; g <= 3; ++g) {
    // What a set counts stands for the time up to the end of its last turn.
    const double settled = truth * static_cast<double>(rounds - (3 - g)) / rounds;
    const double error = Error(totals[g].scaled[0], settled), ratio = totals[g].running_ratio();
    Check(std::abs(error) < 0.01 && std::abs(ratio - 1.0 / 3) < 0.03,
          fmt::format("set {} of 3 in turns: scaled within 1 %", g),
          fmt::format("{}, running {:.3f}", Percent(error), ratio));
  }
}

void ThePlanOfThisMachine() {
  const Host host;
  const CounterSet set = CounterSet::OfThisMachine(host);
  const EventPlan plan = PlanOfThisMachine(host, set);
  Check(plan.base.ok(), "cycles and instructions are proven by a known loop",
        std::string(set.family->name));
  const Availability found = Summarise(plan, set);
  Check(found.usable(), "the catalogue's events: what counts, and what does not", found.reason);
  // QEMU's stalls and cache misses open, and count nothing: believing the name would print zeroes.
  bool silent = false;
  for (const auto& [name, why] : plan.missing) silent |= why.state == CounterState::kSilent;
  Check(silent, "an event that opens and counts nothing is found out",
        fmt::format("{} events left out", plan.missing.size()));
}

void WithoutASystemCall() {
  const int fd = open("/proc/sys/kernel/perf_user_access", O_WRONLY | O_CLOEXEC);
  const bool allowed = fd >= 0 && write(fd, "1", 1) == 1;
  if (fd >= 0) close(fd);
  const std::array<UserEvent, 2> events = {
      {{kCycles.type, kCycles.config}, {kInstructions.type, kInstructions.config}}};
  UserCounters counters;
  const int error = counters.Open(events.data(), events.size());
  uint64_t before[2] = {}, after[2] = {}, called[2] = {};
  const uint64_t n = 1'000'000;
  const bool first = error == 0 && counters.Read(before);
  RunKnownLoop(n);
  const bool second = first && counters.Read(after) && counters.ReadByCall(called);
  const auto extra = static_cast<double>(after[1] - before[1]) - static_cast<double>(2 * n);
  Check(allowed && second && counters.in_user_space() && extra >= 0 && extra < 500,
        "counters read in user space",
        error ? std::strerror(error) : fmt::format("instructions {:+.0f} of {}", extra, 2 * n));
  Check(second && called[1] >= after[1] && called[1] - after[1] < 5000,
        "  and by a system call: the same",
        fmt::format("{:+d}", static_cast<int64_t>(called[1] - after[1])));
}

// A child that runs a known loop is counted from its first instruction.
void ProcessesOfATree() {
  const Host host;
  Target target;
  target.root_pid = getpid();
  target.pids = {getpid()};
  CountersProbe probe;
  const Availability started = probe.Start(host, target);
  if (!started.usable()) {
    Check(false, "the probe of processes starts", started.reason);
    return;
  }
  Collected sink;
  probe.Read(sink);
  const double before = sink.Process("instructions_count", getpid());
  const uint64_t n = 50'000'000;
  std::thread([] { RunKnownLoop(n); }).join();
  RunKnownLoop(n);
  probe.Read(sink);
  const double counted = sink.Process("instructions_count", getpid()) - before;
  const double error = Error(counted, static_cast<double>(2 * n * kLoopInstructions));
  Check(std::abs(error) < 0.01, "the probe counts a process with its new threads", Percent(error));
  probe.Stop();
}

struct Ledger {
  std::array<std::atomic<uint64_t>, 4> instructions{};
};

// Operators of very different sizes, several of them between two switches of threads.
void WorkInOperators(const std::array<uint32_t, 4>& operators, uint32_t seed, uint64_t budget,
                     bool sleeps, Ledger* ledger) {
  uint64_t state = seed * 2654435761u + 12345, spent = 0;
  while (spent < budget) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    const size_t op = state >> 33 & 3;
    const uint64_t n = (64'000 + (state >> 40 & 0x1ffff)) * (op + 1);
    hr_enter(operators[op]);
    RunKnownLoop(n);
    hr_leave();
    ledger->instructions[op] += n * kLoopInstructions;
    spent += n * kLoopInstructions;
    if (sleeps && (state >> 20 & 0x1f) == 0) usleep(300);
  }
}

void Operators() {
  const Host host;
  if (hr_account_open("pmu_guest") != 0) {
    Check(false, "accounts open", std::strerror(errno));
    return;
  }
  const uint32_t stage = hr_stage("work", 3, 0);
  std::array<uint32_t, 4> operators{};
  for (size_t i = 0; i < operators.size(); ++i) {
    operators[i] = hr_operator(fmt::format("operator {}", i).c_str(), "test", stage);
  }
  Target target;
  target.root_pid = getpid();
  target.pids = {getpid()};
  target.accounts = {{getpid(), bpf::FindSegmentAddress(host, getpid())}};
  OperatorCountersOptions options;
  // Samples are a random choice: of n, an operator's count errs by some 1 / sqrt(n). Several
  // samples a visit make it less, and what is left is below what is allowed.
  options.base_period = 50'021;
  OperatorCounters probe(options);
  const Availability started = probe.Start(host, target);
  Check(started.usable(), "counters by operator start", started.reason);
  if (!started.usable()) return;
  Ledger ledger;
  const uint64_t budget = 1'000'000'000;
  std::vector<std::thread> threads;
  Collected sink;
  for (uint32_t t = 0; t < 3; ++t) {
    threads.emplace_back([&, t] {
      pthread_setname_np(pthread_self(), fmt::format("work-{}", t).c_str());
      hr_thread_begin(stage);
      WorkInOperators(operators, t + 1, budget, t != 0, &ledger);
      hr_thread_end();
    });
  }
  std::atomic<bool> over = false;
  std::thread reader([&] {
    while (!over) {
      usleep(200'000);
      probe.Read(sink);
    }
  });
  for (auto& thread : threads) thread.join();
  over = true;
  reader.join();
  probe.Read(sink);
  double all = 0, truth_of_all = 0;
  for (size_t i = 0; i < operators.size(); ++i) {
    const auto truth = static_cast<double>(ledger.instructions[i]);
    const double counted = sink.Operator("instructions_count", operators[i]);
    const double samples = sink.Operator("counter_samples_count", operators[i]);
    all += counted;
    truth_of_all += truth;
    Check(std::abs(Error(counted, truth)) < 0.01,
          fmt::format("operator {}: instructions by overflow sampling within 1 %", i),
          fmt::format("{} of {:.0f}, {:.0f} samples", Percent(Error(counted, truth)), truth,
                      samples));
    const double cycles = sink.Operator("cycles_count", operators[i]);
    Check(std::abs(Error(cycles, truth)) < 0.01, "  cycles", Percent(Error(cycles, truth)));
  }
  Check(std::abs(Error(all, truth_of_all)) < 0.01, "all operators together",
        Percent(Error(all, truth_of_all)));
  int64_t lost = 0;
  std::string what;
  for (const auto& [name, count] : sink.lost) {
    lost += count;
    if (count > 0) what += fmt::format("{}: {}; ", name, count);
  }
  Check(lost == 0, "  nothing lost", what);
  probe.Stop();

  // Threads without operators, which take turns on the CPU: exact by the switches alone.
  Target child_target;
  int ready[2], go[2];
  if (pipe(ready) != 0 || pipe(go) != 0) return;
  const uint64_t n = 150'000'000;
  const pid_t child = fork();
  if (child == 0) {
    char c = 0;
    if (read(go[0], &c, 1) != 1) _exit(1);
    std::vector<std::thread> pair;
    for (const char* name : {"short", "long"}) {
      pair.emplace_back([name] {
        pthread_setname_np(pthread_self(), name);
        const uint64_t pieces = 100;
        for (uint64_t i = 0; i < pieces; ++i) {
          RunKnownLoop((name[0] == 'l' ? 3 : 1) * n / pieces);
          usleep(100);
        }
      });
    }
    for (auto& thread : pair) thread.join();
    if (write(ready[1], "x", 1) != 1 || read(go[0], &c, 1) != 1) _exit(1);
    _exit(0);
  }
  child_target.root_pid = child;
  child_target.pids = {child};
  OperatorCounters exact;
  const Availability second = exact.Start(host, child_target);
  Check(second.usable(), "counters of a process without accounts start", second.reason);
  char c = 'x';
  Collected seen;
  if (second.usable() && write(go[1], &c, 1) == 1 && read(ready[0], &c, 1) == 1) {
    exact.Read(seen);
    std::string all;
    for (const auto& [key, m] : seen.values) {
      if (key.first == "instructions_count") {
        all += fmt::format("; pid {} \"{}\" {:.0f}", key.second.pid - child, key.second.thread,
                           m.value);
      }
    }
    for (const char* name : {"short", "long"}) {
      const double counted = seen.Sum("instructions_count", [&](const Labels& l) {
        return l.pid == child && l.thread == name;
      });
      const auto truth = static_cast<double>((name[0] == 'l' ? 3 : 1) * n * kLoopInstructions);
      const bool near = std::abs(Error(counted, truth)) < 0.005;
      Check(near, fmt::format("thread \"{}\": credited at switches within 0.5 %", name),
            Percent(Error(counted, truth)) + (near ? "" : all));
    }
  }
  if (write(go[1], &c, 1) == 1) waitpid(child, nullptr, 0);
  exact.Stop();
}

void Programs() {
  const Host host;
  Target target;
  target.root_pid = getpid();
  target.pids = {getpid()};
  for (const auto& [name, info] : Registry<ProbeInfo>::Global().entries()) {
    if (info.level < 3) continue;
    auto probe = info.make();
    const Availability found = probe->Start(host, target);
    // Every probe but those of counters needs BPF alone, which this kernel has.
    Check(found.usable(), fmt::format("the probe \"{}\" loads and attaches", name), found.reason);
    if (found.usable()) probe->Stop();
  }
}

void Absent() {
  const Host host;
  for (const auto& [what, found] :
       {std::pair{"hardware counters", CountersProbe::Check(host)},
        std::pair{"counters by operator", OperatorCounters::Check(host)}}) {
    Check(!found.usable() && !found.reason.empty(), fmt::format("no {}, and it is said", what),
          found.reason + (found.fix.empty() ? "" : "; to change it: " + found.fix));
  }
  Target target;
  target.root_pid = getpid();
  target.pids = {getpid()};
  CountersProbe probe;
  Collected sink;
  const Availability started = probe.Start(host, target);
  if (started.usable()) probe.Read(sink);
  Check(!started.usable() && sink.values.empty(), "  nothing is reported, not even 0",
        fmt::format("{} measurements", sink.values.size()));
  const Availability clock = TaskClockProbe::Check(host);
  Check(clock.usable(), "  the task clock is there without a PMU", clock.reason);
  UserCounters counters;
  const UserEvent event{kCycles.type, kCycles.config};
  const int error = counters.Open(&event, 1);
  Check(error != 0 && !counters.is_open(), "  counters in user space are refused",
        std::strerror(error));
}

}  // namespace
}  // namespace headrace::probes::perf

int main(int argc, char** argv) {
  using namespace headrace::probes::perf;
  const std::string what = argc > 1 ? argv[1] : "";
  if (what == "counters") {
    ThePlanOfThisMachine();
    KnownLoopsInAGroup();
    MoreEventsThanCounters();
    TurnsOfSets();
    WithoutASystemCall();
    ProcessesOfATree();
  } else if (what == "operators") {
    Operators();
  } else if (what == "programs") {
    Programs();
  } else if (what == "absent") {
    Absent();
  } else {
    return 2;
  }
  return failed ? 1 : 0;
}
