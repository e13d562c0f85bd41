// The reference trainer: its gradients against finite differences, its kernels against plain loops,
// and that it learns.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <random>

#include "base/error.h"
#include "reader/batch/tensorize.h"
#include "reader/pipeline/spec.h"
#include "tests/seed.h"
#include "workloads/trainer/dlrm.h"

namespace headrace::workloads {
namespace {

using reader::InteractionKind;
using reader::KeyedJaggedTensor;
using reader::ModelSpec;
using reader::TensorBatch;

KeyedJaggedTensor RandomKjt(const std::vector<std::string>& keys, uint64_t rows, bool weighted,
                            int64_t ids, std::mt19937_64* random) {
  KeyedJaggedTensor tensor;
  tensor.keys = keys;
  tensor.rows = rows;
  tensor.offsets.push_back(0);
  for (size_t cell = 0; cell < keys.size() * rows; ++cell) {
    const auto length = static_cast<int32_t>((*random)() % 5);
    tensor.lengths.push_back(length);
    for (int32_t i = 0; i < length; ++i) {
      tensor.values.push_back(static_cast<int64_t>((*random)() % static_cast<uint64_t>(ids)));
      if (weighted) tensor.weights.push_back(0.5f + static_cast<float>((*random)() % 100) / 100.0f);
    }
    tensor.offsets.push_back(static_cast<int64_t>(tensor.values.size()));
  }
  return tensor;
}

TensorBatch RandomBatch(uint64_t rows, size_t dense, std::mt19937_64* random) {
  TensorBatch batch;
  batch.rows = rows;
  std::normal_distribution<float> normal;
  for (size_t c = 0; c < dense; ++c) batch.dense_names.push_back("dense:" + std::to_string(c));
  for (size_t i = 0; i < rows * dense; ++i) batch.dense.push_back(normal(*random));
  batch.sparse = RandomKjt({"a", "b", "c"}, rows, false, 40, random);
  batch.weighted_sparse = RandomKjt({"w"}, rows, true, 40, random);
  for (uint64_t r = 0; r < rows; ++r) {
    batch.labels.push_back((*random)() % 2 == 0 ? 0.0f : 1.0f);
    batch.row_ids.push_back(r);
  }
  return batch;
}

ModelSpec Tiny(InteractionKind interaction) {
  ModelSpec options;
  options.rows = 30;
  options.dim = 5;
  options.bottom = {7};
  options.top = {9, 4};
  options.interaction = interaction;
  options.rate = 0.05f;
  return options;
}

// d loss / d value by differences to either side, from a loss in single precision. A ReLU that
// bends within the step makes one of them wrong where the gradient is right: the gradient equals
// the other.
struct Slopes {
  double below = 0, above = 0;
  bool Hold(double gradient) const {
    const double low = std::min(below, above), high = std::max(below, above);
    const double rounding = 1e-3 + 0.03 * std::max(std::abs(low), std::abs(high));
    return gradient > low - rounding && gradient < high + rounding;
  }
  bool Straight() const { return std::abs(above - below) < 1e-3 + 0.03 * std::abs(above); }
};
template <typename Loss>
Slopes Differences(float* value, const Loss& loss) {
  constexpr float kStep = 0.002f;
  const float old = *value;
  const double here = loss();
  *value = old + kStep;
  const double above = (loss() - here) / kStep;
  *value = old - kStep;
  const double below = (here - loss()) / kStep;
  *value = old;
  return {below, above};
}

struct Checked {
  size_t all = 0, straight = 0, moved = 0, off = 0;
};

// The gradients of a model's layers. A few may be off: of those two ReLUs bend, one to either side.
Checked CheckLayers(Dlrm* model, const TensorBatch& batch) {
  Checked checked;
  const auto loss = [&] { return static_cast<double>(model->Loss(batch)); };
  for (Mlp* mlp : {&model->bottom(), &model->top()}) {
    std::vector<std::vector<float>> gradients;
    for (const Mlp::Parameters& part : mlp->parameters())
      gradients.emplace_back(part.gradients.begin(), part.gradients.end());
    const auto parts = mlp->parameters();
    for (size_t p = 0; p < parts.size(); ++p) {
      for (size_t i = 0; i < parts[p].values.size(); ++i) {
        const Slopes expected = Differences(&parts[p].values[i], loss);
        ++checked.all;
        checked.straight += expected.Straight();
        checked.moved += gradients[p][i] != 0;
        checked.off += !expected.Hold(gradients[p][i]);
      }
    }
  }
  return checked;
}

// The gradients of its tables, which keep none: with a rate of 1 the update is the gradient.
Checked CheckTables(const ModelSpec& options, uint64_t seed, const TensorBatch& batch) {
  Checked checked;
  ModelSpec learning = options;
  learning.rate = 1;
  const size_t tables = Dlrm(learning, seed, batch).num_tables();
  for (size_t t = 0; t < tables; ++t) {
    for (size_t r = 0; r < learning.rows; ++r) {
      const size_t c = (r + t) % learning.dim;
      Dlrm before(learning, seed, batch), after(learning, seed, batch);
      const Slopes expected = Differences(&before.table(t).table()->row(r)[c],
                                          [&] { return static_cast<double>(before.Loss(batch)); });
      after.Step(batch);
      const double gradient =
          before.table(t).table()->row(r)[c] - after.table(t).table()->row(r)[c];
      ++checked.all;
      checked.straight += expected.Straight();
      checked.moved += gradient != 0;
      checked.off += !expected.Hold(gradient);
    }
  }
  return checked;
}

TEST(Dlrm, GradientsEqualFiniteDifferences) {
  const uint64_t first_seed = TestSeed();
  for (const InteractionKind kind : {InteractionKind::kDot, InteractionKind::kConcatenate}) {
    // In one model of hundreds most ReLUs are off and gradients 0: three must move together.
    size_t moved_layers = 0, moved_tables = 0;
    for (uint64_t seed = first_seed; seed < first_seed + 3; ++seed) {
      SCOPED_TRACE(testing::Message()
                   << "HEADRACE_SEED=" << seed << " interaction " << static_cast<int>(kind));
      std::mt19937_64 random(seed);
      const TensorBatch batch = RandomBatch(13, 6, &random);
      // Without learning the step leaves gradients behind and parameters as they are.
      ModelSpec options = Tiny(kind);
      options.rate = 0;
      Dlrm model(options, seed, batch);
      // Larger embeddings than the first ones, so that differences stand out of rounding.
      for (size_t t = 0; t < model.num_tables(); ++t)
        for (size_t r = 0; r < options.rows; ++r)
          for (size_t c = 0; c < options.dim; ++c) model.table(t).table()->row(r)[c] *= 2;
      model.Step(batch);
      const Checked layers = CheckLayers(&model, batch);
      EXPECT_GT(layers.straight, layers.all / 3);
      EXPECT_LE(layers.off, layers.all / 20);
      moved_layers += layers.moved;
      const Checked of_tables = CheckTables(options, seed, batch);
      EXPECT_LE(of_tables.off, of_tables.all / 20);
      moved_tables += of_tables.moved;
    }
    EXPECT_GT(moved_layers, 100u);
    EXPECT_GT(moved_tables, 50u);
  }
}

TEST(Dlrm, LearnsASignalAndNothingFromNoise) {
  const uint64_t seed = TestSeed();
  SCOPED_TRACE(testing::Message() << "HEADRACE_SEED=" << seed);
  for (const bool signal : {true, false}) {
    std::mt19937_64 random(seed);
    ModelSpec options;
    options.rows = 1000;
    options.rate = 0.1f;
    std::unique_ptr<Dlrm> model;
    double first = 0, last = 0;
    constexpr int kSteps = 150;
    for (int step = 0; step < kSteps; ++step) {
      TensorBatch batch = RandomBatch(128, 5, &random);
      for (uint64_t r = 0; signal && r < batch.rows; ++r)
        batch.labels[r] = batch.dense[r * 5] - batch.dense[r * 5 + 3] > 0 ? 1.0f : 0.0f;
      if (!model) model = std::make_unique<Dlrm>(options, seed, batch);
      const float loss = model->Step(batch);
      (step < 15 ? first : last) += step < 15 || step >= kSteps - 15 ? loss / 15 : 0;
    }
    if (signal) {
      EXPECT_LT(last, 0.7 * first);
    } else {
      EXPECT_GT(last, 0.6);
    }
  }
}

TEST(Dlrm, KernelsOfEveryInstructionSetAgree) {
  const uint64_t seed = TestSeed();
  SCOPED_TRACE(testing::Message() << "HEADRACE_SEED=" << seed);
  std::mt19937_64 random(seed);
  const TensorBatch batch = RandomBatch(37, 20, &random);
  std::vector<float> losses;
  for (int set = 0; set <= static_cast<int>(BestInstructionSet()); ++set) {
    Dlrm model(ModelSpec(), 7, batch, {}, KernelsFor(static_cast<InstructionSet>(set)));
    for (int step = 0; step < 5; ++step) model.Step(batch);
    losses.push_back(model.Loss(batch));
    EXPECT_NEAR(losses.back(), losses[0], 1e-5) << "instruction set " << set;
  }
}

TEST(Dlrm, TakesBatchesOfAnySizeAndNoSparseOrDenseFeatures) {
  std::mt19937_64 random(1);
  const TensorBatch first = RandomBatch(8, 3, &random);
  Dlrm model(Tiny(InteractionKind::kDot), 1, first);
  for (const uint64_t rows : {8, 1, 100, 0, 3})
    EXPECT_TRUE(std::isfinite(model.Step(RandomBatch(rows, 3, &random)))) << rows;
  TensorBatch dense_only = RandomBatch(9, 3, &random), sparse_only = RandomBatch(9, 0, &random);
  dense_only.sparse = {};
  dense_only.weighted_sparse = {};
  EXPECT_TRUE(std::isfinite(Dlrm(ModelSpec(), 1, dense_only).Step(dense_only)));
  EXPECT_TRUE(std::isfinite(Dlrm(ModelSpec(), 1, sparse_only).Step(sparse_only)));
}

TEST(Dlrm, RefusesWhatItCannotTrainOn) {
  std::mt19937_64 random(1);
  TensorBatch batch = RandomBatch(8, 3, &random);
  ModelSpec huge;
  huge.rows = UINT32_MAX;
  EXPECT_THROW(Dlrm(huge, 1, batch), Error);
  batch.labels.clear();
  EXPECT_THROW(Dlrm(ModelSpec(), 1, batch), Error);
  batch.labels.resize(8);
  batch.sparse = {};
  batch.weighted_sparse = {};
  batch.dense.clear();
  batch.dense_names.clear();
  EXPECT_THROW(Dlrm(ModelSpec(), 1, batch), Error);
}

std::string ConsumerText(const std::string& consumer) {
  return "source = { table = \"t\" }\nprojection = { label = \"label\" }\nstage = [{ name = "
         "\"all\", operators = [\"fetch\", \"decompress\", \"decode\", \"extract\", \"batch\", "
         "\"tensorize\"] }]\n[consumer]\n" +
         consumer;
}

TEST(ConsumerSection, ReadsTheModelAndSettingsForIt) {
  const auto spec = reader::ParsePipeline(
      ConsumerText("kind = \"trainer\"\nmodel = { rows = 5000, dim = 8, bottom = [32], top = [], "
                   "interaction = \"concatenate\" }\n"),
      "t.toml", "/", {{"consumer.model.rate", "0.5"}});
  EXPECT_EQ(spec.consumer.kind, reader::ConsumerKind::kTrainer);
  EXPECT_EQ(spec.consumer.model.rows, 5000u);
  EXPECT_EQ(spec.consumer.model.dim, 8u);
  EXPECT_EQ(spec.consumer.model.bottom, std::vector<uint32_t>{32});
  EXPECT_TRUE(spec.consumer.model.top.empty());
  EXPECT_EQ(spec.consumer.model.interaction, InteractionKind::kConcatenate);
  EXPECT_FLOAT_EQ(spec.consumer.model.rate, 0.5f);
  // A setting makes the section where the file has none.
  EXPECT_EQ(reader::ParsePipeline(ConsumerText("kind = \"trainer\"\n"), "t.toml", "/",
                                  {{"consumer.model.dim", "4"}})
                .consumer.model.dim,
            4u);
}

TEST(ConsumerSection, RefusesMistakesByName) {
  const struct {
    const char *text, *message;
  } cases[] = {
      {"kind = \"trainr\"", "did you mean 'trainer'"},
      {"kind = \"trainer\"\nmodel = { row = 5 }", "did you mean 'rows'"},
      {"kind = \"trainer\"\nmodel = { rows = 0 }", "rows must be from 1"},
      {"kind = \"trainer\"\nmodel = { bottom = [0] }", "a width of bottom"},
      {"kind = \"trainer\"\nmodel = { top = 64 }", "list of at most"},
      {"kind = \"trainer\"\nmodel = { rate = -1.0 }", "rate must be"},
      {"kind = \"trainer\"\nmodel = { interaction = \"dots\" }", "did you mean 'dot'"},
      {"kind = \"trainer\"\nstep = \"5ms\"", "a step time is of the emulated"},
      {"model = { dim = 4 }", "kind = \"trainer\""},
  };
  for (const auto& [text, message] : cases) {
    try {
      reader::ParsePipeline(ConsumerText(text), "t.toml", "/");
      ADD_FAILURE() << "taken: " << text;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ExitCode::kUsage);
      EXPECT_NE(std::string(error.what()).find(message), std::string::npos) << error.what();
    }
  }
}

}  // namespace
}  // namespace headrace::workloads
