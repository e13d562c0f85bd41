// The fleet in virtual time against what can be worked out by hand.
#include "analysis/fleet/simulate_fleet.h"

#include <gtest/gtest.h>

#include <chrono>
#include <cmath>

namespace headrace::analysis {
namespace {

// `count` nodes of four cores, 10 ms a batch: 400 batches/s each.
SimulatedFleet Fleet(int count) {
  SimulatedFleet fleet;
  fleet.nodes = {{"a", count, 4, 8, 0.01, 0, 0.3, 0, 0, 0}};
  fleet.stored_bytes = 1e6;
  fleet.stored_requests = 2;
  fleet.sent_bytes = 5e5;
  fleet.clients = 4;
  return fleet;
}

TEST(SimulateFleet, CoresAloneGiveTheirRate) {
  const FleetOutcome outcome = SimulateFleet(Fleet(10), 10, 1);
  EXPECT_NEAR(outcome.batches_per_s, 4000, 60);
  EXPECT_NEAR(outcome.cores_ratio, 1, 0.02);
  EXPECT_FALSE(outcome.cut_short);
}

TEST(SimulateFleet, EachSharedThingLimitsByItself) {
  struct Case {
    const char* name;
    void (*limit)(SimulatedFleet*);
    double rate;
  };
  const Case cases[] = {
      {"storage bytes", [](SimulatedFleet* f) { f->storage_bytes_per_s = 1e9; }, 1000},
      {"storage requests", [](SimulatedFleet* f) { f->storage_requests_per_s = 1000; }, 500},
      {"dispatcher", [](SimulatedFleet* f) { f->dispatcher_requests_per_s = 300; }, 300},
      {"client NICs", [](SimulatedFleet* f) { f->client_nic_bytes_per_s = 1e8; }, 800},
      {"NIC out",
       [](SimulatedFleet* f) {
         f->nodes[0].nic_bytes_per_s = 5e7;
         f->stored_bytes = 0;
       },
       1000},
      {"NIC in",
       [](SimulatedFleet* f) {
         f->nodes[0].nic_bytes_per_s = 5e7;
         f->sent_bytes = 0;
       },
       500},
      {"clients", [](SimulatedFleet* f) { f->client_step_s = 0.02; }, 200},
      {"disk",
       [](SimulatedFleet* f) {
         f->local_storage = true;
         f->nodes[0].disk_bytes_per_s = 3e7;
         f->storage_bytes_per_s = 1;  // of no concern then
       },
       300},
      // Little's law: 10 workers with 8 on their way for 0.4 s each; 16 places of clients, each
      // known to be free 0.2 s late.
      {"dispatcher latency",
       [](SimulatedFleet* f) {
         f->dispatcher_latency_s = 0.4;
         f->client_buffer = 1000;
       },
       200},
      {"places of clients", [](SimulatedFleet* f) { f->dispatcher_latency_s = 0.4; }, 80},
      {"units of several batches",
       [](SimulatedFleet* f) {
         f->unit_batches = 4;
         f->dispatcher_requests_per_s = 100;
       },
       400},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(c.name);
    SimulatedFleet fleet = Fleet(10);
    c.limit(&fleet);
    const FleetOutcome outcome = SimulateFleet(fleet, 20, 7);
    EXPECT_NEAR(outcome.batches_per_s, c.rate, 0.03 * c.rate);
  }
}

TEST(SimulateFleet, ClientsWithinTheRateHardlyWaitAndBeyondItWaitForTheRest) {
  SimulatedFleet fleet = Fleet(10);
  fleet.client_step_s = 4 / 3200.0;  // 80 % of what it can do
  FleetOutcome outcome = SimulateFleet(fleet, 10, 3);
  EXPECT_LT(outcome.stall_ratio, 0.01);
  EXPECT_NEAR(outcome.batches_per_s, 3200, 40);
  EXPECT_NEAR(outcome.cores_ratio, 0.8, 0.03);
  fleet.client_step_s = 4 / 8000.0;  // twice of it
  outcome = SimulateFleet(fleet, 10, 3);
  EXPECT_NEAR(outcome.stall_ratio, 0.5, 0.02);
  EXPECT_GE(outcome.worst_stall_ratio, outcome.stall_ratio);
}

TEST(SimulateFleet, BlockedBatchesNeedThreadsNotCores) {
  SimulatedFleet fleet = Fleet(1);
  fleet.nodes[0].batch_cv = 0;
  fleet.nodes[0].batch_blocked_s = 0.03;
  fleet.nodes[0].threads = 4;  // each 40 ms a batch
  EXPECT_NEAR(SimulateFleet(fleet, 20, 1).batches_per_s, 100, 4);
  fleet.nodes[0].threads = 20;
  EXPECT_NEAR(SimulateFleet(fleet, 20, 1).batches_per_s, 400, 12);
}

TEST(SimulateFleet, LossesTakeTheirShareFromThenOn) {
  SimulatedFleet fleet = Fleet(10);
  fleet.client_step_s = 4 / 4000.0;
  const FleetOutcome outcome = SimulateFleet(fleet, 20, 5, {{8, {5}, 0, 1}});
  double before = 0, after = 0;
  for (const FleetSlice& slice : outcome.slices) {
    if (slice.start_s >= 4 && slice.start_s < 7.9) before += slice.batches_per_s / 10;
    if (slice.start_s >= 14) after += slice.batches_per_s / 15;
  }
  EXPECT_NEAR(before, 3960, 90);
  EXPECT_NEAR(after, 2000, 60);
  EXPECT_GT(outcome.lost_batches, 0);
}

TEST(SimulateFleet, APausedDispatcherIsSeenAndThenForgotten) {
  SimulatedFleet fleet = Fleet(10);
  fleet.client_step_s = 4 / 3000.0;
  fleet.dispatcher_requests_per_s = 1e5;
  const FleetOutcome outcome = SimulateFleet(fleet, 20, 5, {{8, {}, 2, 1}});
  double worst = 0, end = 0;
  for (const FleetSlice& slice : outcome.slices) {
    worst = std::max(worst, slice.stall_ratio);
    if (slice.start_s >= 16) end = std::max(end, slice.stall_ratio);
  }
  EXPECT_GT(worst, 0.9);
  EXPECT_LT(end, 0.05);
}

TEST(SimulateFleet, AllNodesLostIsNoRateAndNoHang) {
  SimulatedFleet fleet = Fleet(3);
  fleet.client_step_s = 0.01;
  const FleetOutcome outcome = SimulateFleet(fleet, 20, 5, {{8, {3}, 0, 1}});
  EXPECT_EQ(outcome.slices.back().batches_per_s, 0);
  EXPECT_NEAR(outcome.slices.back().stall_ratio, 1, 1e-9);
}

TEST(SimulateFleet, UnevenWorkersAreNotWaitedFor) {
  SimulatedFleet fleet = Fleet(40);
  fleet.nodes[0].spread = 0.3;
  // The mean of their speeds is a little over that of the mean time.
  EXPECT_NEAR(SimulateFleet(fleet, 5, 2).batches_per_s, 16000, 1600);
}

TEST(SimulateFleet, TheSameSeedGivesTheSameAndEventsAreBounded) {
  const SimulatedFleet fleet = Fleet(10);
  const FleetOutcome a = SimulateFleet(fleet, 3, 9), b = SimulateFleet(fleet, 3, 9);
  EXPECT_EQ(a.batches, b.batches);
  EXPECT_EQ(a.events, b.events);
  EXPECT_EQ(a.latency_p99_s, b.latency_p99_s);
  const FleetOutcome c = SimulateFleet(fleet, 1e9, 9, {}, 1000);
  EXPECT_TRUE(c.cut_short);
  EXPECT_EQ(c.events, 1000);
}

TEST(SimulateFleet, AThousandWorkersOfManyCoresKeepTheirRate) {
  SimulatedFleet fleet = Fleet(1000);
  fleet.nodes[0].cores = 18;
  fleet.nodes[0].threads = 22;
  fleet.nodes[0].batch_cpu_s = 0.044;
  fleet.clients = 100;
  fleet.client_buffer = 16;
  fleet.client_step_s = 100 / (0.9 * 1000 * 18 / 0.044);
  const FleetOutcome outcome = SimulateFleet(fleet, 1, 1);
  EXPECT_NEAR(outcome.batches_per_s, 0.9 * 1000 * 18 / 0.044, 8000);
  EXPECT_FALSE(outcome.cut_short);
}

// 6.5e9 rooms: kept one by one they would take 26 GB.
TEST(SimulateFleet, RoomsAreCountedNotKept) {
  SimulatedFleet fleet = Fleet(2);
  fleet.clients = 100'000;
  fleet.client_buffer = 65536;
  const FleetOutcome outcome = SimulateFleet(fleet, 1, 1);
  EXPECT_NEAR(outcome.batches_per_s, 800, 60);
  EXPECT_FALSE(outcome.cut_short);
}

TEST(SimulateFleet, WhatIsOnItsWayIsBounded) {
  SimulatedFleet fleet = Fleet(100'000);
  fleet.in_flight = 65536;
  fleet.dispatcher_latency_s = 10;
  const FleetOutcome outcome = SimulateFleet(fleet, 100, 1);
  EXPECT_TRUE(outcome.cut_short);
  EXPECT_LT(outcome.pushed_events, 5'000'000);
}

}  // namespace
}  // namespace headrace::analysis
