// The autoscaler over a job: what its processes report becomes the number of workers it needs.
#include "experiments/service_scaling.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace headrace::experiments {
namespace {

namespace service = reader::service;

constexpr int64_t kTickNs = 1'000'000'000;
constexpr uint64_t kBatchRows = 100;

// A job whose one rank could take `demand` batches a second, and whose workers make `each`.
class MadeService {
 public:
  MadeService(double demand, double each) : demand_(demand), each_(each) {}

  // A unit always waits for room, however much its worker still has to do.
  bool is_always_full = false;

  // A second later, with so many workers.
  service::DispatcherStatus Pass(uint32_t workers) {
    const double taken = std::min(demand_, each_ * workers);
    const double starved = 1 - taken / demand_;
    const double wasted = 1 - taken / (each_ * workers);
    rows_ += taken * kBatchRows;
    wait_ns_ += starved * 1e9;
    compute_ns_ += (1 - starved) * 1e9;
    service::DispatcherStatus status;
    status.is_running = true;
    service::RankStatus rank;
    rank.is_joined = rank.is_connected = rank.has_reported = true;
    rank.instance = 1;
    rank.delivered_rows = static_cast<uint64_t>(rows_);
    rank.wait_ns = static_cast<uint64_t>(wait_ns_);
    rank.compute_ns = static_cast<uint64_t>(compute_ns_);
    status.ranks = {rank};
    for (uint32_t i = 0; i < workers; ++i) {
      if (i == lives_.size()) lives_.push_back({});
      lives_[i].connected_ns += kTickNs;
      lives_[i].busy_ns += (1 - wasted) * 1e9;
      lives_[i].made_rows += taken * kBatchRows / workers;
      service::WorkerStatus worker;
      worker.peer = worker.instance = 100 + i;
      worker.connected_ns = lives_[i].connected_ns;
      worker.busy_ns = static_cast<uint64_t>(lives_[i].busy_ns);
      worker.made_rows = static_cast<uint64_t>(lives_[i].made_rows);
      worker.no_room_ns = is_always_full ? static_cast<uint64_t>(worker.connected_ns) : 0;
      status.workers.push_back(worker);
    }
    return status;
  }

