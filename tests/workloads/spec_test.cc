#include "workloads/spec.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"

namespace headrace::workloads {
namespace {

using testing::HasSubstr;

std::string ErrorOf(const std::string& text) {
  try {
    ParseSpec(text, "my.toml");
  } catch (const Error& error) {
    return std::to_string(static_cast<int>(error.code())) + " " + error.what();
  }
  return "no error";
}

TEST(Spec, BuiltInModelsKeepTheirPublishedShares) {
  struct Case {
    const char* name;
    double features_used;  // of the stored ones, published
  };
  for (const Case& test : {Case{"rm1", 0.1095}, Case{"rm2", 0.0985}, Case{"rm3", 0.0926}}) {
    for (const double fraction : {1.0, 0.25, 0.0625, 0.02}) {
      SCOPED_TRACE(testing::Message() << test.name << " at " << fraction);
      const FeatureCounts counts = ScaledCounts(ForModel(test.name, fraction, 1000, 1));
      const double stored = counts.dense + counts.sparse + counts.weighted;
      EXPECT_NEAR((counts.used_dense + counts.used_sparse) / stored, test.features_used,
                  0.5 / stored + 1e-4);
      EXPECT_GE(counts.used_sparse, 1U);
      EXPECT_GE(counts.derived, 1U);
    }
  }
}

TEST(Spec, CountsOfThePublishedTableAtFullSize) {
  const FeatureCounts counts = ScaledCounts(ForModel("rm1", 1, 1000, 1));
  EXPECT_EQ(counts.dense, 12115U);
  EXPECT_EQ(counts.sparse + counts.weighted, 1763U);
  EXPECT_EQ(counts.used_dense, 1221U);
  EXPECT_EQ(counts.used_sparse, 298U);
  EXPECT_EQ(counts.derived, 304U);
}

TEST(Spec, MistakesNamePlaceAndNearestKey) {
  struct Case {
    const char* name;
    const char* text;
    const char* expected;
  };
  const Case cases[] = {
      {"unknown key", "[table]\ncoverage_maen = 0.5\n", "my.toml:2:17"},
      {"nearest", "[table]\ncoverage_maen = 0.5\n", "'coverage_mean'"},
      {"section", "[tabel]\n", "'table'"},
      {"range", "[table]\ncoverage_mean = 1.5\n", "it must be 0.01 to 1"},
      {"type", "[table]\ncoverage_mean = \"x\"\n", "is not a number"},
      {"syntax", "[table\n", "my.toml:1"},
      {"empty", "", "stores no features"},
  };
  for (const Case& test : cases)
    EXPECT_THAT(ErrorOf(test.text), HasSubstr(test.expected)) << test.name;
}

TEST(Spec, UnknownWorkloadSuggestsTheNearest) {
  try {
    LoadSpec("rm4");
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::kUsage);
    EXPECT_THAT(error.what(), HasSubstr("rm1"));
  }
}

// Its parser would end the process.
TEST(Spec, KeysOfManyPartsAreRefused) {
  std::string text = "name = \"x\"\n";
  for (int i = 0; i < 200000; ++i) text += "a.";
  EXPECT_THAT(ErrorOf(text + "b = 1"), HasSubstr("5 my.toml:2: a key of more than 33 parts"));
}

}  // namespace
}  // namespace headrace::workloads
