// HeldInterrupts: blocks SIGINT and SIGTERM around a fork. A child that gets one before it executes
// its program would run this program's handler, and the signal would be lost.
#pragma once
#include <csignal>

namespace headrace::experiments {

class HeldInterrupts {
 public:
  HeldInterrupts();
  HeldInterrupts(const HeldInterrupts&) = delete;
  HeldInterrupts& operator=(const HeldInterrupts&) = delete;
  ~HeldInterrupts();
  // Call in the child: both signals have their default effect from here on, also those that came
  // meanwhile. Safe between fork and exec.
  void LetThrough() const;

 private:
  sigset_t before_;
};

}  // namespace headrace::experiments
