// Jobs whose limit is known, as their members would have measured them: each is named.
#include "analysis/fleet/job_findings.h"

#include <gtest/gtest.h>

namespace headrace::analysis {
namespace {

constexpr int64_t kSecondNs = 1'000'000'000;
constexpr int kSeconds = 20;

// What every second of a member is.
struct WorkerSecond {
  double idle = 0, no_room = 0, absent = 0, throttled = 0;
  double busy = 1, on_cpu = 1, runnable = 0;  // of its one stage's thread
  bool reads = false;
  int64_t rows = 100;
};
struct RankSecond {
  double wait = 0.5, compute = 0.5;
  int64_t rows = 100;
};

int64_t Ns(double seconds) { return static_cast<int64_t>(seconds * 1e9); }

class JobFixture : public testing::Test {
 protected:
  JobFixture() {
    job_.name = "made up";
    job_.state = "complete";
    job_.mode = "lockstep";
    job_.epochs = 1;
    job_.splits = 100;
    job_.rows = 10'000;
    job_.largest_split_rows = 100;
  }
  void AddWorker(WorkerSecond each) {
    each.busy = std::min(each.busy, 1 - each.idle - each.no_room - each.absent);
    Member member = Begun("worker");
    member.stages = {"fetch", "decode"};
    for (MemberInterval& one : member.intervals) {
      one.rows = each.rows;
      one.no_room_ns = Ns(each.no_room);
      one.absent_ns = Ns(each.absent);
      one.throttled_ns = Ns(each.throttled);
      one.cpu_ns = Ns(each.busy * each.on_cpu);
      one.host_busy_cores = 1;
      JobStage source{"fetch", true, Ns(0.01), kSecondNs, Ns(each.idle), 0, Ns(0.01), 0, 1};
      JobStage work{"decode",
                    false,
                    Ns(each.busy),
                    kSecondNs,
                    0,
                    0,
                    Ns(each.busy * each.on_cpu),
                    Ns(each.busy * each.runnable),
                    1};
      if (each.reads) std::swap(source.busy_ns, work.busy_ns);
      one.stages = {source, work};
    }
    job_.members.push_back(std::move(member));
  }
  void AddRank(const RankSecond& each) {
    Member member = Begun("rank");
    member.number = num_ranks_++;
    job_.ranks = num_ranks_;
    for (MemberInterval& one : member.intervals) {
      one.steps = 10;
      one.rows = each.rows;
      one.wait_ns = Ns(each.wait);
      one.compute_ns = Ns(each.compute);
    }
    job_.members.push_back(std::move(member));
  }
  // What the dispatcher saw in each second.
  void AddCourse(double no_split = 0, int64_t lost = 0, int64_t again_rows = 0,
                 std::optional<double> serving = {}) {
    double workers = 0;
    for (const Member& member : job_.members) workers += member.role == "worker";
    for (int second = 0; second < kSeconds; ++second) {
      JobInterval one;
      one.start_ns = second * kSecondNs;
      one.duration_ns = one.running_ns = kSecondNs;
      // With losses: of every four seconds one has all.
      one.serving_ns = Ns(serving && second % 4 != 0 ? *serving : workers);
      one.no_split_ns = Ns(no_split * workers);
      one.lost = lost;
      one.again_rows = again_rows;
      job_.intervals.push_back(one);
    }
  }
  std::string Limit() { return JobLimitKey(JudgeJob(job_).limit); }

  JobView job_;
  int64_t num_ranks_ = 0;

