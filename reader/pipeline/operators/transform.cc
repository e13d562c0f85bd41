// Runs the whole transform list; each kind of transform has its own account, nested in this
// operator's.
#include <memory>
#include <utility>

#include "probes/account/scope.h"
#include "reader/pipeline/operator.h"

namespace headrace::reader {
namespace {

// The accounts of `transform` beside its own.
enum TransformAccount : size_t {
  kDictionary,  // what was done on dictionaries
  kTransforms   // and on: of each entry of the TransformPlan
};

class TransformOperator final : public Operator {
 public:
  TransformOperator(const OperatorPlan& plan, const OperatorContext& context)
      : plan_(plan),
        transforms_(context.transforms),
        has_dictionaries_(context.dictionaries != nullptr) {}
  void Process(Element&& element, const Emit& emit) override {
    auto& batch = element.payload.As<FlatMapBatch>();
    DictionaryFigures figures;
    for (size_t i = 0; transforms_ && i < transforms_->size(); ++i) {
      account::OperatorScope scope(plan_.Account(kTransforms + i));
      transforms_->Apply(i, batch, BestInstructionSet(), &figures);
      scope.Done(batch.rows, 0, 0);
    }
    if (has_dictionaries_) {
      account::OperatorScope scope(plan_.Account(kDictionary));
      transforms_->Finish(batch);
      // Steps; bytes in: of the ids they were for; out: of the entries that they transformed.
      hr_done(plan_.Account(kDictionary), figures.steps, figures.steps > 0 ? batch.rows : 0,
              figures.ids * sizeof(int64_t), figures.entries * sizeof(int64_t));
    }
    element.rows = batch.rows;
    element.bytes = batch.MemoryBytes();
    emit(std::move(element));
  }

 private:
  const OperatorPlan& plan_;
  std::shared_ptr<const TransformPlan> transforms_;
  const bool has_dictionaries_;
};

HR_OPERATOR("transform", TransformOperator,
            {.order = 70,
             .takes = ElementForm::kRows,
             .makes = ElementForm::kRows,
             .presence = "optional",
             .add_accounts =
                 [](OperatorContext* context, OperatorPlan* plan) {
                   plan->AddAccount(plan->spec.name + ".dictionary", "dictionary",
                                    context->dictionaries != nullptr);
                 },
             // Transforms of one kind share an account: a report of hundreds of features reads by
             // what they do.
             .add_inner_accounts =
                 [](OperatorContext* context, OperatorPlan* plan) {
                   for (size_t i = 0; context->transforms && i < context->transforms->size(); ++i)
                     plan->AddAccount(context->transforms->name(i), "transform");
                 }});

}  // namespace
}  // namespace headrace::reader
