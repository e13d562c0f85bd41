#include "reader/pipeline/delivery/receive_pipeline.h"

#include <fmt/format.h>

#include <atomic>
#include <exception>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/error.h"
#include "probes/account/account.h"
#include "probes/account/scope.h"
#include "reader/pipeline/delivery/connect.h"
#include "reader/pipeline/delivery/receive_batch.h"
#include "reader/pipeline/delivery/transport.h"
#include "reader/pipeline/queue.h"
#include "reader/pipeline/stop_signal.h"

namespace headrace::reader {
namespace {

struct Received {
  uint64_t sequence = 0;
  Element element;
  std::shared_ptr<Receiver> from;
  uint64_t batches = 0;  // of that producer, with this one
};

}  // namespace

struct ReceivePipeline::State {
  State(ReceiveOptions given, std::unique_ptr<Consumer> taker)
      : options(std::move(given)),
        consumer(std::move(taker)),
        listener(options.from, CredentialsFor(options.from)) {
    hr_account_open("consume");
    stage = hr_stage("receive", options.producers, 0);
    receive = hr_operator("receive", "receive", stage);
    deserialize = hr_operator("deserialize", "deserialize", stage);
    consumer_stage = hr_stage("consumer", 1, 1);
    consumer_account = hr_operator("consumer", "consumer", consumer_stage);
    queue = std::make_unique<Queue<Received>>(
        options.queue, false, hr_queue("receive.queue", stage, consumer_stage, options.queue));
  }

  bool Stopped() const { return stop.stopped() || (options.interrupted && options.interrupted()); }

  void Fail(std::exception_ptr first) {
    {
      std::lock_guard lock(mutex);
      if (!error) error = first;
    }
    StopAll();
  }
  // The consumer still gets what has come, then Run ends with the error.
  void Lose(std::exception_ptr first) {
    std::lock_guard lock(mutex);
    if (!error) error = first;
    finished = true;
    queue->Close();
  }
  void StopAll() {
    stop.Stop();
    queue->Stop();
  }

  void Accept();
  void Receive(std::shared_ptr<Receiver> from);
  // To the producer's end; false when nobody takes its batches any more.
  bool TakeFrames(const std::shared_ptr<Receiver>& from, FrameDecoder* decoder);
  void Consume();

  ReceiveOptions options;
  std::unique_ptr<Consumer> consumer;
  Listener listener;
  uint32_t stage, receive, deserialize, consumer_stage, consumer_account;
  std::unique_ptr<Queue<Received>> queue;
  StopSignal stop;
  std::atomic<bool> finished{false};  // every producer came to its end, or one was lost
  std::atomic<uint64_t> bytes{0}, sequence{0};

  mutable std::mutex mutex;  // guards the following
  std::exception_ptr error;
  uint32_t ended = 0;
  PipelineProgress progress;
};

// Takes producers until all have come, and after that tells others that there are enough.
void ReceivePipeline::State::Accept() {
  std::vector<std::thread> threads;
  try {
    while (!finished && !Stopped()) {
      const bool enough = threads.size() == options.producers;
      std::shared_ptr<Receiver> producer =
          listener.Accept([this] { return finished || Stopped(); }, enough, options.note);
      if (!producer) break;
      threads.emplace_back([this, producer] { Receive(producer); });
    }
  } catch (...) {
    Fail(std::current_exception());
  }
  if (Stopped()) StopAll();
  for (std::thread& thread : threads) thread.join();
  if (Stopped()) StopAll();
}

void ReceivePipeline::State::Receive(std::shared_ptr<Receiver> from) {
  account::ThreadScope thread(stage);
  FrameDecoder decoder;
  try {
    if (!TakeFrames(from, &decoder)) return;
    if (!decoder.complete()) {
      throw Error(ExitCode::kFailure,
                  fmt::format("the producer (process {}) was stopped after {} batches",
                              from->producer_pid(), decoder.batches()));
    }
  } catch (const Error& error) {
    if (error.code() == ExitCode::kInterrupted) {
      if (Stopped()) StopAll();
      return;
    }
    const std::string where = FormatDeliveryAddress(options.from);
    return Lose(
        std::make_exception_ptr(error.code() == ExitCode::kFailure && !decoder.ended()
                                    ? Error(error.code(),
                                            fmt::format("{} after {} batches, before its end",
                                                        error.fact(), decoder.batches()),
                                            where)
                                    : error.Within(where)));
  } catch (const std::bad_alloc&) {
    return Fail(std::make_exception_ptr(
        Error(ExitCode::kResources, "out of memory", FormatDeliveryAddress(options.from))));
  }
  std::lock_guard lock(mutex);
  if (++ended == options.producers) {
    queue->Close();
    finished = true;
  }
}

bool ReceivePipeline::State::TakeFrames(const std::shared_ptr<Receiver>& from,
                                        FrameDecoder* decoder) {
  while (!decoder->ended()) {
    std::optional<TensorBatch> batch =
        ReceiveBatch(from.get(), decoder, {receive, deserialize}, &bytes);
    if (!batch) continue;
    Received received;
    received.element.rows = batch->rows;
    received.element.bytes = batch->MemoryBytes();
    received.element.payload = std::move(*batch);
    received.sequence = received.element.sequence = sequence++;
    received.from = from;
    received.batches = decoder->batches();
    // A producer with a frame always there would go on for ever after another one was lost.
    if (finished || !queue->Put(std::move(received), deserialize)) return false;
  }
  return true;
}

void ReceivePipeline::State::Consume() {
  account::ThreadScope thread(consumer_stage);
  for (;;) {
    Received batch;
    const int64_t start = MonotonicNs();
    if (queue->Get(&batch, consumer_account, queue->Ticket()) != QueueStatus::kOk) return;
    const int64_t taken = MonotonicNs();
    const uint64_t rows = batch.element.rows;
    {
      account::OperatorScope scope(consumer_account);
      const uint64_t in = batch.element.bytes;
      consumer->Step(std::move(batch.element), &stop);
      scope.Done(rows, in, 0);
    }
    const int64_t done = MonotonicNs();
    if (Stopped()) return StopAll();  // its step was cut short
    batch.from->Acknowledge(batch.batches);
    hr_step(static_cast<uint64_t>(taken - start), static_cast<uint64_t>(done - taken), rows);
    std::lock_guard lock(mutex);
    progress.Took(rows, taken - start, done - taken, done);
  }
}

ReceivePipeline::ReceivePipeline(ReceiveOptions options, std::unique_ptr<Consumer> consumer)
    : state_(std::make_unique<State>(std::move(options), std::move(consumer))) {}

ReceivePipeline::~ReceivePipeline() = default;

void ReceivePipeline::Run() {
  std::thread accepting([this] { state_->Accept(); });
  try {
    state_->Consume();
  } catch (const Error& error) {
    state_->Fail(std::make_exception_ptr(error.Within("consumer")));
  } catch (...) {
    state_->Fail(std::current_exception());
  }
  // With a producer lost the consumer ends while others may still wait for room.
  state_->queue->Stop();
  accepting.join();
  std::lock_guard lock(state_->mutex);
  if (state_->error) std::rethrow_exception(state_->error);
}

PipelineProgress ReceivePipeline::progress() const {
  std::lock_guard lock(state_->mutex);
  return state_->progress;
}

uint64_t ReceivePipeline::bytes() const { return state_->bytes; }

}  // namespace headrace::reader
