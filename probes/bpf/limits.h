// How large the maps and rings of the kernel programs may be, as the environment says: small ones
// show what losses look like.
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
// Throws what they throw: for commands, before anything is loaded.
void CheckLimits();

}  // namespace headrace::probes::bpf
