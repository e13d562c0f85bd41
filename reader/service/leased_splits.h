// LeasedSplits: the splits of a worker's pipeline, fed by the leases of a dispatcher. A lease
// enters the pipeline as an epoch of its own (worker.h), so that its rows can be told from those of
// any other lease.
#pragma once
#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>

#include "reader/pipeline/split.h"
#include "reader/pipeline/wait_sum.h"
#include "reader/service/worker.h"

namespace headrace::reader::service {

// Thread-safe.
class LeasedSplits final : public SplitSource {
 public:
  // `taken` is called, by any thread, when there is room
  // for another lease.
  explicit LeasedSplits(std::function<void()> taken) : taken_(std::move(taken)) {}

  // Once the table is open, before the first split is added. `slice_rows` as
  // SplitLedger::SetSliceRows.
  void SetTable(std::vector<Split> splits, uint64_t slice_rows);
  // A lease of the dispatcher's. Throws Error kBadData when its rows are not of its split.
  void Add(const Worker::Taken& taken);
  size_t waiting() const;                   // splits that the pipeline has not taken
  void Clear();                             // those
  void Close();                             // no more come
  int64_t waited_ns(int64_t now_ns) const;  // that threads of the pipeline waited for one

  std::optional<HandedSplit> Next(StopSignal* stop) override;

 private:
  const std::function<void()> taken_;
  mutable std::mutex mutex_;
  std::condition_variable added_;
  std::vector<Split> splits_;
  uint64_t slice_rows_ = 0, sequence_ = 0, slices_ = 0;
  std::deque<HandedSplit> waiting_;
  bool is_closed_ = false;
  WaitSum waits_;
};

}  // namespace headrace::reader::service
