// ReceivePipeline: the consumer's side of a delivery. Listens at an address, takes the batches of
// one or several producers, each on its own thread, and hands them to one consumer: several reader
// processes feeding one trainer.
//
//   producer -> [receive, deserialize] -> queue -> consumer (the thread that calls Run)
//   producer -> [receive, deserialize] ->
//
// A batch is acknowledged to its producer when the consumer's Step has returned. Accounts: stage
// `receive` with the operators receive and deserialize, stage `consumer`.
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "reader/pipeline/delivery/address.h"
#include "reader/pipeline/pipeline.h"

namespace headrace::reader {

struct ReceiveOptions {
  DeliveryAddress from;
  uint32_t producers = 1;  // number of producers in all
  uint32_t queue = 2;      // batches between a producer's thread and the consumer
  std::function<bool()> interrupted = {};
  std::function<void(const std::string&)> note = {};  // lines about who came and who was refused
};

class ReceivePipeline {
 public:
  // Listens, registers the accounts. Throws Error.
  ReceivePipeline(ReceiveOptions options, std::unique_ptr<Consumer> consumer);
  ~ReceivePipeline();

  // Returns when all producers have reached their end, or `interrupted` returned true. Throws Error
  // kFailure when a producer disappears or is stopped before its end. Call once.
  void Run();

  PipelineProgress progress() const;  // fraction below 0: no end is known
  uint64_t bytes() const;             // of frames received

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace headrace::reader
