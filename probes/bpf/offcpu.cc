#include "probes/bpf/offcpu.h"

#include <fmt/format.h>
#include <signal.h>

#include <algorithm>
#include <cerrno>
#include <map>
#include <memory>
#include <set>
#include <tuple>
#include <vector>

#include "base/clock.h"
#include "probes/account/account.h"
#include "probes/bpf/kernel.h"
#include "probes/bpf/program.h"
#include "probes/probe.h"
#include "probes/process.h"
#include "probes/stack/kernel_symbols.h"

namespace headrace::probes::bpf {
namespace {

struct Period {
  int64_t blocked_ns = 0, blocked_count = 0, runnable_ns = 0, runnable_count = 0;

  void Add(const Period& more) {
    blocked_ns += more.blocked_ns;
    blocked_count += more.blocked_count;
    runnable_ns += more.runnable_ns;
    runnable_count += more.runnable_count;
  }
  void GrowTo(const Period& seen) {
    blocked_ns = std::max(blocked_ns, seen.blocked_ns);
    blocked_count = std::max(blocked_count, seen.blocked_count);
    runnable_ns = std::max(runnable_ns, seen.runnable_ns);
    runnable_count = std::max(runnable_count, seen.runnable_count);
  }
};

class OffCpuProbe final : public Probe, public SplitSource {
 public:
  Availability Start(const Host& host, const Target& target) override {
    host_ = &host;
    target_ = &target;
    if (auto missing = MissingPrivilege(host)) return *missing;
    kernel_ = stack::KernelSymbols::Expect(host);
    program_.SetConstant("timer_wakeup_address",
                         kernel_->Get().AddressOf("hrtimer_wakeup").value_or(0));
    return program_.Load(host, target);
  }

  void Read(Sink& sink) override {
    program_.Follow(*target_);
    FoldEnded();
    Totals now = ended_;
    AddClosed(&now, nullptr);
    AddOpen(&now);
    Report(now, sink);
    program_.ReportLosses(sink);
  }

  void Stop() override {
    program_.Unload();
    kernel_.reset();
  }

  const std::vector<OperatorSplit>& Splits() override {
    program_.Follow(*target_);
    std::map<std::pair<int64_t, uint32_t>, OperatorSplit> now;
    for (const auto& [place, period] : ended_.periods) {
      AddToSplit(place.pid, place.word, period.blocked_ns, period.runnable_ns, &now);
    }
    program_.ForEach("off_cpu", [&](const Record& key, const Record& value) {
      AddToSplit(Pid(key), static_cast<uint32_t>(key.Number("word")), Count(value, "blocked_ns"),
                 Count(value, "runnable_ns"), &now);
    });
    program_.ForEach("threads", [&](const Record&, const Record& state) {
      if (Pid(state) == 0) return;
      for (const Record& credit : state.Records("credits")) {
        AddToSplit(Pid(state), static_cast<uint32_t>(credit.Number("word")),
                   Count(credit, "blocked_ns"), Count(credit, "runnable_ns"), &now);
      }
      if (const auto open = OpenPeriod(state)) {
        AddToSplit(Pid(state), static_cast<uint32_t>(state.Number("word")), open->blocked_ns,
                   open->runnable_ns, &now);
      }
    });
    for (const auto& [key, split] : now) {
      OperatorSplit& given = given_splits_[key];
      given.pid = split.pid;
      given.operator_index = split.operator_index;
      given.blocked_ns = std::max(given.blocked_ns, split.blocked_ns);
      given.runnable_ns = std::max(given.runnable_ns, split.runnable_ns);
      given.wait_ns = std::max(given.wait_ns, split.wait_ns);
    }
    splits_.clear();
    for (const auto& [key, split] : given_splits_) splits_.push_back(split);
    return splits_;
  }

