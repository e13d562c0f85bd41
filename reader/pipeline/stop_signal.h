// StopSignal: tells every thread of a pipeline to end, and wakes those that sleep on it.
#pragma once
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <mutex>

namespace headrace::reader {

class StopSignal {
 public:
  void Stop() {
    {
      std::lock_guard lock(mutex_);
      stopped_.store(true, std::memory_order_release);
    }
    wake_.notify_all();
  }
  bool stopped() const { return stopped_.load(std::memory_order_acquire); }

  // Sleeps `ns`, or until Stop(). Returns false when stopped.
  bool SleepFor(int64_t ns) {
    std::unique_lock lock(mutex_);
    wake_.wait_for(lock, std::chrono::nanoseconds(ns), [&] { return stopped(); });
    return !stopped();
  }

 private:
  std::mutex mutex_;
  std::condition_variable wake_;
  std::atomic<bool> stopped_{false};
};

}  // namespace headrace::reader
