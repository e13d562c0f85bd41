#include "probes/perf/counting.h"

#include <algorithm>

namespace headrace::probes::perf {

double GroupTotals::running_ratio() const {
  return enabled_ns > 0 ? std::min(1.0, running_ns / enabled_ns) : 0;
}

Totals MakeTotals(const EventPlan& plan) {
  Totals totals(plan.groups.size());
  for (size_t i = 0; i < totals.size(); ++i) {
    totals[i].scaled.assign(plan.groups[i].codes.size(), 0);
    totals[i].turn = totals[i].scaled;
    if (i > 0) totals[i].turn_base.assign(plan.groups[0].codes.size(), 0);
  }
  return totals;
}

void BeginInterval(Totals* totals) {
  for (GroupTotals& group : *totals) group.fresh = false;
}

void Turn::Counted(std::span<const double> counts, double running_ns, std::span<const double> base,
                   double base_running_ns) {
  running_ns_ += running_ns;
  base_running_ns_ += base_running_ns;
  for (size_t i = 0; i < std::min(counts.size(), counts_.size()); ++i) counts_[i] += counts[i];
  for (size_t i = 0; i < std::min(base.size(), base_.size()); ++i) base_[i] += base[i];
}

void Turn::Settle(double least_running_ns, GroupTotals* sums) {
  if (running_ns_ <= 0) return;
  const bool whole = running_ns_ >= enabled_ns_;
  if (!whole && running_ns_ < least_running_ns) return;
  const double scale = whole ? 1 : enabled_ns_ / running_ns_;
  // Within the turn both groups counted, unless the kernel made the group share its place.
  const double to_base =
      base_running_ns_ > running_ns_ * 1.001 ? base_running_ns_ / running_ns_ : 1;
  if (!sums->fresh) {
    std::fill(sums->turn.begin(), sums->turn.end(), 0);
    std::fill(sums->turn_base.begin(), sums->turn_base.end(), 0);
    sums->fresh = true;
  }
  for (size_t i = 0; i < counts_.size(); ++i) {
    sums->scaled[i] += counts_[i] * scale;
    sums->turn[i] += counts_[i] * to_base;
    counts_[i] = 0;
  }
  for (size_t i = 0; i < base_.size(); ++i) {
    sums->turn_base[i] += base_[i];
    base_[i] = 0;
  }
  sums->running_ns += running_ns_;
  enabled_ns_ = running_ns_ = base_running_ns_ = 0;
}

ThreadCounters::ThreadCounters(PerfBackend& backend, const EventPlan& plan, Options options)
    : backend_(&backend), plan_(&plan), options_(options) {}

int ThreadCounters::Open(const OpenRequest& where, bool base_only) {
  Close();
  where_ = where;
  where_.disabled = true;
  const size_t num_groups =
      base_only ? std::min<size_t>(1, plan_->groups.size()) : plan_->groups.size();
  pending_.clear();
  for (size_t i = 0; i < num_groups; ++i) {
    groups_.emplace_back(*backend_);
    pending_.emplace_back(plan_->groups[i].codes.size(),
                          i == 0 ? 0 : plan_->groups[0].codes.size());
    OpenRequest request = where_;
    request.pinned = i == 0;
    const auto opened = groups_[i].Open(request, plan_->groups[i].codes);
    if (i == 0 && !opened.ok()) {
      Close();
      return opened.error;
    }
  }
  if (!groups_.empty()) groups_[0].Enable();
  return 0;
}

void ThreadCounters::Rotate(size_t active) {
  if (active == active_) return;
  if (active_ != 0 && active_ < groups_.size()) groups_[active_].Disable();
  active_ = active;
  if (active_ != 0 && active_ < groups_.size()) groups_[active_].Enable();
}

bool ThreadCounters::ReadGroup(size_t index, GroupDelta* delta) {
  CounterGroup& group = groups_[index];
  *delta = group.Read();
  if (delta->status == GroupDelta::Status::kLost) {
    // Only the base is pinned. Whoever took its place may be gone by now.
    if (reopens_++ >= options_.most_reopens) return false;
    OpenRequest request = where_;
    request.pinned = index == 0;
    if (!group.Open(request, plan_->groups[index].codes).ok()) return false;
    group.Enable();
  } else if (delta->status == GroupDelta::Status::kFailed) {
    group.Close();
    return false;
  }
  return true;
}

bool ThreadCounters::Read(Totals* totals) {
  if (groups_.empty() || !groups_[0].is_open()) return false;
  GroupDelta base, turn;
  if (!ReadGroup(0, &base)) {
    Close();
    return false;
  }
  const auto base_ns = static_cast<double>(base.enabled_ns);
  const auto base_running_ns = static_cast<double>(base.running_ns);
  const std::vector<double> base_counts(base.counts.begin(), base.counts.end());
  for (size_t i = 0; i < groups_.size(); ++i) {
    if (!groups_[i].is_open()) continue;
    (*totals)[i].enabled_ns += base_ns;
    pending_[i].Elapsed(base_ns);
  }
  pending_[0].Counted(base_counts, base_running_ns, {}, base_running_ns);
  if (active_ != 0 && active_ < groups_.size() && groups_[active_].is_open() &&
      ReadGroup(active_, &turn)) {
    const std::vector<double> counts(turn.counts.begin(), turn.counts.end());
    pending_[active_].Counted(counts, static_cast<double>(turn.running_ns), base_counts,
                              base_running_ns);
  }
  for (size_t i = 0; i < groups_.size(); ++i) {
    pending_[i].Settle(static_cast<double>(options_.least_running_ns), &(*totals)[i]);
  }
  return true;
}

void ThreadCounters::Close() {
  groups_.clear();
  pending_.clear();
  active_ = 0;
}

size_t ThreadCounters::num_handles() const {
  size_t sum = 0;
  for (const CounterGroup& group : groups_) sum += group.handles().size();
  return sum;
}

}  // namespace headrace::probes::perf