 private:
  // What a period is counted under: an operator, or a group of threads outside every operator.
  struct Place {
    int64_t pid;
    uint32_t word;       // operator and what it does; the resource left out
    std::string thread;  // "" inside an operator
    std::string cause;
    auto operator<=>(const Place&) const = default;
  };
  using ThreadGroup = std::pair<int64_t, std::string>;
  struct Switches {
    int64_t voluntary = 0, involuntary = 0;
  };
  struct Edge {
    int64_t pid;
    std::string thread, subject, cause;
    auto operator<=>(const Edge&) const = default;
  };
  struct Wakeups {
    int64_t count = 0, wait_ns = 0;
  };
  struct Inside {
    int64_t pid;
    std::string thread, cause;
    auto operator<=>(const Inside&) const = default;
  };
  struct Totals {
    std::map<Place, Period> periods;
    std::map<Inside, Period> inside;  // of periods: those in operators, by thread
    std::map<ThreadGroup, int64_t> timed_out_ns;
    std::map<ThreadGroup, int64_t> on_cpu_ns;
    std::map<ThreadGroup, Switches> switches;
    std::map<std::pair<int64_t, uint64_t>, int64_t> queue_waits;  // by process and log2(ns)
    std::map<Edge, Wakeups> wakeups;
  };

  // `comm` and `first`: the members that name the thread.
  static ThreadGroup GroupOf(const Record& thread, std::string_view comm = "comm",
                             std::string_view first = "first") {
    return {Pid(thread), ThreadGroupLabel(thread.Text(comm), thread.Number(first) != 0)};
  }
  // Adds a period to those of its operator or thread. `doing` has its word and cause.
  void AddPeriod(const ThreadGroup& thread, const Record& doing, const Period& more,
                 Totals* to) const {
    const uint32_t word = static_cast<uint32_t>(doing.Number("word")) & 0x3ffff;
    const bool inside = (word & 0xffff) != 0;
    const std::string cause = doing.Word("cause");
    to->periods[{thread.first, word, inside ? "" : thread.second, cause}].Add(more);
    if (inside && !target_->runs_pipeline) {
      to->inside[{thread.first, thread.second, cause}].Add(more);
    }
  }
  static void AddTimedOut(const ThreadGroup& thread, const Record& sums, Totals* to) {
    if (const int64_t ns = Count(sums, "timed_out_ns"); ns > 0) to->timed_out_ns[thread] += ns;
  }
  static Period PeriodsOf(const Record& sums) {
    return {Count(sums, "blocked_ns"), Count(sums, "blocked_count"), Count(sums, "runnable_ns"),
            Count(sums, "runnable_count")};
  }
  static int64_t Pid(const Record& key) { return static_cast<int64_t>(key.Number("tgid")); }
  static int64_t Count(const Record& value, std::string_view member) {
    return static_cast<int64_t>(value.Number(member));
  }

  static bool Waits(const Word& word) {
    return word.doing == HR_WAITING_IN || word.doing == HR_WAITING_OUT;
  }

  static void AddToSplit(int64_t pid, uint32_t word, int64_t blocked_ns, int64_t runnable_ns,
                         std::map<std::pair<int64_t, uint32_t>, OperatorSplit>* to) {
    const Word apart = TakeApart(word);
    if (!apart.operator_index) return;
    OperatorSplit& split = (*to)[{pid, *apart.operator_index}];
    split.pid = pid;
    split.operator_index = *apart.operator_index;
    if (Waits(apart)) {
      split.wait_ns += blocked_ns + runnable_ns;
    } else {
      split.blocked_ns += blocked_ns;
      split.runnable_ns += runnable_ns;
    }
  }

