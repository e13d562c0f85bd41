// What the page cache holds of local files, and making it forget them: a run that is to read from
// the device must not find the bytes of an earlier one in memory. Only the files named are touched,
// without privilege; never the whole machine's cache.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

namespace headrace::reader {

struct Residency {
  uint64_t bytes = 0, resident_bytes = 0;  // of what was looked at
  std::string unknown;                     // why it cannot be told; empty: it can
};

// Uses mincore(2). Beyond 64 GiB, evenly spread pieces are looked at. Where the process neither
// owns a file nor may write it, the kernel (Linux 5.2 and later) gives no true answer, and the
// result is unknown. Never throws.
Residency ReadResidency(const std::vector<std::string>& paths);

// Asks the kernel to forget all clean pages of the files, after writing back dirty ones. Files that
// cannot be opened are passed over; whether it worked, ReadResidency tells (a file system in memory
// has nowhere else to keep its pages).
void DropFromPageCache(const std::vector<std::string>& paths);
// The same for a range of an open file, pages at its ends included; dirty pages stay.
void DropFromPageCache(int descriptor, uint64_t offset, uint64_t length);

}  // namespace headrace::reader
