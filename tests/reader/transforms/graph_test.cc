// TransformGraph: what is computed, copied, skipped and released, on small lists by hand; and on
// random lists that the plan, which follows the graph, makes what the list says step by step.
#include "reader/transforms/graph.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <bit>
#include <cstdlib>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "base/error.h"
#include "reader/batch/tensorize.h"
#include "reader/transforms/plan.h"
#include "tests/seed.h"

namespace headrace::reader {
namespace {

GraphInput Step(std::string op, std::vector<std::string> inputs, std::string output,
                uint64_t seed = 0) {
  return {std::move(op), {}, seed, std::move(inputs), std::move(output), false};
}

std::string Text(const TransformGraph& graph) {
  std::string text;
  for (const GraphStep& step : graph.steps) {
    if (!text.empty()) text += " | ";
    for (const auto& [name, kept] : step.keep) text += "keep " + name + ", ";
    switch (step.action) {
      case GraphAction::kCompute:
        text += "compute";
        break;
      case GraphAction::kCopy:
        text += "copy " + step.from;
        break;
      case GraphAction::kMove:
        text += "move " + step.from;
        break;
      case GraphAction::kSkip:
        text += "skip";
        break;
    }
    for (const std::string& name : step.release) text += ", release " + name;
  }
  return text;
}

TEST(TransformGraph, SharesRepeatedStepsAndDropsDeadOnes) {
  using Names = std::vector<std::string>;
  const std::vector<GraphInput> chains = {Step("f", {"x"}, "a"), Step("g", {"a"}, "b"),
                                          Step("f", {"x"}, "c"), Step("g", {"c"}, "d")};
  const struct {
    const char* name;
    std::vector<GraphInput> list;
    std::optional<Names> outputs;
    const char* expected;
  } cases[] = {
      {"equal steps", chains, std::nullopt, "compute | compute | copy a | copy b"},
      {"what only a repeated step reads is dead", chains, Names{"b", "d"},
       "compute, release x | compute, release a | skip | copy b"},
      {"the repeated step computes when its twin is dead", chains, Names{"c"},
       "skip | skip | compute, release x | skip"},
      {"a value moves on when its name is dead",
       {Step("f", {"x"}, "a"), Step("g", {"a"}, "a"), Step("f", {"x"}, "b")},
       Names{"a", "b"},
       "compute, release x | keep a, compute | move kept value 1"},
      {"a changed input makes another value",
       {Step("f", {"x"}, "a"), Step("h", {"x"}, "x"), Step("f", {"x"}, "b")},
       std::nullopt,
       "compute | compute | compute"},
      {"a replaced value that is wanted again is kept",
       {Step("f", {"x"}, "a"), Step("g", {"a"}, "a"), Step("f", {"x"}, "b"), Step("f", {"x"}, "c")},
       std::nullopt,
       "compute | keep a, compute | move kept value 1 | copy b"},
      {"inputs have an order",
       {Step("f", {"x", "y"}, "a"), Step("f", {"y", "x"}, "b")},
       std::nullopt,
       "compute | compute"},
      {"draws are equal only with equal seeds",
       {Step("r", {"x"}, "a", 1), Step("r", {"x"}, "b", 2), Step("r", {"x"}, "c", 1)},
       std::nullopt,
       "compute | compute | copy a"},
      {"a chain that leads nowhere",
       {Step("f", {"x"}, "a"), Step("g", {"a", "y"}, "b"), Step("f", {"y"}, "c")},
       Names{"c"},
       "skip | skip | compute, release y"},
      {"replacing in place",
       {Step("f", {"x"}, "x"), Step("g", {"x"}, "x")},
       Names{"x"},
       "compute | compute"},
  };
  for (const auto& c : cases) EXPECT_EQ(Text(BuildGraph(c.list, c.outputs)), c.expected) << c.name;
}

TEST(TransformGraph, NamesTheColumnsWorthKeepingAtTheStart) {
  const TransformGraph graph =
      BuildGraph({Step("f", {"x"}, "a"), Step("g", {"y"}, "b")}, {{"a", "z"}});
  EXPECT_EQ(graph.wanted_at_start, (std::set<std::string>{"x", "z"}));
  EXPECT_FALSE(BuildGraph({Step("f", {"x"}, "a")}, std::nullopt).wanted_at_start);
}

class GraphRandom {
 public:
  explicit GraphRandom(uint64_t seed) : engine_(seed) {}
  uint64_t Below(uint64_t n) { return engine_() % n; }