  // The period off the CPU that a thread is in, or that has ended and is not yet counted.
  std::optional<Period> OpenPeriod(const Record& state) const {
    const auto now = static_cast<uint64_t>(MonotonicNs());
    const uint64_t since = state.Number("off_since_ns");
    if (since == 0 || now <= since) return std::nullopt;
    const uint64_t on_since = state.Number("on_since_ns"), woken = state.Number("woken_ns");
    const uint64_t until = on_since > since && on_since < now ? on_since : now;
    const uint64_t end = woken != 0 ? std::clamp(woken, since, until) : until;
    Period period;
    period.blocked_ns = static_cast<int64_t>(end - since);
    period.runnable_ns = static_cast<int64_t>(until - end);
    if (on_since != 0 || woken == 0) return period;
    // Our program may have been skipped at the switch-in: then the scheduler's own sums have grown,
    // and the wait is what they say. A thread that keeps running would else be said to wait on.
    const auto time =
        ReadTaskTime(Pid(state), static_cast<int64_t>(state.Number("tid")), host_->Path("/proc"));
    if (!time) return period;
    const int64_t waited = time->runnable_ns - Count(state, "delayed_ns");
    if (waited > 0 || time->on_cpu_ns > Count(state, "ran_ns")) {
      period.runnable_ns = std::clamp<int64_t>(waited, 0, period.runnable_ns);
    }
    return period;
  }

  // Moves what ended processes left in the kernel's maps to ended_, so that a target that starts
  // processes without end does not fill them. A process is over kEndedNs after it is gone: its
  // threads have had their last switches then.
  void FoldEnded() {
    const int64_t now = MonotonicNs();
    if (now - folded_ns_ < kEndedNs) return;
    folded_ns_ = now;
    std::map<int64_t, bool> gone;  // pid -> seen gone the last time too
    const auto look = [&](const Record& key, const Record&) {
      const auto [it, fresh] = gone.try_emplace(Pid(key), false);
      if (!fresh) return;
      if (kill(static_cast<pid_t>(it->first), 0) == 0 || errno != ESRCH) {
        gone.erase(it);
      } else {
        it->second = gone_before_.count(it->first) != 0;
      }
    };
    for (const char* map : kMaps) program_.ForEach(map, look);
    gone_before_.clear();
    std::set<int64_t> over;
    for (const auto& [pid, twice] : gone) (twice ? over : gone_before_).insert(pid);
    if (over.empty()) return;
    AddClosed(&ended_, &over);
    for (const char* map : kMaps) {
      program_.RemoveIf(
          map, [&](const Record& key, const Record&) { return over.count(Pid(key)) != 0; });
    }
  }

  // Adds what the kernel has counted; of the processes `only`, if given.
  void AddClosed(Totals* to, const std::set<int64_t>* only) {
    const auto left_out = [&](const Record& key) { return only && only->count(Pid(key)) == 0; };
    program_.ForEach("off_cpu", [&](const Record& key, const Record& value) {
      if (left_out(key)) return;
      AddPeriod(GroupOf(key), key, PeriodsOf(value), to);
      AddTimedOut(GroupOf(key), value, to);
    });
    program_.ForEach("thread_times", [&](const Record& key, const Record& value) {
      if (left_out(key)) return;
      const ThreadGroup group = GroupOf(key);
      to->on_cpu_ns[group] += Count(value, "on_cpu_ns");
      to->switches[group].voluntary += Count(value, "voluntary_count");
      to->switches[group].involuntary += Count(value, "involuntary_count");
    });
    program_.ForEach("run_queue", [&](const Record& key, const Record& value) {
      if (left_out(key)) return;
      to->queue_waits[{Pid(key), key.Number("bucket")}] += Count(value, "waits_count");
    });
    program_.ForEach("wakeups", [&](const Record& key, const Record& value) {
      if (left_out(key)) return;
      Wakeups& wakeups = to->wakeups[{
          Pid(key), GroupOf(key).second,
          fmt::format("{}/{}", key.Number("waker_tgid"),
                      ThreadGroupLabel(key.Text("waker_comm"), key.Number("waker_first") != 0)),
          key.Word("cause")}];
      wakeups.count += Count(value, "wakeups_count");
      wakeups.wait_ns += Count(value, "wait_ns");
    });
  }

