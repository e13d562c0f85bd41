#include "reader/pipeline/operator.h"

#include <algorithm>

#include "base/check.h"
#include "probes/account/account.h"

namespace headrace::reader {

void OperatorPlan::AddAccount(const std::string& name, const char* kind, bool is_kept) {
  accounts.push_back(is_kept ? hr_operator(name.c_str(), kind, stage) : UINT32_MAX);
}

const OperatorEntry& EntryOf(const OperatorSpec& op) {
  const OperatorEntry* entry = OperatorRegistry::Global().Find(op.kind);
  HR_CHECK(entry != nullptr, "an operator of no kind");
  return *entry;
}

std::vector<std::pair<std::string, const OperatorEntry*>> OperatorsInOrder() {
  std::vector<std::pair<std::string, const OperatorEntry*>> operators;
  for (const auto& [kind, entry] : OperatorRegistry::Global().entries())
    operators.emplace_back(kind, &entry);
  std::sort(operators.begin(), operators.end(),
            [](const auto& a, const auto& b) { return a.second->order < b.second->order; });
  return operators;
}

std::unique_ptr<Operator> MakeOperator(const OperatorPlan& plan, const OperatorContext& context) {
  return EntryOf(plan.spec).make(plan, context);
}

}  // namespace headrace::reader
