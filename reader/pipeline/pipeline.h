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
// With a checkpoint the pipeline records which rows were delivered and writes that, together with
// the consumer's state at the same moment, every CheckpointOptions::every batches and at the end,
// however the run ends; only when the consumer itself failed does the last checkpoint stay
// unchanged. Another run continues from there with exactly the missing rows.
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "reader/pipeline/consumer.h"
#include "reader/pipeline/engine/checkpointing.h"
#include "reader/pipeline/engine/progress.h"
#include "reader/pipeline/spec.h"
#include "reader/pipeline/split.h"
#include "reader/pipeline/wait_sum.h"
#include "reader/transforms/plan.h"

namespace headrace::reader {

class Pipeline {
 public:
  // Opens the table, checks projection and transforms against it, registers the accounts. Where
  // `interrupted` gives true, waits for remote storage end by Error kInterrupted. With a checkpoint
  // to go on from, reads it and gives the consumer its state; otherwise Error kUsage when the file
  // exists. `splits`: where splits come from; null: all of the table, for its epochs. Throws Error.
  Pipeline(PipelineSpec spec, std::unique_ptr<Consumer> consumer,
           std::function<bool()> interrupted = {}, CheckpointOptions checkpoint = {},
           std::shared_ptr<SplitSource> splits = nullptr);
  ~Pipeline();  // stops and joins

  const PipelineSpec& spec() const;
  // Of its rows; it must read a table.
  Fingerprint fingerprint() const;
  // That its batches have, in the order of each kind. Of a table.
  std::vector<AvailableColumn> columns() const;
  // As it is open; it must read a table.
  const Table& table() const;
  const std::vector<Split>& splits() const { return table().splits; }

  // What the source hands out per epoch: splits of the table, or synthetic elements; 0 where there
  // are no epochs.
  uint64_t epoch_splits() const;

  // Runs to the end of the data or to RequestStop, with the calling thread as the consumer. Throws
  // the first Error of any thread. Called once.
  void Run();
  // From any thread: Run returns within a second; elements in flight are dropped.
  void RequestStop();

  // Thread-safe, also while running. Throws Error kUsage for an unknown stage or a value out of
  // range (parallelism above a stage's max_parallelism, 0). A thread that ends finishes its element
  // first.
  void SetParallelism(const std::string& stage, uint32_t parallelism);
  void SetQueueCapacity(const std::string& stage,
                        uint32_t capacity);  // of the queue after the stage
  uint32_t parallelism(const std::string& stage) const;

  PipelineProgress progress() const;  // thread-safe
  // As Engine::waits. Thread-safe.
  std::vector<StageWaits> stage_waits(int64_t now_ns) const;
  // What did not work as well as the pipeline file asks for, and why. Thread-safe.
  std::vector<std::string> notes() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace headrace::reader
