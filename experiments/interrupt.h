// Interrupts: what Ctrl-C and SIGTERM do to a command that runs for long.
#pragma once

namespace headrace::experiments {

// After InstallInterruptHandler(), SIGINT and SIGTERM make Interrupted() true; a second signal
// kills the process.
void InstallInterruptHandler();
bool Interrupted();
// The signal that came (0: none yet), and whether the terminal sent it; then a child in this
// process group got it as well.
int InterruptSignal();
bool InterruptFromTerminal();
// Sets the process group of a child: if a second signal ends this process at once, that group is
// killed with it. 0: none.
void SetGroupOfChild(int group);

}  // namespace headrace::experiments
