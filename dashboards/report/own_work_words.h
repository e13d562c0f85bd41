// Words for a trainer's thread that makes batches itself, as sampled Python stacks show it.
#pragma once
#include <string>

#include "analysis/outside/outside.h"
#include "dashboards/report/page.h"

namespace headrace::dashboards {

// " (ByWeight.__iter__, weighted_train.py:31)" of most of that work; empty: nothing was seen.
std::string OwnFunction(const analysis::Outside& seen);

// What to do about `seen.python`'s operator.
std::string AdviceForOwnWork(const analysis::Outside& seen);

// The badge and the first sentence; `who`: "The trainer".
void AddOwnWork(const analysis::Outside& seen, const std::string& who, FirstPage* page);

}  // namespace headrace::dashboards
