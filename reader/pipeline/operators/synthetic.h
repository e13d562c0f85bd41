// Synthetic operators: known costs, for pipelines whose bottleneck is known before anything is
// measured. They stand anywhere and look at no payload.
#pragma once
#include <any>
#include <cstdint>
#include <functional>
#include <string>
#include <utility>

#include "reader/pipeline/operator.h"
#include "reader/pipeline/spec/value.h"

namespace headrace::reader {

// The cost of an operator that takes time, and of one that takes bytes.
Cost ParseTime(const SpecValue& table, const std::string& kind);
Cost ParseSize(const SpecValue& table, const std::string& kind);

// Burns `cpu_ns` of this thread's CPU time, or until stopped. Polls the CPU clock about every 20 us
// of work.
void Spin(double cpu_ns, const StopSignal& stop);

class SyntheticOperator : public Operator {
 public:
  SyntheticOperator(const Cost& cost, const OperatorPlan& plan, const OperatorContext& context)
      : cost_(cost), stop_(context.stop), stream_(std::hash<std::string>{}(plan.spec.name)) {}

  void Process(Element&& element, const Emit& emit) final {
    Work(cost_.Draw(element.seed, stream_), &element);
    emit(std::move(element));
  }

 protected:
  // `amount` is the drawn cost: nanoseconds, or bytes.
  virtual void Work(double amount, Element* element) = 0;
  StopSignal* stop() const { return stop_; }

 private:
  Cost cost_;
  StopSignal* stop_;
  uint64_t stream_;
};

}  // namespace headrace::reader
