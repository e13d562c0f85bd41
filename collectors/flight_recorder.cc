#include "collectors/flight_recorder.h"

#include <utility>

#include "collectors/account_tree.h"

namespace headrace::collectors {
namespace {

size_t Bytes(const IntervalSample& s) {
  return sizeof s + s.stages.size() * sizeof(StageSample) +
         s.operators.size() * sizeof(OperatorSample) + s.queues.size() * sizeof(QueueSample) +
         s.resources.size() * sizeof(ResourceSample) +
         s.steps.durations_ns.size() * sizeof(int64_t) +
         s.steps.records.size() * sizeof(StepRecord);
}

}  // namespace

FlightRecorder::FlightRecorder(int64_t ring_ns, int64_t coarse_ns, size_t limit_bytes)
    : ring_ns_(ring_ns), coarse_ns_(coarse_ns), limit_bytes_(limit_bytes) {}

void FlightRecorder::Add(IntervalSample sample, const std::optional<std::string>& reason) {
  const int64_t end = sample.start_ns + sample.duration_ns;
  // Single steps went into the histogram with the totals.
  sample.steps.durations_ns = {};
  if (reason) {
    if (!range_ || sample.start_ns >= keep_until_ns_) {
      FlushCoarse();
      range_ = DetailRange{ring_.empty() ? sample.start_ns : ring_.front().start_ns, end, *reason};
      for (IntervalSample& held : ring_) ready_detail_.push_back(std::move(held));
      ring_.clear();
      held_bytes_ = 0;
    }
    keep_until_ns_ = end + ring_ns_;
  }
  if (range_ && sample.start_ns < keep_until_ns_) {
    range_->end_ns = end;
    range_changed_ = true;
    ready_detail_.push_back(std::move(sample));
    return;
  }
  held_bytes_ += Bytes(sample);
  ring_.push_back(std::move(sample));
  while (!ring_.empty()) {
    const bool old = ring_.front().start_ns < end - ring_ns_;
    if (!old && held_bytes_ <= limit_bytes_) break;
    if (!old) intervals_cut_++;
    held_bytes_ -= Bytes(ring_.front());
    ToCoarse(std::move(ring_.front()));
    ring_.pop_front();
  }
}

void FlightRecorder::ToCoarse(IntervalSample sample) {
  sample.steps.records = {};  // single steps are detail
  if (coarse_) {
    Extend(&*coarse_, sample);
  } else {
    coarse_ = std::move(sample);
  }
  if (coarse_->duration_ns >= coarse_ns_) FlushCoarse();
}

void FlightRecorder::FlushCoarse() {
  if (coarse_) ready_coarse_.push_back(std::move(*coarse_));
  coarse_.reset();
}

void FlightRecorder::Finish() {
  for (IntervalSample& held : ring_) ToCoarse(std::move(held));
  ring_.clear();
  held_bytes_ = 0;
  FlushCoarse();
}

std::vector<IntervalSample> FlightRecorder::TakeCoarse() {
  return std::exchange(ready_coarse_, {});
}
std::vector<IntervalSample> FlightRecorder::TakeDetail() {
  return std::exchange(ready_detail_, {});
}
std::optional<DetailRange> FlightRecorder::TakeRange() {
  if (!std::exchange(range_changed_, false)) return std::nullopt;
  return range_;
}

}  // namespace headrace::collectors
