// PerfRing: one perf event and the ring of memory in which the kernel writes its samples; and the
// parser of those samples.
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "probes/stack/unwind.h"

namespace headrace::probes::stack {

// What to sample: the cpu-clock, which needs no hardware counter.
struct SampleRequest {
  int frequency = 99;       // per second of CPU time
  bool with_kernel = true;  // kernel frames
  bool bare = false;        // only the event, for a BPF program
  // Above 0: also the user registers and this much of the stack, for unwinding.
  uint32_t stack_bytes = 0;
};

struct PerfSample {
  int64_t pid = 0, tid = 0;
  std::vector<uint64_t> kernel, user;  // innermost first
  std::optional<Registers> registers;
  uint64_t stack_address = 0;
  std::vector<uint8_t> stack;
};

// Parses a sample record's bytes (after the header), made for `request`; absent if they are
// damaged.
std::optional<PerfSample> ParsePerfSample(std::span<const uint8_t> bytes,
                                          const SampleRequest& request);

// Opens a sampling event for a thread (cpu -1) or for a CPU (tid -1); returns the descriptor or
// -errno.
int OpenCpuClock(const SampleRequest& request, int64_t tid, int cpu);

class PerfRing {
 public:
  // Null, with errno set, on failure. `pages`: a power of two, which is halved, down to 2, while
  // the kernel refuses to lock as many.
  static std::unique_ptr<PerfRing> Open(const SampleRequest& request, int64_t tid, size_t pages);
  ~PerfRing();
  PerfRing(const PerfRing&) = delete;

  const SampleRequest& request() const { return request_; }
  // Passes the samples since the last call to `take`.
  void Drain(const std::function<void(const PerfSample&)>& take);
  int64_t lost() const { return lost_; }        // samples for which the ring had no room
  int64_t damaged() const { return damaged_; }  // records that could not be parsed
  // True when the thread has ended.
  bool ended() const;

 private:
  PerfRing() = default;
  SampleRequest request_;
  int fd_ = -1;
  void* memory_ = nullptr;
  size_t size_ = 0;  // of the data
  int64_t lost_ = 0, damaged_ = 0;
};

}  // namespace headrace::probes::stack
