// Words for a trainer's thread that makes batches itself, as sampled Python stacks show it.
#pragma once
#include <string>

#include "analysis/outside/outside.h"
#include "dashboards/report/page.h"

namespace headrace::dashboards {

// " (ByWeight.__iter__, weighted_train.py:31)" of most of that work; empty: nothing was seen.
std::string OwnFunction(const analysis::Outside& seen);

// "its own thread, operator collate" of "the trainer"; where no loader of a library does that
// work, the function that does it.
std::string OwnWorkWord(const analysis::Outside& seen, const std::string& consumer);

// ", in its step 62 % of the time, most of it in train_step, train.py:31"; empty: not
// seen.
std::string StepFunction(const analysis::Outside& seen);

// What one thread does in turn: "loading 48 % (load_batch, train.py:12), its step 30 % (...), 22 %
// in shape (train.py:20), which may be either"; empty: not seen.
std::string InTurn(const analysis::Outside& seen);

// "By its sampled functions it loads 85 % of its time (load_batch, train.py:12), waits 2.0 % and is
// in its step 5.0 %."
std::string SampledWords(const analysis::PythonTime& time);

// What to do about `seen.python`'s operator.
std::string AdviceForOwnWork(const analysis::Outside& seen);

// What to do where the step of the one thread limits: what it gains to load elsewhere, if that is
// worth a word.
std::string AdviceForStep(const analysis::Outside& seen);

// The badge and the first sentence; `who`: "The trainer".
void AddOwnWork(const analysis::Outside& seen, const std::string& who, FirstPage* page);

}  // namespace headrace::dashboards
