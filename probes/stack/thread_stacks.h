// CPU stacks without BPF: a cpu-clock event for every thread of the target, whose samples come
// through rings of memory. Works for processes of the same user without any capability where
// kernel.perf_event_paranoid is at most 2. It cannot read a thread's operator word at the instant
// of the sample, so its stacks carry no operator.
//
// If frame pointers do not lead to the thread's beginning in more than a tenth of a process's
// samples, its threads are sampled with registers and 8 KiB of stack instead, and unwound by
// .eh_frame.
#pragma once
#include <map>
#include <memory>

#include "probes/probe.h"
#include "probes/stack/perf_ring.h"
#include "probes/stack/stack_folder.h"

namespace headrace::probes::stack {

struct ThreadStacksOptions {
  int frequency = 99;
  size_t max_threads = 256;  // followed at the same time; the others are counted
  size_t ring_pages = 16;    // of a thread: 64 KiB hold 1 s of samples
  size_t unwind_pages = 64;  // of a thread sampled with its stack
  uint32_t stack_bytes = 8192;
};

class ThreadStacks : public Probe {
 public:
  explicit ThreadStacks(ThreadStacksOptions options = {}) : options_(options) {}

  static Availability Check(const Host& host);
  Availability Start(const Host& host, const Target& target) override;
  void Read(Sink& sink) override;
  void Stop() override;

 private:
  struct Thread {
    int64_t pid = 0;
    std::string group;
    std::unique_ptr<PerfRing> ring;
  };

  void Follow();
  void Drain(Thread& thread);
  void Unfollow(std::map<int64_t, Thread>::iterator thread);

  ThreadStacksOptions options_;
  const Host* host_ = nullptr;
  const Target* target_ = nullptr;
  std::unique_ptr<StackFolder> folder_;
  bool with_kernel_ = true;
  std::map<int64_t, Thread> threads_;  // by tid
  std::map<int64_t, bool> unwound_;    // processes sampled with their stack
  int64_t lost_ = 0, refused_ = 0;
};

// True while another probe in this process, which also knows the operator, samples CPU stacks. That
// probe sets it; ThreadStacks respects it.
bool& OperatorStacksActive();

}  // namespace headrace::probes::stack