  PresenceBits Presence(uint64_t rows) {
    PresenceBits present;
    present.words.resize((rows + 63) / 64);
    for (uint64_t row = 0; row < rows; ++row) {
      const uint64_t bit = Below(4) != 0;
      present.words[row / 64] |= bit << (row % 64);
      present.count += bit;
    }
    return present;
  }

  FlatMapBatch Batch(uint64_t rows) {
    FlatMapBatch batch;
    batch.rows = rows;
    batch.first_row = Below(1000);
    for (const char* name : {"d0", "d1"}) {
      DenseColumn column;
      column.name = name;
      column.present = Presence(rows);
      for (uint64_t row = 0; row < rows; ++row)
        column.values.push_back(column.present.Get(row) ? static_cast<float>(Below(64)) / 16 - 1.5f
                                                        : 0);
      batch.dense.push_back(std::move(column));
    }
    for (const char* name : {"s0", "s1", "w0"}) {
      SparseColumn column;
      column.name = name;
      column.weighted = *name == 'w';
      column.present = Presence(rows);
      column.offsets.push_back(0);
      for (uint64_t row = 0; row < rows; ++row) {
        for (uint64_t i = column.present.Get(row) ? Below(6) : 0; i > 0; --i) {
          column.values.push_back(static_cast<int64_t>(Below(10)));
          if (column.weighted) column.weights.push_back(static_cast<float>(Below(5)));
        }
        column.offsets.push_back(static_cast<uint32_t>(column.values.size()));
      }
      batch.sparse.push_back(std::move(column));
    }
    ScalarColumn time;
    time.name = "t0";
    for (uint64_t row = 0; row < rows; ++row)
      time.integers.push_back(static_cast<int64_t>(Below(1 << 20)));
    batch.scalars.push_back(std::move(time));
    return batch;
  }

  // A step that fits `columns`, or one of an operator that none fits, with few parameters to choose
  // from: repetitions come by themselves.
  TransformSpec Spec(const std::vector<AvailableColumn>& columns, size_t number) {
    static const std::pair<const char*, ParamMap> kCatalogue[] = {
        {"clamp", {{"low", 0}, {"high", 1}}},
        {"clamp", {{"low", -1}, {"high", 1}}},
        {"scale", {{"mode", "min_max"}, {"low", 0}, {"high", 2}}},
        {"bucketize", {{"borders", std::vector<double>{-0.5, 0, 0.5}}}},
        {"sigrid_hash", {{"max", 100}}},
        {"first_x", {{"count", 3}}},
        {"enumerate", {}},
        {"random_crop", {{"count", 2}}},
        {"ngram", {{"n", 2}}},
        {"cartesian", {}},
        {"id_list_transform", {{"mode", "union"}}},
        {"id_list_transform", {{"mode", "intersection"}}},
        {"compute_score", {{"mode", "overlap"}}},
        {"sort_by_score", {}},
        {"get_local_hour", {}},
        {"sampling", {{"rate", 0.9}}},
    };
    const auto& [op, params] = kCatalogue[Below(std::size(kCatalogue))];
    const TransformEntry& entry = *TransformRegistry::Global().Find(op);
    TransformSpec spec;
    spec.op = op;
    spec.params = params;
    if (entry.output == OutputKind::kRows) return spec;
    for (const InputKind kind : entry.inputs) {
      std::vector<std::string> fitting;
      for (const AvailableColumn& column : columns)
        if (Accepts(kind, column.kind)) fitting.push_back(column.name);
      spec.inputs.push_back(fitting.empty() ? "none" : fitting[Below(fitting.size())]);
    }
    spec.output = Below(3) == 0 ? spec.inputs[0] : fmt::format("n{}", number);
    return spec;
  }