 private:
  Member Begun(const char* role) {
    Member member;
    member.role = role;
    member.number = static_cast<int64_t>(job_.members.size()) + 1;
    member.host_cores = 8;
    member.duration_ns = kSeconds * kSecondNs;
    for (int second = 0; second < kSeconds; ++second) {
      MemberInterval one;
      one.start_ns = second * kSecondNs;
      one.duration_ns = kSecondNs;
      member.intervals.push_back(one);
    }
    return member;
  }
};

using JobFindingsOf = JobFixture;

TEST_F(JobFindingsOf, TrainersThatHardlyWaitAreTheLimit) {
  AddRank({0.01, 0.99, 100});
  AddWorker({.no_room = 0.6});
  AddCourse();
  const JobFindings found = JudgeJob(job_);
  EXPECT_EQ(found.limit, JobLimit::kTrainers);
  EXPECT_FALSE(found.gain.has_value());
}

TEST_F(JobFindingsOf, BusyWorkersAreTooFewAndTheNeededNumberIsSaid) {
  AddRank({0.5, 0.5, 200});  // would take twice as much
  AddWorker({});
  AddWorker({});
  AddCourse();
  const JobFindings found = JudgeJob(job_);
  EXPECT_EQ(found.limit, JobLimit::kWorkers);
  EXPECT_NEAR(*found.gain, 2.0, 0.01);
  EXPECT_EQ(*found.workers_needed, 5);  // 4, and 2 % for what varies
  EXPECT_GT(found.probability, 0.95);
  EXPECT_NEAR(found.worker_seconds_per_million_rows, 1e4, 1);
}

// They have leases: that it was stopped costs nothing.
TEST_F(JobFindingsOf, ALateDispatcherIsNotBlamedWhileWorkersAreBusy) {
  AddRank({});
  AddWorker({});
  AddWorker({.no_room = 0.05});
  AddCourse();
  for (JobInterval& one : job_.intervals) one.late_ns = kSecondNs * 6 / 10;
  const JobFindings found = JudgeJob(job_);
  double sum = 0;
  for (const JobShare& one : found.shares) {
    EXPECT_GE(one.share, 0) << JobLimitKey(one.limit);
    sum += one.share;
  }
  EXPECT_LE(sum, 1 + 1e-9);
  EXPECT_EQ(found.limit, JobLimit::kWorkers);
  EXPECT_NEAR(*found.dispatcher_late, 0.6, 0.01);
}

TEST_F(JobFindingsOf, BlockedReadsAreTheStorage) {
  AddRank({});
  AddWorker({.busy = 0.95, .on_cpu = 0.05, .reads = true});
  AddCourse();
  EXPECT_EQ(Limit(), "storage");
}

TEST_F(JobFindingsOf, AQuotaAndFullCoresDiffer) {
  AddRank({});
  AddWorker({.throttled = 0.6, .on_cpu = 0.4, .runnable = 0.5});
  AddCourse();
  EXPECT_EQ(Limit(), "quota");
  for (MemberInterval& one : job_.members[1].intervals) one.throttled_ns = 0;
  EXPECT_EQ(Limit(), "machine");
}

TEST_F(JobFindingsOf, OthersLoadIsNotBlamedOnWorkersThatSleep) {
  AddRank({});
  AddWorker({.on_cpu = 0.01});
  for (MemberInterval& one : job_.members[1].intervals) one.host_busy_cores = 8;
  AddCourse();
  EXPECT_EQ(Limit(), "workers");
}

TEST_F(JobFindingsOf, OneSlowRankIsNamed) {
  AddRank({0.8, 0.1, 100});
  AddRank({0.0, 0.9, 100});
  AddRank({0.8, 0.1, 100});
  AddWorker({.no_room = 0.7});
  AddCourse();
  const JobFindings found = JudgeJob(job_);
  EXPECT_EQ(found.limit, JobLimit::kSlowRank);
  EXPECT_EQ(job_.members[*found.member].number, 1);
  // As quick as the others it would take 9 times as much; workers have room for 3.3 times that.
  EXPECT_NEAR(*found.gain, 1 / 0.3, 0.01);
}

TEST_F(JobFindingsOf, NoRoomWithoutASlowRankIsTheDelivery) {
  AddRank({});
  AddRank({});
  AddWorker({.no_room = 0.6});
  AddCourse();
  EXPECT_EQ(Limit(), "delivery");
}

TEST_F(JobFindingsOf, WorkersWithoutALeaseBlameTheDispatcherOrTheSplits) {
  AddRank({});
  AddWorker({.idle = 0.7});
  AddCourse();
  EXPECT_EQ(Limit(), "dispatcher");
  job_.intervals.clear();
  AddCourse(0.65);
  EXPECT_EQ(Limit(), "splits");
}

TEST_F(JobFindingsOf, AWorkerThatStandsStillIsNamed) {
  AddRank({});
  AddWorker({});
  AddWorker({.absent = 0.7, .rows = 30});
  AddWorker({});
  AddCourse();
  const JobFindings found = JudgeJob(job_);
  EXPECT_EQ(found.limit, JobLimit::kStraggler);
  EXPECT_EQ(*found.member, 2u);
}

TEST_F(JobFindingsOf, LostWorkersAreFailures) {
  AddRank({});
  for (int i = 0; i < 3; ++i) AddWorker({});
  AddCourse(0, 1, 10, 1.0);
  const JobFindings found = JudgeJob(job_);
  EXPECT_EQ(found.limit, JobLimit::kFailures);
  EXPECT_EQ(found.lost_workers, kSeconds);
  EXPECT_EQ(found.redone_rows, 10.0 * kSeconds);
}

TEST_F(JobFindingsOf, WithoutAMeasurementThereIsNoVerdict) {
  EXPECT_EQ(JudgeJob(job_).undecided, "no rank has sent measurements");
  AddRank({});
  AddCourse();
  EXPECT_EQ(JudgeJob(job_).undecided, "no worker has sent measurements");
}

TEST_F(JobFindingsOf, WithoutADispatchersCourseWorkersAreCountedAllTheSame) {
  AddRank({0.5, 0.5, 200});
  AddWorker({});
  AddWorker({});
  EXPECT_NEAR(JudgeJob(job_).workers, 2, 0.01);
  EXPECT_EQ(*JudgeJob(job_).workers_needed, 5);
}

TEST_F(JobFindingsOf, TrainersThatComputeNothingHaveNoDemand) {
  AddRank({0.99, 0.0, 100});
  AddWorker({});
  AddCourse();
  const JobFindings found = JudgeJob(job_);
  EXPECT_FALSE(found.demand_rows_per_s.has_value());
  EXPECT_FALSE(found.workers_needed.has_value());
}

TEST_F(JobFindingsOf, TrainersThatComputeNextToNothingPromiseNoGain) {
  AddRank({0.984, 0.016, 100});  // no 62 times as many rows
  AddWorker({});
  AddCourse();
  const JobFindings found = JudgeJob(job_);
  EXPECT_EQ(found.limit, JobLimit::kWorkers);
  EXPECT_FALSE(found.gain.has_value());
  EXPECT_FALSE(found.next.has_value());
}

TEST_F(JobFindingsOf, AWorkerIsAtWorkWhileItsBusiestStageIs) {
  AddRank({});
  AddWorker({.idle = 0.7});
  for (MemberInterval& one : job_.members[1].intervals) {
    one.no_room_ns = Ns(0.6);  // more than is left of a second
    one.stages[1].busy_ns = one.stages[1].on_cpu_ns.emplace(Ns(0.5));
  }
  AddCourse();
  const WorkerFigures worker = JudgeJob(job_).worker_figures.at(0);
  EXPECT_NEAR(worker.working, 0.5, 1e-6);
  EXPECT_NEAR(worker.idle + worker.no_room, 0.5, 1e-6);
}

TEST_F(JobFindingsOf, WhatWasNotReadIsNotZero) {
  AddRank({});
  AddWorker({});
  for (MemberInterval& one : job_.members[1].intervals) {
    one.throttled_ns.reset();
    for (JobStage& stage : one.stages) stage.on_cpu_ns.reset();
  }
  const JobFindings found = JudgeJob(job_);
  EXPECT_FALSE(found.worker_figures.at(0).throttled.has_value());
  EXPECT_FALSE(found.worker_figures.at(0).blocked.has_value());
  EXPECT_FALSE(found.lost_workers.has_value());  // nobody kept the job's course
  EXPECT_FALSE(found.redone_rows.has_value());
}

TEST_F(JobFindingsOf, AShortJobIsNotJudgedAndShowsWhatWasMeasured) {
  AddRank({});
  AddWorker({});
  for (Member& member : job_.members) member.intervals.resize(3);
  const JobFindings found = JudgeJob(job_);
  EXPECT_NE(found.undecided.find("3 s"), std::string::npos) << found.undecided;
  EXPECT_NE(found.undecided_fix.find("longer"), std::string::npos);
  EXPECT_EQ(found.worker_figures.size(), 1u);
  EXPECT_EQ(found.rank_figures.size(), 1u);
}

// Of two intervals, each far longer than usual, nobody can be sure, into however many windows they
// are cut.
TEST_F(JobFindingsOf, FewIntervalsMakeNoVerdictSure) {
  AddRank({});
  AddWorker({});
  for (Member& member : job_.members) {
    member.intervals.resize(2);
    for (size_t i = 0; i < 2; ++i) {
      member.intervals[i].start_ns = static_cast<int64_t>(i) * 10 * kSecondNs;
      member.intervals[i].duration_ns = 10 * kSecondNs;
    }
  }
  EXPECT_LE(JudgeJob(job_).probability, 0.75);
}

}  // namespace
}  // namespace headrace::analysis
