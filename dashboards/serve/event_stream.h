// EventStream: what one viewer of a run that is being recorded has been sent, and what comes next
// (server-sent events, HTML Living Standard section 9.2).
#pragma once
#include <cstdint>
#include <string>

#include "dashboards/serve/run_cache.h"

namespace headrace::dashboards {

class EventStream {
 public:
  // `last_id`: of the last event that the viewer has, where it comes back after its connection
  // broke ("" for a new one, which begins with the newest windows).
  EventStream(RunCache& cache, int64_t run_id, const std::string& last_id);

  // Text of the events since the last call, empty where there are none. A viewer that was away for
  // long gets the newest windows alone. Throws as ReadStore.
  std::string Next();
  // Whether the run has ended and its last event was given.
  bool ended() const { return ended_; }

 private:
  RunCache& cache_;
  int64_t run_id_;
  int64_t after_ns_ = -1;  // start of the last window that was sent
  int64_t reported_ns_ = 0;
  std::string version_;
  bool begun_ = false, ended_ = false;
};

}  // namespace headrace::dashboards
