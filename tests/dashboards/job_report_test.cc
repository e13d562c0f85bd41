// The report of a job: eleven lines that say one thing each, and the same in JSON.
#include "dashboards/job_report.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "dashboards/render/render.h"

namespace headrace::dashboards {
namespace {

// Two workers and a rank, of which one worker was stopped.
struct MadeJob {
  MadeJob() {
    job.name = "ctr";
    job.state = "running";
    job.mode = "lockstep";
    job.rows = 1000;
    job.left_rows = 250;
    for (const char* role : {"rank", "worker", "worker"}) {
      analysis::Member member;
      member.role = role;
      member.number = static_cast<int64_t>(job.members.size());
      member.host = "node\x1b[31m";  // a name that a terminal would obey
      member.pid = 7;
      job.members.push_back(member);
    }
    findings.worst_stall = findings.mean_stall = 0.4;
    findings.stall_interval = {0.35, 0.45};
    findings.seconds = 10;
    findings.rows_per_s = 75;
    findings.workers = 2;
    findings.limit = analysis::JobLimit::kStraggler;
    findings.member = 2;
    findings.share = 0.3;
    findings.probability = 0.97;
    findings.gain = 1.43;
    findings.next = analysis::JobLimit::kStorage;
    findings.shares = {{analysis::JobLimit::kStraggler, 0.3}, {analysis::JobLimit::kStorage, 0.7}};
    analysis::WorkerFigures worker;
    worker.member = 1;
    worker.working = 1;
    worker.busiest_stage = "fetch";
    findings.worker_figures.push_back(worker);
    worker.member = 2;
    worker.absent = 0.6;
    worker.is_straggler = true;
    findings.worker_figures.push_back(worker);
    analysis::RankFigures rank;
    rank.member = 0;
    findings.rank_figures.push_back(rank);
  }
  JobPage page() const { return {job, findings, "headrace", " --db f.db"}; }
  analysis::JobView job;
  analysis::JobFindings findings;
};

TEST(JobReport, TheFirstPageHasElevenLines) {
  const MadeJob made;
  const Report report = MakeJobReport(made.page());
  EXPECT_EQ(1 + report.first.lines.size(), 11u);  // the verdict and what follows
  const std::string text = RenderText(report, {.width = 400, .first_only = true});
  for (const char* part :
       {"worker 2", "750 of 1000 rows", "1.43 times", "storage will limit it next",
        "headrace report --fleet ctr --db f.db --full", "probability 0.97"})
    EXPECT_NE(text.find(part), std::string::npos) << part << "\n" << text;
  EXPECT_EQ(text.find('\x1b'), std::string::npos);
}

// With the longest sentences there are, and names that are longer.
TEST(JobReport, TheFirstPageHasElevenLinesOnANarrowTerminal) {
  MadeJob made;
  made.job.name = std::string(60, 'n');
  for (analysis::Member& member : made.job.members) member.host = std::string(60, 'h');
  made.findings.worker_figures[0].busiest_stage = std::string(60, 's');
  made.findings.worker_figures[0].runnable = 0.5;
  for (int limit = 0; limit <= static_cast<int>(analysis::JobLimit::kWorkers); ++limit) {
    made.findings.limit = static_cast<analysis::JobLimit>(limit);
    made.findings.member.reset();
    if (made.findings.limit == analysis::JobLimit::kSlowRank) made.findings.member = 0;
    if (made.findings.limit == analysis::JobLimit::kStraggler) made.findings.member = 2;
    const std::string text =
        RenderText(MakeJobReport(made.page()), {.width = 80, .first_only = true});
    const auto lines = std::count(text.begin(), text.end(), '\n');
    EXPECT_LE(lines, 12) << text;  // the title and eleven
    for (const char* label :
         {" limit ", " why ", " fix ", " gain ", " then ", " lag ", " lost ", " cost ", " more "})
      EXPECT_NE(text.find(label), std::string::npos) << label << "\n" << text;
  }
}

// A job of a month: nothing that is printed of it grows with its time.
TEST(JobReport, ALongJobsCourseIsTakenTogether) {
  MadeJob made;
  constexpr int64_t kIntervals = 260'001, kStep = 10'000'000'000;
  int64_t lost = 0;
  for (int64_t i = 0; i < kIntervals; ++i) {
    analysis::JobInterval one;
    one.start_ns = i * kStep;
    one.duration_ns = one.running_ns = kStep;
    one.serving_ns = 2 * kStep;
    one.lost = i % 7 == 0;
    lost += one.lost;
    one.left_rows = kIntervals - i;
    made.job.intervals.push_back(one);
  }
  made.job.events_left_out = 5;
  made.job.decisions.resize(3);
  made.job.decisions_left_out = 6;
  const auto json = nlohmann::json::parse(JobJson(made.page()));
  EXPECT_LE(json["course"].size(), 1000u);
  EXPECT_EQ(json["course"][0]["workers"], 2.0);
  const auto& last = json["course"].back();
  EXPECT_EQ(last["start_ns"].get<int64_t>() + last["duration_ns"].get<int64_t>(),
            kIntervals * kStep);
  EXPECT_EQ(last["left_rows_count"], 1);
  int64_t in_course = 0;
  for (const auto& one : json["course"]) in_course += one["lost_count"].get<int64_t>();
  EXPECT_EQ(in_course, lost);
  EXPECT_EQ(json["decisions"].size(), 3u);
  EXPECT_EQ(json["decisions_left_out_count"], 6);
  EXPECT_EQ(json["events_left_out_count"], 5);
  const std::string text = RenderText(MakeJobReport(made.page()), {.width = 400});
  EXPECT_NE(text.find("5 older events are left out"), std::string::npos);
  EXPECT_NE(text.find("6 older ones are left out"), std::string::npos);
}

TEST(JobReport, WhatIsNotKnownIsNoZero) {
  const MadeJob made;
  const auto json = nlohmann::json::parse(JobJson(made.page()));
  EXPECT_EQ(json["schema"], "headrace.job/1");
  EXPECT_EQ(json["verdict"]["limit"], "straggler");
  EXPECT_TRUE(json["ranks"][0]["stall_ratio"].is_null());  // it had no step
  EXPECT_TRUE(json["workers"][0]["cpu_cores"].is_null());
  EXPECT_TRUE(json["verdict"]["workers_needed"].is_null());
  EXPECT_TRUE(json["verdict"]["lost_workers_count"].is_null());
  EXPECT_TRUE(json["workers"][0]["blocked_ratio"].is_null());
  const std::string text = RenderText(MakeJobReport(made.page()), {.width = 400});
  EXPECT_NE(text.find("no step yet"), std::string::npos) << text;
}

TEST(JobReport, WithoutAVerdictItSaysWhy) {
  MadeJob made;
  made.job.intervals.clear();
  made.findings.undecided = "no rank has had a batch yet";
  made.findings.undecided_fix = "Run it longer.";
  const Report report = MakeJobReport(made.page());
  EXPECT_FALSE(report.decided);
  EXPECT_EQ(report.first.badge, "NO VERDICT");
  EXPECT_NE(report.first.verdict.find("no rank has had a batch yet"), std::string::npos);
  ASSERT_EQ(report.first.lines.size(), 2u);
  EXPECT_EQ(report.first.lines[0].text, "Run it longer.");
  EXPECT_TRUE(report.first.lines[1].command);
  // What was measured is shown all the same.
  const std::string text = RenderText(report, {.width = 400});
  for (const char* title : {"Ranks", "Workers", "unavailable (no dispatcher has kept"})
    EXPECT_NE(text.find(title), std::string::npos) << title << "\n" << text;
  EXPECT_EQ(text.find("never late"), std::string::npos) << text;
  const auto json = nlohmann::json::parse(JobJson(made.page()));
  EXPECT_EQ(json["verdict"]["decided"], false);
  EXPECT_EQ(json["verdict"]["fix"], "Run it longer.");
}

TEST(JobReport, EveryLimitHasWordsAndAFix) {
  MadeJob made;
  made.findings.member.reset();
  for (int limit = 0; limit <= static_cast<int>(analysis::JobLimit::kWorkers); ++limit) {
    made.findings.limit = static_cast<analysis::JobLimit>(limit);
    const bool is_trainers = made.findings.limit == analysis::JobLimit::kTrainers;
    if (made.findings.limit == analysis::JobLimit::kSlowRank) made.findings.member = 0;
    EXPECT_EQ(JobFix(made.page()).empty(), is_trainers)
        << analysis::JobLimitName(made.findings.limit);
    for (const PageLine& line : MakeJobReport(made.page()).first.lines)
      EXPECT_GT(line.text.size(), 1u) << analysis::JobLimitName(made.findings.limit) << line.label;
    made.findings.member.reset();
  }
}

}  // namespace
}  // namespace headrace::dashboards
