#include "probes/perf/group.h"

#include <algorithm>
#include <cerrno>
#include <utility>

namespace headrace::probes::perf {

bool CounterDelta(uint64_t before, uint64_t now, uint64_t* delta) {
  constexpr uint64_t kRange = uint64_t{1} << 48;
  if (now >= before) {
    *delta = now - before;
    return true;
  }
  if (before >= kRange) return false;
  // Half the range in one interval would take hours: what looks like it is a fall.
  *delta = now + kRange - before;
  return *delta < kRange / 2;
}

CounterGroup::CounterGroup(CounterGroup&& other) noexcept : backend_(other.backend_) {
  *this = std::move(other);
}

CounterGroup& CounterGroup::operator=(CounterGroup&& other) noexcept {
  if (this == &other) return *this;
  Close();
  backend_ = other.backend_;
  handles_ = std::exchange(other.handles_, {});
  ids_ = std::exchange(other.ids_, {});
  last_ = std::exchange(other.last_, {});
  last_enabled_ns_ = other.last_enabled_ns_;
  last_running_ns_ = other.last_running_ns_;
  return *this;
}

CounterGroup::OpenResult CounterGroup::Open(const OpenRequest& request,
                                            std::span<const EventCode> events) {
  Close();
  OpenRequest one = request;
  for (size_t i = 0; i < events.size(); ++i) {
    one.code = events[i];
    one.leader = i == 0 ? -1 : handles_[0];
    const int handle = backend_->Open(one);
    if (handle < 0) {
      Close();
      return {-handle, i};
    }
    handles_.push_back(handle);
    ids_.push_back(backend_->Id(handle));
  }
  last_.assign(handles_.size(), 0);
  last_enabled_ns_ = last_running_ns_ = 0;
  return {};
}

GroupDelta CounterGroup::Read() {
  GroupDelta delta;
  if (handles_.empty()) {
    delta.status = GroupDelta::Status::kFailed;
    delta.error = EBADF;
    return delta;
  }
  std::vector<uint64_t> words(3 + 2 * handles_.size());
  const int64_t size = backend_->Read(handles_[0], words.data(), words.size());
  if (size < 0) {
    delta.status = GroupDelta::Status::kFailed;
    delta.error = static_cast<int>(-size);
    return delta;
  }
  if (size == 0) {
    delta.status = GroupDelta::Status::kLost;
    return delta;
  }
  delta.status = GroupDelta::Status::kDamaged;
  if (static_cast<size_t>(size) < words.size() * sizeof words[0] || words[0] != handles_.size()) {
    return delta;
  }
  // The kernel gives the events in the order of opening; the ids prove it.
  std::vector<uint64_t> values(handles_.size());
  for (size_t i = 0; i < handles_.size(); ++i) {
    size_t from = i;
    if (ids_[i] != 0 && words[4 + 2 * i] != ids_[i]) {
      for (from = 0; from < handles_.size() && words[4 + 2 * from] != ids_[i];) ++from;
      if (from == handles_.size()) return delta;
    }
    values[i] = words[3 + 2 * from];
  }
  const uint64_t enabled = words[1], running = words[2];
  std::vector<uint64_t> counts(values.size());
  bool fell = enabled < last_enabled_ns_ || running < last_running_ns_;
  for (size_t i = 0; i < values.size(); ++i) fell |= !CounterDelta(last_[i], values[i], &counts[i]);
  delta.enabled_ns = enabled - last_enabled_ns_;
  delta.running_ns = running - last_running_ns_;
  // Whatever was wrong, the next interval begins here.
  last_ = std::move(values);
  last_enabled_ns_ = enabled;
  last_running_ns_ = running;
  if (fell || delta.running_ns > delta.enabled_ns + delta.enabled_ns / 100 + 1'000'000) {
    delta.enabled_ns = delta.running_ns = 0;
    return delta;
  }
  delta.running_ns = std::min(delta.running_ns, delta.enabled_ns);
  delta.status =
      delta.running_ns == 0 ? GroupDelta::Status::kNotScheduled : GroupDelta::Status::kCounted;
  if (delta.status == GroupDelta::Status::kCounted) delta.counts = std::move(counts);
  return delta;
}

void CounterGroup::Close() {
  // Members first: a leader's end makes its members leaders of their own for a moment.
  for (size_t i = handles_.size(); i-- > 0;) backend_->Close(handles_[i]);
  handles_.clear();
  ids_.clear();
}

}  // namespace headrace::probes::perf