 private:
  std::mt19937_64 engine_;
};

std::string Bytes(const auto& values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(values[0])};
}

void ExpectEqual(const FlatMapBatch& a, const FlatMapBatch& b) {
  ASSERT_EQ(a.rows, b.rows);
  ASSERT_EQ(a.row_ids, b.row_ids);
  ASSERT_EQ(a.dense.size(), b.dense.size());
  ASSERT_EQ(a.sparse.size(), b.sparse.size());
  ASSERT_EQ(a.scalars.size(), b.scalars.size());
  for (size_t i = 0; i < a.dense.size(); ++i) {
    ASSERT_EQ(a.dense[i].name, b.dense[i].name);
    ASSERT_EQ(a.dense[i].present.words, b.dense[i].present.words);
    ASSERT_EQ(Bytes(a.dense[i].values), Bytes(b.dense[i].values)) << a.dense[i].name;
  }
  for (size_t i = 0; i < a.sparse.size(); ++i) {
    ASSERT_EQ(a.sparse[i].name, b.sparse[i].name);
    ASSERT_EQ(a.sparse[i].weighted, b.sparse[i].weighted);
    ASSERT_EQ(a.sparse[i].present.words, b.sparse[i].present.words);
    ASSERT_EQ(a.sparse[i].offsets, b.sparse[i].offsets) << a.sparse[i].name;
    ASSERT_EQ(a.sparse[i].values, b.sparse[i].values) << a.sparse[i].name;
    ASSERT_EQ(Bytes(a.sparse[i].weights), Bytes(b.sparse[i].weights)) << a.sparse[i].name;
  }
}

// In the order of each kind.
std::map<ColumnKind, std::vector<std::string>> ByKind(const std::vector<AvailableColumn>& columns) {
  std::map<ColumnKind, std::vector<std::string>> names;
  for (const AvailableColumn& column : columns) names[column.kind].push_back(column.name);
  return names;
}

// What the list says: every step by its reference, then the outputs.
FlatMapBatch FollowList(const std::vector<TransformSpec>& specs, FlatMapBatch batch,
                        const std::optional<std::vector<std::string>>& outputs) {
  const TransformPlan plan(specs, 3);
  for (size_t i = 0; i < plan.size(); ++i) plan.ApplyReference(i, batch);
  const auto keep_outputs = [&](auto* columns) {
    std::erase_if(*columns, [&](const auto& column) {
      return outputs && std::find(outputs->begin(), outputs->end(), column.name) == outputs->end();
    });
  };
  keep_outputs(&batch.dense);
  keep_outputs(&batch.sparse);
  return batch;
}

struct RandomList {
  std::vector<TransformSpec> specs;
  size_t planted = 0;                 // steps that repeat another
  std::vector<std::string> features;  // behind the last step
};

RandomList MakeList(GraphRandom* random, const FlatMapBatch& batch) {
  RandomList list;
  std::vector<AvailableColumn> columns = ColumnsOf(batch);
  const size_t length = 1 + random->Below(14);
  for (size_t tries = 0; list.specs.size() < length && tries < 200; ++tries) {
    TransformSpec spec = random->Spec(columns, tries);
    const bool repeats = !list.specs.empty() && random->Below(4) == 0;
    if (repeats) {
      spec = list.specs[random->Below(list.specs.size())];
      const TransformEntry& entry = *TransformRegistry::Global().Find(spec.op);
      // Its inputs may have changed since: then it is one step more, not a repetition.
      if (entry.output != OutputKind::kRows) spec.output = fmt::format("n{}", tries);
    }
    list.specs.push_back(spec);
    try {
      columns = TransformPlan(list.specs, 3).ValidateAgainst(ColumnsOf(batch));
    } catch (const Error&) {
      list.specs.pop_back();
    }
  }
  // One certain repetition: the last step that makes a new column, drawn or not.
  if (!list.specs.empty() && random->Below(2) == 0) {
    TransformSpec last = list.specs.back();
    const TransformEntry& entry = *TransformRegistry::Global().Find(last.op);
    if (!entry.random && last.output != last.inputs[0] &&
        (last.inputs.size() < 2 || last.output != last.inputs[1])) {
      last.output = "planted";
      list.specs.push_back(last);
      list.planted = 1;
      columns = TransformPlan(list.specs, 3).ValidateAgainst(ColumnsOf(batch));
    }
  }
  for (const AvailableColumn& column : columns)
    if (column.kind != ColumnKind::kInteger) list.features.push_back(column.name);
  return list;
}

TEST(TransformGraph, MakesWhatTheListSaysOn500RandomLists) {
  const uint64_t seed = TestSeed(20240612);
  GraphRandom random(seed);
  size_t actions[4] = {};
  for (int round = 0; round < 500; ++round) {
    SCOPED_TRACE(round);
    const FlatMapBatch batch = random.Batch(random.Below(80));
    const RandomList list = MakeList(&random, batch);
    std::optional<std::vector<std::string>> outputs;
    if (random.Below(3) != 0) {
      outputs.emplace();
      for (const std::string& name : list.features)
        if (random.Below(3) == 0) outputs->push_back(name);
    }
    const TransformPlan plan(list.specs, 3, outputs);
    const std::vector<AvailableColumn> announced = plan.ValidateAgainst(ColumnsOf(batch));
    const FlatMapBatch expected = FollowList(list.specs, batch.Clone(), outputs);
    for (const InstructionSet set : {InstructionSet::kScalar, BestInstructionSet()}) {
      FlatMapBatch result = batch.Clone();
      for (size_t i = 0; i < plan.size(); ++i) plan.Apply(i, result, set);
      ASSERT_NO_THROW(Validate(result));
      ASSERT_NO_FATAL_FAILURE(ExpectEqual(result, expected));
      ASSERT_EQ(ByKind(ColumnsOf(result)), ByKind(announced));
    }
    size_t computed = 0;
    for (size_t i = 0; i < plan.size(); ++i) {
      ++actions[static_cast<size_t>(plan.action(i))];
      computed += plan.action(i) == GraphAction::kCompute;
    }
    ASSERT_LE(computed + list.planted, plan.size());
  }
  for (const size_t count : actions) EXPECT_GT(count, 5u);  // each action was tried
}

TEST(TransformGraph, RefusesAnOutputThatDoesNotExist) {
  TransformSpec spec;
  spec.op = "clamp";
  spec.params = {{"low", 0}, {"high", 1}};
  spec.inputs = {"dense:3"};
  const TransformPlan plan({spec}, 1, {{"dense:4"}});
  try {
    plan.ValidateAgainst({{"dense:3", ColumnKind::kDense}, {"label", ColumnKind::kFloat}});
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::kUsage);
    EXPECT_THAT(error.what(), testing::HasSubstr("no feature 'dense:4' behind the transforms"));
    EXPECT_THAT(error.what(), testing::HasSubstr("did you mean 'dense:3'?"));
  }
}

TEST(TransformPlan, NamesItsFirstRandomStep) {
  TransformSpec clamp, crop;
  clamp.op = "clamp";
  clamp.params = {{"low", 0}, {"high", 1}};
  clamp.inputs = {"dense:3"};
  crop.op = "random_crop";
  crop.params = {{"count", 1}};
  crop.inputs = {"sparse:17"};
  EXPECT_EQ(TransformPlan({clamp}, 1).FirstRandom(), nullptr);
  const TransformPlan plan({clamp, crop}, 1);
  ASSERT_NE(plan.FirstRandom(), nullptr);
  EXPECT_EQ(plan.FirstRandom()->op, "random_crop");
}

}  // namespace
}  // namespace headrace::reader
