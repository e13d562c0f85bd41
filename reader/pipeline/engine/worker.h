// Worker: the operators of a stage on one of its threads, fused: operator k hands its output to
// operator k + 1 inside its own call, and the nested account scope stops its clock.
#pragma once
#include <cstddef>
#include <functional>
#include <memory>
#include <vector>

#include "reader/pipeline/engine/progress.h"
#include "reader/pipeline/operator.h"

namespace headrace::reader {

class Worker {
 public:
  // Makes new instances of the operators; `plans` must outlive them. `put` gets what the last one
  // makes. `entered` is called for each element once its time counts as the first operator's.
  Worker(const std::vector<OperatorPlan>& plans, const OperatorContext& context, Progress* progress,
         Emit put, std::function<void()> entered);
  Worker(const Worker&) = delete;

  // Under a memory budget, the memory that the work took is charged to the element.
  void Process(Element&& element);
  // Call when the input has ended: the operators emit what they still hold, in their order, until
  // stopped.
  void Finish();

 private:
  void ProcessAt(size_t k, Element&& element);

  const std::vector<OperatorPlan>& plans_;
  const OperatorContext& context_;
  std::vector<std::unique_ptr<Operator>> operators_;
  std::vector<Emit> emits_;  // into operator k; the last: out of the stage
  std::function<void()> entered_;
};

}  // namespace headrace::reader
