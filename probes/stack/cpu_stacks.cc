#include "probes/stack/cpu_stacks.h"

#include "probes/stack/thread_stacks.h"

namespace headrace::probes::stack {
namespace {

StackProgramOptions WithPeriod(StackProgramOptions options, int frequency) {
  options.constants["period_ns"] = static_cast<uint64_t>(1'000'000'000 / frequency);
  return options;
}

}  // namespace

Availability CpuStacks::Check(const Host& host) {
  const Target nobody;
  StackProgram program("cpu_stack", WithPeriod({}, 49));
  const Availability loaded = program.Load(host, nobody);
  return loaded.usable() ? program.AttachClock("cpu_stack", 49) : loaded;
}

Availability CpuStacks::Start(const Host& host, const Target& target) {
  target_ = &target;
  if (frequency_ == 0) frequency_ = target.deep ? 199 : 49;
  folder_ = std::make_unique<StackFolder>(host, "cpu");
  folder_->symboliser().ExpectKernel();
  program_ = std::make_unique<StackProgram>("cpu_stack", WithPeriod(options_, frequency_));
  Availability found = program_->Load(host, target);
  if (found.usable()) {
    program_->SetTarget(target, *folder_);
    found = program_->AttachClock("cpu_stack", frequency_);
  }
  if (found.usable())
    OperatorStacksActive() = true;
  else
    Stop();
  return found;
}

void CpuStacks::Read(Sink& sink) {
  if (!program_) return;
  program_->SetTarget(*target_, *folder_);
  program_->Read(*folder_, {});
  folder_->Emit(sink);
  program_->EmitLosses(sink);
}

void CpuStacks::Stop() {
  if (program_) OperatorStacksActive() = false;
  program_.reset();
  folder_.reset();
}

HR_PROBE(
    "CPU stacks",
    {.summary =
         "call stacks by operator at 49 Hz of every CPU, 199 Hz with --deep (perf_event and eBPF)",
     .affects = "what the CPU time of an operator is spent on, by function",
     .level = 3,
     .period_ns = 1'000'000'000,
     .check = [](const Host& host) { return CpuStacks::Check(host); },
     .make = [] { return std::make_unique<CpuStacks>(); }});

}  // namespace headrace::probes::stack
