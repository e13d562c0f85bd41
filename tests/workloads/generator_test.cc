#include "workloads/generator.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/file.h"
#include "reader/dwrf/feature_stream.h"
#include "reader/dwrf/file_reader.h"
#include "reader/dwrf/projection.h"
#include "workloads/feature_set.h"

namespace headrace::workloads {
namespace {

namespace fs = std::filesystem;
namespace dwrf = reader::dwrf;
using reader::FeatureKind;

// An empty place for a table, removed at the end.
class TableFolder {
 public:
  TableFolder() {
    std::string pattern = (fs::temp_directory_path() / "generator_test.XXXXXX").string();
    path_ = ::mkdtemp(pattern.data());
  }
  ~TableFolder() { fs::remove_all(path_); }
  std::string operator/(const std::string& name) const { return (path_ / name).string(); }
  const fs::path& path() const { return path_; }

 private:
  fs::path path_;
};

// What the files hold, found by reading them.
struct Characteristics {
  double rows = 0;
  double dense_coverage = 0, sparse_coverage = 0;  // means over features
  double lists = 0, ids = 0;
  double used_bytes = 0, all_bytes = 0;
};

dwrf::Projection ProjectionOf(const std::vector<Feature>& features,
                              const std::vector<bool>& chosen) {
  dwrf::Projection projection;
  for (size_t i = 0; i < features.size(); ++i)
    if (chosen[i])
      projection.features.push_back(
          {ColumnName(features[i].kind), dwrf::MapKey::Of(int64_t{features[i].key})});
  return projection;
}

Characteristics ReadBack(const GeneratedTable& table, const std::string& folder) {
  Characteristics found;
  double dense = 0, sparse = 0;  // set presence bits
  const dwrf::Projection everything =
      ProjectionOf(table.features, std::vector<bool>(table.features.size(), true));
  const dwrf::Projection used = ProjectionOf(table.features, table.used);
  for (const auto& entry : fs::directory_iterator(folder)) {
    if (entry.path().extension() != ".dwrf") continue;
    const auto file = dwrf::FileReader::Open(reader::OpenFileSource(entry.path().string()));
    for (size_t s = 0; s < file->num_stripes(); ++s) {
      const auto stripe = file->ReadStripe(s);
      found.used_bytes += static_cast<double>(MakePlan(*file, stripe, used).wanted_bytes());
      dwrf::StripePlan plan = MakePlan(*file, stripe, everything);
      found.all_bytes += static_cast<double>(plan.wanted_bytes());
      const reader::FlatMapBatch batch =
          dwrf::Extract(dwrf::Decode(dwrf::Decompress(Fetch(std::move(plan), file->source()))));
      found.rows += static_cast<double>(batch.rows);
      for (const auto& column : batch.dense) dense += static_cast<double>(column.present.count);
      for (const auto& column : batch.sparse) {
        sparse += static_cast<double>(column.present.count);
        found.ids += static_cast<double>(column.values.size());
      }
    }
  }
  const FeatureCounts counts = ScaledCounts(table.spec);
  found.dense_coverage = dense / found.rows / counts.dense;
  found.sparse_coverage = sparse / found.rows / (counts.sparse + counts.weighted);
  found.lists = sparse;
  return found;
}

TEST(Generator, WrittenTablesHaveThePublishedCharacteristics) {
  for (const char* model : {"rm1", "rm2", "rm3"}) {
    for (const double fraction : {0.0625, 0.02}) {
      for (const uint64_t partitions : {1, 2}) {
        SCOPED_TRACE(testing::Message()
                     << model << " at " << fraction << ", files: " << partitions);
        const TableFolder folder;
        WorkloadSpec spec = ForModel(model, fraction, 3000, 11);
        spec.partitions = partitions;
        spec.stripe_rows = 1024;
        const GeneratedTable table = GenerateTable(spec, folder / "table");
        const Characteristics found = ReadBack(table, folder / "table");
        EXPECT_EQ(found.rows, 3000);
        EXPECT_NEAR(found.dense_coverage, spec.coverage_mean, 0.01);
        EXPECT_NEAR(found.sparse_coverage, spec.coverage_mean, 0.01);
        EXPECT_NEAR(found.ids / found.lists / spec.list_length_mean, 1, 0.02);
        EXPECT_NEAR(found.used_bytes / found.all_bytes, spec.bytes_used_ratio, 0.02);
        EXPECT_EQ(found.all_bytes, static_cast<double>(table.feature_bytes()));
        const auto used = std::count(table.used.begin(), table.used.end(), true);
        const double share = (spec.used_dense_features + spec.used_sparse_features) /
                             (spec.dense_features + spec.sparse_features);
        EXPECT_NEAR(static_cast<double>(used) / static_cast<double>(table.used.size()), share,
                    0.51 / static_cast<double>(table.used.size()));
      }
    }
  }
}

TEST(Generator, BytesUsedHoldForEveryCodec) {
  for (const char* codec : {"none", "zlib", "snappy", "lz4", "zstd"}) {
    SCOPED_TRACE(codec);
    const TableFolder folder;
    WorkloadSpec spec = ForModel("rm1", 0.02, 600, 1);
    spec.compression = codec;
    const GeneratedTable table = GenerateTable(spec, folder / "table");
    EXPECT_NEAR(
        static_cast<double>(table.used_bytes()) / static_cast<double>(table.feature_bytes()),
        spec.bytes_used_ratio, 0.02);
  }
}

// The used features have longer lists and are in more rows than the others: few features, many
// bytes.
TEST(Generator, UsedFeaturesAreTheLargerOnes) {
  const TableFolder folder;
  const GeneratedTable table = GenerateTable(ForModel("rm1", 0.0625, 1500, 1), folder / "table");
  double coverage = 0, count = 0;
  for (size_t i = 0; i < table.features.size(); ++i) {
    if (!table.used[i]) continue;
    coverage += table.features[i].coverage;
    count += 1;
  }
  EXPECT_GT(coverage / count, 0.5);
}

TEST(Generator, SameSpecGivesTheSameBytes) {
  const TableFolder folder;
  WorkloadSpec spec = ForModel("rm2", 0.02, 700, 5);
  spec.partitions = 2;
  GenerateTable(spec, folder / "a");
  GenerateTable(spec, folder / "b");
  spec.seed = 6;
  GenerateTable(spec, folder / "c");
  for (const char* name : {"part-00000.dwrf", "part-00001.dwrf", "pipeline.toml", "table.json"}) {
    const std::string a = ReadWholeFile(folder / "a/" + name);
    EXPECT_TRUE(a == ReadWholeFile(folder / "b/" + name)) << name;
    EXPECT_FALSE(a == ReadWholeFile(folder / "c/" + name)) << name;
  }
}

TEST(Generator, ClusteredSessionsTakeFewerBytes) {
  const TableFolder folder;
  WorkloadSpec spec = ForModel("rm1", 0.02, 20'000, 1);
  const GeneratedTable logged = GenerateTable(spec, folder / "logged");
  spec.clustered = true;
  const GeneratedTable clustered = GenerateTable(spec, folder / "clustered");
  EXPECT_EQ(logged.raw_bytes > 0, true);
  EXPECT_LT(static_cast<double>(clustered.file_bytes),
            0.6 * static_cast<double>(logged.file_bytes));
}

TEST(Generator, TableJsonTellsTargetsAndProjection) {
  const TableFolder folder;
  const GeneratedTable table = GenerateTable(ForModel("rm1", 0.02, 300, 1), folder / "table");
  const auto json = nlohmann::json::parse(ReadWholeFile(folder / "table/table.json"));
  EXPECT_EQ(json["schema"], "headrace.table/1");
  EXPECT_EQ(json["targets"]["coverage_mean"], 0.45);
  EXPECT_EQ(json["features"].size(), table.features.size());
  const size_t used = json["projection"]["dense"].size() + json["projection"]["sparse"].size() +
                      json["projection"]["weighted"].size();
  EXPECT_EQ(used, static_cast<size_t>(std::count(table.used.begin(), table.used.end(), true)));
}

ExitCode CodeOf(const std::function<void()>& action) {
  try {
    action();
  } catch (const Error& error) {
    return error.code();
  }
  return ExitCode::kOk;
}

TEST(Generator, FolderIsWrittenCompletelyOrNotAtAll) {
  const TableFolder folder;
  const WorkloadSpec spec = ForModel("rm3", 0.02, 2000, 1);
  EXPECT_EQ(CodeOf([&] {
              GenerateTable(spec, folder / "table", [](double fraction, const std::string&) {
                if (fraction > 0.3) throw Error(ExitCode::kInterrupted, "stop");
              });
            }),
            ExitCode::kInterrupted);
  EXPECT_TRUE(fs::is_empty(folder.path()));
  GenerateTable(spec, folder / "new/deeper/table");
  EXPECT_TRUE(fs::exists(folder / "new/deeper/table/table.json"));
  fs::create_directory(folder / "empty");
  GenerateTable(spec, folder / "empty/");
  EXPECT_TRUE(fs::exists(folder / "empty/table.json"));
}

TEST(Generator, NonEmptyFolderIsRefusedAndForceLeavesOtherFiles) {
  const TableFolder folder;
  WorkloadSpec spec = ForModel("rm3", 0.02, 400, 1);
  spec.partitions = 3;
  GenerateTable(spec, folder / "table");
  std::ofstream(folder / "table/mine.txt") << "keep";
  const std::string before = ReadWholeFile(folder / "table/table.json");
  spec.partitions = 1;
  EXPECT_EQ(CodeOf([&] { GenerateTable(spec, folder / "table"); }), ExitCode::kUsage);
  EXPECT_EQ(ReadWholeFile(folder / "table/table.json"), before);
  GenerateTable(spec, folder / "table", {}, true);
  EXPECT_EQ(ReadWholeFile(folder / "table/mine.txt"), "keep");
  EXPECT_TRUE(fs::exists(folder / "table/part-00000.dwrf"));
  EXPECT_FALSE(fs::exists(folder / "table/part-00001.dwrf"));
  std::ofstream(folder / "file") << "x";
  EXPECT_EQ(CodeOf([&] { GenerateTable(spec, folder / "file", {}, true); }), ExitCode::kUsage);
}

TEST(Generator, SpecsThatCannotBeMadeAreRefused) {
  const TableFolder folder;
  struct Case {
    const char* name;
    std::function<void(WorkloadSpec*)> change;
  };
  const Case cases[] = {
      {"no rows", [](WorkloadSpec* spec) { spec->rows = 0; }},
      {"no features", [](WorkloadSpec* spec) { spec->feature_fraction = 0; }},
      {"more files than rows", [](WorkloadSpec* spec) { spec->partitions = 500; }},
      {"codec", [](WorkloadSpec* spec) { spec->compression = "gzp"; }},
  };
  for (const Case& test : cases) {
    WorkloadSpec spec = ForModel("rm3", 0.02, 100, 1);
    test.change(&spec);
    EXPECT_EQ(CodeOf([&] { GenerateTable(spec, folder / "table"); }), ExitCode::kUsage)
        << test.name;
  }
  EXPECT_TRUE(fs::is_empty(folder.path()));
}

}  // namespace
}  // namespace headrace::workloads
