// Deduplication: whatever is done with unique rows, expanding them gives what would have come
// without. On random batches, through transforms, cuts and joins; through whole pipelines; and in
// the trainer.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <numeric>
#include <random>
#include <set>
#include <sstream>

#include "base/error.h"
#include "base/file.h"
#include "reader/batch/dedup_rows.h"
#include "reader/batch/gather_rows.h"
#include "reader/batch/keep_rows.h"
#include "reader/batch/tensorize.h"
#include "reader/pipeline/dedup_plan.h"
#include "reader/pipeline/pipeline.h"
#include "reader/transforms/plan.h"
#include "tests/sanitized.h"
#include "tests/seed.h"
#include "workloads/generator.h"
#include "workloads/rewrite.h"
#include "workloads/trainer/consumer.h"
#include "workloads/trainer/dlrm.h"

namespace headrace::workloads {
namespace {

namespace fs = std::filesystem;
using reader::DedupScope;
using reader::FlatMapBatch;
using reader::SparseColumn;
using reader::TensorBatch;

uint64_t OneHashForAll(const void*, size_t, uint64_t) { return 42; }

// Column `name` of rows that repeat the one before, or any one before, with the chances given.
SparseColumn RandomColumn(const std::string& name, uint64_t rows, bool weighted, double repeat,
                          std::mt19937_64* random) {
  SparseColumn column;
  column.name = name;
  column.weighted = weighted;
  column.present.words.resize((rows + 63) / 64, 0);
  column.offsets.push_back(0);
  std::uniform_real_distribution<double> uniform;
  for (uint64_t row = 0; row < rows; ++row) {
    bool present = uniform(*random) < 0.8;
    if (row > 0 && uniform(*random) < repeat) {
      const uint64_t from = uniform(*random) < 0.7 ? row - 1 : (*random)() % row;
      present = column.present.Get(from);
      for (uint32_t i = column.offsets[from]; i < column.offsets[from + 1]; ++i) {
        column.values.push_back(int64_t{column.values[i]});
        if (weighted) column.weights.push_back(float{column.weights[i]});
      }
    } else if (present) {
      for (uint64_t i = (*random)() % 5; i > 0; --i) {
        column.values.push_back(static_cast<int64_t>((*random)() % 7));
        if (weighted) column.weights.push_back(static_cast<float>((*random)() % 3));
      }
    }
    column.offsets.push_back(static_cast<uint32_t>(column.values.size()));
    column.present.words[row >> 6] |= uint64_t{present} << (row & 63);
    column.present.count += present;
  }
  return column;
}

// The same batch for the same arguments.
FlatMapBatch RandomBatch(uint64_t rows, uint64_t first_row, uint64_t seed) {
  std::mt19937_64 random(seed);
  FlatMapBatch batch;
  batch.rows = rows;
  batch.first_row = first_row;
  for (int i = 0; i < 8; ++i)
    batch.sparse.push_back(RandomColumn("sparse:" + std::to_string(i), rows, i % 4 == 3,
                                        i % 3 == 0 ? 0.9 : 0.5, &random));
  reader::DenseColumn& dense = batch.dense.emplace_back();
  dense.name = "dense:0";
  dense.present.words.assign((rows + 63) / 64, 0);
  dense.values.resize(rows);
  for (uint64_t row = 0; row < rows; ++row) {
    dense.values[row] = static_cast<float>(random() % 100);
    dense.present.words[row >> 6] |= uint64_t{1} << (row & 63);
    ++dense.present.count;
  }
  reader::ScalarColumn& label = batch.scalars.emplace_back();
  label.name = "label";
  label.is_float = true;
  for (uint64_t row = 0; row < rows; ++row)
    label.floats.push_back(static_cast<float>(random() % 2));
  return batch;
}

// Groups (0,1), (2,4), (3,7), (5) of the batch above; sparse:6 stays as it is.
void MakeGroups(FlatMapBatch* batch, DedupScope scope, reader::RowHash hash = reader::HashBytes) {
  const std::vector<std::vector<size_t>> groups = {{0, 1}, {2, 4}, {3, 7}, {5}};
  for (size_t g = 0; g < groups.size(); ++g)
    reader::Deduplicate(batch, "group " + std::to_string(g), groups[g], scope, hash);
}

template <typename A, typename B>
bool Equal(const A& a, const B& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end());
}

void ExpectEqual(const FlatMapBatch& a, const FlatMapBatch& b) {
  ASSERT_EQ(a.rows, b.rows);
  ASSERT_EQ(a.sparse.size(), b.sparse.size());
  for (size_t i = 0; i < a.sparse.size(); ++i) {
    const SparseColumn &x = a.sparse[i], &y = b.sparse[i];
    EXPECT_EQ(x.name, y.name);
    EXPECT_EQ(x.group, y.group) << x.name;
    EXPECT_EQ(x.weighted, y.weighted) << x.name;
    EXPECT_EQ(x.present.count, y.present.count) << x.name;
    EXPECT_TRUE(Equal(x.present.words, y.present.words)) << x.name;
    EXPECT_TRUE(Equal(x.offsets, y.offsets)) << x.name;
    EXPECT_TRUE(Equal(x.values, y.values)) << x.name;
    EXPECT_TRUE(Equal(x.weights, y.weights)) << x.name;
  }
  ASSERT_EQ(a.dense.size(), b.dense.size());
  for (size_t i = 0; i < a.dense.size(); ++i) {
    EXPECT_EQ(a.dense[i].name, b.dense[i].name);
    EXPECT_TRUE(Equal(a.dense[i].present.words, b.dense[i].present.words)) << a.dense[i].name;
    EXPECT_TRUE(Equal(a.dense[i].values, b.dense[i].values)) << a.dense[i].name;
  }
  for (uint64_t row = 0; row < a.rows; ++row) ASSERT_EQ(a.RowId(row), b.RowId(row));
}

void ExpectEqual(const reader::KeyedJaggedTensor& a, const reader::KeyedJaggedTensor& b) {
  EXPECT_EQ(a.keys, b.keys);
  EXPECT_EQ(a.rows, b.rows);
  EXPECT_TRUE(Equal(a.lengths, b.lengths));
  EXPECT_TRUE(Equal(a.offsets, b.offsets));
  EXPECT_TRUE(Equal(a.values, b.values));
  EXPECT_TRUE(Equal(a.weights, b.weights));
}

TEST(Dedup, ExpandingGivesTheRowsBackAlsoWhenAllHashesCollide) {
  const uint64_t seed = TestSeed();
  for (const uint64_t rows : {1, 2, 63, 64, 65, 500}) {
    for (const DedupScope scope : {DedupScope::kNeighbours, DedupScope::kBatch}) {
      for (const reader::RowHash hash :
           {reader::RowHash{reader::HashBytes}, reader::RowHash{OneHashForAll}}) {
        SCOPED_TRACE(testing::Message() << "HEADRACE_SEED=" << seed << " rows " << rows);
        FlatMapBatch batch = RandomBatch(rows, 10, seed);
        MakeGroups(&batch, scope, hash);
        reader::Validate(batch);
        for (const reader::DedupGroup& group : batch.groups) EXPECT_LE(group.unique_rows, rows);
        if (rows == 500) {
          EXPECT_LT(batch.groups[3].unique_rows, rows);
        }
        reader::ExpandAll(&batch);
        ExpectEqual(batch, RandomBatch(rows, 10, seed));
      }
    }
  }
}

TEST(Dedup, TheWorkedExample) {
  FlatMapBatch batch;
  batch.rows = 4;
  SparseColumn& u = batch.sparse.emplace_back();
  u.name = "u";
  u.present = {{0xf}, 4};
  for (const uint32_t offset : {0, 2, 4, 5, 7}) u.offsets.push_back(offset);
  for (const int64_t id : {1, 2, 1, 2, 7, 1, 2}) u.values.push_back(id);
  const size_t columns[] = {0};
  reader::Deduplicate(&batch, "u", columns, DedupScope::kBatch);
  const TensorBatch tensors = reader::Tensorize(batch, "");
  ASSERT_EQ(tensors.groups.size(), 1u);
  const reader::InverseKeyedJaggedTensor& group = tensors.groups[0];
  EXPECT_TRUE(Equal(group.unique.values, std::vector<int64_t>{1, 2, 7}));
  EXPECT_TRUE(Equal(group.unique.lengths, std::vector<int32_t>{2, 1}));
  EXPECT_TRUE(Equal(group.inverse, std::vector<int32_t>{0, 0, 1, 0}));
  EXPECT_TRUE(Equal(group.Expand().values, std::vector<int64_t>{1, 2, 1, 2, 7, 1, 2}));
  EXPECT_TRUE(tensors.sparse.keys.empty());
}

TEST(Dedup, CutsJoinsAndDroppedRowsKeepEveryRow) {
  const uint64_t seed = TestSeed();
  for (uint64_t round = 0; round < 20; ++round) {
    SCOPED_TRACE(testing::Message() << "HEADRACE_SEED=" << seed << " round " << round);
    std::mt19937_64 random(seed + round);
    const DedupScope scope = round % 2 == 0 ? DedupScope::kNeighbours : DedupScope::kBatch;
    FlatMapBatch joined, plain_joined;
    uint64_t first_row = 0;
    for (int part = 0; part < 4; ++part) {
      const uint64_t rows = 1 + random() % 150, batch_seed = random();
      FlatMapBatch batch = RandomBatch(rows, first_row, batch_seed);
      FlatMapBatch plain = RandomBatch(rows, first_row, batch_seed);
      first_row += rows;
      MakeGroups(&batch, scope);
      if (random() % 2 == 0) {
        std::vector<uint8_t> keep(rows);
        for (uint8_t& one : keep) one = random() % 3 != 0;
        keep[0] = 1;
        reader::KeepRows(&batch, keep);
        reader::KeepRows(&plain, keep);
        reader::Validate(batch);
      }
      if (random() % 2 == 0) {  // as shuffling does
        std::vector<uint32_t> order(batch.rows);
        std::iota(order.begin(), order.end(), 0);
        std::shuffle(order.begin(), order.end(), random);
        const size_t some = 1 + random() % order.size();
        order.resize(some);
        batch = reader::GatherRows(batch, order, reader::SplitSpans(batch));
        // The batch has exactly the unique rows that its rows use.
        for (const reader::DedupGroup& group : batch.groups)
          EXPECT_EQ(std::set<uint32_t>(group.inverse.begin(), group.inverse.end()).size(),
                    group.unique_rows);
        plain = reader::GatherRows(plain, order, reader::SplitSpans(plain));
        reader::Validate(batch);
      }
      const uint64_t first = random() % batch.rows, count = 1 + random() % (batch.rows - first);
      reader::AppendRows(&joined, batch, first, count);
      reader::AppendRows(&plain_joined, plain, first, count);
      reader::Validate(joined);
    }
    TensorBatch tensors = reader::Tensorize(joined, "label");
    EXPECT_EQ(tensors.groups.size(), 4u);
    for (const auto& group : tensors.groups) reader::Validate(group);
    reader::ExpandGroups(&tensors);
    const TensorBatch expected = reader::Tensorize(plain_joined, "label");
    ExpectEqual(tensors.sparse, expected.sparse);
    ExpectEqual(tensors.weighted_sparse, expected.weighted_sparse);
    reader::ExpandAll(&joined);
    ExpectEqual(joined, plain_joined);
  }
}

TEST(Dedup, TransformsOfUniqueRowsEqualThoseOfAllRows) {
  const auto step = [](std::string op, std::vector<std::string> inputs, std::string output,
                       reader::ParamMap params) {
    return reader::TransformSpec{
        std::move(op), std::move(output), std::move(inputs), std::move(params), "", 0, 0};
  };
  const std::vector<reader::TransformSpec> specs = {
      step("sigrid_hash", {"sparse:0"}, "sparse:0", {{"max", int64_t{5}}}),
      step("first_x", {"sparse:1"}, "sparse:1", {{"count", int64_t{2}}}),
      step("ngram", {"sparse:0"}, "pairs", {}),
      step("ngram", {"sparse:0"}, "again", {}),
      step("cartesian", {"sparse:0", "sparse:1"}, "one group", {}),
      step("cartesian", {"sparse:2", "sparse:5"}, "two groups", {}),
      step("id_list_transform", {"sparse:4", "sparse:6"}, "with a plain one",
           {{"mode", std::string("union")}}),
      step("compute_score", {"sparse:0", "sparse:1"}, "score", {{"mode", std::string("overlap")}}),
      step("random_crop", {"sparse:1"}, "crop", {{"count", int64_t{1}}}),
      step("sampling", {}, "", {{"rate", 0.7}}),
      step("sort_by_score", {"sparse:3"}, "sorted", {}),
      step("onehot", {"dense:0"}, "hot", {{"size", int64_t{8}}}),
      step("first_x", {"pairs"}, "pairs", {{"count", int64_t{3}}}),
  };
  const reader::TransformPlan plan(specs, 3);
  const uint64_t seed = TestSeed();
  for (const DedupScope scope : {DedupScope::kNeighbours, DedupScope::kBatch}) {
    SCOPED_TRACE(testing::Message() << "HEADRACE_SEED=" << seed);
    FlatMapBatch batch = RandomBatch(300, 7, seed), plain = RandomBatch(300, 7, seed);
    MakeGroups(&batch, scope);
    for (size_t i = 0; i < plan.size(); ++i) {
      plan.Apply(i, batch);
      plan.Apply(i, plain);
    }
    reader::Validate(batch);
    EXPECT_GE(batch.FindSparse("pairs")->group, 0);
    EXPECT_GE(batch.FindSparse("one group")->group, 0);
    EXPECT_GE(batch.FindSparse("sorted")->group, 0);
    EXPECT_LT(batch.FindSparse("two groups")->group, 0);
    EXPECT_LT(batch.FindSparse("crop")->group, 0);
    reader::ExpandAll(&batch);
    ExpectEqual(batch, plain);
  }
}

TEST(DedupPlan, FactorsFollowTheFormula) {
  // Rows per session S, chance d that a list is that of the row before:
  // factor = S / (1 + (S - 1)(1 - d)).
  std::mt19937_64 random(5);
  std::uniform_real_distribution<double> uniform;
  for (const double sessions : {4.0, 16.0}) {
    for (const double repeat : {0.5, 0.9, 1.0}) {
      FlatMapBatch batch;
      batch.rows = 40'000;
      SparseColumn& column = batch.sparse.emplace_back();
      column.name = "a";
      column.present.words.assign(batch.rows / 64, ~uint64_t{0});
      column.present.count = batch.rows;
      reader::ScalarColumn& session = batch.scalars.emplace_back();
      session.name = "session";
      int64_t id = 0;
      column.offsets.push_back(0);
      for (uint64_t row = 0; row < batch.rows; ++row) {
        const bool begins = row % static_cast<uint64_t>(sessions) == 0;
        id += begins || uniform(random) >= repeat;
        column.values.push_back(id);
        column.offsets.push_back(static_cast<uint32_t>(row + 1));
        session.integers.push_back(static_cast<int64_t>(row / static_cast<uint64_t>(sessions)));
      }
      reader::DedupSample sample;
      reader::AddToSample(batch, "session", "", &sample);
      const double expected = sessions / (1 + (sessions - 1) * (1 - repeat));
      const auto measured = reader::MeasureGroup(sample, {0}, DedupScope::kNeighbours, batch.rows);
      EXPECT_NEAR(measured.now / expected, 1, 0.05);
      ASSERT_TRUE(measured.clustered);
      EXPECT_NEAR(*measured.clustered / expected, 1, 0.05);
    }
  }
}

TEST(DedupPlan, RowsThatLackAFeatureSaveNothing) {
  // One row in four has a list, another one each time.
  FlatMapBatch batch;
  batch.rows = 4000;
  SparseColumn& column = batch.sparse.emplace_back();
  column.name = "a";
  column.offsets.push_back(0);
  column.present.words.assign((batch.rows + 63) / 64, 0);
  for (uint64_t row = 0; row < batch.rows; ++row) {
    if (row % 4 == 0) {
      for (int64_t i = 0; i < 30; ++i) column.values.push_back(static_cast<int64_t>(row) + i);
      column.present.words[row >> 6] |= uint64_t{1} << (row & 63);
      ++column.present.count;
    }
    column.offsets.push_back(static_cast<uint32_t>(column.values.size()));
  }
  reader::DedupSample sample;
  reader::AddToSample(batch, "", "", &sample);
  const auto measured = reader::MeasureGroup(sample, {0}, DedupScope::kNeighbours, batch.rows);
  EXPECT_NEAR(measured.now, 2, 0.01);
  EXPECT_LT(measured.bytes_now, 1);
  EXPECT_GT(measured.bytes_now, 0.9);
}

class Folder {
 public:
  Folder() {
    std::string pattern = (fs::temp_directory_path() / "dedup_test.XXXXXX").string();
    path_ = ::mkdtemp(pattern.data());
  }
  ~Folder() { fs::remove_all(path_); }
  const fs::path& path() const { return path_; }

