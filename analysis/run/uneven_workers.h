// Workers of one loader that have unequal work: each makes its own batches, of its own shard say,
// and batches are taken from them in turn.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "analysis/run/run_view.h"

namespace headrace::analysis {

// A process that made batches for others, from its second reading on.
struct LoaderWorker {
  int64_t pid = 0;
  std::string process;
  int64_t parent_pid = 0, started_ns = 0;
  double batches = 0, work_s = 0, wait_s = 0;
  double batch_s() const;     // work for a batch; 0 without any
  double wait_ratio() const;  // share of its time; 0 without any
};

// Those of the run that made batches, dearest batch first.
std::vector<LoaderWorker> LoaderWorkers(const RunView& run);

// Processes started together with the busiest of these, of the same parent and name, that hardly
// compute: a dataset of fewer shards than there are workers leaves some of them without any.
// `pids`: who made batches; `ended`: only those that soon ended, as workers of an evaluation do
// not.
size_t CountIdleBeside(const RunView& run, const std::vector<int64_t>& pids, bool ended);

// A worker whose batches cost more than those of the others again and again, so that they wait for
// its turn; or workers that make all batches, or nearly all, beside idle ones.
struct UnevenWorkers {
  LoaderWorker slowest;
  size_t workers = 0;            // with it
  size_t idle = 0;               // of them, made no batch or next to none
  double made_ratio = 1;         // of the batches, by those that are not idle
  double times = 1;              // its cost of a batch, of the mean over all workers
  double others_wait_ratio = 0;  // mean of theirs
};

// Of `count` workers, `idle` of which are not among `all`, that live for the whole run and
// whose batches vary by `cv` from one to the next. Empty: they are not that many, have too few
// batches to tell, made unequally many (then nobody takes them in turn), or differ by no more than
// such batches do by chance.
std::optional<UnevenWorkers> FindUnevenWorkers(const std::vector<LoaderWorker>& all, size_t idle,
                                               size_t count, double cv);

// "one of 2 workers (pid 4321) takes 1.8 times as long for its batches as they take on average, and
// the others wait 65.2 % of their time"; "1 of 2 workers (pid 4321) makes all batches, and the
// other has nothing to do"; "1 of 3 workers (pid 4321) makes 90.2 % of the batches, and the others
// have next to nothing to do".
std::string Words(const UnevenWorkers& uneven);

}  // namespace headrace::analysis
