#include "experiments/interrupt.h"

#include <atomic>
#include <csignal>

namespace headrace::experiments {
namespace {

// Other threads read what the handler writes, which volatile does not allow.
using Flag = std::atomic<int>;
static_assert(Flag::is_always_lock_free, "a signal handler may use it");
Flag interrupted = 0, interrupt_signal = 0, interrupt_from_terminal = 0, group_of_child = 0;

void OnInterrupt(int signal_number, siginfo_t* info, void*) {
  if (interrupted) {
    // A second signal means "now": die by the signal itself, so that the parent sees the true
    // cause.
    if (group_of_child > 0) kill(-group_of_child, SIGKILL);
    std::signal(signal_number, SIG_DFL);
    raise(signal_number);
  }
  interrupt_signal = signal_number;
  interrupt_from_terminal = info->si_code == SI_KERNEL;
  interrupted = 1;
}

}  // namespace

void InstallInterruptHandler() {
  struct sigaction action = {};
  action.sa_sigaction = OnInterrupt;
  action.sa_flags = SA_SIGINFO;
  sigemptyset(&action.sa_mask);
  sigaction(SIGINT, &action, nullptr);
  sigaction(SIGTERM, &action, nullptr);
}

bool Interrupted() { return interrupted != 0; }
int InterruptSignal() { return interrupt_signal; }
bool InterruptFromTerminal() { return interrupt_from_terminal != 0; }
void SetGroupOfChild(int group) { group_of_child = group; }

}  // namespace headrace::experiments
