// What every transform must hold, over the registry: examples, kernel = reference on every
// instruction set, promises of the batch kept, every file registered, documentation in step.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <limits>
#include <random>
#include <set>
#include <sstream>

#include "base/error.h"
#include "reader/batch/tensorize.h"
#include "tests/reader/transforms/example_text.h"
#include "tests/seed.h"

namespace headrace::reader {
namespace {

std::vector<InstructionSet> Sets() {
  std::vector<InstructionSet> sets{InstructionSet::kScalar};
  if (BestInstructionSet() >= InstructionSet::kAvx2) sets.push_back(InstructionSet::kAvx2);
  if (BestInstructionSet() >= InstructionSet::kAvx512) sets.push_back(InstructionSet::kAvx512);
  return sets;
}

// Distance in representable numbers; NaN meets NaN, and -0 is 0.
uint64_t Ulps(float a, float b) {
  if (std::isnan(a) || std::isnan(b)) return std::isnan(a) && std::isnan(b) ? 0 : UINT64_MAX;
  const auto line = [](float x) {
    const auto bits = static_cast<int64_t>(std::bit_cast<uint32_t>(x));
    return bits & 0x80000000 ? -(bits & 0x7fffffff) : bits;
  };
  return static_cast<uint64_t>(std::abs(line(a) - line(b)));
}

// All parameters a test can give `name`: those of its examples and some at the edges.
std::vector<ParamMap> ParamsOf(const std::string& name, const TransformEntry& entry) {
  std::vector<ParamMap> all;
  for (const Example& example : entry.examples) all.push_back(ParseParams(entry, example.params));
  if (name == "sigrid_hash" || name == "positive_modulus") {
    const std::string key = name == "sigrid_hash" ? "max" : "divisor";
    for (const int64_t value : {int64_t{1}, int64_t{2}, int64_t{3}, int64_t{64}, int64_t{10000019},
                                (int64_t{1} << 62) + 1, INT64_MAX})
      all.push_back({{key, value}});
  }
  if (name == "bucketize") {
    for (const int size :
         {1, 2, 7, 8, 9, 15, 16, 17, 31, 33, 63, 64, 65, 100, 128, 255, 256, 1024, 5000}) {
      std::vector<double> borders;
      for (int i = 0; i < size; ++i) borders.push_back(-3 + 6.0 * i / size);
      if (size > 2) borders[1] = borders[0];
      all.push_back({{"borders", borders}});
    }
    all.push_back({{"borders", std::vector<double>{-INFINITY, 0, 0, INFINITY, INFINITY}}});
  }
  if (name == "box_cox")
    for (const double lambda : {-8.0, -2.0, -1e-6, 0.0, 1e-6, 0.3, 1.0, 2.5, 8.0})
      all.push_back({{"lambda", lambda}, {"shift", 0.25}});
  if (name == "logit")
    for (const double epsilon : {1.1e-7, 1e-6, 0.01, 0.4}) all.push_back({{"epsilon", epsilon}});
  if (name == "ngram")
    for (int64_t n = 1; n <= 16; ++n) all.push_back({{"n", n}});
  if (name == "first_x")
    for (const int64_t count : {7, 8, 9, 1000}) all.push_back({{"count", count}});
  if (name == "map_id")
    for (const int64_t size : {1, 5, 4096})
      all.push_back({{"size", size}, {"default", int64_t{-7}}});
  if (name == "sampling") all.push_back({{"rate", 0.5}});
  if (name == "random_crop")
    for (const int64_t count : {1, 3, 8, 1000}) all.push_back({{"count", count}});
  if (name == "scale") {
    all.push_back({{"mode", "min_max"}, {"low", -0.3}, {"high", 0.7}});
    all.push_back({{"mode", "z_score"}, {"mean", 1.7}, {"deviation", 1e-30}});
  }
  return all;
}

class Random {
 public:
  explicit Random(uint64_t seed) : engine_(seed) {}

