// The rules of TorchArrow's recommendation functions (commit 15a7f71), under its names for them,
// each on a small case. There is no TorchArrow to install and run beside: the cases follow its
// source.
#include <gtest/gtest.h>

#include <algorithm>

#include "tests/reader/transforms/example_text.h"

namespace headrace::reader {
namespace {

TEST(TorchArrow, RulesHoldUnderOurNames) {
  const struct {
    const char *name, *op, *params, *input, *expected;
  } cases[] = {
      {"bucketize: a value equal to a border gets the lower bucket", "bucketize", "borders=2,5,10",
       "2 3 10 11", "0 | 1 | 2 | 3"},
      {"sigrid_hash: max 1 gives 0", "sigrid_hash", "max=1 salt=5", "11 | 12 13", "0 | 0 0"},
      {"sigrid_hash: without salt", "sigrid_hash", "max=100 salt=0", "1 2 3 4 5 | 6 7 8 9 10",
       "60 54 54 9 4 | 91 11 67 79 2"},
      {"firstx: the shorter of n and the length", "first_x", "count=2", "7 8 9 | 5 | ()",
       "7 8 | 5 | ()"},
      {"lookup_indices: as a table", "map_id", "from=5,7 to=0,1 default=-1", "7 5 6", "1 0 -1"},
      {"scale_to_0_1", "scale", "mode=min_max low=1 high=5", "1 2 3 4 5", "0 0.25 0.5 0.75 1"},
      {"scale_to_z_score", "scale", "mode=z_score mean=3 deviation=2", "1 3 5", "-1 0 1"},
      {"add_tokens: at the beginning", "add_tokens", "tokens=101", "7 8 | ()", "101 7 8 | 101"},
      {"add_tokens: at the end", "add_tokens", "tokens=102 at=end", "7 8 | ()", "7 8 102 | 102"},
      {"has_id_overlap", "compute_score", "mode=has_overlap", "1 2 | 1 ; 2 3 | 4", "1 0"},
      {"id_overlap_count: as multisets", "compute_score", "mode=overlap", "1 1 2 ; 1 1 3", "2"},
      {"get_max_count", "compute_score", "mode=max_count", "1 1 2 ; 1 2 2 2", "5"},
      {"get_jaccard_similarity: as multisets", "compute_score", "mode=jaccard", "1 1 2 3 ; 1 2 3",
       "0.75"},
      {"get_cosine_similarity", "compute_score", "mode=cosine", "1:3 2:4 ; 1:3 2:4", "1"},
      {"get_score_sum", "compute_score", "mode=score_sum", "1 2 ; 1:0.5 2:0.75 3:9", "1.25"},
      {"get_score_min", "compute_score", "mode=score_min", "1 2 ; 1:0.5 2:0.75 3:9", "0.5"},
      {"get_score_max", "compute_score", "mode=score_max", "1 2 ; 1:0.5 2:0.75 3:9", "0.75"},
  };
  for (const auto& c : cases) {
    const TransformEntry& entry = *TransformRegistry::Global().Find(c.op);
    const std::string input = c.input;
    const size_t inputs = 1 + static_cast<size_t>(std::count(input.begin(), input.end(), ';'));
    const TransformPlan plan({ExampleSpec(c.op, entry, inputs, ParseParams(entry, c.params))}, 1);
    for (const InstructionSet set : {InstructionSet::kScalar, BestInstructionSet()}) {
      FlatMapBatch batch = ParseExample(entry, input);
      plan.Apply(0, batch, set);
      EXPECT_EQ(OutputText(entry, batch), c.expected) << c.name << ", " << InstructionSetName(set);
    }
  }
}

}  // namespace
}  // namespace headrace::reader
