#include "experiments/held_interrupts.h"

#include <initializer_list>

namespace headrace::experiments {

HeldInterrupts::HeldInterrupts() {
  sigset_t held;
  sigemptyset(&held);
  sigaddset(&held, SIGINT);
  sigaddset(&held, SIGTERM);
  sigprocmask(SIG_BLOCK, &held, &before_);
}

HeldInterrupts::~HeldInterrupts() { sigprocmask(SIG_SETMASK, &before_, nullptr); }

void HeldInterrupts::LetThrough() const {
  for (const int number : {SIGINT, SIGTERM}) std::signal(number, SIG_DFL);
  sigprocmask(SIG_SETMASK, &before_, nullptr);
}

}  // namespace headrace::experiments
