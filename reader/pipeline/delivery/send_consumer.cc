#include "reader/pipeline/delivery/send_consumer.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/clock.h"
#include "base/error.h"
#include "probes/account/scope.h"
#include "reader/pipeline/delivery/connect.h"

namespace headrace::reader {
namespace {

// How long a stop request waits for a frame that is half on its way: without its end nothing more
// can be said to the consumer.
constexpr int64_t kGraceNs = 500'000'000;
constexpr size_t kMostNotes = 4;

}  // namespace

SendConsumer::SendConsumer(const DeliveryOptions& options, std::function<bool()> interrupted)
    : options_(options), interrupted_(std::move(interrupted)) {
  sender_ = ConnectSender(options_.to, {.ring_bytes = options_.ring_bytes,
                                        .stopped = [this] { return GivesUp(); },
                                        .credentials = CredentialsFor(options_.to)});
}

SendConsumer::~SendConsumer() {
  if (finished_ || failed_) return;
  try {
    sender_->Send(encoder_.End(false), send_);
  } catch (const Error&) {
    // It sees the connection end.
  }
}

bool SendConsumer::GivesUp() {
  if (!(stop_ != nullptr && stop_->stopped()) && !(interrupted_ && interrupted_())) return false;
  const int64_t now = MonotonicNs();
  if (stop_seen_ns_ == 0) stop_seen_ns_ = now;
  return now - stop_seen_ns_ > kGraceNs;
}

uint64_t SendConsumer::acknowledged() {
  const uint64_t batches = sender_->Acknowledged();
  if (batches > sent_) {
    miscounted_ = true;
    throw Error(
        ExitCode::kFailure,
        fmt::format("the consumer acknowledged {} batches, and {} were sent", batches, sent_),
        FormatDeliveryAddress(options_.to), "acknowledge batches only: names are not one");
  }
  return batches;
}

void SendConsumer::Note(const std::string& line) {
  if (notes_.size() == kMostNotes) notes_.pop_front();
  notes_.push_back(
      fmt::format("after {} s, {}", (MonotonicNs() - first_ns_) / 1'000'000'000, line));
}

Error SendConsumer::WithProgress(const Error& error) {
  return Error(error.code(),
               fmt::format("{}; {} of {} batches sent were acknowledged", error.fact(),
                           std::min(sender_->Acknowledged(), sent_), sent_),
               error.where(), "start 'headrace consume' and this again");
}

void SendConsumer::Step(Element&& element, StopSignal* stop) {
  auto* batch = element.payload.Get<TensorBatch>();
  if (batch == nullptr)
    throw Error(ExitCode::kUsage, "only tensor batches can be delivered to another process", {},
                "end the last stage with the operator tensorize");
  if (stop_ == nullptr) {
    stop_ = stop;
    const uint32_t stage = hr_stage("consumer", 1, 1);
    serialize_ = hr_operator("serialize", "serialize", stage);
    send_ = hr_operator("send", "send", stage);
    first_ns_ = MonotonicNs();
    wire_.emplace(sender_.get(),
                  WireOptions{.setting = options_.wire,
                              .stage = stage,
                              .note = [this](const std::string& line) { Note(line); }});
  }
  try {
    wire_->Begin();
    // Room for this one: `window` batches on their way with it.
    if (options_.window > 0 && sent_ >= options_.window &&
        acknowledged() <= sent_ - options_.window) {
      account::WaitScope wait(send_, HR_WAIT_OUT);
      sender_->AwaitAcknowledged(sent_ - options_.window + 1);
    }
    std::vector<Frame> frames;
    {
      account::OperatorScope scope(serialize_);
      frames = encoder_.Encode(*batch);
      scope.Done(batch->rows, batch->MemoryBytes(), frames.back().bytes());
    }
    account::OperatorScope scope(send_);
    failed_ = true;  // until the whole frame is there
    uint64_t bytes = 0, wire_bytes = 0;
    for (const Frame& frame : frames) {
      wire_bytes += sender_->Send(frame, send_);
      bytes += frame.bytes();
    }
    failed_ = false;
    ++sent_;
    scope.Done(batch->rows, bytes, wire_bytes);
    if (options_.window == 0) {
      account::WaitScope wait(send_, HR_WAIT_OUT);
      sender_->AwaitAcknowledged(sent_);
    }
    wire_->Sent(bytes);
  } catch (const Error& error) {
    // A pipeline that is being stopped drops what is in flight.
    if (error.code() == ExitCode::kInterrupted) return;
    failed_ = true;
    if (miscounted_ || error.code() != ExitCode::kFailure) throw;
    throw WithProgress(error);
  }
}

void SendConsumer::Finish(bool complete) {
  if (failed_) return;
  finished_ = true;
  stop_ = nullptr;
  try {
    sender_->Send(encoder_.End(complete), send_);
    sender_->AwaitAcknowledged(sent_);
    acknowledged();  // not more than that
  } catch (const Error& error) {
    if (error.code() == ExitCode::kInterrupted) return;
    if (miscounted_ || error.code() != ExitCode::kFailure) throw;
    throw WithProgress(error);
  }
}

}  // namespace headrace::reader