  uint64_t Below(uint64_t n) { return std::uniform_int_distribution<uint64_t>(0, n - 1)(engine_); }

  float Real() {
    static const float kEdges[] = {0.0f,
                                   -0.0f,
                                   1.0f,
                                   -1.0f,
                                   0.5f,
                                   INFINITY,
                                   -INFINITY,
                                   NAN,
                                   std::numeric_limits<float>::max(),
                                   std::numeric_limits<float>::lowest(),
                                   std::numeric_limits<float>::min(),
                                   std::numeric_limits<float>::denorm_min(),
                                   -3.0f,
                                   2.0f};
    switch (Below(8)) {
      case 0:
        return kEdges[Below(std::size(kEdges))];
      case 1:
        return std::bit_cast<float>(static_cast<uint32_t>(engine_()));
      case 2:
        return std::exp(std::normal_distribution<float>(0, 8)(engine_));
      case 3:
        return std::uniform_real_distribution<float>(0, 1)(engine_);
      default:
        return std::normal_distribution<float>(0, 2)(engine_);
    }
  }

  int64_t Id() {
    static const int64_t kEdges[] = {0, -1, 1, INT64_MIN, INT64_MAX, 5, 7};
    switch (Below(4)) {
      case 0:
        return kEdges[Below(std::size(kEdges))];
      case 1:
        return static_cast<int64_t>(engine_());
      default:
        return static_cast<int64_t>(Below(12));  // repeats often
    }
  }

  PresenceBits Presence(uint64_t rows, bool all) {
    PresenceBits present;
    present.words.resize((rows + 63) / 64);
    for (uint64_t row = 0; row < rows; ++row) {
      const uint64_t bit = all || Below(3) != 0;
      present.words[row / 64] |= bit << (row % 64);
      present.count += bit;
    }
    return present;
  }

  DenseColumn Dense(std::string name, uint64_t rows) {
    DenseColumn column;
    column.name = std::move(name);
    column.present = Presence(rows, Below(2) == 0);
    for (uint64_t row = 0; row < rows; ++row)
      column.values.push_back(column.present.Get(row) ? Real() : 0);
    return column;
  }

  SparseColumn Sparse(std::string name, uint64_t rows, bool weighted) {
    SparseColumn column;
    column.name = std::move(name);
    column.weighted = weighted;
    column.present = Presence(rows, Below(2) == 0);
    column.offsets.push_back(0);
    for (uint64_t row = 0; row < rows; ++row) {
      uint64_t length = !column.present.Get(row) || Below(4) == 0 ? 0 : Below(20);
      if (length > 0 && Below(20) == 0) length = Below(150);
      for (uint64_t i = 0; i < length; ++i) {
        column.values.push_back(Id());
        if (weighted) column.weights.push_back(std::floor(Real()));
      }
      column.offsets.push_back(static_cast<uint32_t>(column.values.size()));
    }
    return column;
  }

  FlatMapBatch Batch(const TransformEntry& entry, size_t num_inputs, uint64_t rows) {
    FlatMapBatch batch;
    batch.rows = rows;
    batch.first_row = Below(1000);
    batch.dense.push_back(Dense("other dense", rows));
    batch.sparse.push_back(Sparse("other sparse", rows, Below(2) == 0));
    for (size_t i = 0; i < num_inputs; ++i) {
      const std::string name = "in" + std::to_string(i);
      const InputKind kind = entry.inputs[std::min(i, entry.inputs.size() - 1)];
      if (kind == InputKind::kDense) {
        batch.dense.push_back(Dense(name, rows));
      } else if (kind == InputKind::kInteger) {
        ScalarColumn column;
        column.name = name;
        for (uint64_t row = 0; row < rows; ++row) column.integers.push_back(Id());
        batch.scalars.push_back(std::move(column));
      } else {
        const bool weighted =
            kind == InputKind::kWeighted || (kind == InputKind::kAnyIds && Below(2) == 0);
        batch.sparse.push_back(Sparse(name, rows, weighted));
      }
    }
    return batch;
  }

