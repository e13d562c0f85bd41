// Off-CPU stacks: where threads block, by operator and cause, with the time they were blocked.
// Folded text has the cause as its first frame behind the thread group:
// "worker;[storage];main;...". Periods that are still open count up to the moment of reading.
#pragma once
#include <memory>

#include "probes/probe.h"
#include "probes/stack/stack_program.h"

namespace headrace::probes::stack {

class OffCpuStacks : public Probe {
 public:
  explicit OffCpuStacks(StackProgramOptions options = StackProgramOptions::ForThisMachine())
      : options_(std::move(options)) {}

  static Availability Check(const Host& host);
  Availability Start(const Host& host, const Target& target) override;
  void Read(Sink& sink) override;
  void Stop() override;

 private:
  StackProgramOptions options_;
  const Target* target_ = nullptr;
  std::unique_ptr<StackFolder> folder_;
  std::unique_ptr<StackProgram> program_;
};

}  // namespace headrace::probes::stack
