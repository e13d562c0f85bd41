#include "analysis/program/allocation.h"
#include "base/error.h"
#include "tests/validation/strategy.h"

namespace headrace::validation {

Strategy Ours() {
  return {"headrace plan",
          [](const analysis::RunView& run, const Allowed& allowed, const Measure&) {
            Choice choice = AsRecorded(run);
            try {
              const analysis::PipelineModel model(run);
              analysis::Budget budget;
              budget.max_threads = allowed.most_threads;
              const analysis::Allocation plan = analysis::Allocate(model, budget);
              choice.threads = plan.settings.parallelism;
              choice.queues = plan.settings.queue_capacity;
              if (plan.settings.order_window != model.current().order_window) {
                choice.window = plan.settings.order_window;
              }
            } catch (const Error& error) {  // no statement: leaves it as it is
              if (error.code() != ExitCode::kInconclusive) throw;
            }
            return choice;
          }};
}

}  // namespace headrace::validation