 private:
  std::mt19937_64 engine_;
};

void ExpectSame(const DenseColumn& a, const DenseColumn& b, uint32_t max_ulps) {
  ASSERT_EQ(a.name, b.name);
  ASSERT_EQ(a.present.words, b.present.words);
  ASSERT_EQ(a.values.size(), b.values.size());
  for (size_t row = 0; row < a.values.size(); ++row)
    ASSERT_LE(Ulps(a.values[row], b.values[row]), max_ulps)
        << a.name << " row " << row << ": " << a.values[row] << " and " << b.values[row];
}

void ExpectSame(const SparseColumn& a, const SparseColumn& b) {
  ASSERT_EQ(a.name, b.name);
  ASSERT_EQ(a.weighted, b.weighted);
  ASSERT_EQ(a.present.words, b.present.words);
  ASSERT_EQ(a.offsets, b.offsets);
  ASSERT_EQ(a.values, b.values);
  ASSERT_EQ(a.weights.size(), b.weights.size());
  for (size_t i = 0; i < a.weights.size(); ++i) ASSERT_EQ(Ulps(a.weights[i], b.weights[i]), 0u);
}

void ExpectSame(const FlatMapBatch& a, const FlatMapBatch& b, uint32_t max_ulps) {
  ASSERT_EQ(a.rows, b.rows);
  ASSERT_EQ(a.row_ids, b.row_ids);
  ASSERT_EQ(a.dense.size(), b.dense.size());
  ASSERT_EQ(a.sparse.size(), b.sparse.size());
  for (size_t i = 0; i < a.dense.size(); ++i)
    ASSERT_NO_FATAL_FAILURE(ExpectSame(a.dense[i], b.dense[i], max_ulps));
  for (size_t i = 0; i < a.sparse.size(); ++i)
    ASSERT_NO_FATAL_FAILURE(ExpectSame(a.sparse[i], b.sparse[i]));
}

uint32_t MaxUlps(const std::string& name, const ParamMap& params) {
  const auto transform = MakeTransform(Params(name, params));
  const auto* dense = dynamic_cast<const DenseTransform*>(transform.get());
  return dense == nullptr ? 0 : dense->MaxUlps();
}

TEST(Transforms, ExamplesHoldOnEveryInstructionSet) {
  for (const auto& [name, entry] : TransformRegistry::Global().entries()) {
    EXPECT_FALSE(entry.examples.empty()) << name;
    for (const Example& example : entry.examples) {
      const std::string input = example.input;
      const size_t inputs = 1 + static_cast<size_t>(std::count(input.begin(), input.end(), ';'));
      const TransformPlan plan(
          {ExampleSpec(name, entry, inputs, ParseParams(entry, example.params))}, 1);
      FlatMapBatch reference = ParseExample(entry, input);
      plan.ValidateAgainst(ColumnsOf(reference));
      plan.ApplyReference(0, reference);
      EXPECT_EQ(OutputText(entry, reference), example.output) << name << " " << example.params;
      for (const InstructionSet set : Sets()) {
        FlatMapBatch batch = ParseExample(entry, input);
        plan.Apply(0, batch, set);
        EXPECT_EQ(OutputText(entry, batch), example.output)
            << name << " " << example.params << " " << InstructionSetName(set);
      }
    }
  }
}

void CompareOnRandomBatches(const std::string& name, const TransformEntry& entry,
                            const ParamMap& params, Random* random) {
  const uint32_t max_ulps = MaxUlps(name, params);
  for (uint64_t rows = 0; rows <= 67; ++rows) {
    const size_t most = std::max(entry.max_inputs, entry.inputs.size());
    const size_t inputs = entry.inputs.size() + random->Below(most - entry.inputs.size() + 1);
    TransformSpec spec = ExampleSpec(name, entry, inputs, params);
    if (!spec.inputs.empty() && random->Below(2) == 0) spec.output = spec.inputs[0];
    const TransformPlan plan({spec}, 5);
    const FlatMapBatch input = random->Batch(entry, inputs, rows);
    const std::vector<AvailableColumn> announced = plan.ValidateAgainst(ColumnsOf(input));
    FlatMapBatch reference = input.Clone();
    plan.ApplyReference(0, reference);
    ASSERT_NO_THROW(Validate(reference)) << name;
    for (const InstructionSet set : Sets()) {
      FlatMapBatch batch = input.Clone();
      plan.Apply(0, batch, set);
      ASSERT_NO_THROW(Validate(batch)) << name << " " << InstructionSetName(set);
      ASSERT_NO_FATAL_FAILURE(ExpectSame(batch, reference, max_ulps))
          << name << " " << InstructionSetName(set) << ", rows " << rows;
    }
    // The batch has the columns that the check announced.
    std::multiset<std::string> have, said;
    for (const AvailableColumn& c : ColumnsOf(reference))
      have.insert(c.name + ColumnKindName(c.kind));
    for (const AvailableColumn& c : announced) said.insert(c.name + ColumnKindName(c.kind));
    ASSERT_EQ(have, said) << name;
  }
}

TEST(Transforms, KernelsEqualTheirReferencesAtEveryLength) {
  Random random(TestSeed(20240611));
  for (const auto& [name, entry] : TransformRegistry::Global().entries())
    for (const ParamMap& params : ParamsOf(name, entry))
      ASSERT_NO_FATAL_FAILURE(CompareOnRandomBatches(name, entry, params, &random));
}

TEST(Transforms, ElementKernelsTakeAnyLengthAtAnyAlignment) {
  Random random(TestSeed(20240611) + 1);
  for (const auto& [name, entry] : TransformRegistry::Global().entries()) {
    for (const ParamMap& params : ParamsOf(name, entry)) {
      const auto transform = MakeTransform(Params(name, params));
      const auto* dense = dynamic_cast<const DenseTransform*>(transform.get());
      const auto* ids = dynamic_cast<const IdTransform*>(transform.get());
      for (size_t length = 0; length <= 67; ++length) {
        for (const size_t shift : {0, 1, 3}) {
          for (const InstructionSet set : Sets()) {
            // One guard on each side: nothing outside the span may change.
            if (dense != nullptr) {
              std::vector<float> values(shift + length + 2, 42), expected;
              for (size_t i = 0; i < length; ++i) values[shift + 1 + i] = random.Real();
              expected = values;
              dense->Reference(std::span(expected).subspan(shift + 1, length));
              dense->Apply(std::span(values).subspan(shift + 1, length), set);
              for (size_t i = 0; i < values.size(); ++i)
                ASSERT_LE(Ulps(values[i], expected[i]), dense->MaxUlps())
                    << name << " " << InstructionSetName(set) << " length " << length;
            }
            if (ids != nullptr) {
              std::vector<int64_t> values(shift + length + 2, 42), expected;
              for (size_t i = 0; i < length; ++i) values[shift + 1 + i] = random.Id();
              expected = values;
              ids->Reference(std::span(expected).subspan(shift + 1, length));
              ids->Apply(std::span(values).subspan(shift + 1, length), set);
              ASSERT_EQ(values, expected) << name << " " << InstructionSetName(set);
            }
          }
        }
      }
    }
  }
}

// A kernel that leaves the last values to its reference gives a row other bits when batches are cut
// elsewhere.
TEST(Transforms, AValueHasTheSameResultWhereverItStands) {
  Random random(TestSeed(20240611) + 3);
  constexpr size_t kValues = 35;  // whole vectors of 8 and 16, and some left
  for (const auto& [name, entry] : TransformRegistry::Global().entries()) {
    for (const ParamMap& params : ParamsOf(name, entry)) {
      const auto transform = MakeTransform(Params(name, params));
      const auto* dense = dynamic_cast<const DenseTransform*>(transform.get());
      if (dense == nullptr) continue;
      for (const InstructionSet set : Sets()) {
        for (int round = 0; round < 50; ++round) {
          std::vector<float> together(kValues);
          for (float& x : together) x = random.Real();
          std::vector<float> alone = together;
          dense->Apply(together, set);
          for (size_t i = 0; i < kValues; ++i) {
            dense->Apply(std::span(alone).subspan(i, 1), set);
            ASSERT_EQ(std::bit_cast<uint32_t>(alone[i]), std::bit_cast<uint32_t>(together[i]))
                << name << " " << InstructionSetName(set) << ": " << alone[i] << " alone, "
                << together[i] << " at place " << i;
          }
        }
      }
    }
  }
}

// The stated bound, on many values of the range that matters.
TEST(Transforms, FloatKernelsStayWithinTheirBound) {
  Random random(TestSeed(20240611) + 2);
  for (const std::string name : {"logit", "box_cox"}) {
    const TransformEntry& entry = *TransformRegistry::Global().Find(name);
    for (const ParamMap& params : ParamsOf(name, entry)) {
      const auto transform = MakeTransform(Params(name, params));
      const auto& dense = dynamic_cast<const DenseTransform&>(*transform);
      std::vector<float> values(200'000);
      for (float& x : values) x = random.Real();
      std::vector<float> expected = values;
      dense.Reference(expected);
      for (const InstructionSet set : Sets()) {
        std::vector<float> result = values;
        dense.Apply(result, set);
        uint64_t worst = 0;
        size_t where = 0;
        for (size_t i = 0; i < values.size(); ++i) {
          const uint64_t distance = Ulps(result[i], expected[i]);
          if (distance > worst) worst = distance, where = i;
        }
        EXPECT_LE(worst, dense.MaxUlps())
            << name << " " << InstructionSetName(set) << " of " << values[where] << ": "
            << result[where] << ", reference " << expected[where]
            << (params.count("lambda") ? " lambda " + ParamText(params.at("lambda")) : "");
        if (std::getenv("HEADRACE_PRINT_ULPS") != nullptr)
          std::printf("%s %s %s: %llu ulp\n", name.c_str(), InstructionSetName(set),
                      params.empty() ? "" : ParamText(params.begin()->second).c_str(),
                      static_cast<unsigned long long>(worst));
      }
    }
  }
}

TEST(Transforms, EveryFileOfTheFolderIsRegistered) {
  const std::set<std::string> shared = {"params",    "transform", "plan",       "graph",
                                        "keep_rows", "lists",     "zero_absent"};
  const std::filesystem::path folder =
      std::filesystem::path(HEADRACE_SOURCE_DIR) / "reader" / "transforms";
  for (const auto& file : std::filesystem::directory_iterator(folder)) {
    const std::string stem = file.path().stem().string();
    if (file.path().extension() != ".cc" || shared.count(stem)) continue;
    EXPECT_NE(TransformRegistry::Global().Find(stem), nullptr)
        << file.path() << " registers no transform of its name (HR_TRANSFORM)";
  }
}

TEST(Transforms, EveryEntryIsDocumented) {
  for (const auto& [name, entry] : TransformRegistry::Global().entries()) {
    EXPECT_NE(std::string(entry.summary), "") << name;
    EXPECT_NE(std::string(entry.cost), "") << name;
    const std::set<std::string> types = {"integer", "real", "text", "flag", "integers", "reals"};
    for (const ParamDoc& doc : entry.params) EXPECT_TRUE(types.count(doc.type)) << name << doc.name;
  }
}

TEST(Transforms, DocumentationIsInStep) {
  const std::string path = std::string(HEADRACE_SOURCE_DIR) + "/docs/transforms.md";
  const std::string expected = TransformDocs();
  if (std::getenv("HEADRACE_UPDATE_GOLDEN") != nullptr) std::ofstream(path) << expected;
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  EXPECT_EQ(text.str(), expected)
      << path << "; HEADRACE_UPDATE_GOLDEN=1 rewrites it, review the difference";
}

}  // namespace
}  // namespace headrace::reader
