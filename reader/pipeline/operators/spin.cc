// Burns CPU time, measured by the thread's CPU clock, so that contention does not shrink the work.
#include <any>

#include "reader/pipeline/operators/synthetic.h"

namespace headrace::reader {
namespace {

class SpinOperator final : public SyntheticOperator {
 public:
  SpinOperator(const OperatorPlan& plan, const OperatorContext& context)
      : SyntheticOperator(std::any_cast<const Cost&>(plan.spec.keys), plan, context) {}

 private:
  void Work(double amount, Element*) override { Spin(amount, *stop()); }
};

HR_OPERATOR("spin", SpinOperator,
            {.order = 1000,
             .keys = {"cv", "distribution"},
             .needs = "a cost: write { spin = \"...\" }",
             .parse = [](const SpecValue& table, const std::string& kind) -> std::any {
               return ParseTime(table, kind);
             }});

}  // namespace
}  // namespace headrace::reader
