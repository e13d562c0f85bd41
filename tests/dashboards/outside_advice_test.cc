// What is advised for the limit of a run seen from outside.
#include "dashboards/report/outside_advice.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "analysis/outside/outside.h"
#include "dashboards/report/first_page.h"
#include "dashboards/report/outside_words.h"
#include "tests/analysis/outside_run.h"
#include "tests/dashboards/page_lines.h"

namespace headrace::dashboards {
namespace {

// What several threads of one process of Python compute is one core's worth at most.
TEST(OutsideAdvice, ThreadsOfPythonAreNotToldToBeMore) {
  const analysis::RunView run = analysis::Loader(2, 0.15, 0.8, 0.95, 0, 0.03).view;
  const auto page = [&](double on_cpu, double in_python, double free) {
    analysis::Outside seen = analysis::LookFromOutside(run);
    seen.findings = {{analysis::OutsideLimit::kProducers, 0.95}};
    seen.flavour = analysis::OutsideFlavour::kPlain;
    seen.cores_free = free;
    analysis::OutsideUnit& unit = seen.units[seen.culprit];
    unit.kind = seen.units[0].kind;
    unit.threads_count = 4;
    unit.shares = {};
    unit.shares.on_cpu = on_cpu;
    auto& others = seen.home_activity.emplace().others;
    others[static_cast<size_t>(analysis::Activity::kWorks)] = in_python;
    FirstPage page;
    AddOutsidePage(run, seen, &page);
    return Advice(run, seen) + "\n" + LineOf(page, "next");
  };
  EXPECT_THAT(page(0.25, 3, 1), testing::HasSubstr("do this in processes instead of threads"));
  EXPECT_THAT(page(0.25, 3, 1), testing::HasSubstr("these use 1.0 cores together"));
  EXPECT_THAT(page(0.25, 3, 1), testing::Not(testing::HasSubstr("the CPU cores will limit it")));
  for (const std::string& other :
       {page(0.4, 3, 1), page(0.1, 3, 1), page(0.25, 0.5, 1), page(0.25, 3, 0.2)}) {
    EXPECT_THAT(other, testing::Not(testing::HasSubstr("instead of threads")));
  }
}

TEST(OutsideAdvice, WhatIsToBeCheaperIsNamed) {
  const analysis::RunView run = analysis::Loader(2, 0.15, 0.8, 0.95, 0, 0.03).view;
  analysis::Outside seen = analysis::LookFromOutside(run);
  EXPECT_THAT(Advice(run, seen), testing::HasSubstr("or a cheaper __getitem__ or collate_fn"));
  seen.compute_place = "Logs.records (logs.py:41)";
  EXPECT_THAT(Advice(run, seen), testing::HasSubstr("or a cheaper Logs.records (logs.py:41)"));
}

// Where a function of theirs takes most of the time, their start does not.
TEST(OutsideAdvice, ToolsThatFollowEachOtherAreNotTheirStart) {
  const analysis::RunView run = analysis::Loader(2, 0.15, 0.8, 0.95, 0, 0.03).view;
  const auto page = [&](const std::string& name, const std::string& place) {
    analysis::Outside seen = analysis::LookFromOutside(run);
    seen.findings = {{analysis::OutsideLimit::kProducers, 0.95}};
    seen.flavour = analysis::OutsideFlavour::kPlain;
    seen.uses_training_library = true;
    seen.steady_s = 9;
    seen.compute_place = place;
    analysis::OutsideUnit& unit = seen.units[seen.culprit];
    unit.threads_count = 1;
    analysis::ProcessKind& kind = seen.kinds[unit.kind];
    kind.name = name;
    kind.pids.assign(60, 300);
    FirstPage page;
    AddOutsidePage(run, seen, &page);
    return LineOf(page, "limit") + "\n" + Advice(run, seen);
  };
  EXPECT_THAT(page("xz", "lzma_code"), testing::Not(testing::HasSubstr("again")));
  EXPECT_THAT(page("xz", "lzma_code"), testing::Not(testing::HasSubstr("do more before")));
  for (const std::string& other :
       {page("xz", ""), page("java", "parse"), page("dvc", "parse (load.py:7)"),
        page("python3.11", "PyDict_New")}) {
    EXPECT_THAT(other, testing::HasSubstr("started again and again"));
    EXPECT_THAT(other, testing::HasSubstr("do more before"));
  }
}

}  // namespace
}  // namespace headrace::dashboards
