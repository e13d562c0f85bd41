// Text files that a study keeps in its folder and reads back when the same command is given again.
// They are checked, because somebody may have edited them, or a full disk cut them short.
//
//   study.json          {"schema": "headrace.study/1", "inputs": {NAME: TEXT, ...}}
//   steps/X.worker ...  {"run_id": N}: a run in the study's database
//   steps/X.facts       an object of what was found about a table (analysis::TableFacts)
//   steps/ladder.X.Y    {"pairs": [[A, B], ...]}: runs of a rung and of the one it is counted from;
//                       of those within a memory budget also "memory_bytes", "unbounded_bytes"; or
//                       {"left_out": WHY}
#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "analysis/study/characterization.h"

namespace headrace::experiments {

using StudyInputs = std::map<std::string, std::string>;

std::string InputsJson(const StudyInputs& inputs);
// Nothing where `json` is not the file of a study but another program's. Inputs that are not text
// are left out, so that they differ from any that are asked for.
std::optional<StudyInputs> ParseInputs(const std::string& json);

std::string RunJson(int64_t run_id);
// Throws Error kBadData for anything else.
int64_t ParseRun(const std::string& json);

// The pairs of runs for a rung of the ladder.
struct RungPairs {
  std::vector<std::pair<int64_t, int64_t>> runs;  // run ids, A and B; empty: left out
  std::string left_out;                           // why
  // For a rung that is measured within a memory budget: that budget, and what the rung before it
  // takes without one. Bytes of the process.
  std::optional<double> memory_bytes, unbounded_bytes;
};
std::string PairsJson(const RungPairs& pairs);
// Throws Error kBadData for anything else, because returning no pairs would silently leave the rung
// out.
RungPairs ParsePairs(const std::string& json);

std::string FactsJson(const analysis::TableFacts& facts);
// Throws Error kBadData, naming `where`, if a figure is missing, below 0, or not a count where it
// should be.
analysis::TableFacts ParseFacts(const std::string& json, const std::string& where);

// What table.json of a generated table says about its model: the model's name ("": not given) and
// the share of its features that was generated.
struct GeneratedTable {
  std::string model;
  std::optional<double> feature_ratio;  // above 0, at most 1
};
GeneratedTable ParseGenerated(const std::string& json);

}  // namespace headrace::experiments
