// StoreProbe: gives the stage that fetches twice its threads for a moment while a pipeline runs,
// and measures what that gets. One run cannot tell a store that answers late, which gives more to
// more requests, from one that is full; this tells them apart.
//
//   threads   n        2n        n
//             |measure |measure  |measure|       the rate with n is the mean of both sides
//
// Probes only where threads wait for the store most of the time and what they fetch is used at
// once, where enough of the run is left, and once. More threads for a moment cost no rows.
#pragma once
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include "collectors/store/store.h"
#include "probes/account/account_segment.h"
#include "reader/pipeline/pipeline.h"

namespace headrace::experiments {

class StoreProbe {
 public:
  // Watches from a thread of its own. `pipeline` must outlive it; `duration_ns`: how long it runs,
  // 0: to the end of its data.
  StoreProbe(reader::Pipeline* pipeline, int64_t duration_ns);
  ~StoreProbe();

  // Ends the watching; the stage has its own threads again. What was measured: empty where there
  // was no reason to probe, no time, or what was seen says nothing, as before and after differ.
  std::optional<collectors::StoreProbeSample> Finish();

 private:
  struct Fetching;  // what the stage did for some time
  void Watch();
  std::optional<Fetching> Measure(uint32_t threads);
  std::optional<collectors::StoreProbeSample> Probe(const Fetching& before);
  bool HasTime(double seconds) const;
  bool Sleep(int64_t ns);  // false: it is to end

  reader::Pipeline* pipeline_;
  int64_t duration_ns_, began_ns_;
  account::AccountSegment* segment_ = nullptr;  // of Watch
  std::string stage_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool ending_ = false;
  std::optional<collectors::StoreProbeSample> found_;
  std::thread thread_;
};

}  // namespace headrace::experiments
