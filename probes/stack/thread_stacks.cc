#include "probes/stack/thread_stacks.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cstring>

#include "base/clock.h"
#include "probes/bpf/program.h"

namespace headrace::probes::stack {
namespace {

// Share of truncated samples, above which a process is unwound.
constexpr double kUnwindShare = 0.1;

SampleRequest Request(const ThreadStacksOptions& options, bool with_kernel, bool unwound) {
  return {options.frequency, with_kernel, false, unwound ? options.stack_bytes : 256};
}

}  // namespace

bool& OperatorStacksActive() {
  static bool active = false;
  return active;
}

Availability ThreadStacks::Check(const Host& host) {
  constexpr char kFix[] =
      "CAP_PERFMON, or sysctl kernel.perf_event_paranoid=2 or less; in a container also a seccomp "
      "profile that allows perf_event_open";
  if (!host.is_this_machine()) {
    return Availability::Unavailable("no /proc of a running machine", kFix);
  }
  SampleRequest request;
  int fd = OpenCpuClock(request, 0, -1);
  const bool user_only = fd == -EACCES || fd == -EPERM;
  if (user_only) {
    request.with_kernel = false;
    fd = OpenCpuClock(request, 0, -1);
  }
  if (fd < 0) {
    return Availability::Unavailable(
        fmt::format("perf_event_open(cpu-clock): {}", std::strerror(-fd)), kFix);
  }
  close(fd);
  if (user_only) {
    return Availability::Degraded("time in the kernel is not sampled: perf_event_open was refused",
                                  "CAP_PERFMON or sysctl kernel.perf_event_paranoid=1");
  }
  return Availability::Ok();
}

Availability ThreadStacks::Start(const Host& host, const Target& target) {
  if (OperatorStacksActive()) return Availability::Ok("sampled by 'CPU stacks', with operators");
  const Availability found = Check(host);
  if (!found.usable()) return found;
  with_kernel_ = found.state == Availability::State::kOk;
  host_ = &host;
  target_ = &target;
  folder_ = std::make_unique<StackFolder>(host, "cpu");
  if (with_kernel_) folder_->symboliser().ExpectKernel();
  Follow();
  return Availability::Degraded(
      "stacks carry no operator: without BPF the thread's operator cannot be read at the instant "
      "of a sample" +
          std::string(with_kernel_ ? "" : "; time in the kernel is not sampled"),
      "CAP_BPF and CAP_PERFMON");
}

void ThreadStacks::Follow() {
  folder_->Look(target_->pids, MonotonicNs());
  refused_ = 0;
  for (const int64_t pid : target_->pids) {
    const auto share = folder_->TruncatedShare(pid);
    bool& unwound = unwound_[pid];
    if (!unwound && share && *share > kUnwindShare) {
      unwound = true;
      for (auto it = threads_.begin(); it != threads_.end();) {
        const auto next = std::next(it);
        if (it->second.pid == pid) Unfollow(it);
        it = next;
      }
    }
    for (const std::string& name : host_->List(fmt::format("/proc/{}/task", pid))) {
      int64_t tid = 0;
      std::from_chars(name.data(), name.data() + name.size(), tid);
      if (tid <= 0 || threads_.contains(tid)) continue;
      Thread thread;
      thread.pid = pid;
      errno = 0;
      if (threads_.size() < options_.max_threads) {
        thread.ring = PerfRing::Open(Request(options_, with_kernel_, unwound), tid,
                                     unwound ? options_.unwind_pages : options_.ring_pages);
      }
      if (!thread.ring) {
        if (errno != ESRCH) ++refused_;
        continue;
      }
      std::string comm =
          host_->Read(fmt::format("/proc/{}/task/{}/comm", pid, tid), 64).value_or("");
      while (comm.ends_with('\n')) comm.pop_back();
      thread.group = bpf::ThreadGroupName(comm);
      for (char& c : thread.group) c = c == ';' ? '?' : c;
      threads_.emplace(tid, std::move(thread));
    }
  }
}

void ThreadStacks::Drain(Thread& thread) {
  const int64_t period_ns = 1'000'000'000 / options_.frequency;
  thread.ring->Drain([&](const PerfSample& sample) {
    RawStack stack;
    if (sample.registers && !sample.stack.empty()) {
      stack = folder_->Unwind(thread.pid, *sample.registers, {sample.stack_address, sample.stack},
                              sample.user);
    } else {
      stack.user = sample.user;
    }
    stack.kernel = sample.kernel;
    folder_->Add({thread.pid, std::nullopt, thread.group, ""}, stack, 1, period_ns);
  });
}

void ThreadStacks::Unfollow(std::map<int64_t, Thread>::iterator thread) {
  Drain(thread->second);
  lost_ += thread->second.ring->lost() + thread->second.ring->damaged();
  threads_.erase(thread);
}

void ThreadStacks::Read(Sink& sink) {
  if (!folder_) return;
  int64_t lost = 0;
  for (auto it = threads_.begin(); it != threads_.end();) {
    const auto next = std::next(it);
    if (it->second.ring->ended())
      Unfollow(it);
    else
      Drain(it->second);
    it = next;
  }
  Follow();
  for (const auto& [tid, thread] : threads_) {
    lost += thread.ring->lost() + thread.ring->damaged();
  }
  folder_->Emit(sink);
  sink.Lost("cpu stack samples", lost_ + lost, folder_->samples() + lost_ + lost);
  sink.Lost("threads without cpu stack samples", refused_, std::nullopt);
}

void ThreadStacks::Stop() {
  threads_.clear();
  folder_.reset();
}

HR_PROBE(
    "CPU stacks without BPF",
    {.summary = "call stacks of every thread at 99 Hz of its CPU time (perf_event)",
     .affects = "what the CPU time is spent on, by function",
     // The kernel loads and saves a thread's own event at each of its switches: not for level 1.
     .level = 2,
     .period_ns = 200'000'000,
     .check = [](const Host& host) { return ThreadStacks::Check(host); },
     .make = [] { return std::make_unique<ThreadStacks>(); }});

}  // namespace headrace::probes::stack
