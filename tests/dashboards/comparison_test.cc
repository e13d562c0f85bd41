// The page of a comparison, as people read it, and its JSON.
#include "dashboards/comparison.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "dashboards/comparison_json.h"
#include "dashboards/render/render.h"
#include "tests/dashboards/golden.h"

namespace headrace::dashboards {
namespace {

using analysis::Comparison;
using analysis::ComparisonInput;
using analysis::Figure;
using analysis::RunFigures;
using testing::HasSubstr;
using testing::Not;

// A number between -1 and 1 that is drawn and the same everywhere.
double Jitter(size_t i) { return 2 * analysis::Random(i + 1).Uniform() - 1; }

RunFigures Figures(double by, size_t i, double noise) {
  RunFigures figures;
  for (std::string& reason : figures.reasons) reason = "not recorded";
  const auto put = [&](Figure figure, double value) {
    figures.values[static_cast<size_t>(figure)] = value;
    figures.reasons[static_cast<size_t>(figure)].clear();
  };
  put(Figure::kRowsPerSecond, 1262 * by * (1 + noise * Jitter(i)));
  put(Figure::kWait, 0.46 / by / by + 0.3 * noise * Jitter(i + 100));
  put(Figure::kCpuPerRow, 141e-6 * (1 + noise * Jitter(i + 200)));
  put(Figure::kPeakRss,
      812.0 * 1048576 * (by > 1 ? 1.041 : 1) * (1 + 0.1 * noise * Jitter(i + 300)));
  put(Figure::kStepP50, 7.1e-3 / by * (1 + noise * Jitter(i + 400)));
  put(Figure::kStepP99, 0.131 * (1 + 3 * noise * Jitter(i + 500)));
  figures.steady_windows = 9;
  figures.steady_first_ns = 400'000'000;
  figures.steady_last_ns = 2'200'000'000;
  return figures;
}

ComparisonInput Pairs(size_t pairs, double by, double noise) {
  ComparisonInput input;
  input.a = {"A", "decode.parallelism=1", {}};
  input.b = {"B", "decode.parallelism=2", {}};
  input.seed = 7;
  for (size_t i = 0; i < pairs; ++i) {
    const auto id = static_cast<int64_t>(2 * i);
    input.b_first.push_back(i % 4 == 1 || i % 4 == 2);
    input.a.samples.push_back({id + (input.b_first[i] ? 2 : 1), Figures(1, 2 * i, noise), ""});
    input.b.samples.push_back({id + (input.b_first[i] ? 1 : 2), Figures(by, 2 * i + 1, noise), ""});
  }
  return input;
}

ComparisonNotes Notes() {
  ComparisonNotes notes;
  notes.comparison_id = 3;
  notes.name = "decode";
  notes.wall_ns = 250'000'000'000;
  notes.repeat =
      "headrace compare demo/pipeline.toml --a decode.parallelism=1 --b "
      "decode.parallelism=2";
  notes.same = {"machine", "data"};
  return notes;
}

Report Page(const ComparisonInput& input, const ComparisonNotes& notes) {
  const Comparison comparison = analysis::Compare(input);
  return MakeComparisonReport({input, comparison, notes});
}
std::string Text(const Report& report) { return RenderText(report, {110, true}); }

TEST(ComparisonPage, AnswersWhichByHowMuchHowSureWhyAndWhatNext) {
  ComparisonNotes notes = Notes();
  notes.why = "because decode has 2 threads instead of 1 (+81 %)";
  notes.gates.push_back({"rows_per_s<-3%", "passes", "rows_per_s<-3% does not hold: +80.2 %"});
  const Report report = Page(Pairs(12, 1.8, 0.01), notes);
  EXPECT_TRUE(report.decided);
  ExpectGolden("compare_faster.txt", Text(report));
  const std::string markdown = RenderMarkdown(report);
  ExpectGolden("compare_faster.md", markdown);
}

TEST(ComparisonPage, NoiseGivesNoVerdictButWhatWouldHelp) {
  const Report report = Page(Pairs(12, 1.0, 0.15), Notes());
  EXPECT_FALSE(report.decided);
  ExpectGolden("compare_noise.txt", Text(report));
  // So noisy that no number of pairs is worth it.
  EXPECT_THAT(Text(Page(Pairs(12, 1.0, 0.6), Notes())), HasSubstr("use a quieter machine"));
}

TEST(ComparisonPage, ForcedAndLeftOutAndOutliersAreMarked) {
  ComparisonInput input = Pairs(12, 0.9, 0.01);
  const auto rate = static_cast<size_t>(Figure::kRowsPerSecond);
  input.b.samples[4].figures.values[rate].reset();
  input.b.samples[4].figures.reasons[rate] = "no rows recorded";
  ComparisonNotes notes = Notes();
  notes.same.clear();
  notes.forced = true;
  notes.differences = {"cores: 2 and 16", "the data: 1f3c and 77aa"};
  notes.outliers = {"run 9 (A, pair 5): -31 % rows/s, unexplained"};
  notes.no_why = "the runs were seen from outside";
  const Report report = Page(input, notes);
  ExpectGolden("compare_forced.txt", Text(report));
}

TEST(ComparisonPage, TooFewShowRawValuesOnly) {
  ComparisonInput input = Pairs(2, 3, 0.001);
  const std::string text = Text(Page(input, Notes()));
  EXPECT_THAT(
      text, HasSubstr("no verdict: 2 pairs cannot prove a change (p would have to be below 0.05"));
  EXPECT_THAT(text, HasSubstr("--pairs 6"));
  EXPECT_THAT(text, Not(HasSubstr("B is faster")));
  EXPECT_THAT(text, Not(HasSubstr("could detect")));
}

TEST(ComparisonPage, WhatOthersDidOnTheMachineStandsUnderTheVerdict) {
  ComparisonNotes notes = Notes();
  notes.machine = "other processes used 1.86 of 2 cores while it ran";
  const Report report = Page(Pairs(12, 1.0, 0.15), notes);
  ASSERT_GE(report.sections[0].sentences.size(), 2u);
  EXPECT_EQ(report.sections[0].sentences[1].text, notes.machine);
}

TEST(ComparisonPage, OfSidesAsFastTheCheaperIsTheAdvice) {
  const struct {
    double cpu;
    const char* advice;
  } cases[] = {{0.5, "adopt B (decode.parallelism=2): as fast, with less CPU (-"},
               {2, "keep A (decode.parallelism=1): as fast, and B costs more CPU (+"},
               {1, "either will do: no difference that matters"}};
  for (const auto& [cpu, advice] : cases) {
    ComparisonInput input = Pairs(12, 1.0, 0.001);
    for (analysis::ComparedSample& sample : input.b.samples) {
      analysis::Real& value = sample.figures.values[static_cast<size_t>(Figure::kCpuPerRow)];
      value = *value * cpu;
    }
    EXPECT_THAT(RenderText(Page(input, Notes()), {300, true}), HasSubstr(advice));
  }
}

TEST(ComparisonPage, CommandsAreNotToldToTakeADuration) {
  ComparisonInput input = Pairs(12, 1.0, 0.6);
  for (analysis::ComparedSide* side : {&input.a, &input.b}) {
    for (analysis::ComparedSample& sample : side->samples) {
      auto& values = sample.figures.values;
      const analysis::Real rate = values[static_cast<size_t>(Figure::kRowsPerSecond)];
      values = {};
      values[static_cast<size_t>(Figure::kElapsed)] = 1 / *rate;
    }
  }
  const std::string text = Text(Page(input, Notes()));
  EXPECT_THAT(text, HasSubstr("use a quieter machine"));
  EXPECT_THAT(text, Not(HasSubstr("--duration")));
}

TEST(ComparisonPage, TwoRunsAloneAreSaidToBeWeakEvidence) {
  ComparisonInput input = Pairs(8, 1.8, 0.01);
  input.unit = analysis::ComparedUnit::kBlock;
  const std::string text = Text(Page(input, Notes()));
  EXPECT_THAT(text, HasSubstr("B is faster"));
  EXPECT_THAT(text, HasSubstr("8 blocks of A and 8 blocks of B"));
  EXPECT_THAT(text, HasSubstr("the next two runs may differ otherwise"));
  EXPECT_THAT(text, HasSubstr("run 6 pairs in all, interleaved, before you rely on it"));
}

TEST(ComparisonPage, IdenticalIsSaidAndNothingIsNotANumber) {
  const std::string text = Text(Page(Pairs(12, 1, 0), Notes()));
  EXPECT_THAT(text, HasSubstr("identical rows/s in all 12 pairs"));
  EXPECT_THAT(text, Not(HasSubstr("nan")));
  EXPECT_THAT(text, Not(HasSubstr("inf ")));
}

TEST(ComparisonPage, NamesFromCommandLinesCannotLeaveTheirLine) {
  ComparisonInput input = Pairs(4, 2, 0.01);
  input.a.what = "x\n\x1b[31m";
  ComparisonNotes notes = Notes();
  notes.name = "n\r\x07";
  const std::string text = Text(Page(input, notes));
  EXPECT_EQ(text.find('\x1b'), std::string::npos);
  EXPECT_EQ(text.find('\r'), std::string::npos);
}

// What was stored gives the same page again, and the same JSON.
TEST(ComparisonPage, IsTheSameFromItsJson) {
  ComparisonNotes notes = Notes();
  notes.why = "because";
  notes.gates.push_back({"rows_per_s<-3%", "passes", "why"});
  notes.outliers = {"one"};
  for (ComparisonInput input : {Pairs(12, 1.8, 0.01), Pairs(5, 1, 0.1), Pairs(3, 2, 0)}) {
    input.planned_pairs = input.a.samples.size() == 5 ? 8 : 0;
    input.a.samples[0].figures.values[static_cast<size_t>(Figure::kCpuPerRow)].reset();
    input.b.samples[1].left_out = "still being recorded";
    const Comparison comparison = analysis::Compare(input);
    const ComparisonPage page{input, comparison, notes};
    const std::string json = ComparisonJson(page);
    const StoredComparison stored = ReadComparison(json, "here");
    const Comparison again = analysis::Compare(stored.input);
    const ComparisonPage same{stored.input, again, stored.notes};
    EXPECT_EQ(ComparisonJson(same), json);
    EXPECT_EQ(Text(MakeComparisonReport(same)), Text(MakeComparisonReport(page)));
  }
}

// A block of a run has no figure of a whole run; the run itself counts.
TEST(ComparisonPage, BlocksWithoutAFigureOfTheRunAreNotLeftOut) {
  ComparisonInput input = Pairs(3, 2, 0.01);
  input.unit = analysis::ComparedUnit::kBlock;
  constexpr auto kFirst = static_cast<size_t>(Figure::kRowsPerSecond);
  RunFigures& block = input.a.samples[1].figures;
  block.values[kFirst].reset();
  block.reasons[kFirst] = analysis::kOfWholeRun;
  EXPECT_THAT(Text(Page(input, Notes())), Not(HasSubstr("LEFT OUT")));
  block.reasons[kFirst] = "not recorded";
  EXPECT_THAT(Text(Page(input, Notes())), HasSubstr("LEFT OUT"));
}

TEST(ComparisonPage, AnyOtherJsonIsRefused) {
  const ComparisonInput input = Pairs(4, 2, 0.01);
  const Comparison comparison = analysis::Compare(input);
  const ComparisonNotes notes = Notes();
  const std::string good = ComparisonJson({input, comparison, notes});
  const auto refused = [](const std::string& text) {
    try {
      ReadComparison(text, "here");
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ExitCode::kBadData) << text.substr(0, 80);
      return true;
    }
    return false;
  };
  for (const char* text : {"", "{", "[]", "null", "3", "{\"schema\": \"headrace.plan/1\"}"})
    EXPECT_TRUE(refused(text)) << text;
  // Every key that is needed is needed, and of its type.
  const nlohmann::ordered_json whole = nlohmann::ordered_json::parse(good);
  for (const char* key : {"schema", "unit", "a", "b", "b_first", "margin_ratio", "alpha", "power",
                          "seed", "planned_pairs_count", "cold", "notes", "comparison", "name"}) {
    nlohmann::ordered_json less = whole;
    less.erase(key);
    EXPECT_TRUE(refused(less.dump())) << key;
  }
  for (const char* key :
       {"schema", "unit", "a", "b", "b_first", "seed", "cold", "notes", "alpha"}) {
    nlohmann::ordered_json other = whole;
    other[key] = nullptr;
    EXPECT_TRUE(refused(other.dump())) << key;
  }
  nlohmann::ordered_json hostile = whole;
  hostile["a"]["samples"][0]["steady_first_s"] = 1e300;
  EXPECT_TRUE(refused(hostile.dump()));
  // Beyond what the statistics take.
  const std::pair<const char*, nlohmann::ordered_json> beyond[] = {
      {"alpha", 0.7},
      {"alpha", 0},
      {"power", 1},
      {"margin_ratio", 1.5},
      {"planned_pairs_count", uint64_t{1} << 63}};
  for (const auto& [key, value] : beyond) {
    nlohmann::ordered_json other = whole;
    other[key] = value;
    EXPECT_TRUE(refused(other.dump())) << key;
  }
  // Cut anywhere, or with any byte changed: an answer or an Error, never worse.
  for (size_t at = 0; at < good.size(); at += 97) {
    refused(good.substr(0, at));
    std::string broken = good;
    broken[at] = static_cast<char>(broken[at] ^ 1);
    refused(broken);
  }
}

}  // namespace
}  // namespace headrace::dashboards
