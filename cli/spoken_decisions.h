// SpokenDecisions: what `tune` says on standard error while it tunes.
#pragma once
#include "analysis/tuning/tuned_target.h"

namespace headrace::cli {

// Tells of decisions as they are made and judged. Why it stopped is the result's to say.
class SpokenDecisions : public analysis::DecisionSink {
 public:
  // `tells_stop`: nobody prints the result, or not soon.
  explicit SpokenDecisions(bool tells_stop) : tells_stop_(tells_stop) {}

  void Take(const analysis::Decision& decision) override;

 private:
  const bool tells_stop_;
};

}  // namespace headrace::cli