 private:
  fs::path path_;
};

WorkloadSpec SmallTable(bool clustered) {
  WorkloadSpec spec = ForModel("rm1", 0.02, 2000, 11);
  spec.stripe_rows = 500;
  spec.clustered = clustered;
  return spec;
}

reader::DedupSample SampleOf(const fs::path& folder) {
  const reader::Table table = reader::OpenTable(folder.string());
  auto projection = reader::LoadPipeline((folder / "pipeline.toml").string()).projection;
  reader::DedupSample sample;
  for (const reader::Split& split : table.splits)
    reader::AddToSample(reader::ReadSplit(table, split, projection), "session_id", "timestamp",
                        &sample);
  return sample;
}

TEST(DedupPlan, FactorsOfGeneratedSessionsFollowTheFormula) {
  const Folder folder;
  for (const double repeat : {0.8, 0.95}) {
    SCOPED_TRACE(repeat);
    WorkloadSpec spec = ForModel("rm1", 0.01, 6000, 3);
    spec.coverage_mean = 1;
    spec.user_side_ratio = 1;
    spec.duplication_low = spec.duplication_high = repeat;
    const std::string name = "t" + std::to_string(repeat);
    for (const bool clustered : {false, true}) {
      spec.clustered = clustered;
      GenerateTable(spec, folder.path() / (name + (clustered ? "c" : "")));
    }
    const reader::DedupSample loose = SampleOf(folder.path() / name),
                              tight = SampleOf(folder.path() / (name + "c"));
    ASSERT_EQ(loose.sessions.size(), 6000u);
    const double s = spec.rows_per_session, expected = s / (1 + (s - 1) * (1 - repeat));
    double sum = 0;
    for (size_t i = 0; i < loose.features.size(); ++i) {
      const auto now = reader::MeasureGroup(tight, {i}, DedupScope::kNeighbours, 6000);
      const auto then = reader::MeasureGroup(loose, {i}, DedupScope::kNeighbours, 6000);
      EXPECT_NEAR(now.now / expected, 1, 0.05) << now.name;
      // What clustering would give, told without clustering.
      ASSERT_TRUE(then.clustered);
      EXPECT_NEAR(*then.clustered / now.now, 1, 0.05) << now.name;
      EXPECT_LT(then.now, 1.1) << now.name;
      sum += now.now;
    }
    EXPECT_GT(sum, 0);
  }
}

RowChecksums RunTable(const fs::path& folder, const reader::Settings& settings) {
  RowChecksums sums;
  reader::PipelineSpec spec = reader::LoadPipeline((folder / "pipeline.toml").string(), settings);
  auto consumer = MakeConsumer(spec, &sums, nullptr);
  reader::Pipeline pipeline(std::move(spec), std::move(consumer));
  pipeline.Run();
  return sums;
}

TEST(DedupPipeline, DeliversWhatThePlainRunDelivers) {
  const Folder folder;
  for (const bool clustered : {false, true}) {
    const fs::path table = folder.path() / (clustered ? "clustered" : "time");
    GenerateTable(SmallTable(clustered), table);
    const RowChecksums plain = RunTable(table, {});
    EXPECT_EQ(plain.rows, 2000u);
    for (const char* mode : {"auto", "on"}) {
      for (const char* scope : {"neighbours", "batch"}) {
        for (const char* parallelism : {"1", "3"}) {
          SCOPED_TRACE(testing::Message()
                       << mode << " " << scope << " " << parallelism << " " << clustered);
          const RowChecksums sums = RunTable(table, {{"dedup.mode", mode},
                                                     {"dedup.scope", scope},
                                                     {"decode.parallelism", parallelism},
                                                     {"transform.parallelism", parallelism},
                                                     {"pipeline.batch_rows", "333"}});
          EXPECT_EQ(sums.rows, plain.rows);
          EXPECT_EQ(sums.multiset, plain.multiset);
        }
      }
    }
  }
}

// What a run delivers, and whether it went straight into tensors.
struct Delivered {
  RowChecksums sums;
  bool direct = true;
};
Delivered RunText(const std::string& text, const fs::path& folder,
                  const reader::Settings& settings) {
  Delivered delivered;
  reader::PipelineSpec spec = reader::ParsePipeline(text, "p.toml", folder.string(), settings);
  auto consumer = MakeConsumer(spec, &delivered.sums, nullptr);
  reader::Pipeline pipeline(std::move(spec), std::move(consumer));
  pipeline.Run();
  for (const std::string& note : pipeline.notes())
    if (note.find("layout flatmap was taken") != std::string::npos) delivered.direct = false;
  return delivered;
}

// Straight into tensors with groups against a vector for each feature without: whatever is set
// beside, the same rows, in file order in the same order.
TEST(DedupPipeline, DirectDeliversWhatFlatMapDeliversWithoutGroups) {
  const uint64_t seed = TestSeed();
  std::mt19937_64 random(seed);
  const Folder folder;
  for (int round = 0; round < 10; ++round) {
    SCOPED_TRACE(testing::Message() << "HEADRACE_SEED=" << seed << " round " << round);
    WorkloadSpec workload = ForModel("rm1", 0.02, 300 + random() % 1200, random() % 1000);
    workload.stripe_rows = 100 + random() % 500;
    workload.clustered = random() % 4 != 0;
    workload.duplication_low = workload.duplication_high = random() % 2 == 0 ? 0.5 : 0.95;
    fs::path table = folder.path() / std::to_string(round);
    GenerateTable(workload, table);
    if (random() % 3 == 0) {
      RewriteOptions options;
      options.columns["sparse.value.element"].dictionary =
          random() % 2 == 0 ? reader::dwrf::DictionaryUse::kAlways
                            : reader::dwrf::DictionaryUse::kShared;
      const fs::path rewritten = folder.path() / (std::to_string(round) + "d");
      RewriteTable(table.string(), rewritten.string(), options);
      table = rewritten;
    }
    std::string text = ReadWholeFile((table / "pipeline.toml").string());
    const bool shuffles = random() % 4 == 0, rebatches = random() % 4 == 0;
    const std::string old = "operators = [\"batch\", \"tensorize\"]";
    const size_t place = text.find(old);
    ASSERT_NE(place, std::string::npos);
    text.replace(place, old.size(),
                 fmt::format("operators = [{}\"batch\", \"tensorize\"{}]",
                             shuffles ? "\"shuffle\", " : "", rebatches ? ", \"rebatch\"" : ""));
    if (random() % 3 == 0) text += "\n[[filter]]\ncolumn = \"label\"\nin = [0]\n";
    if (random() % 3 == 0) text += "\n[[transform]]\nop = \"sampling\"\nrate = 0.6\n";
    const bool ordered = random() % 2 == 0;
    const uint64_t batch_rows = 1 + random() % 400;
    reader::Settings settings = {{"pipeline.order", ordered ? "file" : "any"},
                                 {"pipeline.batch_rows", std::to_string(batch_rows)}};
    if (shuffles) settings.push_back({"pipeline.shuffle_rows", "300"});
    if (rebatches)
      settings.push_back({"pipeline.worker_rows", std::to_string(1 + random() % batch_rows)});
    reader::Settings plain = settings;
    plain.push_back({"pipeline.layout", "flatmap"});
    settings.push_back({"dedup.mode", random() % 2 == 0 ? "on" : "auto"});
    settings.push_back({"dedup.scope", random() % 2 == 0 ? "batch" : "neighbours"});
    settings.push_back({"decode.parallelism", std::to_string(1 + random() % 3)});
    if (random() % 3 == 0)
      settings.push_back({"pipeline.memory", kAddressSanitizer ? "2GiB" : "600MiB"});
    const Delivered expected = RunText(text, table, plain), have = RunText(text, table, settings);
    EXPECT_TRUE(have.direct);
    EXPECT_EQ(have.sums.rows, expected.sums.rows);
    EXPECT_EQ(have.sums.multiset, expected.sums.multiset);
    if (ordered) {
      EXPECT_EQ(have.sums.ordered, expected.sums.ordered);
    }
  }
}

TEST(DedupPipeline, TrainsTheSameModel) {
  const Folder folder;
  GenerateTable(SmallTable(true), folder.path() / "t");
  double losses[3];
  size_t i = 0;
  for (const auto& [mode, dedup] : {std::pair{"off", "true"}, {"on", "true"}, {"on", "false"}}) {
    reader::PipelineSpec spec = reader::LoadPipeline(
        (folder.path() / "t" / "pipeline.toml").string(), {{"dedup.mode", mode},
                                                           {"consumer.kind", "trainer"},
                                                           {"consumer.model.rows", "500"},
                                                           {"consumer.model.dedup", dedup},
                                                           {"pipeline.order", "file"},
                                                           {"pipeline.batch_rows", "100"},
                                                           {"source.epochs", "5"}});
    TrainingFigures figures;
    auto consumer = MakeConsumer(spec, nullptr, &figures);
    reader::Pipeline(std::move(spec), std::move(consumer)).Run();
    EXPECT_EQ(figures.steps, 100u);
    losses[i++] = figures.last_loss;
  }
  EXPECT_NEAR(losses[0], losses[1], 1e-5);
  EXPECT_EQ(losses[0], losses[2]);
}

// --ceiling gives a consumer one batch again and again: each step has to cost what the first did.
TEST(DedupTrainer, ABatchThatWasExpandedIsAsItCame) {
  FlatMapBatch batch = RandomBatch(200, 0, 1);
  MakeGroups(&batch, DedupScope::kBatch);
  reader::Element element;
  element.payload = reader::Tensorize(batch, "label");
  const auto& tensors = element.payload.As<TensorBatch>();
  const uint64_t bytes = tensors.MemoryBytes();
  reader::PipelineSpec spec;
  spec.consumer.kind = reader::ConsumerKind::kTrainer;
  spec.consumer.model.rows = 50;
  spec.consumer.model.dedup = false;
  TrainingFigures figures;
  const auto consumer = MakeConsumer(spec, nullptr, &figures);
  for (int step = 0; step < 3; ++step) {
    consumer->Step(std::move(element), nullptr);
    ASSERT_EQ(tensors.groups.size(), 4u);
    EXPECT_EQ(tensors.MemoryBytes(), bytes);
  }
  EXPECT_EQ(figures.steps, 3u);
}

TEST(DedupTrainer, ForwardIsEqualToTheBit) {
  const uint64_t seed = TestSeed();
  SCOPED_TRACE(testing::Message() << "HEADRACE_SEED=" << seed);
  FlatMapBatch batch = RandomBatch(200, 0, seed);
  const TensorBatch plain = reader::Tensorize(batch, "label");
  MakeGroups(&batch, DedupScope::kBatch);
  const TensorBatch grouped = reader::Tensorize(batch, "label");
  ASSERT_EQ(grouped.groups.size(), 4u);
  reader::ModelSpec options;
  options.rows = 50;
  Dlrm a(options, 1, plain), b(options, 1, grouped);
  for (int step = 0; step < 100; ++step) {
    if (step == 0) {
      EXPECT_EQ(a.Loss(plain), b.Loss(grouped));
      EXPECT_EQ(a.logits(), b.logits());
    }
    EXPECT_NEAR(a.Step(plain), b.Step(grouped), 1e-5) << "step " << step;
  }
}

std::string Refusal(const fs::path& folder, const std::string& section) {
  const std::string text = ReadWholeFile((folder / "pipeline.toml").string()) + section;
  try {
    reader::Pipeline pipeline(reader::ParsePipeline(text, "p.toml", folder.string()),
                              std::make_unique<Trainer>(reader::ConsumerSpec(), nullptr));
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::kUsage);
    return error.what();
  }
  return "taken";
}

