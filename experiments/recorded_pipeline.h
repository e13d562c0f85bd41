// Shared by the commands that run the reference pipeline in their own process while a collector
// process records it.
#pragma once
#include <atomic>
#include <cstdint>
#include <string>
#include <thread>
#include <vector>

#include "collectors/agent.h"
#include "collectors/store/store.h"
#include "reader/pipeline/pipeline.h"

namespace headrace::experiments {

// Watches a running pipeline from a thread of its own: stops it after `duration_ns` (0: never) or
// on Ctrl-C, and shows progress unless `quiet`.
class PipelineWatcher {
 public:
  PipelineWatcher(reader::Pipeline* pipeline, int64_t duration_ns, bool quiet);
  ~PipelineWatcher();

 private:
  void Watch();

  reader::Pipeline* pipeline_;
  int64_t duration_ns_;
  bool quiet_;
  std::atomic<bool> done_{false};
  std::thread thread_;
};

struct RecordingOptions {
  std::string database;
  std::string name;  // "": the pipeline's
  std::string pipeline_path;
  std::vector<std::string> arguments;  // of `headrace collect`
};

// Starts the collector on this process, before the pipeline runs, and stores the run's conditions.
// Throws Error.
collectors::Agent StartRecording(const RecordingOptions& options, const reader::Pipeline& pipeline,
                                 collectors::RunConditions conditions);

}  // namespace headrace::experiments
