// Reads and writes this many bytes of memory.
#include <any>

#include "base/buffer.h"
#include "reader/pipeline/operators/synthetic.h"

namespace headrace::reader {
namespace {

class TouchOperator final : public SyntheticOperator {
 public:
  TouchOperator(const OperatorPlan& plan, const OperatorContext& context)
      : SyntheticOperator(std::any_cast<const Cost&>(plan.spec.keys), plan, context) {}

 private:
  void Work(double amount, Element*) override {
    const auto bytes = static_cast<size_t>(amount);
    if (memory_.size() < bytes) memory_.Resize(bytes);
    for (size_t at = 0; at + 64 <= bytes; at += 64)
      memory_.data()[at] += 1;  // one read and one write per cache line
  }
  Buffer memory_;
};

HR_OPERATOR("touch", TouchOperator,
            {.order = 1020,
             .keys = {"cv", "distribution"},
             .needs = "a cost: write { touch = \"...\" }",
             .parse = [](const SpecValue& table, const std::string& kind) -> std::any {
               return ParseSize(table, kind);
             }});

}  // namespace
}  // namespace headrace::reader
