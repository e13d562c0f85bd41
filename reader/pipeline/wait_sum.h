// WaitSum: for how long threads have waited for one thing, all together, those that still wait
// included.
#pragma once
#include <cstdint>

#include "base/clock.h"

namespace headrace::reader {

// Not thread-safe: whoever owns it guards it by the mutex that its waits are under.
class WaitSum {
 public:
  // One wait, from here to the end of its life.
  class Scope {
   public:
    explicit Scope(WaitSum* sum) : sum_(sum), begin_ns_(MonotonicNs()) {
      ++sum_->waiting_;
      sum_->begins_ns_ += begin_ns_;
    }
    ~Scope() {
      --sum_->waiting_;
      sum_->begins_ns_ -= begin_ns_;
      sum_->ended_ns_ += MonotonicNs() - begin_ns_;
    }
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;

   private:
    WaitSum* const sum_;
    const int64_t begin_ns_;
  };

  int64_t Until(int64_t now_ns) const { return ended_ns_ + waiting_ * now_ns - begins_ns_; }

 private:
  int64_t waiting_ = 0, begins_ns_ = 0;  // threads, and the sum of the times since which they do
  int64_t ended_ns_ = 0;
};

// A stage's threads, and for how long they have waited, all together: for something to work on, and
// for room for what they made.
struct StageWaits {
  uint32_t threads = 1;
  int64_t in_ns = 0, out_ns = 0;
};

}  // namespace headrace::reader
