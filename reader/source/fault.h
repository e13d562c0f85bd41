// FaultSource: a source that fails as storage does, so that what a run does then can be tried. What
// happens to a read depends on the seed and on the bytes it asks for, never on threads or time: the
// same run fails the same way, and bytes that are bad stay bad.
#pragma once
#include <cstdint>
#include <functional>
#include <memory>

#include "reader/source/source.h"

namespace headrace::reader {

// Shares of reads, 0 to 1.
struct FaultOptions {
  uint64_t seed = 1;
  double error_ratio = 0;  // the device reports an error (EIO)
  double short_ratio = 0;  // the object ends early
  double flip_ratio = 0;   // one bit of the bytes is wrong
  double stall_ratio = 0;  // the read takes stall_ns longer
  int64_t stall_ns = 0;
  bool enabled() const {
    return error_ratio > 0 || short_ratio > 0 || flip_ratio > 0 || stall_ratio > 0;
  }
};

// `inner` with faults. `stopped`, if given, ends stalls early.
std::shared_ptr<const Source> Faulty(std::shared_ptr<const Source> inner,
                                     const FaultOptions& options,
                                     std::function<bool()> stopped = {});

}  // namespace headrace::reader
