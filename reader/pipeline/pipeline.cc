#include "reader/pipeline/pipeline.h"

#include <fmt/format.h>
#include <pthread.h>

#include <algorithm>
#include <atomic>
#include <exception>
#include <list>
#include <optional>
#include <system_error>
#include <thread>
#include <utility>

#include "base/block_pool.h"
#include "base/check.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/mix_bits.h"
#include "base/registry.h"
#include "probes/account/account.h"
#include "probes/account/scope.h"
#include "reader/dwrf/file_reader.h"
#include "reader/pipeline/batching.h"
#include "reader/pipeline/cache/cache_operators.h"
#include "reader/pipeline/engine/checkpointing.h"
#include "reader/pipeline/engine/element_source.h"
#include "reader/pipeline/engine/input.h"
#include "reader/pipeline/engine/skip_corrupt.h"
#include "reader/pipeline/operator.h"
#include "reader/pipeline/queue.h"
#include "reader/pipeline/stop_signal.h"
#include "reader/source/throttle.h"

namespace headrace::reader {
namespace {

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

}  // namespace

struct Pipeline::State {
  PipelineSpec spec;
  std::unique_ptr<Consumer> consumer;
  StopSignal stop;
  std::function<bool()> interrupted;
  std::unique_ptr<Input> input;
  std::unique_ptr<ElementSource> source;
  std::optional<Checkpointing> checkpointing;  // nothing: nobody asked to know what was delivered
  bool consumer_failed = false;
  bool reached_end = false;  // the consumer took all there was
  std::vector<std::unique_ptr<Stage>> stages;
  uint32_t consumer_account = 0, consumer_stage = 0;

  std::mutex error_mutex;
  std::exception_ptr error;
  bool started = false;

  Progress progress;

