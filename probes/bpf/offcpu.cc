#include "probes/bpf/offcpu.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <tuple>

#include "base/clock.h"
#include "probes/account/account.h"
#include "probes/bpf/program.h"
#include "probes/probe.h"
#include "probes/process.h"

namespace headrace::probes::bpf {
namespace {

struct Period {
  int64_t blocked_ns = 0, blocked_count = 0, runnable_ns = 0, runnable_count = 0;
};

class OffCpuProbe final : public Probe, public SplitSource {
 public:
  Availability Start(const Host& host, const Target& target) override {
    target_ = &target;
    return program_.Load(host, target);
  }

  void Read(Sink& sink) override {
    program_.Follow(*target_);
    periods_.clear();
    on_cpu_ns_.clear();
    ReadClosed(sink);
    ReadOpen();
    Report(sink);
    ReadQueueAndWakeups(sink);
    program_.ReportLosses(sink);
  }

  void Stop() override { program_.Unload(); }

  const std::vector<OperatorSplit>& Splits() const override { return splits_; }

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

  static std::string LabelOf(const Record& thread) {
    return ThreadGroupLabel(thread.Text("comm"), thread.Number("first") != 0);
  }
  static Place PlaceOf(const Record& where) {
    const uint32_t word = static_cast<uint32_t>(where.Number("word")) & 0x3ffff;
    return {static_cast<int64_t>(where.Number("tgid")), word,
            (word & 0xffff) != 0 ? "" : LabelOf(where), where.Word("cause")};
  }

  void ReadClosed(Sink& sink) {
    program_.ForEach("off_cpu", [&](const Record& key, const Record& value) {
      Period& period = periods_[PlaceOf(key)];
      period.blocked_ns += static_cast<int64_t>(value.Number("blocked_ns"));
      period.blocked_count += static_cast<int64_t>(value.Number("blocked_count"));
      period.runnable_ns += static_cast<int64_t>(value.Number("runnable_ns"));
      period.runnable_count += static_cast<int64_t>(value.Number("runnable_count"));
    });
    program_.ForEach("thread_times", [&](const Record& key, const Record& value) {
      const auto pid = static_cast<int64_t>(key.Number("tgid"));
      const std::string thread = LabelOf(key);
      on_cpu_ns_[{pid, thread}] += static_cast<int64_t>(value.Number("on_cpu_ns"));
      for (const auto& [member, cause] : {std::pair{"voluntary_count", "voluntary"},
                                          std::pair{"involuntary_count", "involuntary"}}) {
        Measurement m;
        m.metric = "switches_count";
        m.labels.pid = pid;
        m.labels.thread = thread;
        m.labels.cause = cause;
        m.value = static_cast<double>(value.Number(member));
        m.course = false;
        if (m.value > 0) sink.Add(m);
      }
    });
  }

  // Threads that are off a CPU now, or on one.
  void ReadOpen() {
    program_.ForEach("threads", [&](const Record&, const Record& state) {
      const auto now = static_cast<uint64_t>(MonotonicNs());
      const uint64_t on_since = state.Number("on_since_ns");
      uint64_t on_cpu = state.Number("on_cpu_ns");
      if (on_since != 0 && now > on_since) on_cpu += now - on_since;
      on_cpu_ns_[{static_cast<int64_t>(state.Number("tgid")), LabelOf(state)}] +=
          static_cast<int64_t>(on_cpu);
      const uint64_t since = state.Number("off_since_ns");
      if (since == 0 || now <= since) return;
      const uint64_t woken = state.Number("woken_ns");
      const uint64_t end = woken != 0 ? std::clamp(woken, since, now) : now;
      Period& period = periods_[PlaceOf(state)];
      period.blocked_ns += static_cast<int64_t>(end - since);
      period.runnable_ns += static_cast<int64_t>(now - end);
    });
  }

  void Report(Sink& sink) {
    std::map<std::pair<int64_t, uint32_t>, OperatorSplit> splits;
    for (const auto& [place, period] : periods_) {
      const Word word = TakeApart(place.word);
      const bool waits = word.doing == HR_WAITING_IN || word.doing == HR_WAITING_OUT;
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
      if (waits) {
        add("off_cpu_wait_ns", period.blocked_ns + period.runnable_ns);
      } else {
        add("runnable_ns", period.runnable_ns);
        add("runnable_count", period.runnable_count);
        m.labels.cause = place.cause;
        add("off_cpu_ns", period.blocked_ns);
        add("off_cpu_count", period.blocked_count);
      }
      if (!word.operator_index) continue;
      OperatorSplit& split = splits[{place.pid, *word.operator_index}];
      split.pid = place.pid;
      split.operator_index = *word.operator_index;
      if (waits) {
        split.wait_ns += period.blocked_ns + period.runnable_ns;
      } else {
        split.blocked_ns += period.blocked_ns;
        split.runnable_ns += period.runnable_ns;
      }
    }
    splits_.clear();
    for (const auto& [key, split] : splits) splits_.push_back(split);
    for (const auto& [group, on_cpu] : on_cpu_ns_) {
      Measurement m;
      m.metric = "on_cpu_ns";
      m.labels.pid = group.first;
      m.labels.thread = group.second;
      m.value = static_cast<double>(on_cpu);
      sink.Add(m);
    }
  }

  void ReadQueueAndWakeups(Sink& sink) {
    program_.ForEach("run_queue", [&](const Record& key, const Record& value) {
      Measurement m;
      m.metric = "run_queue_latency_count";
      m.labels.pid = static_cast<int64_t>(key.Number("tgid"));
      m.labels.bucket = int64_t{1} << std::min<uint64_t>(key.Number("bucket"), 62);
      m.value = static_cast<double>(value.Number("waits_count"));
      m.course = false;
      sink.Add(m);
    });
    program_.ForEach("wakeups", [&](const Record& key, const Record& value) {
      Measurement m;
      m.metric = "wakeups_count";
      m.labels.pid = static_cast<int64_t>(key.Number("tgid"));
      m.labels.thread = LabelOf(key);
      m.labels.subject =
          fmt::format("{}/{}", key.Number("waker_tgid"),
                      ThreadGroupLabel(key.Text("waker_comm"), key.Number("waker_first") != 0));
      m.labels.cause = key.Word("cause");
      m.value = static_cast<double>(value.Number("wakeups_count"));
      // Programs without accounts are judged by their wake-ups, drawn from the course.
      m.course = target_->accounts.empty();
      sink.Add(m);
      m.metric = "wakeup_wait_ns";
      m.value = static_cast<double>(value.Number("wait_ns"));
      sink.Add(m);
    });
  }

  Program program_{"offcpu"};
  const Target* target_ = nullptr;
  std::map<Place, Period> periods_;
  std::map<ThreadGroup, int64_t> on_cpu_ns_;
  std::vector<OperatorSplit> splits_;
};

HR_PROBE(
    "off-CPU time",
    {.summary = "time blocked and time runnable, by operator or thread, and by cause; time on "
                "a CPU; who wakes whom (sched_switch, sched_wakeup)",
     .affects = "the exact split of an operator's time; causes of blocking; roles of processes "
                "without accounts",
     .level = 3,
     .check = [](const Host& host) { return CheckBpf(host); },
     .make = [] { return std::make_unique<OffCpuProbe>(); }});

}  // namespace
}  // namespace headrace::probes::bpf
