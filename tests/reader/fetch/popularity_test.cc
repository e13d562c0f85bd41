#include "reader/fetch/popularity.h"

#include <gtest/gtest.h>

#include "base/error.h"

namespace headrace::reader {
namespace {

using Names = std::vector<std::string>;

TEST(Popularity, WeightsOfJobsAddUp) {
  EXPECT_EQ(PopularFeaturesOf("{\"features\": [\"a\", \"b\"], \"table\": \"t\"}\n\n"
                              "{\"features\": [\"c\", \"b\"], \"weight\": 3}\n"
                              "{\"features\": []}",
                              "log"),
            (Names{"b", "c", "a"}));
  EXPECT_EQ(PopularFeaturesOf("", "log"), Names());
  for (const char* bad :
       {"x", "{}", "{\"features\": [1]}", "[]", "{\"features\": [], \"weight\": \"1\"}"}) {
    try {
      PopularFeaturesOf(std::string("{\"features\": []}\n") + bad, "log");
      ADD_FAILURE() << "accepted " << bad;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ExitCode::kBadData);
      EXPECT_EQ(error.where(), "log:2");
    }
  }
}

TEST(Popularity, TheMostPopularFeaturesThatFitAreKept) {
  dwrf::StripePlan plan;
  const auto add = [&](const std::string& name, uint64_t bytes) {
    dwrf::FeaturePlan feature;
    feature.name = name;
    feature.in_stripe = true;
    feature.map_present = 0;  // shared
    feature.value.data = static_cast<uint32_t>(plan.streams.size());
    plan.streams.push_back({1, 0, dwrf::StreamKind::kData, 0, bytes, true});
    plan.features.push_back(feature);
  };
  plan.streams.push_back({1, 0, dwrf::StreamKind::kPresent, 0, 5, true});
  add("a", 100);
  add("b", 50);
  add("c", 20);
  EXPECT_EQ(FeaturesThatFit({"b", "a", "nowhere", "c"}, plan, 10, 800),
            (std::set<std::string>{"b", "c"}))
      << "a does not fit behind b";
  EXPECT_EQ(FeaturesThatFit({"a", "b"}, plan, 10, 1550), (std::set<std::string>{"a", "b"}));
  EXPECT_EQ(FeaturesThatFit({"a", "b"}, plan, 10, 1549), (std::set<std::string>{"a"}));
  EXPECT_EQ(FeaturesThatFit({"a"}, plan, 10, 1049), (std::set<std::string>{}));
}

}  // namespace
}  // namespace headrace::reader
