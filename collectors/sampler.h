// Sampler: turns cumulative readings of one target into the deltas of an interval. Deltas never
// become negative: an estimate that turned out too high is paid back by the next intervals.
#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "collectors/store/store.h"
#include "probes/account/account_segment.h"

namespace headrace::collectors {

class Sampler {
 public:
  // `start_ns`: CLOCK_MONOTONIC instant of the run's start.
  Sampler(int64_t pid, int64_t start_ns);

  // Attaches to the accounts if they have appeared. Accounts that existed before the run began are
  // read once, and only what comes later is counted. Throws Error as AccountSegment does.
  bool TryAttach(bool alive);
  const account::AccountSegment* segment() const { return segment_ ? &*segment_ : nullptr; }

  // Reads everything; the interval ends now and began where the last one ended.
  IntervalSample Take(bool alive);
  // True once the target has closed its accounts in order.
  bool closed() const { return closed_; }
  bool schedstat_readable() const { return schedstat_readable_; }

  struct Losses {
    std::map<std::string, int64_t>
        over_limit;  // registrations and threads the segment had no room for
    int64_t step_details = 0, steps = 0;
  };
  const Losses& losses() const { return losses_; }

 private:
  // Growth of a cumulative figure since the last time; keyed by what it belongs to.
  int64_t Delta(const char* field, int64_t id, int64_t now);
  std::optional<int64_t> Delta(const char* field, int64_t id, std::optional<int64_t> now);
  account::SegmentSnapshot ReadSegment(bool alive);
  void SampleSegment(const account::SegmentSnapshot& snapshot, IntervalSample* out);
  void SampleSteps(const account::SegmentSnapshot& snapshot, IntervalSample* out);
  void SampleHost(IntervalSample* out);

  int64_t pid_, start_ns_, last_ns_;
  std::optional<account::AccountSegment> segment_;
  std::map<std::pair<std::string_view, int64_t>, int64_t> last_;
  std::map<std::string, int64_t> thread_group_base_;
  std::optional<int64_t> process_cpu_base_, read_base_, written_base_;
  std::optional<int64_t> host_busy_ns_;
  int64_t host_read_ns_ = 0;
  bool closed_ = false, schedstat_readable_ = false;
  Losses losses_;
};

}  // namespace headrace::collectors
