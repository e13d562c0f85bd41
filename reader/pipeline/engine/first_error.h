// FirstError: the error that ends a run, whichever thread it is of. Thread-safe.
#pragma once
#include <exception>
#include <mutex>
#include <utility>

namespace headrace::reader {

class FirstError {
 public:
  // Those that follow the first one are mostly its consequences.
  void Set(std::exception_ptr error) {
    std::lock_guard lock(mutex_);
    if (!error_) error_ = std::move(error);
  }
  bool is_set() const {
    std::lock_guard lock(mutex_);
    return error_ != nullptr;
  }
  void RethrowIfSet() const {
    std::lock_guard lock(mutex_);
    if (error_) std::rethrow_exception(error_);
  }

 private:
  mutable std::mutex mutex_;
  std::exception_ptr error_;
};

}  // namespace headrace::reader
