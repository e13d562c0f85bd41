// FirstError: the error that ends a run, whichever thread it happened in. Thread-safe.
#pragma once
#include <exception>
#include <mutex>
#include <utility>

namespace headrace::reader {

class FirstError {
 public:
  // Keeps only the first error; later ones are mostly its consequences.
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
