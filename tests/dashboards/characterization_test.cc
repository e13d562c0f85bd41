// The page of a characterization study in its formats, from figures made by hand.
#include "dashboards/characterization.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "dashboards/render/render.h"
#include "tests/dashboards/golden.h"

namespace headrace::dashboards {
namespace {

using analysis::Characterization;
using analysis::Sheet;
using testing::HasSubstr;
using testing::Not;

Sheet MakeRm1() {
  analysis::SheetInputs inputs;
  inputs.name = inputs.model = "rm1";
  inputs.feature_fraction = 0.125;
  inputs.no_fed = inputs.no_ceiling = "it was not run";
  inputs.conditions.cores = 2;
  inputs.conditions.nic_bytes_per_s = 400e6;
  inputs.conditions.words = {"2 cores; 2 threads each to decode", "a modelled NIC of 400 MB/s"};
  inputs.prices.core_hour = 0.05;
  analysis::TableFacts& t = inputs.table;
  t.files = 1;
  t.stripes = 8;
  t.rows = 16384;
  t.bytes = 87e6;
  t.feature_bytes = 86e6;
  t.used_bytes = 32e6;
  t.stored_dense = 1514;
  t.stored_sparse = 220;
  t.used_dense = 153;
  t.used_sparse = 37;
  t.derived = 38;
  t.sampled_rows = 4096;
  t.coverage = 0.45;
  t.used_coverage = 0.7;
  t.list_length_mean = 26;
  t.list_length_p99 = 227;
  t.used_list_length_mean = 37;
  t.used_list_length_p99 = 346;
  t.hot_reason = "no log tells what other jobs read: --coread FILE (run --log-reads FILE)";
  t.streams = analysis::SizesOf({100, 200, 1000, 4000, 90000});
  t.reads = analysis::SizesOf({30000, 65300});
  t.duplication_now = 1.06;
  t.duplication_clustered = 5.9;
  Sheet sheet = analysis::MakeSheet(inputs);
  sheet.limit = {"cores", "the cores", "the cores allow 343 batches/s; observed 340 batches/s",
                 0.99, true};
  sheet.stages.push_back(
      {"decode", Quantity::Of(0.4, Unit::kRatio, Source::kAccount),
       Quantity::Of(0.8, Unit::kCores, Source::kAccount),
       Quantity::Of(1300, Unit::kNanoseconds, Source::kAccount),
       Quantity::Of(1.2e9, Unit::kBytesPerSecond, Source::kEstimate),
       Quantity::Unavailable("moves nothing over a NIC", Unit::kBytesPerSecond)});
  return sheet;
}

Characterization Study() {
  Characterization study;
  study.version = "0.1.0";
  study.command = "headrace characterize rm1";
  study.hostname = "host";
  study.cpu_model = "a processor";
  study.kernel = "6.1";
  study.cores = 2;
  study.minutes = 4.2;
  study.load = 1.5;
  study.sheets.push_back(MakeRm1());
  analysis::Ladder ladder;
  ladder.table = "rm1";
  ladder.conditions = "16384 rows, on one core";
  ladder.steps.push_back({"FF",
                          "flattened maps",
                          "reader",
                          "rows per CPU s",
                          "base",
                          17904,
                          31699,
                          1.79,
                          {1.76, 1.80},
                          6,
                          analysis::Interval{2, 2},
                          "ISCA'22, table 12",
                          "same",
                          "CPU a row 55.9 -> 31.5 us (extract 22.0 -> 0.2)"});
  ladder.steps.push_back({"RB",
                          "rebatching at the client",
                          "reader",
                          "rows per CPU s",
                          "LS",
                          42892,
                          60133,
                          1.38,
                          {1.12, 1.41},
                          6,
                          analysis::Interval{1.2, 1.4},
                          "Meta's blog, 2022",
                          "same",
                          "CPU a row 23.3 -> 16.6 us"});
  ladder.totals.push_back({"base", 1.0, 1.0, 1.0, 1.0, 8000, 9400, 0.0039, 0, std::nullopt, 3e8});
  ladder.totals.push_back({"FF", 1.79, 0.099, 2.0, 0.03, 1480, 2523, 0.0815, 0, 16525, 2e8});
  study.ladder = std::move(ladder);
  return study;
}

TEST(CharacterizationPage, Text) {
  ExpectGolden("characterization.txt",
               RenderText(MakeCharacterizationReport(Study()), {120, true}));
}

TEST(CharacterizationPage, Markdown) {
  ExpectGolden("characterization.md", RenderMarkdown(MakeCharacterizationReport(Study())));
}

TEST(CharacterizationPage, Html) {
  ExpectGolden("characterization.html", RenderHtml(MakeCharacterizationReport(Study())));
}

TEST(CharacterizationPage, JsonHasReasonsForWhatIsNotKnown) {
  const auto json = nlohmann::json::parse(CharacterizationJson(Study()));
  EXPECT_EQ(json["schema"], "headrace.characterization/1");
  EXPECT_EQ(json["workloads"][0]["limit"]["resource"], "cores");
  size_t known = 0, unknown = 0;
  for (const auto& part : json["workloads"][0]["parts"]) {
    for (const auto& figure : part["figures"]) {
      if (figure["value"].is_null()) {
        EXPECT_NE(figure["value_unavailable"], "") << figure["key"];
        ++unknown;
      } else {
        EXPECT_TRUE(figure.contains("source")) << figure["key"];
        ++known;
      }
    }
  }
  EXPECT_GT(known, 20u);
  EXPECT_GT(unknown, 20u);
  EXPECT_EQ(json["ladder"]["steps"][0]["published_low"], 2.0);
  EXPECT_TRUE(json["ladder"]["totals"][0]["trainer_rows_per_cpu_s"].is_null());
}

TEST(CharacterizationPage, AnUndecidedLimitMakesThePageUndecided) {
  Characterization study = Study();
  EXPECT_TRUE(MakeCharacterizationReport(study).decided);
  study.sheets[0].limit.decided = false;
  EXPECT_FALSE(MakeCharacterizationReport(study).decided);
}

// Whatever a table or a file is called, a page shows it and obeys none of it.
TEST(Html, EscapesAllTextAndAsksForNothing) {
  Report report;
  report.title = "<script>alert(1)</script>";
  const std::string hostile = "\"><img src=x onerror='y'>&\x1b[31m";
  Section section{
      "key", hostile, {{hostile, hostile}, {"", "run '" + hostile + "'", true}}, {}, {}};
  Table table{"t", hostile, {{"a", hostile}, {"b", "b"}, {"c", "c"}}, {}};
  table.rows.push_back({hostile, Quantity::Unavailable(hostile),
                        Quantity::Of(0.25, Unit::kRatio, Source::kAccount).WithInterval(0.2, 0.3)});
  section.tables.push_back(table);
  report.sections.push_back(section);
  const std::string page = RenderHtml(report);
  EXPECT_THAT(page, Not(HasSubstr("<script")));
  EXPECT_THAT(page, Not(HasSubstr("<img")));
  EXPECT_THAT(page, Not(HasSubstr("\x1b")));
  EXPECT_THAT(page, Not(HasSubstr("http:")));
  EXPECT_THAT(page, Not(HasSubstr("https:")));
  EXPECT_THAT(page, HasSubstr("&lt;script&gt;"));
  EXPECT_THAT(page, HasSubstr("&quot;&gt;&lt;img"));
  EXPECT_THAT(page, HasSubstr("unavailable: "));
  EXPECT_THAT(page, HasSubstr("<rect width=\"20.0\""));  // a quarter of the bar
}

TEST(Html, SharesBeyondOneHaveNoBar) {
  Report report{"r", {{"k", "", {}, {}, {}}}};
  Table table{"t", "", {{"a", "a"}}, {}};
  table.rows.push_back({Quantity::Of(2.14, Unit::kRatio, Source::kAccount)});
  report.sections[0].tables.push_back(table);
  EXPECT_THAT(RenderHtml(report), Not(HasSubstr("<svg")));
}

}  // namespace
}  // namespace headrace::dashboards
