#include "probes/stack/off_cpu_stacks.h"

#include <algorithm>

#include "base/clock.h"

namespace headrace::probes::stack {
namespace {

constexpr int64_t kOpenNs = 100'000'000;  // shorter periods end before they matter

// By number of enum hr_cause (probes/bpf/cause.bpf.h).
const std::vector<std::string> kCauses = {"[other]", "[storage]",   "[network]", "[lock]",
                                          "[sleep]", "[pipe]",      "[poll]",    "[child]",
                                          "[fault]", "[preempted]", "[start]",   "[stopped]"};

}  // namespace

Availability OffCpuStacks::Check(const Host& host) {
  const Target nobody;
  return StackProgram("off_cpu_stack", {}).Load(host, nobody);
}

Availability OffCpuStacks::Start(const Host& host, const Target& target) {
  target_ = &target;
  folder_ = std::make_unique<StackFolder>(host, "off_cpu");
  options_.with_kernel = target.deep;  // where in the kernel: costs as much again as the rest
  if (options_.with_kernel) folder_->symboliser().ExpectKernel();
  options_.ring_bytes = std::min(options_.ring_bytes, 1u << 20);  // one copy a stack, not a period
  options_.constants["loaded_ns"] = static_cast<uint64_t>(MonotonicNs());
  program_ = std::make_unique<StackProgram>("off_cpu_stack", options_);
  const Availability found = program_->Load(host, target);
  if (found.usable())
    program_->SetTarget(target, *folder_);
  else
    Stop();
  return found;
}

void OffCpuStacks::Read(Sink& sink) {
  if (!program_) return;
  program_->SetTarget(*target_, *folder_);
  program_->Read(*folder_, kCauses);
  program_->ReadOpen(*folder_, kCauses, kOpenNs);
  folder_->Emit(sink);
  program_->EmitLosses(sink);
}

void OffCpuStacks::Stop() {
  program_.reset();
  folder_.reset();
}

HR_PROBE("off-CPU stacks",
         {.summary = "call stacks of blocked threads by operator, cause and time (eBPF)",
          .affects = "where in the code threads wait",
          .level = 3,
          .starts_last = true,
          .period_ns = 1'000'000'000,
          .check = [](const Host& host) { return OffCpuStacks::Check(host); },
          .make = [] { return std::make_unique<OffCpuStacks>(); }});

}  // namespace headrace::probes::stack
