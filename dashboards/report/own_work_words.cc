#include "dashboards/report/own_work_words.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <utility>

#include "base/units.h"
#include "dashboards/report/page_words.h"
#include "dashboards/report/wording.h"

namespace headrace::dashboards {

std::string OwnFunction(const analysis::Outside& seen) {
  if (!seen.python || seen.python->function.empty()) return "";
  std::string function = seen.python->function;  // "load (train.py:9)"
  const size_t open = function.rfind(" (");
  if (open != std::string::npos) function = function.replace(open, 2, ", ");
  return " (" + function + (open == std::string::npos ? ")" : "");
}

std::string AdviceForOwnWork(const analysis::Outside& seen) {
  constexpr std::pair<std::string_view, const char*> kAdvice[] = {
      {"sampler",
       "More workers do not help. Make the sampler cheaper, or let it draw many batches at once"},
      {"unpickle",
       "More workers do not help. Send fewer and larger objects, as tensors: one tensor for a "
       "batch instead of many small ones"},
      {"pin_memory", "pin_memory=False, or fewer and larger tensors"},
      {"getitem", "num_workers 0 -> 1 or more, so that loading runs beside the step"},
      {"collate", "num_workers 0 -> 1 or more, or a cheaper collate_fn"}};
  const auto* const known =
      std::find_if(std::begin(kAdvice), std::end(kAdvice),
                   [&](const auto& advice) { return advice.first == seen.python->operator_name; });
  return (known != std::end(kAdvice) ? known->second
                                     : "Move this work into the processes that load") +
         OwnFunction(seen);
}

void AddOwnWork(const analysis::Outside& seen, const std::string& who, FirstPage* page) {
  const double ratio = seen.InLoader().value_or(0), own = seen.OwnWork().value_or(0);
  page->badge = StallGrade(ratio);
  page->severity = SeverityOf(ratio);
  page->verdict = fmt::format("{} spent {} of the time in loading: {} at work, the rest waiting.",
                              who, FormatPercent(ratio), FormatPercent(own));
}

}  // namespace headrace::dashboards
