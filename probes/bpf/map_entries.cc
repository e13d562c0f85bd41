#include "probes/bpf/map_entries.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include <algorithm>
#include <cerrno>
#include <utility>
#include <vector>

namespace headrace::probes::bpf {

void ForEachEntry(int fd, uint32_t max_entries, size_t key_size, size_t value_size,
                  const std::function<void(const void* key, const void* value)>& visit) {
  uint32_t room = std::min<uint32_t>(max_entries, 256);
  // Kept: memory of this size is new from the kernel each time, page by page.
  static thread_local std::vector<uint8_t> key_room, value_room;
  std::vector<uint8_t> keys = std::move(key_room), values = std::move(value_room);
  uint64_t at = 0, next = 0;
  bool first = true, batches = true;
  LIBBPF_OPTS(bpf_map_batch_opts, options);
  for (uint32_t seen = 0; seen < max_entries + room;) {
    if (keys.size() < key_size * room) keys.resize(key_size * room);
    if (values.size() < value_size * room) values.resize(value_size * room);
    uint32_t count = room;
    const int result = bpf_map_lookup_batch(fd, first ? nullptr : &at, &next, keys.data(),
                                            values.data(), &count, &options);
    const int error = result < 0 ? errno : 0;
    if (error == ENOSPC && room < max_entries) {  // one bucket of the table does not fit
      room = std::min(room * 4, max_entries);
      continue;
    }
    if (error != 0 && error != ENOENT) {
      batches = !first || error == EFAULT;
      if (error == ENOSPC) batches = false;
      break;
    }
    for (uint32_t i = 0; i < count; i++) {
      visit(keys.data() + i * key_size, values.data() + i * value_size);
    }
    seen += count;
    at = next;
    first = false;
    if (error == ENOENT) break;
  }
  key_room = std::move(keys);
  value_room = std::move(values);
  if (batches) return;
  std::vector<uint8_t> key(key_size), after(key_size), value(value_size);
  for (bool begin = true; bpf_map_get_next_key(fd, begin ? nullptr : key.data(), after.data()) == 0;
       begin = false) {
    key = after;
    if (bpf_map_lookup_elem(fd, key.data(), value.data()) == 0) visit(key.data(), value.data());
  }
}

}  // namespace headrace::probes::bpf
