#include "workloads/pipeline_text.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <set>

#include "reader/pipeline/spec.h"
#include "reader/transforms/plan.h"
#include "workloads/generator.h"

namespace headrace::workloads {
namespace {

namespace fs = std::filesystem;
using reader::ColumnKind;

class PipelineTextTest : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    std::string pattern = (fs::temp_directory_path() / "pipeline_text.XXXXXX").string();
    folder_ = ::mkdtemp(pattern.data());
    table_ = GenerateTable(ForModel(GetParam(), 0.0625, 200, 1), folder_ / "table");
    spec_ = reader::LoadPipeline(folder_ / "table/pipeline.toml");
  }
  void TearDown() override { fs::remove_all(folder_); }

  fs::path folder_;
  GeneratedTable table_;
  reader::PipelineSpec spec_;
};

INSTANTIATE_TEST_SUITE_P(Models, PipelineTextTest, testing::Values("rm1", "rm2", "rm3"),
                         [](const auto& info) { return std::string(info.param); });

TEST_P(PipelineTextTest, ProjectsTheUsedFeatures) {
  std::set<std::string> expected, found;
  for (size_t i = 0; i < table_.features.size(); ++i)
    if (table_.used[i]) expected.insert(FeatureColumn(table_.features[i]));
  for (const auto& request : spec_.projection.features)
    found.insert(reader::dwrf::FeatureName(request));
  EXPECT_EQ(found, expected);
  EXPECT_EQ(spec_.label, "label");
}

TEST_P(PipelineTextTest, MakesTheDerivedFeaturesAndNormalisesEveryUsedOne) {
  std::set<std::string> derived, normalised;
  for (const auto& transform : spec_.transforms)
    (transform.output.starts_with("derived:") ? derived : normalised).insert(transform.output);
  EXPECT_EQ(derived.size(), ScaledCounts(table_.spec).derived);
  EXPECT_EQ(normalised.size(), spec_.projection.features.size());
}

TEST_P(PipelineTextTest, TransformsAcceptTheirParametersAndColumns) {
  std::set<std::string> missing;
  for (const auto& transform : spec_.transforms)
    if (reader::TransformRegistry::Global().Find(transform.op) == nullptr)
      missing.insert(transform.op);
  std::erase_if(spec_.transforms, [&](const auto& t) { return missing.contains(t.op); });
  const reader::TransformPlan plan(spec_.transforms, spec_.seed);
  std::vector<reader::AvailableColumn> columns = {{"session_id", ColumnKind::kInteger},
                                                  {"timestamp", ColumnKind::kInteger}};
  for (size_t i = 0; i < table_.features.size(); ++i) {
    const Feature& feature = table_.features[i];
    if (!table_.used[i]) continue;
    columns.push_back({FeatureColumn(feature), feature.kind == reader::FeatureKind::kDense
                                                   ? ColumnKind::kDense
                                               : feature.kind == reader::FeatureKind::kSparse
                                                   ? ColumnKind::kSparse
                                                   : ColumnKind::kWeightedSparse});
  }
  plan.ValidateAgainst(columns);
  std::string names;
  for (const std::string& name : missing) names += " " + name;
  if (!missing.empty()) GTEST_SKIP() << "not checked, operators that this build lacks:" << names;
}

}  // namespace
}  // namespace headrace::workloads
