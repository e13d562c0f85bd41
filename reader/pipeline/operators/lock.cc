// Holds a named lock shared by all threads.
#include <any>
#include <mutex>
#include <string>

#include "probes/account/account.h"
#include "reader/pipeline/operators/synthetic.h"

namespace headrace::reader {
namespace {

struct LockKeys {
  Cost cost;
  std::string lock;     // shared by all operators that name it
  bool sleeps = false;  // instead of spinning while it holds the lock
};

std::any ParseLock(const SpecValue& table, const std::string& kind) {
  LockKeys keys;
  keys.cost = ParseTime(table, kind);
  const std::string name = table.Text("name", "");
  keys.lock = table.Text("lock_name", name.empty() ? "lock" : name);
  const std::string hold = table.Text("hold", "spin");
  if (hold != "spin" && hold != "sleep") table["hold"].Fail("hold is \"spin\" or \"sleep\"");
  keys.sleeps = hold == "sleep";
  return keys;
}

class LockOperator final : public SyntheticOperator {
 public:
  LockOperator(const OperatorPlan& plan, const OperatorContext& context)
      : LockOperator(std::any_cast<const LockKeys&>(plan.spec.keys), plan, context) {}

 private:
  LockOperator(const LockKeys& keys, const OperatorPlan& plan, const OperatorContext& context)
      : SyntheticOperator(keys.cost, plan, context),
        lock_(context.resources->Lock(keys.lock)),
        sleeps_(keys.sleeps) {}

  void Work(double amount, Element*) override {
    hr_resource_wait_begin(lock_->account);
    std::lock_guard guard(lock_->mutex);
    hr_resource_held(lock_->account);
    if (sleeps_) {
      stop()->SleepFor(static_cast<int64_t>(amount));
    } else {
      Spin(amount, *stop());
    }
    hr_resource_released(lock_->account, 0);
  }
  SharedLock* lock_;
  bool sleeps_;
};

HR_OPERATOR("lock", LockOperator,
            {.order = 1030,
             .keys = {"cv", "distribution", "lock_name", "hold"},
             .needs = "a cost: write { lock = \"...\" }",
             .parse = ParseLock});

}  // namespace
}  // namespace headrace::reader
