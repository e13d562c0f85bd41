// MeasurementSink: turns the cumulative values of probes into what the store keeps: totals by
// metric and labels, and their course over time in intervals. A counter that restarts from 0 (its
// probe or process was started again) continues where it was. A counter with labels is stored once
// it has counted; without labels also as a measured 0. Memory is bounded: what exceeds the limits
// is counted as lost.
#pragma once
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "collectors/store/store.h"
#include "probes/probe.h"

namespace headrace::collectors {

class MeasurementSink : public probes::Sink {
 public:
  struct Limits {
    size_t measurements = 20'000;
    size_t courses = 1'000;
    // Of threads' measurements, apart from the others: what limits a program without accounts is
    // read from them, and others must not take their room.
    size_t thread_courses = 10'000;
    size_t stacks = 30'000;
    size_t stack_bytes = 12 << 20;
  };
  // How labels become the run's ids. `operator_id` may not know an operator yet; its measurements
  // are then stored once it does.
  struct Names {
    std::function<int64_t(int64_t pid)> process_id;
    std::function<std::optional<int64_t>(int64_t pid, uint32_t operator_index)> operator_id;
  };
  explicit MeasurementSink(Names names);  // with the limits above
  MeasurementSink(Names names, Limits limits);
  ~MeasurementSink() override;

  // Call these before and after a probe's Read. `now_ns` is since the run's start.
  void BeginRead(const std::string& probe, int64_t now_ns);
  void EndRead();

  void Add(const probes::Measurement& measurement) override;
  void AddStack(const probes::StackSample& stack) override;
  void Lost(std::string_view what, int64_t lost, std::optional<int64_t> total) override;

  // Call at the run's start: what counters and stacks counted until now is not part of the run.
  // Gauges keep their values.
  void MarkStart();

  // What changed since the last call; the interval ends at `now_ns`. Histograms and stacks are
  // included only with `fine`, because they would cost more than all the rest. `last`: measurements
  // that still wait for their operator's id are included without it.
  MeasurementBatch Take(int64_t now_ns, bool fine, bool last);

  // What a counter has counted since the run's start over all its labels, by the probe that adds
  // it.
  std::map<std::string, double> TotalByProbe(std::string_view metric) const;

  struct Loss {
    int64_t lost = 0;
    std::optional<int64_t> total;
  };
  // All losses by what was lost, including those at the limits above.
  std::map<std::string, Loss> losses() const;
  size_t num_measurements() const;

 private:
  struct Key;
  struct Series;
  struct KeyHash;
  struct Stack;

  // Gives the series its number in the store; false if there is nothing to store of it yet.
  bool Define(const Key& key, bool last, Series* series, MeasurementBatch* batch);
  // Whether one more series may have its course stored; counts it, or what is refused.
  bool MayHaveCourse(bool of_thread);
  // The series' total, and its course since the last Take.
  void TakeSeries(const Key& key, int64_t now_ns, Series* series, MeasurementBatch* batch);
  void TakeStacks(bool last, MeasurementBatch* batch);

  Names names_;
  Limits limits_;
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace headrace::collectors
