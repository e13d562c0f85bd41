// Pipeline: stages on threads between bounded queues, ending in one consumer. Built from a
// PipelineSpec; any stage's parallelism and queue capacity can change while it runs. Results do not
// depend on parallelism: the multiset of rows is exact at every setting, and with order = "file" so
// is the order.
//
//   ledger -> [stage fetch x p] -> queue -> [stage decode x p] -> queue -> ... -> consumer (the
//   thread that calls Run)
//
// The first error on any thread stops the pipeline and comes out of Run, with the stage's and
// operator's names before it.
//
// With a checkpoint the pipeline keeps account of the rows delivered and writes it, together with
// the consumer's state of the same moment, every so many batches and at the end, however that
// comes; only when the consumer itself failed does the last one stay as it is. Another run goes on
// from there with exactly the rows that are missing.
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "reader/pipeline/element.h"
#include "reader/pipeline/spec.h"
#include "reader/pipeline/stop_signal.h"

namespace headrace::reader {

// What takes the batches. Called from one thread.
class Consumer {
 public:
  virtual ~Consumer() = default;
  // Before the first step: registers the accounts of its parts with its stage, if it has any.
  virtual void RegisterAccounts(uint32_t /*stage*/) {}
  // Takes one batch and computes for one step; returns early when `stop` is set.
  virtual void Step(Element&& batch, StopSignal* stop) = 0;

  // What it must know again when a run goes on from a checkpoint of this moment, in bytes of its
  // own; what it wrote elsewhere must last as long as they do. Called between steps.
  virtual std::string SaveState() { return {}; }
  // Before the first step. Throws Error kBadData for bytes that are not its own, kUsage when it is
  // not set up to go on from them.
  virtual void LoadState(const std::string& /*state*/) {}
  // Of the `taken` steps, taken in order, how many are delivered for good: a consumer that hands
  // batches on counts those that were acknowledged.
  virtual uint64_t DeliveredSteps(uint64_t taken) { return taken; }
  // Whether DeliveredSteps and SaveState still hold after a step has failed.
  virtual bool SavesAfterFailure() const { return false; }
  // No batch comes any more: `complete` when that was all, not when the pipeline stopped before, by
  // an error, an interruption or RequestStop (the end of `run --duration`).
  // Waits until all steps taken are delivered, or throws Error. Not called when a step failed.
  virtual void Finish(bool /*complete*/) {}
};

struct CheckpointOptions {
  std::string path;     // empty: no checkpoint
  uint64_t every = 64;  // batches between two of them
  bool resume = false;  // go on from the file at `path`, if there is one
};

struct PipelineProgress {
  uint64_t batches = 0, rows = 0;        // taken by the consumer
  uint64_t wait_ns = 0, compute_ns = 0;  // of the consumer
  double fraction = -1;                  // of all splits handed out; below 0 when it has no end
  uint64_t skipped_stripes = 0, skipped_rows = 0;  // that could not be read
  std::vector<std::string> locked_columns;         // null for want of their keys (source.on_locked)
  bool resumed = false;                            // from a checkpoint
  uint64_t resumed_rows = 0;                       // settled before this run: delivered, or dropped
};

class Pipeline {
 public:
  // Opens the table, checks projection and transforms against it, registers the accounts. Where
  // `interrupted` gives true, waits for remote storage end by Error kInterrupted. With a checkpoint
  // to go on from, reads it and gives the consumer its state; otherwise Error kUsage when the file
  // exists. Throws Error.
  Pipeline(PipelineSpec spec, std::unique_ptr<Consumer> consumer,
           std::function<bool()> interrupted = {}, CheckpointOptions checkpoint = {});
  ~Pipeline();  // stops and joins

  const PipelineSpec& spec() const;

  // What the source hands out per epoch: splits of the table, or synthetic elements; 0 where there
  // are no epochs.
  uint64_t epoch_splits() const;

  // Runs to the end of the data or to RequestStop, with the calling thread as the consumer. Throws
  // the first Error of any thread. Called once.
  void Run();
  // From any thread: Run returns within a second; elements in flight are dropped.
  void RequestStop();

  // Thread-safe, also while running. Throws Error kUsage for an unknown stage or a value out of
  // range (parallelism above a stage's max_parallelism, 0). A thread that goes finishes its element
  // first.
  void SetParallelism(const std::string& stage, uint32_t parallelism);
  void SetQueueCapacity(const std::string& stage,
                        uint32_t capacity);  // of the queue behind the stage
  uint32_t parallelism(const std::string& stage) const;

  PipelineProgress progress() const;  // thread-safe
  // What worked less well than the pipeline file asks for, and why. Thread-safe.
  std::vector<std::string> notes() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace headrace::reader
