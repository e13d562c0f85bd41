// Visiting the entries of a BPF hash map.
#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>

namespace headrace::probes::bpf {

// Calls `visit` for all entries of the hash map `fd`, in batches where the kernel can: then each is
// seen at most once. Entries that appear meanwhile may be missed.
void ForEachEntry(int fd, uint32_t max_entries, size_t key_size, size_t value_size,
                  const std::function<void(const void* key, const void* value)>& visit);

}  // namespace headrace::probes::bpf
