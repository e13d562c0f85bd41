// DispatcherProcess: a job's dispatcher as a process: it opens the table, listens for clients and
// workers, and answers `headrace service status|drain|end`.
#pragma once
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "reader/pipeline/spec.h"
#include "reader/service/dispatcher.h"
#include "reader/service/listening.h"

namespace headrace::reader::service {

struct DispatcherProcessOptions : Listening {
  std::string pipeline;  // file
  Settings settings;
  uint32_t ranks = 1;
  Mode mode = Mode::kLockstep;
  std::function<bool()> interrupted = {};
  // Interrupted, it leaves the job to another dispatcher: ranks and workers wait for that one.
  bool hands_over = false;
  // Called ten times a second, by Run's thread, and once more when it ends
  // (Dispatcher::is_ending). Returns what it makes the dispatcher say. An Error that it throws ends
  // the job.
  std::function<std::vector<Addressed>(Dispatcher*)> watch = {};
  // What `status` answers, of a status.
  std::function<std::string(const DispatcherStatus&)> describe = {};
  // What a member measured, to be kept by somebody else: must not wait. Without it members are told
  // that it is kept.
  std::function<void(Measured&&)> measured = {};
  // Of what was given to `measured`, that which is kept since the last call.
  std::function<std::vector<Kept>()> kept = {};
};

// Waits for somebody to submit a job, where the job's DispatcherProcess will listen; meanwhile
// ranks and workers that come wait. A pipeline that is none for a service is refused. Nothing when
// interrupted. Throws Error as DispatcherProcess, which reads `options` but for pipeline, settings,
// ranks and mode.
std::optional<Submit> AwaitSubmission(const DispatcherProcessOptions& options);

class DispatcherProcess {
 public:
  // Opens the table and listens. Throws Error kUsage when another dispatcher has the job, or the
  // pipeline is none for a service; otherwise as LoadPipeline and OpenTable.
  explicit DispatcherProcess(DispatcherProcessOptions options);
  // Of a job that is known already; `options.pipeline` names it.
  DispatcherProcess(DispatcherProcessOptions options, DispatcherOptions job);
  ~DispatcherProcess();

  // Returns when all rows were delivered and all clients have gone; false when it was interrupted,
  // or told to end, before: then the ranks are told that the job was ended, unless it hands over.
  // Throws Error when the
  // job cannot go on.
  bool Run();

  // Where others reach it over a network; nothing when they do not.
  const DeliveryAddress* address() const;

  // Of the job as it was read from its pipeline and table.
  const DispatcherOptions& job() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace headrace::reader::service