  // Adds what living threads have not yet given to the maps: periods, waits for a CPU, their time
  // on one, and the period that each is in.
  void AddOpen(Totals* to) {
    program_.ForEach("threads", [&](const Record&, const Record& state) {
      if (Pid(state) == 0) return;  // it is being made
      const auto now = static_cast<uint64_t>(MonotonicNs());
      const uint64_t on_since = state.Number("on_since_ns");
      uint64_t on_cpu = state.Number("on_cpu_ns");
      if (on_since != 0 && now > on_since) on_cpu += now - on_since;
      const ThreadGroup group = GroupOf(state);
      to->on_cpu_ns[group] += static_cast<int64_t>(on_cpu);
      to->switches[group].voluntary += Count(state, "voluntary_count");
      to->switches[group].involuntary += Count(state, "involuntary_count");
      const ThreadGroup credited = GroupOf(state, "credit_comm", "credit_first");
      for (const Record& credit : state.Records("credits")) {
        if (credit.Number("runnable_count") == 0) continue;
        AddPeriod(credited, credit, PeriodsOf(credit), to);
        AddTimedOut(credited, credit, to);
      }
      const std::vector<uint64_t> waits = state.Numbers("queue_waits");
      for (size_t i = 0; i < waits.size(); ++i) {
        if (waits[i] > 0) to->queue_waits[{group.first, i}] += static_cast<int64_t>(waits[i]);
      }
      const auto open = OpenPeriod(state);
      if (open) AddPeriod(GroupOf(state, "off_comm", "off_first"), state, *open, to);
    });
  }

  // A period that ends while the maps are being read is in neither of them until the next time: no
  // sum is given smaller than before.
  template <typename Key>
  static int64_t Grown(std::map<Key, int64_t>* given, const Key& key, int64_t value) {
    int64_t& last = (*given)[key];
    last = std::max(last, value);
    return last;
  }

  void Report(const Totals& now, Sink& sink) {
    ReportPeriods(now, sink);
    ReportInside(now, sink);
    ReportThreads(now, sink);
    ReportQueueWaits(now, sink);
    ReportWakeups(now, sink);
  }

  // Time off a CPU: blocked by cause, and ready to run.
  void ReportPeriods(const Totals& now, Sink& sink) {
    for (const auto& [place, seen] : now.periods) {
      Period& period = given_periods_[place];
      period.GrowTo(seen);
      const Word word = TakeApart(place.word);
      Measurement m;
      m.labels.pid = place.pid;
      m.labels.operator_index = word.operator_index;
      m.labels.thread = place.thread;
      const auto add = [&](std::string_view metric, int64_t value) {
        if (value == 0) return;
        m.metric = metric;
        m.value = static_cast<double>(value);
        sink.Add(m);
      };
      if (Waits(word)) {
        add("off_cpu_wait_ns", period.blocked_ns + period.runnable_ns);
      } else {
        add("runnable_ns", period.runnable_ns);
        add("runnable_count", period.runnable_count);
        m.labels.cause = place.cause;
        add("off_cpu_ns", period.blocked_ns);
        add("off_cpu_count", period.blocked_count);
      }
    }
  }

  // The part of it inside operators, by thread.
  void ReportInside(const Totals& now, Sink& sink) {
    std::map<ThreadGroup, int64_t> runnable;
    Measurement m;
    m.metric = "off_cpu_inside_ns";
    for (const auto& [where, seen] : now.inside) {
      Period& period = given_inside_[where];
      period.GrowTo(seen);
      runnable[{where.pid, where.thread}] += period.runnable_ns;
      m.labels.pid = where.pid;
      m.labels.thread = where.thread;
      m.labels.cause = where.cause;
      m.value = static_cast<double>(period.blocked_ns);
      if (period.blocked_ns > 0) sink.Add(m);
    }
    m.metric = "runnable_inside_ns";
    m.labels.cause.clear();
    for (const auto& [group, ns] : runnable) {
      m.labels.pid = group.first;
      m.labels.thread = group.second;
      m.value = static_cast<double>(ns);
      if (ns > 0) sink.Add(m);
    }
  }

