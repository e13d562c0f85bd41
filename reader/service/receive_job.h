// ReceiveJob: a rank's end of a job: takes units from workers, joins them to batches and hands
// these to one consumer. What ReceivePipeline is for producers that are known, with the dispatcher
// instead: workers come and go, and rows come once.
//
//   worker -> [receive, deserialize] -> admitted? -> queue -> rebatch -> consumer (Run's thread)
//
// With a checkpoint it keeps the rows delivered and the consumer's state of the same moment, and
// another process goes on from there.
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>

#include "reader/pipeline/consumer.h"
#include "reader/pipeline/engine/checkpointing.h"
#include "reader/pipeline/engine/progress.h"
#include "reader/service/job_place.h"
#include "reader/service/measured.h"

namespace headrace::reader::service {

struct ReceiveJobOptions {
  std::shared_ptr<JobPlace> place;  // of the job
  // Where it takes batches of a job that is met over a network; empty: at a free port of the
  // address by which it reaches the dispatcher.
  std::string listen = {};
  uint32_t rank = 0, ranks = 1;
  bool through_shared_memory = false;
  uint32_t queue = 2;  // units between the workers and the consumer
  // That are connected at a time, if the process may have the descriptors; each has a thread, and
  // over a network the memory of a unit. Others are refused.
  uint32_t most_workers = 1024;
  CheckpointOptions checkpoint;
  int64_t join_timeout_ns = 600'000'000'000;  // the longest wait for the other ranks
  std::function<bool()> interrupted = {};
  std::function<void(const std::string&)> note = {};  // lines about whom it waits for
  std::shared_ptr<MeasuredSource> measured = {};      // told to the dispatcher; may be null
};

// "rank 1", "ranks 0, 2"; of many the first: a job may wait for thousands.
std::string TextOfRanks(std::span<const uint32_t> ranks);

class ReceiveJob {
 public:
  // Reads the checkpoint to go on from, registers the accounts. Throws Error.
  ReceiveJob(ReceiveJobOptions options, std::unique_ptr<Consumer> consumer);
  ~ReceiveJob();

  // Returns when all rows of the job are admitted by its ranks and this rank's delivered, or when
  // interrupted: then the checkpoint has what was delivered. Throws Error kFailure when another
  // process takes this rank's place, or the ranks begin again; otherwise what the dispatcher or the
  // consumer says. Call once.
  void Run();

  PipelineProgress progress() const;  // fraction below 0: what other ranks have is not known
  uint64_t bytes() const;             // of frames received

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace headrace::reader::service
