// The probes "hardware counters" and "task clock": counters by process, level 1, without BPF.
#pragma once
#include <memory>
#include <optional>

#include "probes/perf/counter_set.h"
#include "probes/perf/process_counters.h"
#include "probes/probe.h"

namespace headrace::probes::perf {

// True while "counters by operator" counts all threads of the target; then these probes must not,
// because a PMU has too few counters for both.
bool& OperatorCountersActive();

struct CountersProbeOptions {
  PerfBackend* backend = nullptr;  // null: the kernel's
  std::optional<CounterSet> set;   // none: this machine's set
  std::optional<EventPlan> plan;   // none: the plan that is proven here
  std::optional<ProcessCountersOptions> process;
};

class CountersProbe final : public Probe {
 public:
  using Options = CountersProbeOptions;
  explicit CountersProbe(Options options = {});
  ~CountersProbe() override { Stop(); }

  static Availability Check(const Host& host);
  Availability Start(const Host& host, const Target& target) override;
  void Read(Sink& sink) override;
  void Stop() override;

 private:
  Options options_;
  KernelBackend kernel_;
  const Host* host_ = nullptr;
  const Target* target_ = nullptr;
  std::optional<ProcessCounters> counters_;
};

// Time on a CPU and migrations between CPUs from the kernel's software events: exact, and available
// without a PMU.
class TaskClockProbe final : public Probe {
 public:
  explicit TaskClockProbe(PerfBackend* backend = nullptr) : backend_(backend) {}
  ~TaskClockProbe() override { Stop(); }

  static Availability Check(const Host& host);
  Availability Start(const Host& host, const Target& target) override;
  void Read(Sink& sink) override;
  void Stop() override;

 private:
  PerfBackend* backend_;
  KernelBackend kernel_;
  const Host* host_ = nullptr;
  const Target* target_ = nullptr;
  std::optional<ProcessCounters> counters_;
};

}  // namespace headrace::probes::perf
