// C++ scopes over the operator accounts (probes/account/account.h): all the instrumentation the
// reader ever sees. Each scope ends its interval when it is destroyed, also by an exception. Not
// movable; must be destroyed on the thread that made it, innermost first.
#pragma once
#include <cstdint>

#include "account.h"  // beside this file: in the tree, and in include/headrace where it is installed

namespace headrace::account {

// Time on `operator_id` while alive; a nested scope stops this one's clock.
class OperatorScope {
 public:
  explicit OperatorScope(uint32_t operator_id) : operator_(operator_id) { hr_enter(operator_); }
  ~OperatorScope() { hr_leave(); }
  OperatorScope(const OperatorScope&) = delete;
  OperatorScope& operator=(const OperatorScope&) = delete;

  // Counts one finished element of `rows` rows.
  void Done(uint64_t rows, uint64_t bytes_in, uint64_t bytes_out) const {
    hr_done(operator_, 1, rows, bytes_in, bytes_out);
  }
  void Done(uint64_t completions, uint64_t rows, uint64_t bytes_in, uint64_t bytes_out) const {
    hr_done(operator_, completions, rows, bytes_in, bytes_out);
  }

 private:
  uint32_t operator_;
};

// A wait for an upstream element (HR_WAIT_IN) or for room downstream (HR_WAIT_OUT).
class WaitScope {
 public:
  WaitScope(uint32_t operator_id, int direction) { hr_wait_begin(operator_id, direction); }
  ~WaitScope() { hr_wait_end(); }
  WaitScope(const WaitScope&) = delete;
  WaitScope& operator=(const WaitScope&) = delete;
};

// The use of a resource from the request to the release: construct it before the request, and call
// Held() once the resource is obtained. Without Held() (the request failed) only the wait is
// counted.
class ResourceScope {
 public:
  explicit ResourceScope(uint32_t resource) : resource_(resource) {
    hr_resource_wait_begin(resource_);
  }
  ~ResourceScope() {
    if (held_) {
      hr_resource_released(resource_, bytes_);
    } else {
      hr_wait_end();
    }
  }
  ResourceScope(const ResourceScope&) = delete;
  ResourceScope& operator=(const ResourceScope&) = delete;

  void Held() {
    hr_resource_held(resource_);
    held_ = true;
  }
  void AddBytes(uint64_t bytes) { bytes_ += bytes; }  // moved through a device

 private:
  uint32_t resource_;
  uint64_t bytes_ = 0;
  bool held_ = false;
};

// Membership of the calling thread in a stage.
class ThreadScope {
 public:
  explicit ThreadScope(uint32_t stage) { hr_thread_begin(stage); }
  ~ThreadScope() { hr_thread_end(); }
  ThreadScope(const ThreadScope&) = delete;
  ThreadScope& operator=(const ThreadScope&) = delete;
};

}  // namespace headrace::account