TEST(DedupSection, RefusesMistakesByName) {
  const Folder folder;
  const GeneratedTable table = GenerateTable(SmallTable(true), folder.path() / "t");
  const auto names = SampleOf(folder.path() / "t").features;
  std::string plain, weighted;
  for (const auto& feature : names) (feature.weighted ? weighted : plain) = feature.name;
  ASSERT_FALSE(plain.empty());
  const std::pair<std::string, std::string> cases[] = {
      {"mod = \"on\"", "did you mean 'mode'"},
      {"mode = \"atuo\"", "did you mean 'auto'"},
      {"mode = \"on\"\nscope = \"neighbors\"", "did you mean 'neighbours'"},
      {"mode = \"on\"\nmin_factor = 0.5", "min_factor is at least 1"},
      {"mode = \"on\"\ngroups = [\"" + plain + "\"]", "list of lists"},
      {"mode = \"on\"\ngroups = [[]]", "list of lists"},
      {"mode = \"on\"\ngroups = [[\"" + plain + "0\"]]", "did you mean"},
      {"mode = \"on\"\ngroups = [[\"" + plain + "\"], [\"" + plain + "\"]]", "is in two groups"},
      {"mode = \"on\"\ngroups = [[\"" + plain + "\", \"" + weighted + "\"]]",
       "with weights and without"},
  };
  for (const auto& [section, message] : cases) {
    if (weighted.empty() && message.find("with weights") == 0) continue;
    const std::string refusal = Refusal(folder.path() / "t", "\n[dedup]\n" + section + "\n");
    EXPECT_NE(refusal.find(message), std::string::npos) << section << ": " << refusal;
  }
}

}  // namespace
}  // namespace headrace::workloads
