// MeasurementSink: takes the cumulative values of probes and makes of them what the store keeps:
// totals by metric and labels, and their course in intervals. Counters that begin again (a probe or
// a process that was started anew) go on where they were. Memory is bounded: what goes beyond is
// counted as lost.
#pragma once
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
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
    size_t stacks = 30'000;
    size_t stack_bytes = 12 << 20;
  };
  // How labels become numbers of the run. `operator_id` may know an operator only later; the
  // measurement is then stored later.
  struct Names {
    std::function<int64_t(int64_t pid)> process_id;
    std::function<std::optional<int64_t>(int64_t pid, uint32_t operator_index)> operator_id;
  };
  explicit MeasurementSink(Names names);  // with the limits above
  MeasurementSink(Names names, Limits limits);
  ~MeasurementSink() override;

  // A probe's Read lies between these two. `now_ns` is since the run's start.
  void BeginRead(const std::string& probe, int64_t now_ns);
  void EndRead();

  void Add(const probes::Measurement& measurement) override;
  void AddStack(const probes::StackSample& stack) override;
  void Lost(std::string_view what, int64_t lost, std::optional<int64_t> total) override;

  // Now is the run's start: what counters and stacks counted until here was before it. Gauges stay.
  void MarkStart();

  // What changed since the last call; the interval ends at `now_ns`. Histograms and stacks come
  // only with `fine`, or they would cost more than all the rest. `last`: what still waits for the
  // name of its operator comes without.
  MeasurementBatch Take(int64_t now_ns, bool fine, bool last);

  struct Loss {
    int64_t lost = 0;
    std::optional<int64_t> total;
  };
  // All losses, those of the limits included; by what was lost.
  std::map<std::string, Loss> losses() const;
  size_t num_measurements() const;

 private:
  struct Key;
  struct Series;
  struct KeyHash;
  struct Stack;

  Names names_;
  Limits limits_;
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace headrace::collectors
