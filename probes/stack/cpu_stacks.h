// CPU stacks by operator: at every tick of every CPU's software clock a BPF program takes the stack
// of the target's thread that runs there, together with the operator it is in.
#pragma once
#include <memory>

#include "probes/probe.h"
#include "probes/stack/stack_program.h"

namespace headrace::probes::stack {

class CpuStacks : public Probe {
 public:
  // `frequency`: samples per second of each CPU; 0: 49, or 199 if the target is deep.
  explicit CpuStacks(int frequency = 0,
                     StackProgramOptions options = StackProgramOptions::ForThisMachine())
      : frequency_(frequency), options_(std::move(options)) {}
  ~CpuStacks() override { Stop(); }

  static Availability Check(const Host& host);
  Availability Start(const Host& host, const Target& target) override;
  void Read(Sink& sink) override;
  void Stop() override;

 private:
  int frequency_;
  StackProgramOptions options_;
  const Target* target_ = nullptr;
  std::unique_ptr<StackFolder> folder_;
  std::unique_ptr<StackProgram> program_;
};

}  // namespace headrace::probes::stack
