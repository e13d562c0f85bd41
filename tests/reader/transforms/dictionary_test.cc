// Transforms on dictionaries: what IdUse promises holds for every entry of the registry, and a
// batch whose ids are in dictionaries goes through any list of steps as one with plain ids does,
// bit for bit.
#include <gtest/gtest.h>

#include <bit>
#include <cstdlib>
#include <limits>
#include <map>
#include <memory>
#include <random>
#include <set>
#include <thread>

#include "reader/batch/dedup_rows.h"
#include "reader/batch/id_dictionary.h"
#include "reader/batch/tensorize.h"
#include "reader/transforms/lists.h"
#include "reader/transforms/plan.h"
#include "tests/reader/transforms/example_text.h"
#include "tests/seed.h"

namespace headrace::reader {
namespace {

std::shared_ptr<const IdDictionary> RandomDictionary(std::mt19937_64* random, uint64_t uses) {
  Array<int64_t> entries;
  for (uint64_t i = 1 + (*random)() % 40; i > 0; --i) {
    // Entries may repeat: the literal values behind a stored dictionary do.
    const uint64_t bits = (*random)();
    entries.push_back((*random)() % 3 == 0 ? static_cast<int64_t>(bits)
                                           : static_cast<int64_t>(bits % 20));
  }
  return std::make_shared<const IdDictionary>(std::move(entries), uses);
}

// A column on a dictionary of its own.
SparseColumn RandomColumn(std::mt19937_64* random, std::string name, uint64_t rows, bool weighted) {
  SparseColumn column;
  column.name = std::move(name);
  column.weighted = weighted;
  column.present.words.resize((rows + 63) / 64);
  column.offsets.push_back(0);
  const uint64_t uses[] = {IdDictionary::kAlways, 3 * rows, 20};
  column.dictionary = RandomDictionary(random, uses[(*random)() % 3]);
  for (uint64_t row = 0; row < rows; ++row) {
    if ((*random)() % 4 != 0) {
      column.present.words[row / 64] |= uint64_t{1} << (row % 64);
      ++column.present.count;
      for (uint64_t i = (*random)() % 6; i > 0; --i) {
        column.values.push_back(
            static_cast<int64_t>((*random)() % column.dictionary->entries().size()));
        if (weighted) column.weights.push_back(static_cast<float>((*random)() % 4));
      }
    }
    column.offsets.push_back(static_cast<uint32_t>(column.values.size()));
  }
  return column;
}

FlatMapBatch RandomBatch(std::mt19937_64* random, uint64_t rows) {
  FlatMapBatch batch;
  batch.rows = rows;
  batch.first_row = (*random)() % 1000;
  for (const char* name : {"a", "b", "c"})
    batch.sparse.push_back(RandomColumn(random, name, rows, false));
  for (const char* name : {"v", "w"})
    batch.sparse.push_back(RandomColumn(random, name, rows, true));
  batch.sparse.push_back(RandomColumn(random, "plain", rows, false));
  LookUpIds(&batch.sparse.back());
  return batch;
}

void ExpectSame(const FlatMapBatch& a, const FlatMapBatch& b) {
  ASSERT_EQ(a.rows, b.rows);
  ASSERT_EQ(a.row_ids, b.row_ids);
  ASSERT_EQ(a.dense.size(), b.dense.size());
  for (size_t i = 0; i < a.dense.size(); ++i) {
    ASSERT_EQ(a.dense[i].name, b.dense[i].name);
    ASSERT_EQ(a.dense[i].present.words, b.dense[i].present.words);
    for (uint64_t row = 0; row < a.rows; ++row)
      ASSERT_EQ(std::bit_cast<uint32_t>(a.dense[i].values[row]),
                std::bit_cast<uint32_t>(b.dense[i].values[row]));
  }
  ASSERT_EQ(a.sparse.size(), b.sparse.size());
  for (size_t i = 0; i < a.sparse.size(); ++i) {
    SCOPED_TRACE(a.sparse[i].name);
    ASSERT_EQ(a.sparse[i].name, b.sparse[i].name);
    ASSERT_EQ(a.sparse[i].dictionary, nullptr);
    ASSERT_EQ(a.sparse[i].weighted, b.sparse[i].weighted);
    ASSERT_EQ(a.sparse[i].present.words, b.sparse[i].present.words);
    ASSERT_EQ(a.sparse[i].offsets, b.sparse[i].offsets);
    ASSERT_EQ(a.sparse[i].values, b.sparse[i].values);
    ASSERT_EQ(a.sparse[i].weights, b.sparse[i].weights);
  }
}

TransformSpec Spec(std::string op, std::vector<std::string> inputs, std::string output,
                   ParamMap params = {}) {
  TransformSpec spec;
  spec.op = std::move(op);
  spec.inputs = std::move(inputs);
  spec.output = std::move(output);
  spec.params = std::move(params);
  return spec;
}

using Names = std::map<std::string, double, std::less<>>;

// What the flag says of every operator, so that a new one is thought about.
TEST(Dictionary, TheRegistrySaysHowOperatorsUseTheirValues) {
  std::map<IdUse, std::set<std::string>> uses;
  for (const auto& [name, entry] : TransformRegistry::Global().entries())
    uses[entry.use].insert(name);
  EXPECT_EQ(
      uses[IdUse::kEach],
      (std::set<std::string>{"box_cox", "bucketize", "clamp", "get_local_hour", "logit", "map_id",
                             "onehot", "positive_modulus", "scale", "sigrid_hash"}));
  EXPECT_EQ(uses[IdUse::kPlaces],
            (std::set<std::string>{"first_x", "random_crop", "sort_by_score"}));
}

// kEach: values gathered from the results for different ones are the results for gathered values.
// For a ListTransform the result for a value is its row's list.
TEST(Dictionary, EachValueHasItsResultForItself) {
  std::mt19937_64 random(TestSeed(20261122));
  for (const auto& [name, entry] : TransformRegistry::Global().entries()) {
    if (entry.use != IdUse::kEach) continue;
    EXPECT_FALSE(entry.random) << name;
    ASSERT_EQ(entry.inputs.size(), 1u) << name;
    ASSERT_EQ(entry.max_inputs, 1u) << name;
    for (const Example& example : entry.examples) {
      SCOPED_TRACE(name + " " + example.params);
      const TransformPlan plan({ExampleSpec(name, entry, 1, ParseParams(entry, example.params))},
                               1);
      // The values of the example's rows, and 200 rows that each have those of one of them.
      FlatMapBatch few = ParseExample(entry, example.input);
      std::vector<uint64_t> from(200);
      for (uint64_t& row : from) row = random() % few.rows;
      FlatMapBatch many;
      for (const uint64_t row : from) AppendRows(&many, few, row, 1);
      plan.Apply(0, few);
      plan.Apply(0, many);
      FlatMapBatch expected;
      for (const uint64_t row : from) AppendRows(&expected, few, row, 1);
      many.row_ids.clear();
      expected.row_ids.clear();
      ASSERT_NO_FATAL_FAILURE(ExpectSame(many, expected));
    }
  }
}

// Every operator on columns with dictionaries, against the scalar reference on plain ids.
TEST(Dictionary, EveryOperatorGivesWhatItGivesOnIds) {
  std::mt19937_64 random(TestSeed(20261122) + 1);
  for (const auto& [name, entry] : TransformRegistry::Global().entries()) {
    const bool takes_ids =
        !entry.inputs.empty() && std::none_of(entry.inputs.begin(), entry.inputs.end(), [](auto k) {
          return k == InputKind::kDense || k == InputKind::kInteger;
        });
    if (!takes_ids && entry.output != OutputKind::kRows) continue;
    for (const Example& example : entry.examples) {
      for (int trial = 0; trial < 20; ++trial) {
        SCOPED_TRACE(name + " " + example.params);
        const bool weighted = entry.inputs.empty() || entry.inputs[0] == InputKind::kWeighted ||
                              (entry.inputs[0] == InputKind::kAnyIds && trial % 2 == 0);
        std::vector<std::string> inputs;
        for (size_t i = 0; i < entry.inputs.size(); ++i)
          inputs.push_back(i == 0 ? (weighted ? "v" : "a") : weighted ? "w" : "b");
        TransformSpec spec = Spec(name, inputs, trial % 3 == 0 || inputs.empty() ? "" : "out",
                                  ParseParams(entry, example.params));
        if (spec.output.empty() && !inputs.empty()) spec.output = inputs[0];
        const TransformPlan plan({spec}, 5);
        FlatMapBatch batch = RandomBatch(&random, random() % 70), ids = batch.Clone();
        LookUpIds(&ids);
        const bool on_dictionary = !inputs.empty() && entry.use == IdUse::kEach &&
                                   !batch.FindSparse(inputs[0])->values.empty();
        DictionaryFigures figures;
        plan.Apply(0, batch, BestInstructionSet(), &figures);
        EXPECT_EQ(figures.steps, inputs.empty() || entry.use != IdUse::kEach ? 0u : 1u);
        if (on_dictionary) {
          EXPECT_GT(figures.entries, 0u);
        }
        plan.Finish(batch);
        plan.ApplyReference(0, ids);
        ASSERT_NO_FATAL_FAILURE(ExpectSame(batch, ids));
      }
    }
  }
}

// What is compared are ids, not indices, of which several may be one id; and the unique rows keep
// the dictionary.
TEST(Dictionary, GroupsAreThoseOfIds) {
  std::mt19937_64 random(TestSeed(20261122) + 4);
  for (int trial = 0; trial < 200; ++trial) {
    SCOPED_TRACE(trial);
    // Rows in a random order, some of them several times.
    FlatMapBatch drawn = RandomBatch(&random, 1 + random() % 30), batch;
    std::vector<uint32_t> rows(random() % 100 + 1);
    uint32_t last = 0;
    for (uint32_t& row : rows)
      row = last = random() % 2 == 0 ? last : static_cast<uint32_t>(random() % drawn.rows);
    batch.rows = rows.size();
    for (const SparseColumn& from : drawn.sparse) {
      SparseColumn& column = batch.sparse.emplace_back();
      column.name = from.name;
      AppendRowsOf(&column, 0, from, rows);
      column.dictionary = from.dictionary;
      column.decoded_values = column.values.size();
    }
    // Equal ids at other indices.
    for (SparseColumn& column : batch.sparse) {
      if (!column.dictionary) continue;
      const std::span<const int64_t> entries = column.dictionary->entries();
      for (int64_t& index : column.values)
        for (size_t other = 0; other < entries.size(); ++other)
          if (entries[other] == entries[static_cast<size_t>(index)] && random() % 2 == 0)
            index = static_cast<int64_t>(other);
    }
    FlatMapBatch ids = batch.Clone();
    LookUpIds(&ids);
    const auto scope = random() % 2 == 0 ? DedupScope::kNeighbours : DedupScope::kBatch;
    for (FlatMapBatch* each : {&batch, &ids}) {
      Deduplicate(each, "a+b", std::vector<size_t>{0, 1}, scope);
      Deduplicate(each, "v", std::vector<size_t>{3}, scope);
    }
    for (size_t g = 0; g < 2; ++g) {
      EXPECT_EQ(batch.groups[g].unique_rows, ids.groups[g].unique_rows);
      EXPECT_EQ(batch.groups[g].inverse, ids.groups[g].inverse);
    }
    std::vector<TransformSpec> specs = {Spec("sigrid_hash", {"a"}, "a", {{"max", 1000}}),
                                        Spec("first_x", {"v"}, "w", {{"count", 2}})};
    specs[1].output = "x";
    if (random() % 2 == 0) specs.insert(specs.begin(), Spec("sampling", {}, "", {{"rate", 0.5}}));
    if (random() % 2 == 0) specs.push_back(Spec("random_crop", {"b"}, "b", {{"count", 2}}));
    if (random() % 2 == 0) specs.push_back(Spec("cartesian", {"a", "c"}, "y"));
    const TransformPlan plan(specs, 5);
    DictionaryFigures figures;
    for (size_t i = 0; i < plan.size(); ++i) {
      plan.Apply(i, batch, BestInstructionSet(), &figures);
      plan.ApplyReference(i, ids);
    }
    EXPECT_EQ(figures.steps, 1u);
    plan.Finish(batch);
    for (size_t i = 0; i < batch.sparse.size(); ++i)
      EXPECT_EQ(batch.sparse[i].group, ids.sparse[i].group) << batch.sparse[i].name;
    ASSERT_NO_FATAL_FAILURE(ExpectSame(batch, ids));
  }
}

// Ids are looked up as soon as so few are left that the entries are more: for rows dropped before
// as well as for ids left out.
TEST(Dictionary, DroppedRowsCountWhenItIsDecidedToGoOn) {
  FlatMapBatch batch;
  batch.rows = 100;
  SparseColumn& column = batch.sparse.emplace_back();
  column.name = "a";
  column.present.words = {UINT64_MAX, (uint64_t{1} << 36) - 1};
  column.present.count = 100;
  for (uint32_t row = 0; row <= 100; ++row) column.offsets.push_back(2 * row);
  Array<int64_t> entries;
  for (int64_t i = 0; i < 40; ++i) entries.push_back(1000 + i);
  for (int64_t i = 0; i < 200; ++i) column.values.push_back(i % 40);
  column.dictionary = std::make_shared<const IdDictionary>(std::move(entries), 200);
  column.decoded_values = 200;
  const struct {
    const char* name;
    double rate;
    bool stays;  // the dictionary, after the first id of two is kept: rate * 100 ids, 40 entries
  } cases[] = {{"all rows", 1, true}, {"most", 0.8, true}, {"few", 0.1, false}};
  for (const auto& c : cases) {
    FlatMapBatch left = batch.Clone();
    const TransformPlan plan(
        {Spec("sampling", {}, "", {{"rate", c.rate}}), Spec("first_x", {"a"}, "a", {{"count", 1}})},
        1);
    for (size_t i = 0; i < plan.size(); ++i) plan.Apply(i, left);
    EXPECT_EQ(left.sparse[0].dictionary != nullptr, c.stays) << c.name;
  }
}

// Random lists of steps, by the graph (copies, moves, releases) and with outputs; the same batch in
// slices that share their dictionaries, on two threads.
TEST(Dictionary, AnyListOfStepsGivesWhatItGivesOnIds) {
  std::mt19937_64 random(TestSeed(20261122) + 2);
  uint64_t steps_on_dictionaries = 0;
  for (int trial = 0; trial < 300; ++trial) {
    SCOPED_TRACE(trial);
    std::vector<std::string> plain = {"a", "b", "c", "plain"}, weighted = {"v", "w"};
    std::vector<TransformSpec> specs;
    for (uint64_t i = 1 + random() % 8; i > 0; --i) {
      const bool of_weighted = random() % 3 == 0;
      std::vector<std::string>& names = of_weighted ? weighted : plain;
      const std::string input = names[random() % names.size()];
      const bool replaces = random() % 2 == 0;
      const std::string output = replaces ? input : "new" + std::to_string(specs.size());
      const auto salt = static_cast<int64_t>(random() % 2);
      bool adds = !replaces;
      switch (random() % 10) {
        case 0:
        case 1:
        case 2:
          specs.push_back(Spec("sigrid_hash", {input}, output, {{"max", 1000}, {"salt", salt}}));
          break;
        case 3:
          specs.push_back(Spec("positive_modulus", {input}, output, {{"divisor", 7 + salt}}));
          break;
        case 4:
          specs.push_back(Spec("map_id", {input}, output, {{"size", 10}, {"default", -1}}));
          break;
        case 5:
          specs.push_back(Spec("first_x", {input}, output, {{"count", 1 + salt}}));
          break;
        case 6:
          specs.push_back(Spec("random_crop", {input}, output, {{"count", 2}}));
          break;
        case 7:
          if (of_weighted) {
            specs.push_back(Spec("sort_by_score", {input}, output));
          } else {
            specs.push_back(Spec("ngram", {input}, output, {{"n", 2}}));
          }
          break;
        case 8:
          specs.push_back(Spec("sampling", {}, "", {{"rate", 0.8}}));
          adds = false;
          break;
        default: {
          const std::string other = plain[random() % plain.size()];
          const std::string first = plain[random() % plain.size()];
          specs.push_back(Spec("cartesian", {first, other}, "new" + std::to_string(specs.size())));
          plain.push_back("new" + std::to_string(specs.size() - 1));
          adds = false;
        }
      }
      if (adds) names.push_back(output);
    }
    std::optional<std::vector<std::string>> outputs;
    if (random() % 2 == 0) {
      outputs.emplace();
      for (const std::string& name : plain)
        if (random() % 2 == 0) outputs->push_back(name);
      for (const std::string& name : weighted)
        if (random() % 2 == 0) outputs->push_back(name);
      if (outputs->empty()) outputs->push_back("a");
    }
    const TransformPlan plan(specs, 5, outputs);
    FlatMapBatch first = RandomBatch(&random, 64 + random() % 100), ids = first.Clone();
    LookUpIds(&ids);
    FlatMapBatch again = first.Clone();
    for (size_t i = 0; i < plan.size(); ++i) plan.Apply(i, ids);
    DictionaryFigures figures[2];
    const auto run = [&](FlatMapBatch* batch, DictionaryFigures* counted) {
      for (size_t i = 0; i < plan.size(); ++i) plan.Apply(i, *batch, BestInstructionSet(), counted);
      plan.Finish(*batch);
    };
    std::thread other([&] { run(&again, &figures[1]); });
    run(&first, &figures[0]);
    other.join();
    ASSERT_NO_FATAL_FAILURE(ExpectSame(first, ids));
    ASSERT_NO_FATAL_FAILURE(ExpectSame(again, ids));
    EXPECT_EQ(figures[0].steps, figures[1].steps);
    EXPECT_EQ(figures[0].ids, figures[1].ids);
    steps_on_dictionaries += figures[0].steps;
    // Entries are transformed by one of the two.
    if (figures[0].steps > 0) {
      EXPECT_GT(figures[0].entries + figures[1].entries, 0u);
    }
  }
  EXPECT_GT(steps_on_dictionaries, 300u);
}

TEST(Dictionary, WantedAreColumnsWhoseIdsAreTakenOneByOneFirst) {
  const ParamMap hash = {{"max", 100}}, first = {{"count", 3}};
  const struct {
    const char* name;
    std::vector<TransformSpec> specs;
    std::optional<std::vector<std::string>> outputs;
    Names expected;
  } cases[] = {
      {"in place", {Spec("sigrid_hash", {"a"}, "a", hash)}, {}, {{"a", 16}}},
      {"derived", {Spec("sigrid_hash", {"a"}, "x", hash)}, {}, {{"a", 16}}},
      {"behind one that moves ids",
       {Spec("first_x", {"a"}, "x", first), Spec("sigrid_hash", {"x"}, "x", hash)},
       {},
       {{"a", 16}}},
      {"moved only", {Spec("first_x", {"a"}, "x", first)}, {}, {}},
      {"behind one that looks at lists",
       {Spec("ngram", {"a"}, "x"), Spec("sigrid_hash", {"x"}, "x", hash)},
       {},
       {}},
      {"looked at before",
       {Spec("cartesian", {"a", "b"}, "x"), Spec("sigrid_hash", {"a"}, "a", hash)},
       {},
       {}},
      {"looked at behind",
       {Spec("sigrid_hash", {"a"}, "y", hash), Spec("ngram", {"a"}, "x"),
        Spec("sigrid_hash", {"b"}, "b", hash)},
       {},
       {{"a", 16}, {"b", 16}}},
      {"no output wants it",
       {Spec("sigrid_hash", {"a"}, "x", hash), Spec("sigrid_hash", {"b"}, "b", hash)},
       {{"b"}},
       {{"b", 16}}},
      {"rows dropped",
       {Spec("sampling", {}, "", {{"rate", 0.5}}), Spec("sigrid_hash", {"a"}, "a", hash)},
       {},
       {{"a", 32}}},
      {"rows dropped between two, and behind",
       {Spec("sigrid_hash", {"a"}, "a", hash), Spec("sampling", {}, "", {{"rate", 0.5}}),
        Spec("sigrid_hash", {"a"}, "a", hash), Spec("sigrid_hash", {"b"}, "b", hash),
        Spec("sampling", {}, "", {{"rate", 0.5}}), Spec("map_id", {"b"}, "b", {{"size", 9}})},
       {},
       {{"a", 16}, {"b", 12}}},
      {"all rows dropped",
       {Spec("sampling", {}, "", {{"rate", 0}}), Spec("sigrid_hash", {"a"}, "a", hash)},
       {},
       {{"a", std::numeric_limits<double>::infinity()}}},
      {"the least of two",
       {Spec("sigrid_hash", {"a"}, "a", hash), Spec("map_id", {"a"}, "a", {{"size", 9}})},
       {},
       {{"a", 3}}},
      {"dense", {Spec("clamp", {"d"}, "d", {{"low", 0}, {"high", 1}})}, {}, {}},
  };
  for (const auto& c : cases)
    EXPECT_EQ(TransformPlan(c.specs, 1, c.outputs).DictionaryInputs(), c.expected) << c.name;
}

// The first slice of a stripe to come transforms the entries.
TEST(Dictionary, SlicesShareWhatWasTransformed) {
  const TransformPlan plan({Spec("sigrid_hash", {"a"}, "a", {{"max", 100}}),
                            Spec("positive_modulus", {"a"}, "a", {{"divisor", 7}})},
                           1);
  std::mt19937_64 random(TestSeed(20261122) + 3);
  FlatMapBatch batch = RandomBatch(&random, 50);
  const uint64_t entries = batch.FindSparse("a")->dictionary->entries().size();
  const uint64_t ids = batch.FindSparse("a")->values.size();
  DictionaryFigures figures;
  for (int slice = 0; slice < 3; ++slice) {
    FlatMapBatch part = batch.Clone();
    for (size_t i = 0; i < plan.size(); ++i) plan.Apply(i, part, BestInstructionSet(), &figures);
    plan.Finish(part);
  }
  EXPECT_EQ(figures.steps, 6u);
  EXPECT_EQ(figures.ids, 6 * ids);
  EXPECT_EQ(figures.entries, 2 * entries);
}

}  // namespace
}  // namespace headrace::reader
