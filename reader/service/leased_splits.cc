#include "reader/service/leased_splits.h"

#include <chrono>
#include <utility>

#include "base/error.h"
#include "reader/dwrf/slices.h"
#include "reader/pipeline/stop_signal.h"

namespace headrace::reader::service {

void LeasedSplits::SetTable(std::vector<Split> splits, uint64_t slice_rows) {
  std::lock_guard lock(mutex_);
  splits_ = std::move(splits);
  slice_rows_ = slice_rows;
}

void LeasedSplits::Add(const Worker::Taken& taken) {
  const Lease& lease = taken.lease;
  std::lock_guard lock(mutex_);
  if (lease.split >= splits_.size())
    throw Error(ExitCode::kBadData, "a lease is for a split that the table does not have");
  HandedSplit handed;
  handed.split = splits_[lease.split];
  handed.epoch = taken.local;
  handed.place = lease.epoch * splits_.size() + lease.split;
  const Split& split = handed.split;
  auto wanted = std::make_shared<std::vector<RowSpan>>();
  uint64_t low = split.first_row, rows = 0;
  for (const RowRange& range : lease.wanted) {
    const uint64_t end = split.first_row + split.rows;
    if (range.first < low || range.first >= end || range.count == 0 ||
        range.count > end - range.first)
      throw Error(ExitCode::kBadData, "a lease wants rows that its split does not have");
    wanted->push_back({taken.local, lease.split, range.first, range.count, range.count});
    low = range.first + range.count;
    rows += range.count;
  }
  if (rows < split.rows) handed.wanted = std::move(wanted);
  waiting_.push_back(std::move(handed));
  added_.notify_one();
}

size_t LeasedSplits::waiting() const {
  std::lock_guard lock(mutex_);
  return waiting_.size();
}

void LeasedSplits::Clear() {
  std::lock_guard lock(mutex_);
  waiting_.clear();
}

void LeasedSplits::Close() {
  std::lock_guard lock(mutex_);
  is_closed_ = true;
  added_.notify_all();
}

int64_t LeasedSplits::waited_ns(int64_t now_ns) const {
  std::lock_guard lock(mutex_);
  return waits_.Until(now_ns);
}

std::optional<HandedSplit> LeasedSplits::Next(StopSignal* stop) {
  constexpr auto kLook = std::chrono::milliseconds(50);  // between looks at the stop signal
  std::unique_lock lock(mutex_);
  if (waiting_.empty()) {
    const WaitSum::Scope sum(&waits_);
    while (waiting_.empty() && !is_closed_ && !stop->stopped()) added_.wait_for(lock, kLook);
  }
  if (waiting_.empty() || stop->stopped()) return std::nullopt;
  HandedSplit handed = std::move(waiting_.front());
  waiting_.pop_front();
  handed.sequence = sequence_++;
  handed.first_slice = slices_;
  slices_ += dwrf::NumSlices(handed.split.rows, slice_rows_);
  lock.unlock();
  taken_();
  return handed;
}

}  // namespace headrace::reader::service