  void BuildStages();
  void StopAll();
  void Fail(std::exception_ptr first);
  // The same, saying where; under a budget, an error of memory says which would do.
  void Fail(const Error& error, const std::string& where);
  Stage* FindStage(const std::string& name) const;
  void AddThread(size_t index);  // under the stage's mutex
  void ThreadMain(size_t index);
  void Work(size_t index);
  bool TakeInput(size_t index, Element* element, bool* ended);
  void Consume();
  void Repeat(Element&& batch, int64_t first_wait_ns);
  bool WasComplete();  // the end of the data, no error, no interruption
};

void Pipeline::State::BuildStages() {
  hr_account_open(spec.name.c_str());
  if (input->sources.throttle)
    input->sources.throttle->set_account(hr_resource("throttle", HR_DEVICE, 1));
  for (const StageSpec& stage_spec : spec.stages) {
    auto stage = std::make_unique<Stage>();
    stage->spec = stage_spec;
    stage->account =
        hr_stage(stage_spec.name.c_str(), stage_spec.parallelism, stage_spec.max_parallelism);
    for (const OperatorSpec& op : stage_spec.operators) {
      OperatorPlan plan;
      plan.spec = op;
      plan.stage = stage->account;
      const OperatorEntry& entry = EntryOf(op);
      if (entry.add_accounts != nullptr) entry.add_accounts(&input->context, &plan);
      plan.account = hr_operator(op.name.c_str(), op.kind.c_str(), stage->account);
      if (entry.add_inner_accounts != nullptr) entry.add_inner_accounts(&input->context, &plan);
      stage->operators.push_back(std::move(plan));
    }
    stages.push_back(std::move(stage));
  }
  consumer_stage = hr_stage("consumer", 1, 1);
  consumer->RegisterAccounts(consumer_stage);
  consumer_account = hr_operator("consumer", "consumer", consumer_stage);
  for (size_t i = 0; i < stages.size(); ++i) {
    const bool last = i + 1 == stages.size();
    // In file order every queue is ordered: a stage takes its elements in order, so the element
    // that the next queue waits for is always one that a thread already holds, never one stuck
    // behind a full queue.
    const bool ordered = spec.file_order;
    const StageSpec& stage_spec = stages[i]->spec;
    const uint32_t account =
        hr_queue(fmt::format("{}.queue", stage_spec.name).c_str(), stages[i]->account,
                 last ? consumer_stage : stages[i + 1]->account, stage_spec.queue);
    stages[i]->queue =
        std::make_unique<Queue<Element>>(stage_spec.queue, ordered, account, spec.reorder_window);
  }
}

void Pipeline::State::StopAll() {
  stop.Stop();
  if (input->memory) input->memory->Stop();
  for (const auto& stage : stages) stage->queue->Stop();
}

void Pipeline::State::Fail(const Error& error, const std::string& where) {
  if (input->memory && error.code() == ExitCode::kResources && error.fix().empty()) {
    const uint64_t least = (input->memory->LeastBudget() >> 20) + 1;
    return Fail(
        std::make_exception_ptr(Error(error.code(), error.fact(), where,
                                      fmt::format("set pipeline.memory to {}MiB or more", least))));
  }
  Fail(std::make_exception_ptr(error.Within(where)));
}

void Pipeline::State::Fail(std::exception_ptr first) {
  {
    std::lock_guard lock(error_mutex);
    if (!error) error = first;
  }
  StopAll();
}

Stage* Pipeline::State::FindStage(const std::string& name) const {
  std::vector<std::string> names;
  for (const auto& stage : stages) {
    if (stage->spec.name == name) return stage.get();
    names.push_back(stage->spec.name);
  }
  const std::string nearest = NearestName(name, names);
  throw Error(ExitCode::kUsage,
              fmt::format("no stage '{}'{}", Printable(name, 60),
                          nearest.empty() ? "" : fmt::format(", did you mean '{}'?", nearest)));
}

void Pipeline::State::AddThread(size_t index) {
  Stage& stage = *stages[index];
  try {
    // It looks at what follows under the stage's mutex.
    stage.threads.emplace_back([this, index] { ThreadMain(index); });
  } catch (const std::system_error& error) {
    throw Error(ExitCode::kResources,
                fmt::format("the system gives no thread more than {}: {}", stage.running,
                            error.code().message()),
                "stage " + stage.spec.name, "set a smaller parallelism, or raise 'ulimit -u'");
  }
  ++stage.running;
  ++stage.alive;
}

void Pipeline::State::ThreadMain(size_t index) {
  Stage& stage = *stages[index];
  pthread_setname_np(pthread_self(), stage.spec.name.substr(0, 15).c_str());
  {
    account::ThreadScope thread(stage.account);
    try {
      Work(index);
    } catch (const Error& error) {
      // A wait that was broken off because the pipeline is to stop is no failure of it.
      if (error.code() == ExitCode::kInterrupted) {
        StopAll();
      } else {
        Fail(error, fmt::format("stage {}", stage.spec.name));
      }
    } catch (const std::bad_alloc&) {
      Fail(Error(ExitCode::kResources, "out of memory"), fmt::format("stage {}", stage.spec.name));
    } catch (...) {
      Fail(std::current_exception());
    }
  }
  std::lock_guard lock(stage.mutex);
  // The last thread to leave after the input has ended closes the queue; with input left others are
  // still there.
  if (--stage.alive == 0 && (stage.input_ended || stop.stopped())) stage.queue->Close();
}

bool Pipeline::State::TakeInput(size_t index, Element* element, bool* ended) {
  *ended = false;
  if (stop.stopped()) return false;
  if (index == 0) return source->Take(element, stages[0]->operators.front().account, ended);
  Queue<Element>& queue = *stages[index - 1]->queue;
  const uint64_t ticket = queue.Ticket();
  // A resize between the ticket and the wait would be missed without this second look.
  {
    std::lock_guard lock(stages[index]->mutex);
    if (stages[index]->running > stages[index]->target) return true;
  }
  const QueueStatus status = queue.Get(element, stages[index]->operators.front().account, ticket);
  *ended = status == QueueStatus::kEnd;
  if (status == QueueStatus::kWoken) element->sequence = UINT64_MAX;
  return status == QueueStatus::kOk || status == QueueStatus::kWoken;
}

void Pipeline::State::Work(size_t index) {
  Stage& stage = *stages[index];
  std::vector<std::unique_ptr<Operator>> operators;
  for (const OperatorPlan& plan : stage.operators) {
    auto op = WithCache(plan, input->context, MakeOperator(plan, input->context));
    operators.push_back(WithSkipping(plan, spec, &progress, std::move(op)));
  }
  // A chain: operator k hands its output to operator k + 1 inside its own call; the nested scope
  // stops its clock.
  const uint32_t last_account = stage.operators.back().account;
  std::vector<Emit> emits(operators.size() + 1);
  emits[operators.size()] = [&](Element&& element) {
    stage.queue->Put(std::move(element), last_account);
  };
  const auto process = [&](size_t k, Element&& element) {
    if (element.rows == 0 && element.payload.Get<FlatMapBatch>() != nullptr &&
        !operators[k]->TakesEmpty())
      return emits[k + 1](std::move(element));
    if (element.payload.Get<CachedPayload>() != nullptr && !operators[k]->TakesCached())
      return emits[k + 1](std::move(element));
    account::OperatorScope scope(stage.operators[k].account);
    const uint64_t rows = element.rows;
    uint64_t bytes_in = element.bytes, bytes_out = 0;
    const Emit& next = emits[k + 1];
    operators[k]->Process(std::move(element), [&](Element&& out) {
      bytes_in += std::exchange(out.received_bytes, 0);
      bytes_out += out.bytes;
      next(std::move(out));
    });
    scope.Done(rows, bytes_in, bytes_out);
  };
  for (size_t k = operators.size(); k-- > 0;) {
    emits[k] = [&process, k](Element&& element) { process(k, std::move(element)); };
  }
  const auto process_named = [&](Element&& element) {
    if (!input->memory) return process(0, std::move(element));
    const std::shared_ptr<MemoryCharge> charge = element.memory;
    const BlockPool::ThreadPeak peak;
    try {
      process(0, std::move(element));
    } catch (...) {
      if (charge) charge->DoesLess();  // it did not come through
      throw;
    }
    if (charge) charge->Worked(peak.bytes(), peak.net());
  };

  for (bool ended = false; !ended;) {
    Element element;
    {
      std::lock_guard lock(stage.mutex);
      if (stage.running > stage.target) {  // the stage was made smaller
        --stage.running;
        break;
      }
    }
    element.sequence = UINT64_MAX;
    if (!TakeInput(index, &element, &ended)) {
      std::lock_guard lock(stage.mutex);
      --stage.running;
      if (ended) stage.input_ended = true;
      break;
    }
    if (element.sequence == UINT64_MAX) continue;  // woken to look at the target
    process_named(std::move(element));
    if (stop.stopped()) {
      std::lock_guard lock(stage.mutex);
      --stage.running;
      return;
    }
  }
  for (size_t k = 0; k < operators.size() && !stop.stopped(); ++k) {
    account::OperatorScope scope(stage.operators[k].account);
    uint64_t rows = 0, bytes_out = 0, made = 0;
    const Emit& next = emits[k + 1];
    operators[k]->Finish([&](Element&& out) {
      ++made;
      rows += out.rows;
      bytes_out += out.bytes;
      next(std::move(out));
    });
    if (made > 0) scope.Done(0, 0, 0, bytes_out);
  }
}

bool Pipeline::State::WasComplete() {
  std::lock_guard lock(error_mutex);
  return reached_end && !error && !(interrupted && interrupted());
}

void Pipeline::State::Consume() {
  account::ThreadScope thread(consumer_stage);
  Queue<Element>& queue = *stages.back()->queue;
  for (;;) {
    Element batch;
    const int64_t start = MonotonicNs();
    const QueueStatus status = queue.Get(&batch, consumer_account, queue.Ticket());
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
      continue;
    }
    if (spec.repeat_first_batch) return Repeat(std::move(batch), taken - start);
    const uint64_t rows = batch.rows, bytes = batch.bytes;
    if (checkpointing) checkpointing->BeginStep(batch);
    {
      account::OperatorScope scope(consumer_account);
      consumer_failed = true;
      consumer->Step(std::move(batch), &stop);
      consumer_failed = false;
      scope.Done(rows, bytes, 0);
    }
    const int64_t done = MonotonicNs();
    hr_step(static_cast<uint64_t>(taken - start), static_cast<uint64_t>(done - taken), rows);
    progress.Took(rows, taken - start, done - taken);
    if (!checkpointing) continue;
    checkpointing->EndStep();
    checkpointing->SettleDelivered();
    if (checkpointing->is_due()) {
      account::OperatorScope scope(consumer_account);
      checkpointing->Save();
    }
  }
}

