// Interrupts: what Ctrl-C and SIGTERM do to a command that works for long.
#pragma once

namespace headrace::experiments {

// Set by SIGINT and SIGTERM after InstallInterruptHandler(); a second signal kills the process.
void InstallInterruptHandler();
bool Interrupted();
// The signal that came, and whether the terminal sent it, so that a child of this process group got
// it as well; 0 before there was one.
int InterruptSignal();
bool InterruptFromTerminal();
// The process group of a child of this process: where a second signal ends this process at once, it
// is killed with it. 0: none.
void SetGroupOfChild(int group);

}  // namespace headrace::experiments
