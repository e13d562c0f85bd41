// Differential: a third opinion, from runs of the same pipeline that differ in one thing. It looks
// at no demand and no queue, so it cannot share the other two opinions' mistakes.
//
//   ceiling   one prepared batch is repeated: the consumer without input (headrace run --ceiling)
//   warm      the table's bytes come from the page cache
//   cold      they come from the device (headrace run --cold)
//
// The time of a batch in the slowest of these runs has three parts: 1/cold - 1/warm is the fetch
// stall, 1/warm - 1/ceiling the prep stall, and the rest is the consumer's (DS-Analyzer and CoorDL:
// Mohan et al., PVLDB 14(5), 2021; the ceiling also FastFlow: Um et al., PVLDB 16(5), 2023).
// Whether a run was warm or cold is measured, not taken from its options: by the share of the bytes
// read that a device delivered. A run that was neither is compared with nothing.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "analysis/model/bottleneck.h"

namespace headrace::analysis {

enum class ReadState : uint8_t {
  kUnknown,  // not counted
  kNone,     // the run reads no table, or one that no page cache of this machine holds
  kWarm,     // at most 5 % of the bytes came from a device
  kMixed,
  kCold  // at least 80 %
};
const char* ReadStateName(ReadState state);  // "warm", "cold", "mixed", "no table", "unknown"

struct DifferentialRun {
  int64_t run_id = 0;
  bool own = false;        // the run that the report is about
  double rate = 0;         // batches per second, steady phase
  Interval rate_interval;  // 90 %: spread of its windows, and of equal runs among each other
};

// A share of the slowest run's time per batch.
struct Share {
  double value = 0;
  Interval interval;  // 90 %
};

enum class InputOpinion : uint8_t { kConsumer, kPreparing, kFetching };
const char* InputOpinionName(InputOpinion opinion);  // "the consumer", "preparing", "fetching"

struct Differential {
  ReadState state = ReadState::kUnknown;  // of this run
  std::optional<double> device_ratio;     // share of the bytes read that a device delivered
  std::optional<DifferentialRun> ceiling, warm, cold;
  // Parts of a batch's time in the slowest of these three runs, which is this run or a colder one.
  std::optional<Share> consumer, prep, fetch;
  std::optional<Share> input_bound;  // 1 - rate / ceiling, of this run
  // A step's compute time beside the pipeline / its compute time without input; none without a
  // ceiling, or where the consumer computes nothing.
  std::optional<double> step_slowdown;
  std::optional<InputOpinion> opinion;  // of this run; none where the intervals do not decide
  std::string because;                  // the reason for the opinion, or why there is none
  // What is missing and the command that would record it: {"a run without input", "headrace run
  // ..."}. Where no command would, it is empty and `what` has the reason.
  struct Missing {
    std::string what, command;
  };
  std::vector<Missing> missing;
  std::string disagreement;      // with the model's bottleneck; empty: none
  bool against_witness = false;  // it also disagrees with waits and queues
};

// The opinion from the runs beside the one of `model`, whose verdict is `bottleneck`.
Differential CompareSiblings(const PipelineModel& model, const Bottleneck& bottleneck);

// Where the run's bytes came from, over the whole run.
ReadState ReadStateOf(const RunView& run);

}  // namespace headrace::analysis