// Steps over one batch until the pipeline is stopped. Stages upstream fill their queues and then
// stand still, so they take no cores. Consumers within the process leave a batch as it is.
void Pipeline::State::Repeat(Element&& batch, int64_t first_wait_ns) {
  const uint64_t rows = batch.rows, bytes = batch.bytes;
  int64_t waited = first_wait_ns;
  for (int64_t start = MonotonicNs(); !stop.stopped();) {
    {
      account::OperatorScope scope(consumer_account);
      consumer_failed = true;
      consumer->Step(std::move(batch), &stop);
      consumer_failed = false;
      scope.Done(rows, bytes, 0);
    }
    const int64_t done = MonotonicNs();
    hr_step(static_cast<uint64_t>(waited), static_cast<uint64_t>(done - start), rows);
    progress.Took(rows, waited, done - start);
    waited = 0;
    start = done;
    // Steps of random length are drawn by the element: another draw for each.
    ++batch.sequence;
    batch.seed = MixBits(batch.seed);
  }
}

Pipeline::Pipeline(PipelineSpec spec, std::unique_ptr<Consumer> consumer,
                   std::function<bool()> interrupted, CheckpointOptions checkpoint)
    : state_(std::make_unique<State>()) {
  state_->spec = std::move(spec);
  state_->consumer = std::move(consumer);
  state_->interrupted = std::move(interrupted);
  state_->input = OpenInput(&state_->spec, &state_->stop, state_->interrupted);
  const Input& input = *state_->input;
  state_->progress.SetLocked(input.locked.names);
  std::shared_ptr<const DeliveryLedger> delivered;
  if (!checkpoint.path.empty()) {
    const Checkpointing& checkpointing = state_->checkpointing.emplace(
        std::move(checkpoint), state_->spec, input.table.get(), state_->consumer.get());
    delivered = std::make_shared<DeliveryLedger>(checkpointing.ledger());
    if (checkpointing.has_resumed()) state_->progress.Resumed(delivered->settled_rows());
  }
  state_->source = std::make_unique<ElementSource>(input.context, std::move(delivered));
  state_->BuildStages();
  // A first instance of each synthetic operator checks what only its constructor can (a file to
  // read).
  for (const auto& stage : state_->stages) {
    for (const OperatorPlan& plan : stage->operators) {
      if (IsSynthetic(EntryOf(plan.spec))) MakeOperator(plan, input.context);
    }
  }
}

