// SplitBoard: each row is handed out, deals are even, what is lost comes again first and unchanged.
#include "reader/service/split_board.h"

#include <gtest/gtest.h>

#include <numeric>
#include <random>
#include <set>

#include "base/error.h"
#include "tests/seed.h"

namespace headrace::reader::service {
namespace {

DeliveryLedger TableOf(uint64_t splits, uint64_t rows) {
  std::vector<RowRange> ranges;
  for (uint64_t s = 0; s < splits; ++s) ranges.push_back({s * rows, rows});
  return DeliveryLedger(ranges);
}

std::vector<RowSpan> RowsOf(const Lease& lease) {
  std::vector<RowSpan> rows;
  for (const RowRange& range : lease.wanted)
    rows.push_back({lease.epoch, lease.split, range.first, range.count, range.count});
  return rows;
}

TEST(SplitBoard, HandsOutEverySplitOfEveryEpochOnce) {
  for (const bool in_file_order : {true, false}) {
    SplitBoard board({.epochs = 2, .in_file_order = in_file_order}, TableOf(5, 10), 7);
    std::map<std::pair<uint64_t, uint64_t>, int> seen;
    std::vector<uint64_t> order;
    while (const auto lease = board.Hand(1, 0)) {
      EXPECT_EQ(lease->term, 7u);
      ++seen[{lease->epoch, lease->split}];
      order.push_back(lease->split);
      board.Admitted(RowsOf(*lease));
    }
    EXPECT_EQ(seen.size(), 10u);
    EXPECT_TRUE(board.is_complete());
    EXPECT_EQ(board.open_leases(1), 0u);
    EXPECT_EQ(order == std::vector<uint64_t>({0, 1, 2, 3, 4, 0, 1, 2, 3, 4}), in_file_order);
  }
}

TEST(SplitBoard, GivesLostSplitsFirstWithTheirDealAndWithoutTheRowsAdmitted) {
  SplitBoard board({.ranks = 2, .unit_rows = 4, .in_file_order = true}, TableOf(3, 10), 1);
  const Lease first = *board.Hand(1, 0), second = *board.Hand(1, 0);
  const RowSpan admitted{0, second.split, 14, 4, 4};
  board.Admitted({&admitted, 1});
  board.WorkerLost(1);
  const Lease again = *board.Hand(2, 0), other = *board.Hand(2, 0);
  EXPECT_EQ(again.split, first.split);
  EXPECT_EQ(again.deal, first.deal);
  EXPECT_EQ(other.deal, second.deal);
  EXPECT_EQ(other.wanted, (std::vector<RowRange>{{10, 4}, {18, 2}}));
  EXPECT_EQ(board.leased_again(), 2u);
}

TEST(SplitBoard, WhatIsGivenBackIsLeasedNextAndRepeatsNothing) {
  SplitBoard board({.ranks = 2, .unit_rows = 4, .in_file_order = true}, TableOf(4, 10), 1);
  const Lease begun = *board.Hand(1, 0), unmade = *board.Hand(1, 0), other = *board.Hand(2, 0);
  const std::vector<EpochSplit> back = {{0, unmade.split}, {0, other.split}, {7, 0}, {0, 99}};
  board.GivenBack(1, back);
  board.GivenBack(3, back);
  EXPECT_EQ(board.open_leases(1), 1u);
  EXPECT_EQ(board.open_leases(2), 1u) << "what another worker holds is not its to give";
  const Lease again = *board.Hand(2, 0);
  EXPECT_EQ(again.split, unmade.split) << "before what nobody had";
  EXPECT_EQ(again.deal, unmade.deal);
  EXPECT_EQ(again.wanted, unmade.wanted);
  EXPECT_EQ(board.leased_again(), 0u);
  board.WorkerLost(2);
  board.WorkerLost(1);
  for (int lease = 0; lease < 4; ++lease) ASSERT_TRUE(board.Hand(4, 0));
  EXPECT_EQ(board.leased_again(), 3u) << "what is lost afterwards is repeated as ever";
  EXPECT_FALSE(board.Hand(5, 0));
  // In file order the first of them is next, whatever came back before.
  EXPECT_EQ(board.GivenBack(4, std::vector<EpochSplit>{{0, other.split}, {0, begun.split}}), 2u);
  EXPECT_TRUE(board.has_unleased());
  EXPECT_EQ(board.Hand(5, 0)->split, begun.split);
  EXPECT_EQ(board.Hand(5, 0)->split, other.split);
}

// Pieces that overlap, repeat, and come of splits that nobody has.
TEST(SplitBoard, WhateverPiecesAreAdmittedTheOtherRowsAreWanted) {
  const uint64_t seed = TestSeed();
  SCOPED_TRACE(testing::Message() << "HEADRACE_SEED=" << seed);
  std::mt19937_64 random(seed);
  constexpr uint64_t kSplits = 4, kRows = 20;
  for (int trial = 0; trial < 200; ++trial) {
    const Mode mode = trial % 2 == 0 ? Mode::kLockstep : Mode::kIndependent;
    SplitBoard board({.mode = mode, .ranks = 3, .unit_rows = 3}, TableOf(kSplits, kRows), 1);
    std::set<uint64_t> admitted;
    uint64_t worker = 1;
    for (int step = 0; step < 40; ++step) {
      std::vector<RowSpan> rows;
      for (uint64_t pieces = random() % 4; pieces > 0; --pieces) {
        const uint64_t split = random() % kSplits, first = random() % kRows;
        const uint64_t count = 1 + random() % (kRows - first);
        rows.push_back({0, split, split * kRows + first, count, count});
        for (uint64_t row = 0; row < count; ++row) admitted.insert(rows.back().first + row);
      }
      if (random() % 4 == 0) {  // none counts where one is of no split
        std::vector<RowSpan> bad = rows;
        bad.push_back({0, kSplits, kSplits * kRows, 1, 1});
        bad.insert(bad.begin(), {0, 0, 0, 1, 1});
        const uint64_t left = board.left_rows();
        EXPECT_THROW(board.Admitted(bad), Error);
        EXPECT_EQ(board.left_rows(), left);
      }
      board.Admitted(rows);
      ASSERT_EQ(board.left_rows(), kSplits * kRows - admitted.size());
      ASSERT_EQ(board.is_complete(), admitted.size() == kSplits * kRows);
      if (random() % 3 == 0) board.WorkerLost(worker++);
      const auto lease = board.Hand(worker, 0);
      if (!lease) continue;
      std::set<uint64_t> wanted, others;
      for (const RowRange& range : lease->wanted)
        for (uint64_t row = range.first; row < range.end(); ++row) wanted.insert(row);
      for (uint64_t row = lease->split * kRows; row < (lease->split + 1) * kRows; ++row)
        if (!admitted.contains(row)) others.insert(row);
      ASSERT_EQ(wanted, others);
      ASSERT_FALSE(wanted.empty());
    }
  }
}

// Also where the last unit of every split is short, which would always be the same rank's.
TEST(SplitBoard, DealsLockstepRowsEvenlyToWithinAUnit) {
  for (const uint32_t ranks : {1u, 2u, 3u, 7u}) {
    for (const uint64_t rows : {10u, 11u, 12u, 256u}) {
      const uint64_t unit_rows = rows == 256 ? 50 : 3;
      SplitBoard board({.ranks = ranks, .unit_rows = unit_rows}, TableOf(50, rows), 1);
      std::vector<uint64_t> of(ranks);
      while (const auto lease = board.Hand(1, 0)) {
        const RowRange split = {lease->split * rows, rows};
        for (uint64_t unit = 0; unit < NumUnits(rows, unit_rows); ++unit)
          of[lease->deal.RankOf(unit)] += RowsOfUnit(split, unit, unit_rows).count;
        const auto [least, most] = std::minmax_element(of.begin(), of.end());
        EXPECT_LE(*most - *least, unit_rows) << ranks << " ranks, " << rows << " rows a split";
      }
      EXPECT_EQ(std::accumulate(of.begin(), of.end(), uint64_t{0}), 50 * rows);
    }
  }
}

// A rank knows whose unit n is, and holds what comes before its turn: that is bounded.
TEST(SplitBoard, InFileOrderUnitsAreDealtInTurnAndFewSplitsAreOpen) {
  SplitBoard board({.ranks = 3, .unit_rows = 4, .in_file_order = true}, TableOf(9, 10), 1);
  board.SetWindow(4);
  std::vector<Lease> open;
  while (auto lease = board.Hand(1, 0)) open.push_back(*lease);
  ASSERT_EQ(open.size(), 4u);
  uint64_t unit = 0;
  for (const Lease& lease : open)
    for (uint64_t of_split = 0; of_split < 3; ++of_split)
      EXPECT_EQ(lease.deal.RankOf(of_split), unit++ % 3);
  board.Admitted(RowsOf(open[2]));
  EXPECT_FALSE(board.Hand(1, 0)) << "split 0 is not done";
  board.WorkerLost(1);
  EXPECT_EQ(board.Hand(2, 0)->split, 0u);
  board.Admitted(RowsOf(open[0]));
  EXPECT_EQ(board.Hand(2, 0)->split, 1u);
  EXPECT_EQ(board.Hand(2, 0)->split, 3u);
  EXPECT_EQ(board.Hand(2, 0)->split, 4u);
  EXPECT_FALSE(board.Hand(2, 0));
}

TEST(SplitBoard, MakesUpForWhatRanksHadBefore) {
  SplitBoard board({.ranks = 2, .unit_rows = 10}, TableOf(20, 10), 1, {60, 0});
  std::vector<uint64_t> rows = {60, 0};
  for (int i = 0; i < 6; ++i) rows[board.Hand(1, 0)->deal.RankOf(0)] += 10;
  EXPECT_EQ(rows, (std::vector<uint64_t>{60, 60}));
}

TEST(SplitBoard, GivesARankThatTakesNothingFewerSplitsWhenIndependent) {
  SplitBoard board({.mode = Mode::kIndependent, .ranks = 2, .unit_rows = 2}, TableOf(40, 10), 1);
  std::vector<int> splits(2);
  for (int i = 0; i < 30; ++i) {
    const Lease lease = *board.Hand(1, 0);
    ASSERT_EQ(lease.deal.stride, 0u);
    ++splits[lease.deal.first];
    if (lease.deal.first == 0) board.Admitted(RowsOf(lease));  // rank 1 is slow
  }
  EXPECT_EQ(splits[1], 1);
}

TEST(SplitBoard, LeasesASlowSplitToASecondWorkerOnceNothingElseIsLeft) {
  SplitBoard board({.backup_ns = 100}, TableOf(1, 10), 1);
  const Lease lease = *board.Hand(1, 0);
  EXPECT_FALSE(board.Hand(2, 99));
  EXPECT_FALSE(board.Hand(1, 100)) << "the slow one itself";
  EXPECT_EQ(board.Hand(2, 100)->deal, lease.deal);
  EXPECT_FALSE(board.Hand(3, 1000)) << "one backup is enough";
  board.WorkerLost(2);
  board.WorkerLost(1);
  EXPECT_TRUE(board.Hand(3, 1000));
}

TEST(SplitBoard, TakesNoWorkerForSlowWhoseRowsAreAdmitted) {
  SplitBoard board({.backup_ns = 100}, TableOf(2, 10), 1);
  const Lease first = *board.Hand(1, 0), second = *board.Hand(1, 0);
  board.Admitted(RowsOf(first), 90);
  EXPECT_FALSE(board.Hand(2, 189)) << "the consumer takes its time";
  EXPECT_EQ(board.Hand(2, 190)->split, second.split);
}

TEST(SplitBoard, GoesOnFromWhatIsSettled) {
  DeliveryLedger settled = TableOf(2, 10);
  const std::vector<RowSpan> rows = {{0, 0, 0, 10, 10}, {0, 1, 10, 3, 3}};
  settled.Settle(rows);
  SplitBoard board({.epochs = 1}, settled, 1);
  EXPECT_EQ(board.left_rows(), 7u);
  EXPECT_EQ(board.Hand(1, 0)->wanted, (std::vector<RowRange>{{13, 7}}));
  EXPECT_FALSE(board.Hand(1, 0));
}

TEST(SplitBoard, RefusesRowsThatTheJobDoesNotHave) {
  SplitBoard board({}, TableOf(2, 10), 1);
  for (const RowSpan& bad : {RowSpan{1, 0, 0, 1, 1}, RowSpan{0, 2, 0, 1, 1},
                             RowSpan{0, 0, 10, 1, 1}, RowSpan{0, 0, 9, UINT64_MAX, 1}})
    EXPECT_THROW(board.Admitted({&bad, 1}), Error);
}

}  // namespace
}  // namespace headrace::reader::service
