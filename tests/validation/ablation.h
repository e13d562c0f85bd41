// Ablation: what each rule of analysis is worth (analysis/thresholds.def): the same trials, on
// seeds that nothing was fitted to, with the rule as it is and with the rule off.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace headrace::validation {

struct AblationFigure {
  std::string what;  // "median error", "covered"
  double value = 0;  // a share
  size_t cases = 0;  // of so many pipelines or changes, yes or no; 0: an error or a width
};

struct Ablation {
  std::string rule;                     // of thresholds.def; "": all rules as they are
  std::vector<AblationFigure> figures;  // the same, in the same order, for every rule
};

// Tries `count` pipelines of each kind with that rule off, their seeds behind `base`. Throws Error
// kUsage for a rule that there is not, or that is a definition.
Ablation Ablate(const std::string& rule, uint64_t count, uint64_t base = 0);

// Lines of a file of trials, one a figure, and back; false where it is none.
std::string Lines(const Ablation& ablation);
bool Parse(const std::string& line, std::vector<Ablation>* ablations);

// The section of docs/accuracy.md; empty without ablations.
std::string RenderAblations(const std::vector<Ablation>& ablations);

}  // namespace headrace::validation
