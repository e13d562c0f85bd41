// What a study keeps as text: it comes back as it was, and what is something else is refused.
#include "experiments/study_files.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "base/error.h"

namespace headrace::experiments {
namespace {

using testing::Pair;
using testing::UnorderedElementsAre;

TEST(StudyFiles, ComeBackAsTheyWere) {
  const StudyInputs inputs = {{"version", "1"}, {"pipeline of \"x\"", "a\nb\t\\"}};
  EXPECT_EQ(ParseInputs(InputsJson(inputs)), inputs);
  EXPECT_EQ(ParseRun(RunJson(42)), 42);
  analysis::TableFacts facts;
  facts.table = "t";
  facts.rows = 1'000'000'007;
  facts.bytes = 0.1;
  facts.coverage = 0.25;
  facts.streams.p95 = 1e300;
  const analysis::TableFacts again = ParseFacts(FactsJson(facts), "x");
  EXPECT_EQ(FactsJson(again), FactsJson(facts));
  EXPECT_EQ(again.rows, facts.rows);
  EXPECT_EQ(again.coverage, 0.25);
  EXPECT_FALSE(again.list_length_mean);
}

TEST(StudyFiles, OfAnotherProgramAreNoStudy) {
  const std::string deep = R"({"schema": )" + std::string(1'000'000, '[');
  for (const std::string& text :
       {std::string(), std::string("{"), std::string("[]"), std::string("{}"),
        std::string(R"({"schema": "headrace.study/1"})"),
        std::string(R"({"schema": ["headrace.study/1"], "inputs": {}})"),
        std::string(R"({"schema": "headrace.study/1", "inputs": []})"), deep,
        deep + std::string(1'000'000, ']') + R"(, "inputs": {}})"})
    EXPECT_FALSE(ParseInputs(text)) << text.substr(0, 100);
  EXPECT_THAT(*ParseInputs(R"({"schema": "headrace.study/1", "inputs": {"a": "1", "b": 2}})"),
              UnorderedElementsAre(Pair("a", "1")));
}

TEST(StudyFiles, DamagedStepsAreRefused) {
  for (const char* text :
       {"", "{", "{}", "[1]", R"({"run_id": "1"})", R"({"run_id": 0})", R"({"run_id": -1})",
        R"({"run_id": 1.5})", R"({"run_id": 18446744073709551615})"}) {
    EXPECT_THROW(ParseRun(text), Error) << text;
    EXPECT_THROW(ParseFacts(text, "x"), Error) << text;
  }
  const std::string whole = FactsJson({});
  EXPECT_NO_THROW(ParseFacts(whole, "x"));
  for (const char* wrong : {"-1", "true", "\"1\"", "null", "[]"}) {
    std::string text = whole;
    text.replace(text.find("\"bytes\": 0.0") + 9, 3, wrong);
    EXPECT_THROW(ParseFacts(text, "x"), Error) << wrong;
  }
  for (const auto& [place, wrong] :
       std::vector<std::pair<std::string, nlohmann::json>>{{"/rows", -5},
                                                           {"/rows", 1.5},
                                                           {"/rows", 1e300},
                                                           {"/used_bytes", -1},
                                                           {"/streams/count", -1},
                                                           {"/reads", nlohmann::json::array()},
                                                           {"/coverage", "x"}}) {
    nlohmann::json edited = nlohmann::json::parse(whole);
    edited[nlohmann::json::json_pointer(place)] = wrong;
    EXPECT_THROW(ParseFacts(edited.dump(), "x"), Error) << place << " " << wrong;
  }
}

TEST(StudyFiles, PairsOfARungComeBackAndDamagedOnesAreRefused) {
  RungPairs pairs;
  pairs.runs = {{1, 2}, {4, 3}};
  EXPECT_EQ(ParsePairs(PairsJson(pairs)).runs, pairs.runs);
  EXPECT_FALSE(ParsePairs(PairsJson(pairs)).memory_bytes);
  pairs.memory_bytes = 1e8;
  pairs.unbounded_bytes = 2e8;
  EXPECT_EQ(ParsePairs(PairsJson(pairs)).memory_bytes, 1e8);
  EXPECT_EQ(ParsePairs(PairsJson(pairs)).unbounded_bytes, 2e8);
  RungPairs none;
  none.left_out = "the table is \"too small\"";
  EXPECT_EQ(ParsePairs(PairsJson(none)).left_out, none.left_out);
  for (const char* text :
       {"", "{}", "[]", R"({"pairs": []})", R"({"pairs": [[1]]})", R"({"pairs": [[1, 2, 3]]})",
        R"({"pairs": [[1, -2]]})", R"({"pairs": [[1, 0]]})", R"({"pairs": [["1", 2]]})",
        R"({"pairs": {"a": [1, 2]}})", R"({"left_out": 1})", R"({"left_out": ""})",
        R"({"left_out": "x", "pairs": [[1, 2]]})", R"({"pairs": [[1, 2]], "memory_bytes": 0})",
        R"({"pairs": [[1, 2]], "memory_bytes": "1"})",
        R"({"pairs": [[1, 2]], "unbounded_bytes": -1})"})
    EXPECT_THROW(ParsePairs(text), Error) << text;
}

TEST(StudyFiles, AGeneratedTableSaysOfWhichModel) {
  EXPECT_EQ(ParseGenerated(R"({"name": "rm1", "feature_fraction": 0.5})").feature_ratio, 0.5);
  for (const char* ratio : {"0", "-1", "1.5", "\"1\"", "null", "1e999"}) {
    const std::string text = std::string(R"({"name": "rm1", "feature_fraction": )") + ratio + "}";
    EXPECT_FALSE(ParseGenerated(text).feature_ratio) << ratio;
  }
  for (const char* text : {"", "{", "[]", R"({"name": 1})"})
    EXPECT_EQ(ParseGenerated(text).model, "");
}

}  // namespace
}  // namespace headrace::experiments
