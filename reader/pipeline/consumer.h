// Consumer: what takes the batches at the end of a pipeline.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "reader/pipeline/element.h"
#include "reader/pipeline/stop_signal.h"

namespace headrace::reader {

// Called from one thread.
class Consumer {
 public:
  virtual ~Consumer() = default;
  // Before the first step: registers the accounts of its parts with its stage, if it has any.
  virtual void RegisterAccounts(uint32_t /*stage*/) {}
  // Takes one batch and computes for one step; returns early when `stop` is set.
  virtual void Step(Element&& batch, StopSignal* stop) = 0;
  // Between steps: all rows of these spans were dropped on the way. Only whoever passes batches on
  // needs to know.
  virtual void TakeDropped(const std::vector<RowSpan>& /*spans*/, StopSignal* /*stop*/) {}

  // What it must know again when a run goes on from a checkpoint of this moment, in bytes of its
  // own; what it wrote elsewhere must last as long as they do. Called between steps.
  virtual std::string SaveState() { return {}; }
  // Before the first step. Throws Error kBadData for bytes that are not its own, kUsage when it is
  // not set up to go on from them.
  virtual void LoadState(const std::string& /*state*/) {}
  // How many of the first `taken` steps are delivered for good. A consumer that passes batches on
  // counts only those that were acknowledged.
  virtual uint64_t DeliveredSteps(uint64_t taken) { return taken; }
  // Whether DeliveredSteps and SaveState still hold after a step has failed.
  virtual bool SavesAfterFailure() const { return false; }
  // Called after the last batch. `complete`: the data came to its end; false when the pipeline
  // stopped before that, by an error, an interruption or RequestStop (the end of `run --duration`).
  // Waits until all steps taken are delivered, or throws Error. Not called when a step failed.
  virtual void Finish(bool /*complete*/) {}
  // Afterwards: lines about what became of the batches, for people.
  virtual std::vector<std::string> notes() const { return {}; }
};

}  // namespace headrace::reader
