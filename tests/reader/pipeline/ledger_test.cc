// DeliveryLedger against a plain bitmap, and the spans that carry rows to it.
#include "reader/pipeline/delivery/ledger.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <random>
#include <set>

#include "base/error.h"
#include "reader/batch/keep_rows.h"
#include "reader/batch/tensorize.h"
#include "tests/seed.h"

namespace headrace::reader {
namespace {

// Rows cut anywhere, dropped anywhere, joined and cut again: each row is settled exactly once, and
// every row of a batch lies in the span that counts it.
TEST(RowSpans, SurviveDroppingCuttingAndJoining) {
  const uint64_t seed = TestSeed();
  SCOPED_TRACE(testing::Message() << "HEADRACE_SEED=" << seed);
  std::mt19937_64 random(seed);
  const auto below = [&](uint64_t n) { return random() % n; };
  for (int trial = 0; trial < 200; ++trial) {
    std::vector<RowRange> splits;
    uint64_t rows = 0;
    for (uint64_t s = 0, n = 1 + below(6); s < n; ++s) {
      splits.push_back({rows, below(5) == 0 ? 0 : 1 + below(40)});
      rows += splits.back().count;
    }
    DeliveryLedger ledger(splits);
    std::multiset<uint64_t> seen, expected;
    const uint64_t epochs = 1 + below(3), batch_rows = 1 + below(30), share = below(101);
    FlatMapBatch pending;
    uint64_t empty_spans = 0;
    const auto take = [&](FlatMapBatch&& batch) {
      uint64_t row = 0;
      for (const RowSpan& span : batch.spans) {
        uint64_t last = span.first;
        for (uint64_t i = 0; i < span.rows; ++i, ++row) {
          ASSERT_GE(batch.RowId(row), last);
          ASSERT_LT(batch.RowId(row), span.first + span.count);
          last = batch.RowId(row);
          seen.insert(span.epoch * rows + last);
        }
        empty_spans += span.rows == 0;
      }
      ASSERT_EQ(row, batch.rows);
      ledger.Settle(batch.spans);
    };
    for (uint64_t epoch = 0; epoch < epochs; ++epoch) {
      for (uint64_t s = 0; s < splits.size(); ++s) {
        FlatMapBatch batch;
        batch.rows = splits[s].count;
        batch.first_row = splits[s].first;
        if (batch.rows > 0)
          batch.spans = {{epoch, s, splits[s].first, splits[s].count, splits[s].count}};
        std::vector<uint8_t> keep(batch.rows);
        for (uint64_t r = 0; r < batch.rows; ++r) {
          keep[r] = below(100) < share;
          if (keep[r]) expected.insert(epoch * rows + batch.first_row + r);
        }
        KeepRows(&batch, keep);
        if (batch.rows == 0)
          pending.spans.insert(pending.spans.end(), batch.spans.begin(), batch.spans.end());
        for (uint64_t first = 0; first < batch.rows;) {
          const uint64_t part = std::min(batch.rows - first, batch_rows - pending.rows);
          AppendRows(&pending, batch, first, part);
          first += part;
          if (pending.rows < batch_rows) continue;
          take(std::move(pending));
          pending = FlatMapBatch();
        }
      }
    }
    take(std::move(pending));
    EXPECT_EQ(seen, expected);
    EXPECT_EQ(ledger.settled_rows(), epochs * rows);
    if (rows > 0) {
      EXPECT_EQ(ledger.first_epoch(), epochs);
      EXPECT_TRUE(ledger.state().epochs.empty()) << "a finished epoch costs memory";
    }
  }
}

TEST(DeliveryLedger, KnowsWhatRemains) {
  const uint64_t seed = TestSeed();
  SCOPED_TRACE(testing::Message() << "HEADRACE_SEED=" << seed);
  std::mt19937_64 random(seed);
  for (int trial = 0; trial < 100; ++trial) {
    const std::vector<RowRange> splits = {{0, 17}, {17, 0}, {17, 64}, {81, 3}};
    DeliveryLedger ledger(splits);
    std::set<uint64_t> left;  // epoch * 84 + row
    for (uint64_t i = 0; i < 2 * 84; ++i) left.insert(i);
    for (int step = 0; step < 40; ++step) {
      const uint64_t epoch = random() % 2, split = random() % 4;
      if (splits[split].count == 0) continue;
      RowSpan span{epoch, split, splits[split].first + random() % splits[split].count, 0, 0};
      while (span.first + span.count < splits[split].first + splits[split].count &&
             span.count < 9 && left.contains(epoch * 84 + span.first + span.count))
        ++span.count;
      if (span.count == 0) continue;
      ledger.Settle({&span, 1});
      for (uint64_t r = 0; r < span.count; ++r) left.erase(epoch * 84 + span.first + r);
      // What a file would keep of it says the same.
      const DeliveryLedger again(splits, ledger.state());
      std::set<uint64_t> remaining;
      for (uint64_t e = 0; e < 2; ++e) {
        for (uint64_t s = 0; s < 4; ++s) {
          for (const RowSpan& part : again.Remaining(e, s))
            for (uint64_t r = 0; r < part.count; ++r) remaining.insert(e * 84 + part.first + r);
        }
      }
      ASSERT_EQ(remaining, left);
      ASSERT_EQ(again.settled_rows(), 2 * 84 - left.size());
    }
  }
}

TEST(DeliveryLedger, RefusesSplitsThatDoNotLieOneBehindTheOther) {
  const auto refused = [](std::vector<RowRange> splits, const std::string& what) {
    try {
      DeliveryLedger ledger(std::move(splits));
      ADD_FAILURE() << what;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ExitCode::kBadData);
      EXPECT_EQ(error.fact(), what);
      EXPECT_NE(error.where(), "");
      EXPECT_NE(error.fix(), "");
    }
  };
  refused({{0, 10}, {11, 10}},
          "split 1 begins at row 11, and the one before it ends before row 10");
  refused({{0, 10}, {10, 0}, {9, 10}},
          "split 2 begins at row 9, and the one before it ends before row 10");
  refused({{10, 10}, {0, 10}}, "split 1 begins at row 0, and the one before it ends before row 20");
  refused({{0, 1}, {1, kMostTableRows}},
          "split 1 has 4611686018427387904 rows from row 1 on, more than a table can have");
  refused({{UINT64_MAX, 2}, {1, 1}},
          "split 0 has 2 rows from row 18446744073709551615 on, more than a table can have");
  DeliveryLedger({{0, 10}, {10, 0}, {10, kMostTableRows - 10}});
  DeliveryLedger(std::vector<RowRange>{});
}

TEST(DeliveryLedger, RefusesAStateThatCannotBe) {
  const std::vector<RowRange> splits = {{0, 10}, {10, 10}};
  using Epoch = DeliveryState::Epoch;
  const auto refused = [&](uint64_t number, Epoch epoch) {
    DeliveryState state;
    state.first_epoch = 3;
    state.epochs[number] = std::move(epoch);
    EXPECT_THROW(DeliveryLedger(splits, state), Error);
  };
  refused(2, {{0}, {}});                        // an epoch that is over
  refused(3, {{}, {}});                         // too few splits
  refused(3, {{4}, {}});                        // too many
  refused(3, {{0}, {{20, 1}}});                 // rows that are not there
  refused(3, {{0}, {{19, 2}}});                 // one of them
  refused(3, {{1}, {{2, 1}}});                  // of a split that is done
  refused(3, {{0}, {{0, 10}}});                 // all of one
  refused(3, {{0}, {{5, 15}}});                 // all of the second
  refused(3, {{0}, {{RowSet::kMostRows, 1}}});  // far outside
  DeliveryState good;
  good.first_epoch = 3;
  good.epochs[4] = {{1}, {{12, 1}, {14, 2}}};
  EXPECT_EQ(DeliveryLedger(splits, good).settled_rows(), 3 * 20 + 13u);
  // Ranges of two splits that touch are one, and each split's.
  good.epochs[4] = {{0}, {{7, 5}}};
  const DeliveryLedger across(splits, good);
  EXPECT_EQ(across.Remaining(4, 0)[0].count, 7u);
  EXPECT_EQ(across.Remaining(4, 1)[0].first, 12u);
  EXPECT_EQ(across.Settled(4).size(), 2u);
}

// What is settled piece by piece, in any order and with repetitions, by two ledgers that divide the
// rows between them.
// As one of a job that reads its table again and again: a list of all its rows would not end.
TEST(DeliveryLedger, EpochsThatAreWholeAreMergedWithoutALookAtTheirRows) {
  const std::vector<RowRange> splits = {{0, 10}, {10, 10}};
  constexpr uint64_t kEpoch = uint64_t{1} << 40;
  DeliveryState state;
  state.first_epoch = kEpoch;
  const DeliveryLedger before(splits, state);
  DeliveryLedger all(splits);
  const std::vector<RowSpan> later = {{kEpoch, 1, 10, 4, 4}};
  all.Admit(later);
  all.Merge(before);
  EXPECT_EQ(all.first_epoch(), kEpoch);
  EXPECT_EQ(all.settled_rows(), kEpoch * 20 + 4);
  ASSERT_EQ(all.Settled(kEpoch).size(), 1u);
  EXPECT_EQ(all.Settled(kEpoch)[0].count, 4u);
  EXPECT_THROW(all.Merge(before), Error);
}

// Two ranks have ten rows each of every epoch. What one no longer knows in detail fits together
// with what the other one does, and only with that.
TEST(DeliveryLedger, EpochsThatAreClosedAreComparedByTheTotalOfTheirRows) {
  const std::vector<RowRange> splits = {{0, 10}, {10, 10}};
  DeliveryLedger ours(splits), theirs(splits);
  for (uint64_t epoch = 0; epoch < 5; ++epoch) {
    ours.Admit(std::vector<RowSpan>{{epoch, 0, 0, 5, 5}, {epoch, 1, 10, 5, 5}});
    theirs.Admit(std::vector<RowSpan>{{epoch, 0, 5, 5, 5}, {epoch, 1, 15, 5, 5}});
  }
  DeliveryLedger closed = ours;
  closed.Close(3);
  closed.Close(2);  // is over already
  EXPECT_EQ(closed.first_epoch(), 3u);
  EXPECT_EQ(closed.settled_rows(), 50u);
  EXPECT_EQ(closed.RowsBefore(4), 40u);
  EXPECT_EQ(closed.missing_rows(), 30u);
  EXPECT_EQ(closed.state().epochs.size(), 2u);
  EXPECT_TRUE(closed.IsDone(2, 0));
  EXPECT_EQ(closed.Settled(0), ours.Settled(3));
  for (const auto& [first, second] : {std::pair(&closed, &theirs), std::pair(&theirs, &closed)}) {
    DeliveryLedger all(splits);
    all.Merge(*first);
    all.Merge(*second);
    EXPECT_EQ(all.missing_rows(), 0u);
    EXPECT_EQ(all.settled_rows(), 100u);
    EXPECT_EQ(all.first_epoch(), 5u);
    EXPECT_EQ(all.state().closed, std::nullopt);
    EXPECT_THROW(all.Merge(closed), Error);
  }
  // A state of an earlier moment.
  DeliveryLedger before(splits), all(splits);
  before.Admit(std::vector<RowSpan>{{0, 0, 5, 5, 5}, {0, 1, 15, 5, 5}, {1, 0, 5, 5, 5}});
  all.Merge(closed);
  all.Merge(before);
  EXPECT_EQ(all.missing_rows(), 15u);
  // An epoch that is whole after closed ones is still told, as its rows may not have been reported.
  closed.Admit(std::vector<RowSpan>{{3, 0, 0, 10, 10}, {3, 1, 10, 10, 10}});
  EXPECT_EQ(closed.first_epoch(), 3u);
  EXPECT_EQ(closed.missing_rows(), 30u);
  uint64_t rows = 0;
  for (const RowSpan& span : closed.Settled(0)) rows += span.epoch == 3 ? span.count : 0;
  EXPECT_EQ(rows, 20u);
  closed.Close(4);
  EXPECT_EQ(closed.first_epoch(), 4u);
  EXPECT_EQ(closed.missing_rows(), 30u);
  EXPECT_EQ(closed.RowsBefore(4), 50u);
  DeliveryState state;
  state.first_epoch = 2;
  for (const uint64_t impossible : {uint64_t{41}, UINT64_MAX}) {
    state.closed = {impossible, 1};
    EXPECT_THROW(DeliveryLedger(splits, state), Error);
  }
  state.closed = {0, 1};  // a sum of nothing
  EXPECT_THROW(DeliveryLedger(splits, state), Error);
  state.closed = {40, 1};  // all, by number
  EXPECT_THROW(DeliveryLedger(splits, state), Error);
  state.closed = ours.TotalBefore(2) + theirs.TotalBefore(2);
  EXPECT_EQ(state.closed->rows, 40u);
  EXPECT_EQ(DeliveryLedger(splits, state).state().closed, std::nullopt);
}

// Rows drawn anew for each of three ledgers, all of each row's or as many others: whether closed
// epochs fit together is seen as if none were closed, and their sum is the same however the rows
// were settled.
TEST(DeliveryLedger, ClosedEpochsOfTwoHistoriesDoNotFitAlsoWhereTheirNumbersDo) {
  constexpr uint64_t kRows = 30, kEpochs = 3, kLedgers = 3;
  const uint64_t seed = TestSeed();
  SCOPED_TRACE(testing::Message() << "HEADRACE_SEED=" << seed);
  std::mt19937_64 random(seed);
  const std::vector<RowRange> splits = {{0, 12}, {12, 0}, {12, kRows - 12}};
  for (int trial = 0; trial < 300; ++trial) {
    std::vector<uint64_t> rows(kEpochs * kRows);
    for (uint64_t i = 0; i < rows.size(); ++i) rows[i] = i;
    std::shuffle(rows.begin(), rows.end(), random);
    const bool fits = trial % 2 == 0;
    uint64_t exchanged = 0;  // a row that another ledger has, instead of one of its own
    if (!fits) exchanged = random() % (rows.size() / kLedgers);
    std::vector<DeliveryLedger> ledgers(kLedgers, DeliveryLedger(splits));
    for (uint64_t i = 0; i < rows.size(); ++i) {
      uint64_t row = rows[i];
      if (!fits && i == exchanged) row = rows[rows.size() - 1 - random() % (rows.size() / 2)];
      const uint64_t in_epoch = row % kRows, split = in_epoch < 12 ? 0 : 2;
      const RowSpan span{row / kRows, split, in_epoch, 1, 1};
      ledgers[i / (rows.size() / kLedgers)].Settle({&span, 1});
    }
    DeliveryLedger all(splits);
    bool was_refused = false;
    for (DeliveryLedger& ledger : ledgers) {
      const RowTotal total = ledger.TotalBefore(kEpochs);
      ledger.Close(1);
      if (random() % 2 == 0) ledger.Close(2);
      EXPECT_EQ(ledger.TotalBefore(kEpochs), total);
      if (random() % 2 == 0) ledger.Close(kEpochs);
      EXPECT_EQ(DeliveryLedger(splits, ledger.state()).TotalBefore(kEpochs), total);
      try {
        all.Merge(ledger);
      } catch (const Error&) {
        was_refused = true;
        break;
      }
    }
    EXPECT_EQ(was_refused, !fits) << "trial " << trial;
    if (fits) {
      EXPECT_EQ(all.first_epoch(), kEpochs);
    }
  }
}

// Of an epoch far behind the first: those before it are no more gone through. One that is there and
// has nothing is no row of both.
TEST(DeliveryLedger, ARowOfAnEpochThatAnotherHasWholeIsFoundAtOnce) {
  const std::vector<RowRange> splits = {{0, 0}, {0, 10}, {10, 10}};
  constexpr uint64_t kEpoch = uint64_t{1} << 40;
  DeliveryState whole, some;
  whole.first_epoch = kEpoch + 1;
  some.epochs[(uint64_t{1} << 31) + 1] = {{1}, {}};
  DeliveryLedger has_nothing(splits, some);
  has_nothing.Merge(DeliveryLedger(splits, whole));
  EXPECT_EQ(has_nothing.settled_rows(), (kEpoch + 1) * 20);
  for (const DeliveryState::Epoch& one :
       {DeliveryState::Epoch{{5}, {}}, DeliveryState::Epoch{{1}, {{10, 3}}}}) {
    some.epochs[(uint64_t{1} << 31) + 1] = one;
    DeliveryLedger has_some(splits, some);
    try {
      has_some.Merge(DeliveryLedger(splits, whole));
      ADD_FAILURE() << "both have a row";
    } catch (const Error& error) {
      EXPECT_EQ(error.fact(), "row 10 of epoch 2147483649 was delivered to both");
    }
  }
}

TEST(DeliveryLedger, AdmitsEachRowOnceAndMergesWithAnotherThatHasTheRest) {
  const uint64_t seed = TestSeed();
  SCOPED_TRACE(testing::Message() << "HEADRACE_SEED=" << seed);
  std::mt19937_64 random(seed);
  for (int trial = 0; trial < 100; ++trial) {
    const std::vector<RowRange> splits = {{0, 20}, {20, 0}, {20, 1 + random() % 30}};
    DeliveryLedger halves[2] = {DeliveryLedger(splits), DeliveryLedger(splits)};
    std::set<std::pair<uint64_t, uint64_t>> rows[2];
    for (int i = 0; i < 60; ++i) {
      const uint64_t epoch = random() % 2, split = random() % 2 * 2, row = random() % 20;
      const RowRange& range = splits[split];
      if (row >= range.count) continue;
      const int half = static_cast<int>((range.first + row) % 2);
      const RowSpan span{epoch, split, range.first + row, 1, 1};
      const bool is_new = rows[half].insert({epoch, range.first + row}).second;
      EXPECT_EQ(halves[half].Unsettled(span).size(), is_new ? 1u : 0u);
      EXPECT_EQ(halves[half].Admit({&span, 1}).size(), is_new ? 1u : 0u);
    }
    DeliveryLedger both(splits);
    both.Merge(halves[0]);
    both.Merge(halves[1]);
    EXPECT_EQ(both.settled_rows(), rows[0].size() + rows[1].size());
    std::set<std::pair<uint64_t, uint64_t>> settled, all = rows[0];
    all.insert(rows[1].begin(), rows[1].end());
    for (const RowSpan& span : both.Settled())
      for (uint64_t row = span.first; row < span.first + span.count; ++row)
        EXPECT_TRUE(settled.insert({span.epoch, row}).second);
    EXPECT_EQ(settled, all);
    if (!rows[0].empty()) {
      EXPECT_THROW(both.Merge(halves[0]), Error);
    }
    const RowSpan outside{0, 0, 19, 2, 2}, nowhere{0, 3, 0, 1, 1};
    EXPECT_THROW(both.Admit({&outside, 1}), Error);
    EXPECT_THROW(both.Admit({&nowhere, 1}), Error);
  }
}

}  // namespace
}  // namespace headrace::reader
