// What the comparison's page says of the parts that carry a change.
#include "dashboards/attribution.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "dashboards/render/render.h"
#include "tests/dashboards/golden.h"

namespace headrace::dashboards {
namespace {

using analysis::AttributedTo;
using analysis::Attribution;
using analysis::AttributionRow;
using analysis::CostFigures;

AttributionRow Operator(const char* name, const char* stage, CostFigures a, CostFigures b,
                        double share, double cpu_share) {
  AttributionRow row;
  row.name = name;
  row.stage = stage;
  row.a = a;
  row.b = b;
  row.throughput = {share, {share - 0.01, share + 0.01}};
  row.told = std::abs(share) > 0.01;
  row.cpu_share = cpu_share;
  row.blocked_share = 0;
  row.bytes_share = 0;
  return row;
}

// 18 % faster: ln 1.18 = 0.1655.
Attribution Example() {
  Attribution attribution;
  attribution.runs_a = attribution.runs_b = 10;
  attribution.paired = true;
  attribution.rate_a = 10000;
  attribution.rate_b = 11800;
  attribution.log_ratio = {0.1655, {0.15, 0.18}};
  attribution.explained = 0.1545;
  attribution.spread = 0.01;
  attribution.total_a = {100e-6, 50e-6, 1000};
  attribution.total_b = {82e-6, 52e-6, 1000};
  attribution.rows.push_back(
      Operator("decode", "decode", {60e-6, 0, 400}, {41.4e-6, 0, 400}, 0.17, -0.2051));
  attribution.rows.push_back(
      Operator("fetch", "fetch", {5e-6, 50e-6, 600}, {5.2e-6, 52e-6, 600}, -0.0105, 0.0022));
  attribution.rows.push_back(
      Operator("hash", "transform", {20e-6, 0, 0}, {12e-6, 0, 0}, 0, -0.0882));
  attribution.rows.back().throughput = {};
  AttributionRow threads;
  threads.to = AttributedTo::kThreads;
  threads.name = "transform";
  threads.setting_a = 2;
  threads.setting_b = 3;
  threads.throughput = {0.005, {-0.001, 0.011}};
  attribution.rows.push_back(threads);
  AttributionRow rest;
  rest.to = AttributedTo::kUnexplained;
  rest.name = "not explained by the model";
  rest.throughput = {0.001, {-0.01, 0.012}};
  attribution.rows.push_back(rest);
  attribution.method = "Shapley value over the 3 changes that matter, all 8 sets simulated";
  return attribution;
}

TEST(AttributionPage, SaysWhatCarriesTheChange) {
  const std::string sentence = AttributionSentence(Example());
  EXPECT_THAT(sentence, testing::StartsWith("because decode uses 31 % less CPU per row (+18 %)"));
  EXPECT_THAT(sentence, testing::HasSubstr("fetch is blocked 4.0 % longer per row (-1.1 %)"));
  EXPECT_THAT(sentence, testing::Not(testing::HasSubstr("threads")));  // not told from 0
}

// From nothing it is not a matter of per cent.
TEST(AttributionPage, WhatOneSideLacksIsSaidAsATime) {
  Attribution attribution = Example();
  attribution.rows.resize(1);
  AttributionRow& row = attribution.rows[0];
  row.a->cpu_s = 0;
  EXPECT_THAT(AttributionSentence(attribution),
              testing::HasSubstr("decode uses 41.4 us CPU per row, in A none (+18 %)"));
  row.to = AttributedTo::kUnattributed;
  EXPECT_THAT(AttributionSentence(attribution),
              testing::HasSubstr("CPU time outside the operators: 41.4 us per row, in A none"));
  row.to = AttributedTo::kOperator;
  row.a = CostFigures{20e-6, 0, 0};
  row.b = CostFigures{20e-6, 7e-6, 0};
  EXPECT_THAT(AttributionSentence(attribution),
              testing::HasSubstr("decode is blocked 7.00 us per row, in A not at all"));
}

TEST(AttributionPage, TextIsAsPeopleReadIt) {
  Report report{"comparison", {MakeAttributionSection(Example())}};
  ExpectGolden("attribution.txt", RenderText(report, {}));
  ExpectGolden("attribution.md", RenderMarkdown(report));
}

// The facts and the table have keys of their own.
TEST(AttributionPage, MachinesReadFactsAndParts) {
  Report report{"comparison", {MakeAttributionSection(Example())}};
  const auto json = nlohmann::json::parse(RenderJson(report, analysis::RunView()));
  EXPECT_NEAR(json["attribution"]["log_ratio"].get<double>(), 0.1655, 1e-9);
  double sum = 0;
  for (const auto& row : json["attribution_parts"]) {
    sum += row["throughput_share_ratio"].get<double>();
  }
  EXPECT_NEAR(sum, json["attribution"]["change_ratio"].get<double>(), 1e-9);
}

TEST(AttributionPage, SaysWhyThereIsNone) {
  Attribution attribution;
  attribution.unavailable = "run x: too short for a verdict";
  EXPECT_EQ(AttributionSentence(attribution), "");
  Report report{"comparison", {MakeAttributionSection(attribution)}};
  EXPECT_THAT(RenderText(report, {}),
              testing::HasSubstr("unavailable (run x: too short for a verdict)"));
}

}  // namespace
}  // namespace headrace::dashboards
