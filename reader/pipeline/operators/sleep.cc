// Blocks, as on a remote call.
#include <any>

#include "reader/pipeline/operators/synthetic.h"

namespace headrace::reader {
namespace {

class SleepOperator final : public SyntheticOperator {
 public:
  SleepOperator(const OperatorPlan& plan, const OperatorContext& context)
      : SyntheticOperator(std::any_cast<const Cost&>(plan.spec.keys), plan, context) {}

 private:
  void Work(double amount, Element*) override { stop()->SleepFor(static_cast<int64_t>(amount)); }
};

HR_OPERATOR("sleep", SleepOperator,
            {.order = 1010,
             .keys = {"cv", "distribution"},
             .needs = "a cost: write { sleep = \"...\" }",
             .parse = [](const SpecValue& table, const std::string& kind) -> std::any {
               return ParseTime(table, kind);
             }});

}  // namespace
}  // namespace headrace::reader