  // Time on a CPU and in polls that timed out, and switches, of each group of threads.
  void ReportThreads(const Totals& now, Sink& sink) {
    const auto report = [&](std::string_view metric, const std::map<ThreadGroup, int64_t>& sums,
                            std::map<ThreadGroup, int64_t>* given) {
      Measurement m;
      m.metric = metric;
      for (const auto& [group, ns] : sums) {
        m.labels.pid = group.first;
        m.labels.thread = group.second;
        m.value = static_cast<double>(Grown(given, group, ns));
        sink.Add(m);
      }
    };
    report("on_cpu_ns", now.on_cpu_ns, &given_on_cpu_);
    report("poll_timed_out_ns", now.timed_out_ns, &given_timed_out_);
    for (const auto& [group, switches] : now.switches) {
      Measurement m;
      m.metric = "switches_count";
      m.labels.pid = group.first;
      m.labels.thread = group.second;
      m.course = false;
      Switches& given = given_switches_[group];
      given.voluntary = std::max(given.voluntary, switches.voluntary);
      given.involuntary = std::max(given.involuntary, switches.involuntary);
      for (const auto& [count, cause] :
           {std::pair{given.voluntary, "voluntary"}, std::pair{given.involuntary, "involuntary"}}) {
        m.labels.cause = cause;
        m.value = static_cast<double>(count);
        if (count > 0) sink.Add(m);
      }
    }
  }

  void ReportQueueWaits(const Totals& now, Sink& sink) {
    for (const auto& [key, waits] : now.queue_waits) {
      Measurement m;
      m.metric = "run_queue_latency_count";
      m.labels.pid = key.first;
      m.labels.bucket = int64_t{1} << std::min<uint64_t>(key.second, 62);
      m.value = static_cast<double>(Grown(&given_queue_waits_, key, waits));
      m.course = false;
      sink.Add(m);
    }
  }

  void ReportWakeups(const Totals& now, Sink& sink) const {
    for (const auto& [edge, wakeups] : now.wakeups) {
      Measurement m;
      m.metric = "wakeups_count";
      m.labels.pid = edge.pid;
      m.labels.thread = edge.thread;
      m.labels.subject = edge.subject;
      m.labels.cause = edge.cause;
      m.value = static_cast<double>(wakeups.count);
      // Programs are judged by their wake-ups, drawn from the course, unless their accounts tell
      // all that they do.
      m.course = target_->accounts.empty() || !target_->runs_pipeline;
      sink.Add(m);
      m.metric = "wakeup_wait_ns";
      m.value = static_cast<double>(wakeups.wait_ns);
      sink.Add(m);
    }
  }

  static constexpr int64_t kEndedNs = 1'000'000'000;
  static constexpr const char* kMaps[] = {"off_cpu", "thread_times", "run_queue", "wakeups"};
  Program program_{"offcpu"};
  const Host* host_ = nullptr;
  std::shared_ptr<stack::KernelSymbols> kernel_;  // so that stacks need not read them again
  const Target* target_ = nullptr;
  Totals ended_;
  int64_t folded_ns_ = 0;
  std::set<int64_t> gone_before_;
  std::map<Place, Period> given_periods_;
  std::map<Inside, Period> given_inside_;
  std::map<ThreadGroup, int64_t> given_on_cpu_, given_timed_out_;
  std::map<ThreadGroup, Switches> given_switches_;
  std::map<std::pair<int64_t, uint64_t>, int64_t> given_queue_waits_;
  std::map<std::pair<int64_t, uint32_t>, OperatorSplit> given_splits_;
  std::vector<OperatorSplit> splits_;
};

HR_PROBE("off-CPU time",
         {.summary = "time blocked and time runnable, by operator or thread, and by cause; time on "
                     "a CPU; who wakes whom (sched_switch, sched_waking)",
          .affects = "the exact split of an operator's time; causes of blocking; roles of "
                     "processes without instrumentation",
          .level = 3,
          .period_ns = 1'000'000'000,
          .young_period_ns = 500'000'000,
          .check = [](const Host& host) { return CheckBpf(host); },
          .make = [] { return std::make_unique<OffCpuProbe>(); }});

}  // namespace
}  // namespace headrace::probes::bpf
