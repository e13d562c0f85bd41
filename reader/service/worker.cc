#include "reader/service/worker.h"

#include <algorithm>
#include <utility>

namespace headrace::reader::service {

Register Worker::Connected() {
  asked_ = 0;
  is_draining_ = false;  // a new dispatcher says so again
  return {options_.instance, options_.pid, options_.host, term_};
}

void Worker::ForgetRefusal() {
  if (std::exchange(refusal_, std::nullopt)) is_over_ = false;
}

void Worker::Handle(const Message& message) {
  if (const auto* session = std::get_if<Session>(&message)) {
    if (session->term < term_) return;
    if (session->term > term_) {  // what was leased before is void
      leases_.clear();
      waiting_.clear();
    }
    term_ = session->term;
    asked_ = 0;
    session_ = *session;
  } else if (const auto* lease = std::get_if<Lease>(&message)) {
    if (!session_ || lease->term != term_) return;
    const uint32_t ranks = lease->deal.ranks;
    if (ranks == 0 || ranks != session_->clients.size()) return;  // of no job that it knows
    asked_ -= std::min<uint64_t>(asked_, 1);
    Held held{*lease};
    for (const RowRange& range : lease->wanted) held.left += range.count;
    if (held.left == 0) return;
    waiting_.push_back(++last_local_);
    leases_.emplace(last_local_, std::move(held));
  } else if (std::holds_alternative<Drain>(message)) {
    is_draining_ = true;
  } else if (std::holds_alternative<Bye>(message)) {
    is_over_ = true;
  } else if (const auto* refused = std::get_if<Refused>(&message)) {
    is_over_ = true;
    refusal_ = *refused;
  }
}

std::optional<Ask> Worker::TakeAsk() {
  if (term_ == 0 || is_draining_ || is_over_) return std::nullopt;
  const uint64_t has = waiting_.size() + asked_;
  if (has >= options_.ahead) return std::nullopt;
  const Ask ask{term_, static_cast<uint32_t>(options_.ahead - has)};
  asked_ += ask.count;
  return ask;
}

std::optional<Worker::Taken> Worker::Take() {
  if (waiting_.empty()) return std::nullopt;
  const uint64_t local = waiting_.front();
  waiting_.pop_front();
  return Taken{local, leases_.at(local).lease};
}

std::optional<GiveBack> Worker::TakeUnmade() {
  if (!is_draining_) return std::nullopt;
  GiveBack back{term_, {}};
  waiting_.clear();
  std::erase_if(leases_, [&](const auto& one) {
    const Held& held = one.second;
    if (!held.is_made) back.splits.push_back({held.lease.epoch, held.lease.split});
    return !held.is_made;
  });
  if (back.splits.empty()) return std::nullopt;
  return back;
}

std::optional<Worker::Route> Worker::Place(uint64_t local, uint64_t unit, uint64_t rows) {
  const auto held = leases_.find(local);
  if (held == leases_.end()) return std::nullopt;
  const Lease& lease = held->second.lease;
  const Route route{lease.term, lease.epoch, lease.deal.RankOf(unit)};
  held->second.left -= std::min(held->second.left, rows);
  if (held->second.left == 0) leases_.erase(held);
  return route;
}

const Lease* Worker::MarkMade(uint64_t local) {
  const auto held = leases_.find(local);
  if (held == leases_.end()) return nullptr;
  held->second.is_made = true;
  return &held->second.lease;
}

}  // namespace headrace::reader::service
