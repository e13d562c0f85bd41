// ProcessAge: whether a process is older than a probe's start. What it did before the start is not
// counted.
#pragma once
#include <cstdint>

#include "probes/host.h"

namespace headrace::probes {

class ProcessAge {
 public:
  // Call at the probe's start. With a fixture every process is older.
  void Begin(const Host& host);
  bool IsOlder(const Host& host, int64_t pid) const;

 private:
  int64_t begin_ticks_ = INT64_MAX;  // since boot
};

}  // namespace headrace::probes
