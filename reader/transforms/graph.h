// TransformGraph: what of a list of transforms has to be computed, and when its columns can go.
//
// The list reads and writes columns by name. Numbering the values instead shows three things:
//   a step with the operator, parameters and input values of an earlier one has its result: it is
//   copied, or moved when nobody else wants it
//   a step whose value reaches no output is not run
//   a column is released after the last step that reads it
// Equal values are found through names: a = f(x), b = f(x) are equal, and g(a), g(b) too; with
// x = h(x) between the two they are not. A random step equals another only with the same seeds.
//
// Every transform works row by row, so dropping rows changes no value of the rows that stay, and
// needs no care here.
#pragma once
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "reader/transforms/params.h"

namespace headrace::reader {

// What the graph needs to know of one [[transform]], checked before.
struct GraphInput {
  std::string op;
  ParamMap params;
  uint64_t seed = 0;  // what a random step draws from; 0 when it does not draw
  std::vector<std::string> inputs;
  std::string output;
  bool drops_rows = false;  // no inputs, no output; always run
};

enum class GraphAction : uint8_t {
  kCompute,
  kCopy,  // the value exists in column `from`
  kMove,  // the same, and `from` is not wanted any more
  kSkip,  // the value reaches no output
};

struct GraphStep {
  GraphAction action = GraphAction::kCompute;
  std::string from;
  // Before the step: columns that it overwrites and whose value a later step wants, each with the
  // name under which a copy waits.
  std::vector<std::pair<std::string, std::string>> keep;
  // After the step: columns that nothing reads any more.
  std::vector<std::string> release;
};

struct TransformGraph {
  std::vector<GraphStep> steps;  // one per input, in their order
  // With outputs: the names of columns worth keeping before the first step.
  std::optional<std::set<std::string>> wanted_at_start;
};

// Without `outputs` every column is one.
TransformGraph BuildGraph(const std::vector<GraphInput>& list,
                          const std::optional<std::vector<std::string>>& outputs);

}  // namespace headrace::reader
