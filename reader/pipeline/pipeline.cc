#include "reader/pipeline/pipeline.h"

#include <exception>
#include <new>
#include <optional>
#include <utility>

#include "base/check.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/mix_bits.h"
#include "probes/account/account.h"
#include "probes/account/scope.h"
#include "reader/dwrf/file_reader.h"
#include "reader/pipeline/engine/element_source.h"
#include "reader/pipeline/engine/engine.h"
#include "reader/pipeline/engine/input.h"
#include "reader/pipeline/engine/notes.h"
#include "reader/pipeline/engine/table_checks.h"

namespace headrace::reader {
struct Pipeline::State {
  PipelineSpec spec;
  std::unique_ptr<Consumer> consumer;
  std::function<bool()> interrupted;
  StopSignal stop;
  Progress progress;
  std::unique_ptr<Input> input;
  std::optional<Checkpointing> checkpointing;  // nothing: nobody asked to know what was delivered
  std::optional<ElementSource> source;
  std::optional<Engine> engine;
  bool started = false;
  bool consumer_failed = false;
  bool reached_end = false;  // the consumer took all there was

  void Consume();
  void Repeat(Element&& batch, int64_t first_wait_ns);
  int64_t Step(Element&& batch, int64_t wait_ns, int64_t begin);
  void Close();
  bool WasComplete() const;  // the end of the data, no error, no interruption
};

bool Pipeline::State::WasComplete() const {
  return reached_end && !engine->error().is_set() && !(interrupted && interrupted());
}

void Pipeline::State::Consume() {
  account::ThreadScope thread(engine->consumer_stage());
  Queue<Element>& queue = engine->output();
  for (;;) {
    Element batch;
    const int64_t start = MonotonicNs();
    const QueueStatus status = queue.Get(&batch, engine->consumer_account(), queue.Ticket());
    if (status == QueueStatus::kEnd || status == QueueStatus::kStopped) {
      // A stage that is stopped closes its queue too.
      reached_end = status == QueueStatus::kEnd && !stop.stopped();
      break;
    }
    if (status == QueueStatus::kWoken) continue;
    const int64_t taken = MonotonicNs();
    // What is left of splits all of whose rows were dropped.
    if (batch.rows == 0 && !batch.payload.empty()) {
      if (checkpointing) checkpointing->SettleDropped(batch);
      consumer->TakeDropped(SpansOf(batch), &stop);
      continue;
    }
    if (spec.repeat_first_batch) return Repeat(std::move(batch), taken - start);
    if (checkpointing) checkpointing->BeginStep(batch);
    Step(std::move(batch), taken - start, taken);
    if (!checkpointing) continue;
    checkpointing->EndStep();
    checkpointing->SettleDelivered();
    if (checkpointing->is_due()) {
      account::OperatorScope scope(engine->consumer_account());
      checkpointing->Save();
    }
  }
}

// Steps over one batch until the pipeline is stopped. Stages upstream fill their queues and then
// stand still, so they take no cores. Consumers within the process leave a batch as it is.
void Pipeline::State::Repeat(Element&& batch, int64_t first_wait_ns) {
  int64_t waited = first_wait_ns;
  for (int64_t start = MonotonicNs(); !stop.stopped(); waited = 0) {
    start = Step(std::move(batch), waited, start);
    // Steps of random length are drawn by the element: another draw for each.
    ++batch.sequence;  // NOLINT(bugprone-use-after-move): see above
    batch.seed = MixBits(batch.seed);
  }
}

// One step of the consumer, which began at `begin`; returns the time at which it was done.
int64_t Pipeline::State::Step(Element&& batch, int64_t wait_ns, int64_t begin) {
  const uint64_t rows = batch.rows, bytes = batch.bytes;
  {
    account::OperatorScope scope(engine->consumer_account());
    consumer_failed = true;
    consumer->Step(std::move(batch), &stop);
    consumer_failed = false;
    scope.Done(rows, bytes, 0);
  }
  const int64_t done = MonotonicNs();
  hr_step(static_cast<uint64_t>(wait_ns), static_cast<uint64_t>(done - begin), rows);
  progress.Took(rows, wait_ns, done - begin, done);
  return done;
}

// After the last step: what was delivered is waited for and kept.
void Pipeline::State::Close() {
  const auto succeeds = [&](const std::function<void()>& act) {
    try {
      act();
      return true;
    } catch (...) {
      engine->Fail(std::current_exception());
      return false;
    }
  };
  const bool finished = !consumer_failed && succeeds([&] { consumer->Finish(WasComplete()); });
  if (checkpointing && (finished || consumer->SavesAfterFailure())) {
    succeeds([&] {
      checkpointing->SettleDelivered();
      if (!checkpointing->has_failed()) checkpointing->Save();
    });
  }
}

Pipeline::Pipeline(PipelineSpec spec, std::unique_ptr<Consumer> consumer,
                   std::function<bool()> interrupted, CheckpointOptions checkpoint,
                   std::shared_ptr<SplitSource> splits)
    : state_(std::make_unique<State>()) {
  State& state = *state_;
  state.spec = std::move(spec);
  state.consumer = std::move(consumer);
  state.interrupted = std::move(interrupted);
  state.input = OpenInput(&state.spec, &state.stop, state.interrupted);
  state.progress.SetLocked(state.input->locked.names);
  std::shared_ptr<const DeliveryLedger> delivered;
  if (!checkpoint.path.empty()) {
    state.checkpointing.emplace(std::move(checkpoint), state.spec, state.input->table.get(),
                                state.consumer.get());
    delivered = std::make_shared<DeliveryLedger>(state.checkpointing->ledger());
    if (state.checkpointing->has_resumed()) state.progress.Resumed(delivered->settled_rows());
  }
  state.source.emplace(state.input->context, std::move(delivered), std::move(splits));
  state.engine.emplace(state.spec, state.input.get(), &*state.source, &state.progress,
                       state.consumer.get());
}

Pipeline::~Pipeline() = default;

const PipelineSpec& Pipeline::spec() const { return state_->spec; }

Fingerprint Pipeline::fingerprint() const {
  return FingerprintOf(*state_->input->table, state_->spec);
}

std::vector<AvailableColumn> Pipeline::columns() const {
  return FinalColumns(state_->input->table->files[0]->schema(), state_->spec);
}

const Table& Pipeline::table() const { return *state_->input->table; }

uint64_t Pipeline::epoch_splits() const {
  const PipelineSpec& spec = state_->spec;
  return spec.synthetic ? spec.synthetic->elements : state_->input->table->splits.size();
}

void Pipeline::Run() {
  State& state = *state_;
  Engine& engine = *state.engine;
  HR_CHECK(!state.started, "Run is called once");
  state.started = true;
  // A place that cannot be written is found out now, not after an hour.
  if (state.checkpointing) state.checkpointing->Save();
  engine.Start();
  try {
    state.Consume();
  } catch (const Error& error) {
    engine.Fail(error, "consumer");
  } catch (const std::bad_alloc&) {
    engine.Fail(Error(ExitCode::kResources, "out of memory"), "consumer");
  } catch (...) {
    engine.Fail(std::current_exception());
  }
  engine.Stop();
  engine.Join();
  state.Close();
  engine.error().RethrowIfSet();
}

void Pipeline::RequestStop() { state_->engine->Stop(); }

void Pipeline::SetParallelism(const std::string& stage, uint32_t parallelism) {
  state_->engine->SetParallelism(stage, parallelism);
}

void Pipeline::SetQueueCapacity(const std::string& stage, uint32_t capacity) {
  state_->engine->SetQueueCapacity(stage, capacity);
}

uint32_t Pipeline::parallelism(const std::string& stage) const {
  return state_->engine->parallelism(stage);
}

std::vector<std::string> Pipeline::notes() const {
  std::vector<std::string> notes = NotesOf(state_->spec, *state_->input, state_->progress);
  for (std::string& note : state_->consumer->notes()) notes.push_back(std::move(note));
  return notes;
}

std::vector<StageWaits> Pipeline::stage_waits(int64_t now_ns) const {
  return state_->engine->waits(now_ns);
}

PipelineProgress Pipeline::progress() const {
  PipelineProgress progress = state_->progress.Now();
  progress.fraction = state_->source->fraction();
  return progress;
}

}  // namespace headrace::reader