Pipeline::~Pipeline() {
  state_->StopAll();
  for (const auto& stage : state_->stages) {
    for (std::thread& thread : stage->threads) {
      if (thread.joinable()) thread.join();
    }
  }
}

const PipelineSpec& Pipeline::spec() const { return state_->spec; }

uint64_t Pipeline::epoch_splits() const {
  const PipelineSpec& spec = state_->spec;
  return spec.synthetic ? spec.synthetic->elements : state_->input->table->splits.size();
}

void Pipeline::Run() {
  HR_CHECK(!state_->started, "Run is called once");
  state_->started = true;
  // A place that cannot be written is found out now, not after an hour.
  if (state_->checkpointing) state_->checkpointing->Save();
  for (size_t i = 0; i < state_->stages.size(); ++i) {
    Stage& stage = *state_->stages[i];
    std::lock_guard lock(stage.mutex);
    stage.started = true;
    stage.target = stage.spec.parallelism;
    for (uint32_t t = 0; t < stage.target; ++t) state_->AddThread(i);
  }
  try {
    state_->Consume();
  } catch (const Error& error) {
    state_->Fail(error, "consumer");
  } catch (const std::bad_alloc&) {
    state_->Fail(Error(ExitCode::kResources, "out of memory"), "consumer");
  } catch (...) {
    state_->Fail(std::current_exception());
  }
  state_->StopAll();
  for (const auto& stage : state_->stages) {
    // No thread is added after Stop: SetParallelism looks at the signal under the stage's mutex.
    std::list<std::thread> threads;
    {
      std::lock_guard lock(stage->mutex);
      threads.swap(stage->threads);
    }
    for (std::thread& thread : threads) thread.join();
  }
  const auto succeeds = [&](const std::function<void()>& act) {
    try {
      act();
      return true;
    } catch (...) {
      state_->Fail(std::current_exception());
      return false;
    }
  };
  const bool finished = !state_->consumer_failed &&
                        succeeds([&] { state_->consumer->Finish(state_->WasComplete()); });
  if (state_->checkpointing && (finished || state_->consumer->SavesAfterFailure())) {
    succeeds([&] {
      state_->checkpointing->SettleDelivered();
      if (!state_->checkpointing->has_failed()) state_->checkpointing->Save();
    });
  }
  std::lock_guard lock(state_->error_mutex);
  if (state_->error) std::rethrow_exception(state_->error);
}

void Pipeline::RequestStop() { state_->StopAll(); }

