// The second view of a program that is not ours: what its threads show by themselves, beside the
// limit that its instrumentation shows. Neither uses a figure of the other, so that where they
// disagree one of them is wrong.
#pragma once
#include <string>

#include "analysis/outside/outside.h"
#include "analysis/run/run_view.h"

namespace headrace::analysis {

struct Bottleneck;
class PipelineModel;

struct SecondView {
  double at_most = 1;  // how probable the limit can be
  // Where the threads show another limit: "seen from outside, the limit would be a lock".
  std::string disagreement;
};

// What the threads say of the limit, or of the two, of a run that kept accounts. Never throws.
SecondView AskThreads(const RunView& run, const PipelineModel& model, const Bottleneck& bottleneck);

}  // namespace headrace::analysis