 private:
  struct Life {
    int64_t connected_ns = 0;
    double busy_ns = 0, made_rows = 0;
  };
  const double demand_, each_;
  double rows_ = 0, wait_ns_ = 0, compute_ns_ = 0;
  std::vector<Life> lives_;
};

// After so many seconds.
uint32_t WantedAfter(int seconds, MadeService made, ServiceScaling* scaling, int* changes) {
  for (int second = 1; second <= seconds; ++second) {
    const auto decision = scaling->Watch(made.Pass(scaling->wanted()), second * kTickNs);
    if (decision && decision->to != decision->from) {
      ++*changes;
      EXPECT_FALSE(decision->reason.empty());
    }
  }
  return scaling->wanted();
}

TEST(ServiceScaling, StarvedRanksGetTheWorkersTheyNeedInOneStep) {
  ServiceScaling scaling(1, 20, true, kBatchRows);
  int changes = 0;
  const uint32_t wanted = WantedAfter(60, MadeService(70, 10), &scaling, &changes);
  EXPECT_GE(wanted, 7u);
  EXPECT_LE(wanted, 8u);
  EXPECT_LE(changes, 2);
  EXPECT_TRUE(scaling.latest().has_value());
}

// Whenever they come: intervals do not begin with the dispatcher.
TEST(ServiceScaling, TheFirstDecisionComesFourIntervalsAfterTheFirstRows) {
  for (int idle = 0; idle < 5; ++idle) {
    SCOPED_TRACE(idle);
    ServiceScaling scaling(1, 20, true, kBatchRows);
    service::DispatcherStatus nobody;
    nobody.is_running = true;
    int second = 1;
    for (; second <= idle; ++second) EXPECT_FALSE(scaling.Watch(nobody, second * kTickNs));
    MadeService made(70, 10);
    const int first = second;
    while (scaling.wanted() == 1 && second < first + 60)
      scaling.Watch(made.Pass(scaling.wanted()), second++ * kTickNs);
    EXPECT_EQ(second - 1, first + 20);
    EXPECT_GE(scaling.wanted(), 7u);
  }
}

TEST(ServiceScaling, AnotherPolicyIsToldTheSame) {
  double starved = 0;
  ScalingRules rules;
  rules.observe_ns = 2 * kTickNs;
  rules.policy = [&](const reader::FleetObservation& seen) {
    starved = seen.starved_ratio.value_or(-1);
    return 30;
  };
  ServiceScaling scaling(1, 20, true, kBatchRows, rules);
  MadeService made(40, 10);
  for (int second = 1; second <= 3; ++second)
    scaling.Watch(made.Pass(scaling.wanted()), second * kTickNs);
  EXPECT_NEAR(starved, 0.75, 1e-6);
  EXPECT_EQ(scaling.wanted(), 20u);  // as many as allowed
}

TEST(ServiceScaling, AtMostAsManyAsAllowed) {
  ServiceScaling scaling(1, 3, true, kBatchRows);
  int changes = 0;
  EXPECT_EQ(WantedAfter(60, MadeService(70, 10), &scaling, &changes), 3u);
}

// Also where it began with more.
TEST(ServiceScaling, NoMoreAreWantedThanThereIsRoomFor) {
  ServiceScaling scaling(4, 20, true, kBatchRows);
  scaling.Bound(3);
  EXPECT_EQ(scaling.wanted(), 3u);
  scaling.Bound(5);
  int changes = 0;
  EXPECT_EQ(WantedAfter(60, MadeService(70, 10), &scaling, &changes), 3u);
}

TEST(ServiceScaling, EnoughWorkersStay) {
  ServiceScaling scaling(2, 20, false, kBatchRows);
  int changes = 0;
  EXPECT_EQ(WantedAfter(120, MadeService(19, 10), &scaling, &changes), 2u);
  EXPECT_EQ(changes, 0);
}

// Of a pool that lends fewer: they are not waited for for ever, and given up once they are too
// many.
TEST(ServiceScaling, WhatIsNotToBeHadIsNotWaitedFor) {
  ServiceScaling scaling(1, 20, true, kBatchRows);
  scaling.SetAvailable(3);
  MadeService busy(70, 10);
  int second = 1;
  for (; second <= 120; ++second)
    scaling.Watch(busy.Pass(std::min(3u, scaling.wanted())), second * kTickNs);
  EXPECT_GE(scaling.wanted(), 7u);
  MadeService slow(15, 10);
  for (int end = second + 1500; second <= end; ++second)
    scaling.Watch(slow.Pass(std::min(3u, scaling.wanted())), second * kTickNs);
  EXPECT_LE(scaling.wanted(), 3u) << scaling.latest()->reason;
  EXPECT_GE(scaling.wanted(), 2u);
}

// A worker whose units wait for room, as those of all do whose ranks are slower, works meanwhile.
TEST(ServiceScaling, WorkersAreNotIdleForUnitsThatWaitForRoom) {
  ServiceScaling scaling(1, 20, true, kBatchRows, {.at_first = 12});
  MadeService made(70, 10);
  made.is_always_full = true;
  int changes = 0;
  const uint32_t wanted = WantedAfter(300, made, &scaling, &changes);
  EXPECT_GE(wanted, 7u);
  EXPECT_LE(wanted, 9u);
  EXPECT_GE(changes, 1);
}

// What ranks take of workers that drain is no work of those that stay.
TEST(ServiceScaling, ThoseThatDrainSendWhatTheyHaveMade) {
  ServiceScaling scaling(1, 40, true, kBatchRows, {.at_first = 12});
  MadeService made(70, 10);
  for (int second = 1; second <= 300; ++second) {
    service::DispatcherStatus status = made.Pass(12);
    for (size_t i = scaling.wanted(); i < status.workers.size(); ++i)
      status.workers[i].is_draining = true;
    scaling.Watch(status, second * kTickNs);
    EXPECT_GE(scaling.wanted(), 7u);
  }
}

TEST(ServiceScaling, WithoutReportsNothingIsDecided) {
  ServiceScaling scaling(2, 20, true, kBatchRows);
  service::DispatcherStatus nobody;
  nobody.is_running = true;
  for (int second = 1; second <= 60; ++second) scaling.Watch(nobody, second * kTickNs);
  EXPECT_EQ(scaling.wanted(), 2u);
}

TEST(ServiceScaling, ThoseThatSentLeastAreDrained) {
  service::DispatcherStatus status;
  for (const uint64_t sent : {30, 10, 40, 20}) {
    service::WorkerStatus worker;
    worker.peer = 100 + sent;
    worker.sent_units = sent;
    status.workers.push_back(worker);
  }
  status.workers[1].is_draining = true;
  EXPECT_EQ(DrainingWorkers(status), 1u);
  ScalingDecision decision;
  decision.from = 3;
  decision.to = 1;
  EXPECT_EQ(WorkersToDrain(status, decision), (std::vector<uint64_t>{120, 130}));
  decision.to = 3;
  EXPECT_TRUE(WorkersToDrain(status, decision).empty());
}

}  // namespace
}  // namespace headrace::experiments