void Pipeline::SetParallelism(const std::string& name, uint32_t parallelism) {
  Stage& stage = *state_->FindStage(name);
  if (parallelism == 0 || parallelism > 256)
    throw Error(ExitCode::kUsage,
                fmt::format("parallelism must be from 1 to 256, got {}", parallelism),
                "stage " + name);
  if (stage.spec.max_parallelism != 0 && parallelism > stage.spec.max_parallelism) {
    throw Error(ExitCode::kUsage,
                fmt::format("parallelism {} exceeds max_parallelism {}", parallelism,
                            stage.spec.max_parallelism),
                "stage " + name);
  }
  if (state_->input->table)
    CheckPlaces(*state_->input->table, state_->spec, stage.spec, parallelism);
  size_t index = 0;
  while (state_->stages[index].get() != &stage) ++index;
  {
    std::lock_guard lock(stage.mutex);
    const auto set = [&](uint32_t threads) {
      stage.target = stage.spec.parallelism = threads;
      hr_stage_parallelism(stage.account, threads);
    };
    set(parallelism);
    if (stage.started && !stage.input_ended && !state_->stop.stopped()) {
      try {
        while (stage.running < stage.target) state_->AddThread(index);
      } catch (const Error&) {
        set(std::max<uint32_t>(1, stage.running));
        throw;
      }
    }
  }
  if (index > 0) state_->stages[index - 1]->queue->Wake();
}

void Pipeline::SetQueueCapacity(const std::string& name, uint32_t capacity) {
  Stage& stage = *state_->FindStage(name);
  if (capacity == 0 || capacity > kMaxQueue)
    throw Error(ExitCode::kUsage,
                fmt::format("a queue holds 1 to {} elements, got {}", kMaxQueue, capacity),
                "stage " + name);
  stage.queue->SetCapacity(capacity);
}

uint32_t Pipeline::parallelism(const std::string& name) const {
  Stage& stage = *state_->FindStage(name);
  std::lock_guard lock(stage.mutex);
  return stage.target != 0 ? stage.target : stage.spec.parallelism;
}

std::vector<std::string> Pipeline::notes() const {
  std::vector<std::string> notes;
  if (!state_->input->table) return notes;
  const PipelineProgress now = state_->progress.Now();
  if (now.skipped_stripes > 0)
    notes.push_back(
        fmt::format("left out {} stripes that could not be read, {} rows; the first: {}",
                    now.skipped_stripes, now.skipped_rows, state_->progress.first_left_out()));
  if (const LockedColumns& locked = state_->input->locked; !locked.names.empty()) {
    std::vector<std::string> names;
    for (const std::string& name : locked.names) names.push_back(Printable(name));
    notes.push_back(fmt::format(
        "source.on_locked: null, for want of their keys, were the encrypted columns {}; "
        "{}",
        fmt::join(names, ", "), locked.why));
  }
  if (const uint64_t rows = state_->input->counts.filtered_rows.load(); rows > 0)
    notes.push_back(fmt::format("[[filter]] dropped {} rows", rows));
  if (const uint64_t stripes = state_->input->counts.unchecked_stripes.load(); stripes > 0)
    notes.push_back(
        fmt::format("source.checksum had nothing to look at in {} stripes: their files have no "
                    "checksums, or of a kind that is not known",
                    stripes));
  const ConsumerSpec& consumer = state_->spec.consumer;
  if (state_->spec.delivery.to.kind != DeliveryKind::kInline &&
      (consumer.kind != ConsumerKind::kEmulated || consumer.step.mean > 0))
    notes.push_back(
        "[consumer] was not used: delivery.to names another process, and what that one "
        "does with a batch is its own affair (headrace consume --step-time)");
  if (state_->spec.layout == BatchLayout::kDirect) {
    if (CachesWholeSplits(state_->spec))
      notes.push_back("layout flatmap was taken: [[cache]] keeps whole stripes after " +
                      state_->spec.cache.after +
                      ", and direct cuts them before; with after = "
                      "\"extract\" it can be direct");
    else if (const uint64_t stripes = state_->input->counts.ordinary_stripes.load(); stripes > 0)
      notes.push_back(
          fmt::format("layout flatmap was taken for {} stripes: their maps are not flattened, "
                      "which direct needs; 'headrace rewrite' can flatten them",
                      stripes));
  }
  if (state_->input->context.dictionaries) {
    std::string note = DictionaryNote(*state_->input->context.dictionaries,
                                      state_->input->counts.looked_up_dictionaries);
    if (!note.empty()) notes.push_back(std::move(note));
  }
  for (const auto& file : state_->input->table->files) {
    std::string note = file->source().note();
    if (!note.empty() && std::find(notes.begin(), notes.end(), note) == notes.end())
      notes.push_back(std::move(note));
  }
  if (state_->input->tier) {
    for (std::string& note : state_->input->tier->notes()) notes.push_back(std::move(note));
  }
  if (state_->input->cache && !state_->input->cache->note().empty())
    notes.push_back(state_->input->cache->note());
  return notes;
}

PipelineProgress Pipeline::progress() const {
  PipelineProgress progress = state_->progress.Now();
  progress.fraction = state_->source->fraction();
  return progress;
}

}  // namespace headrace::reader
