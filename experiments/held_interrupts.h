// HeldInterrupts: holds SIGINT and SIGTERM back around a fork. A child that gets one before it
// executes its program would give it to this program's handler, and lose it.
#pragma once
#include <csignal>

namespace headrace::experiments {

class HeldInterrupts {
 public:
  HeldInterrupts();
  HeldInterrupts(const HeldInterrupts&) = delete;
  HeldInterrupts& operator=(const HeldInterrupts&) = delete;
  ~HeldInterrupts();
  // In the child: both signals have their usual effect from here on, also those that came
  // meanwhile. Safe between fork and exec.
  void LetThrough() const;

 private:
  sigset_t before_;
};

}  // namespace headrace::experiments
