// Trials in which a change was made and measured (AppliedTrial): their gates, and their sections of
// the page.
#pragma once
#include <string>
#include <vector>

#include "tests/validation/gates.h"

namespace headrace::validation {

// Adds gates A1 (limit named), A2 (gain within its interval) and A3 (nothing sure that was none) of
// each group.
void JudgeApplied(const std::vector<AppliedTrial>& trials, std::vector<Gate>* gates);

// One section for each group, with all of its trials; empty without trials.
std::string AppliedSections(const std::vector<AppliedTrial>& trials);

}  // namespace headrace::validation
