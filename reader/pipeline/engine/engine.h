// Engine: the stages of a pipeline, each with its threads and the queue behind it. A stage's
// parallelism and the capacity of its queue can change while it runs. The first error in any thread
// stops all threads.
#pragma once
#include <cstdint>
#include <exception>
#include <list>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "base/error.h"
#include "reader/pipeline/consumer.h"
#include "reader/pipeline/engine/element_source.h"
#include "reader/pipeline/engine/first_error.h"
#include "reader/pipeline/engine/input.h"
#include "reader/pipeline/engine/progress.h"
#include "reader/pipeline/queue.h"

namespace headrace::reader {

class Engine {
 public:
  // Registers the accounts of all stages and, last, of the consumer. The arguments must outlive the
  // engine. Throws Error where an operator cannot be made.
  Engine(const PipelineSpec& spec, Input* input, ElementSource* source, Progress* progress,
         Consumer* consumer);
  ~Engine();  // stops and joins
  Engine(const Engine&) = delete;

  void Start();
  // From any thread: elements in flight are dropped.
  void Stop();
  // Waits for all threads; after Stop.
  void Join();

  // Batches for the consumer, and its accounts.
  Queue<Element>& output() { return *stages_.back()->queue; }
  uint32_t consumer_stage() const { return consumer_stage_; }
  uint32_t consumer_account() const { return consumer_account_; }

  // Records that the run has failed, and stops it. The second form adds where it failed; under a
  // memory budget, an error about memory also names a budget that suffices.
  void Fail(std::exception_ptr error);
  void Fail(const Error& error, const std::string& where);
  const FirstError& error() const { return error_; }

  // Thread-safe; see pipeline.h.
  void SetParallelism(const std::string& stage, uint32_t parallelism);
  void SetQueueCapacity(const std::string& stage, uint32_t capacity);
  uint32_t parallelism(const std::string& stage) const;
  // Up to now, of each stage and, last, of the consumer: of the first without the waits for input,
  // of the last without those for room, which are their own.
  std::vector<StageWaits> waits(int64_t now_ns) const;

 private:
  // A stage: its operators, the queue behind it, and its threads.
  struct Stage {
    StageSpec spec;
    std::vector<OperatorPlan> operators;
    uint32_t account = 0;
    std::unique_ptr<Queue<Element>> queue;  // behind it

    std::mutex mutex;  // guards the following
    std::list<std::thread> threads;
    uint32_t target = 0;   // wanted threads
    uint32_t running = 0;  // threads that have not decided to end
    uint32_t alive = 0;    // threads that may still put elements
    bool started = false, input_ended = false;
  };

  void AddStage(const StageSpec& spec);
  void AddQueue(size_t index);
  size_t FindStage(const std::string& name) const;
  void AddThread(size_t index);  // under the stage's mutex
  void ThreadMain(size_t index);
  void Work(size_t index);
  bool TakeInput(size_t index, Element* element, Queue<Element>::Wakeup* wakeup, bool* ended);

  const PipelineSpec& spec_;
  Input* const input_;
  StopSignal* const stop_;
  ElementSource* const source_;
  Progress* const progress_;
  std::vector<std::unique_ptr<Stage>> stages_;
  uint32_t consumer_stage_ = 0, consumer_account_ = 0;
  FirstError error_;
};

}  // namespace headrace::reader
