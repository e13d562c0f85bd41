// A stored decision as text: what its detail lacks, or has of another type, is left out.
#include "experiments/decision_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <string>

#include "analysis/run/read_run.h"

namespace headrace::experiments {
namespace {

using testing::HasSubstr;
using testing::Not;

TEST(DecisionText, ADamagedDetailIsReadAsFarAsItGoes) {
  const struct {
    const char* detail;
    const char* observed;
  } cases[] = {
      {R"({"effect_ratio": 0.1, "effect_interval": {"low": 0.05, "high": 0.15}, "pairs_count": 6})",
       "+10.0 % [5.0, 15.0], 6 pairs of blocks"},
      {R"({"effect_ratio": 0.1})", "+10.0 %, before against after"},
      {R"({"effect_ratio": 0.1, "effect_interval": null})", "+10.0 %, before against after"},
      {R"({"effect_ratio": 0.1, "effect_interval": [1, 2]})", "+10.0 %, before against after"},
      {R"({"effect_ratio": "much", "then_limited_by": 7})", "100 batches/s"},
      {"[]", "100 batches/s"},
      {"3", "100 batches/s"},
      {"{", "100 batches/s"},
      {"", "100 batches/s"},
  };
  for (const auto& [detail, observed] : cases) {
    analysis::DecisionRow decision;
    decision.predicted_rate = decision.observed_rate = 100;
    decision.verdict = "kept";
    decision.detail_json = detail;
    EXPECT_THAT(DecisionText(decision), HasSubstr(observed)) << detail;
  }
}

TEST(DecisionText, AHostileDetailIsLeftOut) {
  for (const std::string& detail :
       {R"({"effect_ratio": 0.1, "x": )" + std::string(1'000'000, '['),
        R"({"effect_ratio": 0.1, "x": )" + std::string(400'000, '[') + std::string(400'000, ']') +
            "}",
        R"({"effect_ratio": 0.1, "x": ")" + std::string(2'000'000, 'x') + "\"}"}) {
    analysis::DecisionRow decision;
    decision.index = std::numeric_limits<int64_t>::max();
    decision.observed_rate = 100;
    decision.detail_json = detail;
    EXPECT_FALSE(ReadDetail(detail).whole);
    EXPECT_THAT(DecisionText(decision), Not(HasSubstr("10.0 %")));
  }
}

}  // namespace
}  // namespace headrace::experiments
