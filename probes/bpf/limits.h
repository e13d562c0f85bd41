// Sizes of the kernel programs' maps and rings from the environment; small ones are for tests of
// losses.
#pragma once
#include <cstdint>
#include <optional>

namespace headrace::probes::bpf {

// HEADRACE_BPF_MAP_ENTRIES: entries of a hash map, at most; empty: not set. Throws Error kUsage for
// anything but a whole number from 1 to 65536.
std::optional<uint32_t> MapEntriesLimit();
// HEADRACE_BPF_RING_BYTES: bytes of a ring buffer; empty: not set. Throws Error kUsage for anything
// but a power of two from 4096 to 2^30.
std::optional<uint32_t> RingBytesLimit();
// HEADRACE_BPF_PLAIN, if not empty: programs are loaded as a kernel before Linux 5.17 gets them.
bool PlainPrograms();
// Throws what the first two functions throw; commands call it before anything is loaded.
void CheckLimits();

}  // namespace headrace::probes::bpf
