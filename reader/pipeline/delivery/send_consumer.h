// SendConsumer: the consumer of a pipeline that sends its batches to another process. A step is
// done when the batch has been sent; at most `window` batches are in flight at a time.
//
// Accounts, in the stage "consumer": `serialize` makes the frame (values are not copied), `send`
// carries it, over TCP with its checksum; waits for a slow consumer are its w_out. `send.compress`
// makes it smaller over a network.
#pragma once
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "reader/pipeline/delivery/options.h"
#include "reader/pipeline/delivery/transport.h"
#include "reader/pipeline/delivery/wire.h"
#include "reader/pipeline/pipeline.h"

namespace headrace::reader {

class SendConsumer final : public Consumer {
 public:
  // Connects. Throws as ConnectSender does.
  SendConsumer(const DeliveryOptions& options, std::function<bool()> interrupted);
  ~SendConsumer() override;  // without Finish, the other process is told that more should have come

  // Throws Error kUsage when the batch is no TensorBatch; as Sender does otherwise, saying how far
  // the consumer got.
  void Step(Element&& batch, StopSignal* stop) override;
  // After the last batch: says that it was the last (`complete`) or that the pipeline was stopped,
  // and waits until the consumer is done with all.
  void Finish(bool complete) override;
  bool SavesAfterFailure() const override { return true; }
  // The acknowledged batches: only these may a checkpoint call delivered.
  uint64_t DeliveredSteps(uint64_t /*taken*/) override { return acknowledged(); }
  // When batches began to be compressed otherwise, and why: the last few times.
  std::vector<std::string> notes() const override { return {notes_.begin(), notes_.end()}; }

  uint64_t sent() const { return sent_; }
  // Number of batches that the other process is done with. Throws Error kFailure when it reports
  // more than were sent.
  uint64_t acknowledged();

 private:
  bool GivesUp();
  void Note(const std::string& line);
  Error WithProgress(const Error& error);
  DeliveryOptions options_;
  std::function<bool()> interrupted_;
  StopSignal* stop_ = nullptr;  // of the pipeline, once it runs
  FrameEncoder encoder_;
  std::unique_ptr<Sender> sender_;
  std::optional<Wire> wire_;  // of the sender; once there are accounts
  std::deque<std::string> notes_;
  int64_t first_ns_ = 0;  // of the first step
  uint64_t sent_ = 0;
  int64_t stop_seen_ns_ = 0;
  bool finished_ = false, failed_ = false;
  // The other process reported an impossible count, so its progress is not shown.
  bool miscounted_ = false;
  uint32_t serialize_ = UINT32_MAX, send_ = UINT32_MAX;  // accounts
};

}  // namespace headrace::reader
