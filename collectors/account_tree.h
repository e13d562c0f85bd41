// AccountTree: the accounts of all processes of a tree as one pipeline. Stages, operators, queues
// and resources of equal name are one entity whose figures are added up; so four worker processes
// that run the same code look like four threads of one stage.
#pragma once
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "collectors/left_behind.h"
#include "collectors/recorded_mark.h"
#include "collectors/sampler.h"
#include "collectors/segment_search.h"
#include "collectors/store/store.h"
#include "probes/probe.h"

namespace headrace::collectors {

// What a trigger may look at, as of the last reading.
struct Moment {
  bool has_steps = false;
  int64_t steps = 0;                         // steps that ended since the reading before
  int64_t longest_wait_ns = 0;               // longest wait of those steps
  int64_t longest_step_ns = 0;               // wait + compute
  int64_t wait_ns = 0, compute_ns = 0;       // sums
  std::map<std::string, double> queue_fill;  // occupancy / capacity, by queue
};

// The steps of one process that takes batches, a rank of the job. Its first ones are left out: they
// waited for its workers to start.
struct RankSteps {
  bool begun = false;
  int64_t steps = 0, wait_ns = 0, compute_ns = 0;
};

// What one process made for another one that takes batches, and its work for it. Its first ones are
// left out as well: they filled the queue.
struct WorkerSums {
  struct Made {
    int64_t stage_id = 0, position = 0, completions = 0;
    bool is_batch = false;
  };
  bool begun = false;
  std::map<int64_t, Made> made;  // by operator
  int64_t work_ns = 0;           // c + b of its operators
  int64_t wait_ns = 0;           // w of them

  // What left the operator that makes batches; without one, the last operator.
  int64_t batches() const;
};

class AccountTree {
 public:
  // `use_clock`: false leaves out the accounts' thread CPU clock (level 1).
  AccountTree(int64_t start_ns, bool use_clock) : start_ns_(start_ns), use_clock_(use_clock) {}
  AccountTree(const AccountTree&) = delete;
  AccountTree& operator=(const AccountTree&) = delete;

  // Attaches to the accounts of a process if they have appeared. `process_began_ns` is since the
  // run's start: a segment older than its process was left behind by another process. Throws Error
  // as AccountSegment does, and kBadData for a file that the process did not make (WhyNotItsWord).
  bool TryAttach(int64_t pid, bool alive, int64_t process_began_ns);
  // The segment that a process left open when it died before it was attached to, so that none of
  // its figures are in the run; absent if there is none. `process_began_ns` as for TryAttach, if
  // known.
  std::optional<NamedFile> Overlooked(int64_t pid, std::optional<int64_t> process_began_ns);
  // Forgets searches for accounts of processes other than these, so that their number stays
  // bounded.
  void KeepSearches(const std::vector<int64_t>& pids);
  // Call when the process has executed another image: accounts that it no longer maps are final.
  void ImageChanged(int64_t pid);

  // Reads all accounts. `alive` says whether a process lives; one that ended is read once more and
  // dropped. A segment that cannot be read any more is dropped, too, and reported by refused().
  // `splits` is null below level 3.
  IntervalSample Take(const std::function<bool(int64_t pid)>& alive,
                      const std::map<int64_t, KernelSplits>* splits);

  bool Has(int64_t pid) const { return samplers_.count(pid) > 0; }
  bool ever_attached() const { return ever_attached_; }
  bool schedstat_readable() const { return schedstat_readable_; }
  // The root's accounts, or those of the process that was attached first. They name the program.
  const account::AccountSegment* first() const;
  // Whether the process closed its accounts in order, so that its segment file is gone.
  bool closed(int64_t pid) const { return closed_.count(pid) > 0; }
  // Files of processes that died without removing them.
  const std::map<int64_t, NamedFile>& left_behind() const { return left_behind_; }
  const std::map<int64_t, std::string>& refused() const { return refused_; }
  const Moment& moment() const { return moment_; }
  // By pid, since the run began; of the first kMostRanks processes that took batches.
  const std::map<int64_t, RankSteps>& ranks() const { return ranks_; }
  // By pid; of the first kMostWorkers processes that make batches and take none.
  const std::map<int64_t, WorkerSums>& workers() const { return workers_; }
  Sampler::Losses losses() const;
  std::vector<probes::AccountedProcess> Accounted() const;

  // Id of the entity that an operator of a process belongs to; empty if not known (yet).
  std::optional<int64_t> OperatorId(int64_t pid, uint32_t operator_index) const;

 private:
  struct Attached {
    std::unique_ptr<Sampler> sampler;
    uint64_t address = 0;  // where the process has its segment mapped; 0 unknown
    RecordedMark mark;
  };
  void Merge(int64_t pid, const IntervalSample& own, IntervalSample* all);
  void AddRank(int64_t pid, const StepSample& steps);
  void AddWorker(int64_t pid, const IntervalSample& own);
  void Drop(int64_t pid);
  int64_t Number(std::map<std::string, int64_t>* numbers, const std::string& name) const;

  int64_t start_ns_;
  bool use_clock_;
  std::map<int64_t, SegmentSearch> searches_;  // searches for accounts not found yet, by pid
  std::map<int64_t, Attached> samplers_;       // by pid
  std::vector<int64_t> order_;                 // pids in the order in which they were attached
  std::map<int64_t, FileId> forgotten_;        // by pid: files of accounts that are final
  // Files with the name of a process that did not make them.
  std::set<FileId> foreign_;
  std::map<int64_t, bool> closed_;
  std::map<int64_t, NamedFile> left_behind_;
  std::map<int64_t, std::string> refused_;
  std::map<std::string, int64_t> stages_, queues_, resources_;
  std::map<std::pair<int64_t, std::string>, int64_t> operators_;  // (stage, name)
  std::map<std::pair<int64_t, uint32_t>, int64_t> operator_ids_;  // (pid, index)
  Sampler::Losses ended_losses_;
  Moment moment_;
  std::map<int64_t, RankSteps> ranks_;
  std::map<int64_t, WorkerSums> workers_;
  bool ever_attached_ = false, schedstat_readable_ = false;
};

// Extends an interval by the one that follows it.
void Extend(IntervalSample* interval, const IntervalSample& next);

}  // namespace headrace::collectors
