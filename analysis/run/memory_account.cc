#include "analysis/run/memory_account.h"

namespace headrace::analysis {

std::optional<MemoryAccount> MemoryAccountOf(const RunView& run) {
  constexpr double kServerBytes = 1048576;  // HR_MEMORY of probes/account/account.h counts in MiB
  for (const ResourceRow& row : run.resources) {
    if (row.kind != "memory" || row.acquisitions_count <= 0 || row.moved_bytes <= 0) continue;
    return MemoryAccount{
        &row, static_cast<double>(row.servers_count) * kServerBytes,
        static_cast<double>(row.moved_bytes) / static_cast<double>(row.acquisitions_count)};
  }
  return std::nullopt;
}

}  // namespace headrace::analysis
