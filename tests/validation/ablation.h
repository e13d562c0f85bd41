// Ablation: what each rule of analysis is worth (analysis/thresholds.def): the same trials, on
// seeds that nothing was fitted to, with the rule as it is and with the rule off.
#pragma once
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace headrace::validation {

struct Ablation {
  std::string rule;  // of thresholds.def; "": all rules as they are
  // Shares by what they are of: "median error", "covered". The same, in the same order, for every
  // rule.
  std::vector<std::pair<std::string, double>> figures;
};

// Tries `count` pipelines of each kind with that rule off. Throws Error kUsage for a rule that
// there is not, or that is a definition.
Ablation Ablate(const std::string& rule, uint64_t count);

// Lines of a file of trials, one a figure, and back; false where it is none.
std::string Lines(const Ablation& ablation);
bool Parse(const std::string& line, std::vector<Ablation>* ablations);

// The section of docs/accuracy.md; empty without ablations.
std::string RenderAblations(const std::vector<Ablation>& ablations);

}  // namespace headrace::validation
