// Causes of threads' waits without BPF, for users without CAP_BPF. Every reading looks up what each
// thread waits in (/proc/PID/task/TID/syscall, or the kernel function of wchan). How long threads
// waited is known from the scheduler's account; only the cause is sampled.
#pragma once
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

namespace headrace::probes {

// What a descriptor is: "pipe", "socket", "unix", "file", "event"; "" unknown.
using DescriptorKind = std::function<std::string(int fd)>;

// The cause from the text of a `syscall` file: "202 0x7f..." -> "lock", "running" -> "running",
// "-1 ..." -> "fault". Nothing for text it does not understand. Causes are those of the off-CPU
// program: storage, network, lock, sleep, pipe, poll, child, fault, other; "stopped" is told by
// IsStopped alone, because a stopped thread still names the call that it was stopped in.
std::optional<std::string> CauseOfSyscall(std::string_view text, const DescriptorKind& kind_of);
// The same from a `wchan` file: "futex_wait_queue" -> "lock"; "0" or "" -> "running".
std::string CauseOfKernelFunction(std::string_view name);
// Whether a thread's `stat` file says that a signal or a debugger has stopped it (state T or t).
// False for text it does not understand.
bool IsStopped(std::string_view stat);

}  // namespace headrace::probes
