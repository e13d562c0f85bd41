// Who uses the cores beside the operators.
#pragma once
#include <optional>
#include <string>

#include "analysis/model/pipeline_model.h"

namespace headrace::analysis {

struct UnseenUsers {
  std::string who;  // "3 processes python without instrumentation"
  bool short_lived = false;
};

// The program's processes in which nothing is accounted, where most of the cores go to them; none
// where they go to others, or to nobody in particular.
std::optional<UnseenUsers> FindUnseenUsers(const PipelineModel& model);

}  // namespace headrace::analysis
