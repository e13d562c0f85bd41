#include "reader/pipeline/engine/engine.h"

#include <fmt/format.h>
#include <pthread.h>

#include <algorithm>
#include <new>
#include <system_error>
#include <utility>

#include "base/registry.h"
#include "probes/account/account.h"
#include "probes/account/scope.h"
#include "reader/pipeline/engine/worker.h"
#include "reader/pipeline/memory_ledger.h"
#include "reader/source/throttle.h"

namespace headrace::reader {

Engine::Engine(const PipelineSpec& spec, Input* input, ElementSource* source, Progress* progress,
               Consumer* consumer)
    : spec_(spec), input_(input), stop_(input->context.stop), source_(source), progress_(progress) {
  hr_account_open(spec.name.c_str());
  if (input->sources.throttle)
    input->sources.throttle->set_account(hr_resource("throttle", HR_DEVICE, 1));
  if (MemoryLedger* const memory = input->memory.get()) {
    const auto mebibytes = static_cast<uint32_t>(memory->room_bytes() >> 20);
    memory->set_account(hr_resource("memory budget", HR_MEMORY, mebibytes));
  }
  for (const StageSpec& stage : spec.stages) AddStage(stage);
  consumer_stage_ = hr_stage("consumer", 1, 1);
  consumer->RegisterAccounts(consumer_stage_);
  consumer_account_ = hr_operator("consumer", "consumer", consumer_stage_);
  for (size_t i = 0; i < stages_.size(); ++i) AddQueue(i);
  // A first instance of each synthetic operator checks what only its constructor can (a file to
  // read).
  for (const auto& stage : stages_) {
    for (const OperatorPlan& plan : stage->operators) {
      if (IsSynthetic(EntryOf(plan.spec))) MakeOperator(plan, input->context);
    }
  }
}

Engine::~Engine() {
  Stop();
  Join();
}

void Engine::AddStage(const StageSpec& spec) {
  auto stage = std::make_unique<Stage>();
  stage->spec = spec;
  stage->account = hr_stage(spec.name.c_str(), spec.parallelism, spec.max_parallelism);
  for (const OperatorSpec& op : spec.operators) {
    OperatorPlan plan;
    plan.spec = op;
    plan.stage = stage->account;
    const OperatorEntry& entry = EntryOf(op);
    if (entry.add_accounts != nullptr) entry.add_accounts(&input_->context, &plan);
    plan.account = hr_operator(op.name.c_str(), op.kind.c_str(), stage->account);
    if (entry.add_inner_accounts != nullptr) entry.add_inner_accounts(&input_->context, &plan);
    stage->operators.push_back(std::move(plan));
  }
  stages_.push_back(std::move(stage));
}

// In file order every queue is ordered: a stage takes its elements in order, so the element that
// the next queue waits for is always one that a thread already holds, never one stuck behind a full
// queue.
void Engine::AddQueue(size_t index) {
  Stage& stage = *stages_[index];
  const bool is_last = index + 1 == stages_.size();
  const uint32_t account =
      hr_queue(fmt::format("{}.queue", stage.spec.name).c_str(), stage.account,
               is_last ? consumer_stage_ : stages_[index + 1]->account, stage.spec.queue);
  stage.queue = std::make_unique<Queue<Element>>(stage.spec.queue, spec_.file_order, account,
                                                 spec_.reorder_window);
}

void Engine::Start() {
  for (size_t i = 0; i < stages_.size(); ++i) {
    Stage& stage = *stages_[i];
    std::lock_guard lock(stage.mutex);
    stage.started = true;
    stage.target = stage.spec.parallelism;
    for (uint32_t t = 0; t < stage.target; ++t) AddThread(i);
  }
}

void Engine::Stop() {
  stop_->Stop();
  if (input_->memory) input_->memory->Stop();
  for (const auto& stage : stages_) stage->queue->Stop();
}

void Engine::Join() {
  for (const auto& stage : stages_) {
    // No thread is added after Stop: SetParallelism looks at the signal under the stage's mutex.
    std::list<std::thread> threads;
    {
      std::lock_guard lock(stage->mutex);
      threads.swap(stage->threads);
    }
    for (std::thread& thread : threads) thread.join();
  }
}

void Engine::Fail(const Error& error, const std::string& where) {
  if (input_->memory && error.code() == ExitCode::kResources && error.fix().empty()) {
    const uint64_t least = (input_->memory->LeastBudget() >> 20) + 1;
    return Fail(
        std::make_exception_ptr(Error(error.code(), error.fact(), where,
                                      fmt::format("set pipeline.memory to {}MiB or more", least))));
  }
  Fail(std::make_exception_ptr(error.Within(where)));
}

void Engine::Fail(std::exception_ptr error) {
  error_.Set(std::move(error));
  Stop();
}

void Engine::SetParallelism(const std::string& name, uint32_t parallelism) {
  const size_t index = FindStage(name);
  Stage& stage = *stages_[index];
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
  if (input_->table) CheckPlaces(*input_->table, spec_, stage.spec, parallelism);
  {
    std::lock_guard lock(stage.mutex);
    const auto set = [&](uint32_t threads) {
      stage.target = stage.spec.parallelism = threads;
      hr_stage_parallelism(stage.account, threads);
    };
    set(parallelism);
    if (stage.started && !stage.input_ended && !stop_->stopped()) {
      try {
        while (stage.running < stage.target) AddThread(index);
      } catch (const Error&) {
        set(std::max<uint32_t>(1, stage.running));
        throw;
      }
    }
  }
  if (index > 0) stages_[index - 1]->queue->Wake();
}

void Engine::SetQueueCapacity(const std::string& name, uint32_t capacity) {
  Stage& stage = *stages_[FindStage(name)];
  if (capacity == 0 || capacity > kMaxQueue)
    throw Error(ExitCode::kUsage,
                fmt::format("a queue holds 1 to {} elements, got {}", kMaxQueue, capacity),
                "stage " + name);
  stage.queue->SetCapacity(capacity);
}

uint32_t Engine::parallelism(const std::string& name) const {
  Stage& stage = *stages_[FindStage(name)];
  std::lock_guard lock(stage.mutex);
  return stage.target != 0 ? stage.target : stage.spec.parallelism;
}

std::vector<StageWaits> Engine::waits(int64_t now_ns) const {
  std::vector<StageWaits> waits(stages_.size() + 1);
  for (size_t i = 0; i < stages_.size(); ++i) {
    {
      std::lock_guard lock(stages_[i]->mutex);
      waits[i].threads = stages_[i]->running;
    }
    waits[i].out_ns = stages_[i]->queue->waited_out_ns(now_ns);
    waits[i + 1].in_ns = stages_[i]->queue->waited_in_ns(now_ns);
  }
  return waits;
}

size_t Engine::FindStage(const std::string& name) const {
  std::vector<std::string> names;
  for (size_t index = 0; index < stages_.size(); ++index) {
    if (stages_[index]->spec.name == name) return index;
    names.push_back(stages_[index]->spec.name);
  }
  const std::string nearest = NearestName(name, names);
  throw Error(ExitCode::kUsage,
              fmt::format("no stage '{}'{}", Printable(name, 60),
                          nearest.empty() ? "" : fmt::format(", did you mean '{}'?", nearest)));
}

void Engine::AddThread(size_t index) {
  Stage& stage = *stages_[index];
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

void Engine::ThreadMain(size_t index) {
  Stage& stage = *stages_[index];
  pthread_setname_np(pthread_self(), stage.spec.name.substr(0, 15).c_str());
  {
    account::ThreadScope thread(stage.account);
    try {
      Work(index);
    } catch (const Error& error) {
      // A wait that was broken off because the pipeline is to stop is no failure of it.
      if (error.code() == ExitCode::kInterrupted) {
        Stop();
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
  if (--stage.alive == 0 && (stage.input_ended || stop_->stopped())) stage.queue->Close();
}

bool Engine::TakeInput(size_t index, Element* element, Queue<Element>::Wakeup* wakeup,
                       bool* ended) {
  *ended = false;
  if (stop_->stopped()) return false;
  if (index == 0) return source_->Take(element, stages_[0]->operators.front().account, ended);
  Queue<Element>& queue = *stages_[index - 1]->queue;
  const uint64_t ticket = queue.Ticket();
  // A resize between the ticket and the wait would be missed without this second look.
  {
    std::lock_guard lock(stages_[index]->mutex);
    if (stages_[index]->running > stages_[index]->target) return true;
  }
  const QueueStatus status =
      queue.Get(element, stages_[index]->operators.front().account, ticket, wakeup);
  *ended = status == QueueStatus::kEnd;
  if (status == QueueStatus::kWoken) element->sequence = UINT64_MAX;
  return status == QueueStatus::kOk || status == QueueStatus::kWoken;
}

void Engine::Work(size_t index) {
  Stage& stage = *stages_[index];
  const uint32_t last_account = stage.operators.back().account;
  // The kernel may let a thread that is woken run in the place of this one, at once and for some
  // milliseconds. Within the first operator they are seen as time without a core; before it, they
  // would be nobody's (6 % of the threads' lifetimes with four times as many threads as cores).
  Queue<Element>::Wakeup wakeup;
  const auto wake_others = [&] {
    if (index > 0) stages_[index - 1]->queue->Notify(std::exchange(wakeup, {}));
  };
  Worker worker(
      stage.operators, input_->context, progress_,
      [&](Element&& element) { stage.queue->Put(std::move(element), last_account); }, wake_others);
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
    if (!TakeInput(index, &element, &wakeup, &ended)) {
      std::lock_guard lock(stage.mutex);
      --stage.running;
      if (ended) stage.input_ended = true;
      break;
    }
    if (element.sequence == UINT64_MAX) continue;  // woken to look at the target
    worker.Process(std::move(element));
    if (stop_->stopped()) {
      std::lock_guard lock(stage.mutex);
      --stage.running;
      return;
    }
  }
  worker.Finish();
}

}  // namespace headrace::reader
