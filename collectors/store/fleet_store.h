// FleetStore: a run store that a dispatcher keeps of its jobs. Each member of a job is a run,
// filled from its Shipments; each dispatcher is one, too, with the course and the events of the
// job. Any RunStore reads and removes these runs as its own.
//
// Storing is idempotent: a shipment that ends no later than what is stored of its member changes
// nothing, so members may send again what they do not know to be kept, to this or another
// dispatcher.
#pragma once
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>

#include "collectors/shipment.h"
#include "collectors/store/job_course.h"
#include "collectors/store/store.h"

namespace headrace::collectors {

// Columns of view job_summary.
struct JobRow {
  std::string job, fingerprint, mode;
  int64_t ranks = 1, epochs = 1, splits = 0, rows = 0, largest_split_rows = 0;
  int64_t unit_rows = 0, batch_rows = 0;
};
// Of a dispatcher's events the newest are kept; some more may be there for a while.
constexpr int64_t kMostJobEvents = 10'000;

class FleetStore {
 public:
  // Opens or creates the file; goes on with its newest job of that name if it is the same one and
  // was left running, else begins a job. Throws as RunStore.
  FleetStore(const std::string& path, const JobRow& job, const RunInfo& dispatcher);

  int64_t job_id() const { return job_id_; }
  int64_t dispatcher_run() const { return dispatcher_run_; }
  RunStore& runs() { return runs_; }

  // `offset_ns`: this clock minus the member's, and the way of the message; of those of the last
  // ten minutes of the member the least holds. False: it was stored before. Throws Error kBadData
  // for a shipment whose figures the store cannot hold; kResources when the disk is full. In both
  // cases nothing of it is stored.
  bool Add(const std::string& instance, const Shipment& shipment, int64_t offset_ns);
  void AddInterval(const JobInterval& interval);
  void AddEvent(const JobEvent& event);
  enum class End { kComplete, kEnded };
  // Marks the runs of its dispatcher and of members that have not ended as over.
  void Finish(End end);

 private:
  int64_t FindOrBeginJob(const JobRow& job, int64_t now_ns);
  int64_t FindOrBeginMember(const std::string& instance, const std::string& role,
                            std::optional<int64_t> number, const RunInfo& info, int64_t offset_ns);
  void Append(int64_t run, const Shipment& shipment);

  RunStore runs_;
  int64_t job_id_ = 0, dispatcher_run_ = 0;
  int64_t num_events_ = 0, start_ticks_ = 0;  // the latter: of this process
  struct Offset {
    int64_t at_ns = 0, offset_ns = 0;
  };
  static void AddOffset(int64_t at_ns, int64_t offset_ns, std::deque<Offset>* known);
  // By run, of the last minutes: each that is less than all after it.
  std::map<int64_t, std::deque<Offset>> offsets_;
};

}  // namespace headrace::collectors
