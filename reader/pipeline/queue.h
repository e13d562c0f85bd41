// Queue: bounded, between two stages. Every wait is timed into the waiting operator's account, and
// the queue's occupancy into the queue's own. In ordered mode elements leave in the order of their
// sequence numbers: the element that is due is admitted even when the queue is full, so a full
// window of later ones cannot block it. With a reorder window, an element that is `window` or more
// places after the due one does not enter, however much room there is.
#pragma once
#include <algorithm>
#include <bit>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "base/check.h"
#include "probes/account/account.h"
#include "probes/account/scope.h"
#include "reader/pipeline/wait_sum.h"

namespace headrace::reader {

enum class QueueStatus { kOk, kEnd, kStopped, kWoken };

// T has `uint64_t sequence`. Thread-safe. `producers` threads must call ProducerDone before the
// queue ends.
template <typename T>
class Queue {
 public:
  // The most places of an ordered queue, which has one for each element from the due one to the
  // last. A sequence number further ahead cannot be a valid one.
  static constexpr uint64_t kMostAhead = uint64_t{1} << 24;

  // `window` 0: no reorder window.
  Queue(uint32_t capacity, bool ordered, uint32_t account, uint64_t window = 0)
      : capacity_(capacity), ordered_(ordered), window_(window), account_(account) {}

  // Blocks while the queue is full; the wait goes to operator account `waiter` as w_out. False when
  // stopped; then `element` is lost.
  bool Put(T&& element, uint32_t waiter) {
    std::unique_lock lock(mutex_);
    const auto admitted = [&] {
      if (stopped_) return true;
      if (!ordered_) return size_ < capacity_;
      const uint64_t ahead = element.sequence - next_;
      return ahead == 0 || (size_ < capacity_ && (window_ == 0 || ahead < window_));
    };
    if (!admitted()) {
      account::WaitScope wait(waiter, HR_WAIT_OUT);
      const WaitSum::Scope sum(&waits_out_);
      not_full_.wait(lock, admitted);
    }
    if (stopped_) return false;
    const uint64_t key = ordered_ ? element.sequence : arrivals_++;
    HR_CHECK(key >= next_ && key - next_ < kMostAhead, "a sequence number far from the due one");
    if (key - next_ >= slots_.size()) Grow(key - next_ + 1);
    Slot(key).emplace(std::move(element));
    hr_queue_level(account_, ++size_);
    const bool is_due = !ordered_ || key == next_;
    // Unlock first: a thread that is woken while the lock is held would only sleep again on the
    // lock.
    lock.unlock();
    if (is_due) not_empty_.notify_one();
    return true;
  }

  // Whom to wake for an element that was taken.
  struct Wakeup {
    bool room = false;  // those who wait to put one
    bool more = false;  // another who waits to take one
  };

  // Blocks while there is nothing to take; the wait goes to `waiter` as w_in. `wake_ticket` is from
  // Ticket(): when Wake() was called since, returns kWoken. With `later`, the caller calls
  // Notify(*later) soon after kOk; else it is done here.
  QueueStatus Get(T* out, uint32_t waiter, uint64_t wake_ticket, Wakeup* later = nullptr) {
    std::unique_lock lock(mutex_);
    const auto ready = [&] { return stopped_ || wakes_ != wake_ticket || available() || ended(); };
    if (!ready()) {
      account::WaitScope wait(waiter, HR_WAIT_IN);
      const WaitSum::Scope sum(&waits_in_);
      not_empty_.wait(lock, ready);
    }
    if (stopped_) return QueueStatus::kStopped;
    if (available()) {
      std::optional<T>& first = Slot(next_++);
      *out = std::move(*first);
      first.reset();
      hr_queue_level(account_, --size_);
      const Wakeup wakeup{true, ordered_ && available()};
      lock.unlock();
      if (later != nullptr) {
        *later = wakeup;
      } else {
        Notify(wakeup);
      }
      return QueueStatus::kOk;
    }
    return ended() ? QueueStatus::kEnd : QueueStatus::kWoken;
  }
  void Notify(Wakeup wakeup) {
    // In ordered mode the writer of the due element must wake, wherever it is among the waiting
    // ones.
    if (wakeup.room && ordered_) not_full_.notify_all();
    if (wakeup.room && !ordered_) not_full_.notify_one();
    if (wakeup.more) not_empty_.notify_one();
  }

  // No producer is left: takers get what is there, then kEnd.
  void Close() {
    std::lock_guard lock(mutex_);
    closed_ = true;
    not_empty_.notify_all();
  }
  // All waits end now; elements inside are dropped.
  void Stop() {
    std::lock_guard lock(mutex_);
    stopped_ = true;
    not_empty_.notify_all();
    not_full_.notify_all();
  }
  uint64_t Ticket() const {
    std::lock_guard lock(mutex_);
    return wakes_;
  }
  void Wake() {
    std::lock_guard lock(mutex_);
    ++wakes_;
    not_empty_.notify_all();
  }
  void SetCapacity(uint32_t capacity) {
    std::lock_guard lock(mutex_);
    capacity_ = capacity;
    hr_queue_capacity(account_, capacity);
    not_full_.notify_all();
  }
  uint32_t capacity() const {
    std::lock_guard lock(mutex_);
    return capacity_;
  }
  // For how long threads have waited, all together: to take, and to put.
  int64_t waited_in_ns(int64_t now_ns) const {
    std::lock_guard lock(mutex_);
    return waits_in_.Until(now_ns);
  }
  int64_t waited_out_ns(int64_t now_ns) const {
    std::lock_guard lock(mutex_);
    return waits_out_.Until(now_ns);
  }
  size_t size() const {
    std::lock_guard lock(mutex_);
    return size_;
  }

 private:
  std::optional<T>& Slot(uint64_t key) { return slots_[key & (slots_.size() - 1)]; }
  // Room for `count` places from the due one on, in a power of two of slots.
  void Grow(uint64_t count) {
    std::vector<std::optional<T>> slots(std::bit_ceil(std::max<uint64_t>(count, 8)));
    for (uint64_t key = next_; key < next_ + slots_.size(); ++key) {
      std::optional<T>& from = Slot(key);
      if (from) slots[key & (slots.size() - 1)].emplace(*std::move(from));
    }
    slots_ = std::move(slots);
  }
  bool available() const { return size_ != 0 && slots_[next_ & (slots_.size() - 1)].has_value(); }
  // With every producer done, a gap in the sequence can no longer fill: nothing more will come.
  bool ended() const { return closed_ && !available(); }

  mutable std::mutex mutex_;
  std::condition_variable not_full_, not_empty_;
  std::vector<std::optional<T>> slots_;  // by the low bits of sequence or arrival; next_ is first
  uint32_t size_ = 0;                    // of elements
  uint32_t capacity_;
  const bool ordered_;
  const uint64_t window_;
  const uint32_t account_;
  uint64_t arrivals_ = 0, next_ = 0, wakes_ = 0;
  bool closed_ = false, stopped_ = false;
  WaitSum waits_in_, waits_out_;
};

}  // namespace headrace::reader
