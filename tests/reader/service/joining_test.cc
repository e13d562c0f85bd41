// What a Join means, in the very orders of messages that random schedules hardly ever play: one
// that was overtaken, one repeated, the answer to an earlier one, ranks that come anew.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "base/error.h"
#include "reader/service/client.h"
#include "reader/service/dispatcher.h"

namespace headrace::reader::service {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

const std::vector<RowRange> kSplits = {{0, 4}, {4, 4}};
const RowSpan kFirstRows = {0, 0, 0, 2, 2};  // rows 0 and 1 of epoch 0

Dispatcher MakeDispatcher(uint32_t ranks = 2, const std::vector<RowRange>& splits = kSplits) {
  DispatcherOptions options;
  options.job = {ranks, 1, splits, {}, 100};
  options.board = {Mode::kLockstep, ranks, 1, 2, true};
  return Dispatcher(std::move(options));
}

std::string StateWith(const std::vector<RowSpan>& rows) {
  DeliveryLedger ledger(kSplits);
  ledger.Settle(rows);
  Checkpoint state;
  state.splits = kSplits.size();
  state.delivered = ledger.state();
  return SerializeCheckpoint(state);
}

Join JoinOf(uint32_t rank, uint64_t instance, uint64_t number = 1) {
  Join join;
  join.rank = rank;
  join.ranks = 2;
  join.instance = instance;
  join.number = number;
  return join;
}

template <typename M>
std::vector<uint64_t> Receivers(const std::vector<Addressed>& messages) {
  std::vector<uint64_t> peers;
  for (const Addressed& one : messages)
    if (std::holds_alternative<M>(one.message)) peers.push_back(one.peer);
  std::sort(peers.begin(), peers.end());
  return peers;
}

template <typename M>
M First(const std::vector<Addressed>& messages) {
  for (const Addressed& one : messages)
    if (const auto* found = std::get_if<M>(&one.message)) return *found;
  ADD_FAILURE() << "no such message";
  return {};
}

TEST(ServiceJoin, WaitsForEveryRankAndNamesTheMissing) {
  Dispatcher dispatcher = MakeDispatcher();
  const auto first = dispatcher.Handle(10, JoinOf(1, 21), 0);
  EXPECT_THAT(First<Waiting>(first).missing, ElementsAre(0));
  const auto second = dispatcher.Handle(11, JoinOf(0, 20), 0);
  EXPECT_THAT(Receivers<Started>(second), ElementsAre(10, 11));
  EXPECT_EQ(First<Started>(second).term, 100u);
  EXPECT_EQ(First<Started>(second).generation, 1u);
}

// Each worker is told the addresses of all ranks, and whoever asks for the status the hosts of all.
TEST(ServiceJoin, NamesThatAreTooLongAreRefused) {
  Dispatcher dispatcher = MakeDispatcher();
  Join join = JoinOf(0, 20);
  join.address.assign(kMostNameBytes, 'a');
  join.host.assign(kMostNameBytes, 'h');
  EXPECT_THAT(Receivers<Waiting>(dispatcher.Handle(11, join, 0)), ElementsAre(11));
  for (std::string Join::*name : {&Join::address, &Join::host}) {
    Join longer = JoinOf(1, 21);
    (longer.*name).assign(kMostNameBytes + 1, 'x');
    const auto answer = First<Refused>(dispatcher.Handle(12, longer, 0));
    EXPECT_EQ(answer.code, static_cast<uint32_t>(ExitCode::kBadData));
    EXPECT_THAT(answer.reason, HasSubstr("rank 1: its address has"));
  }
  EXPECT_FALSE(dispatcher.status().is_running);
  Register worker;
  worker.host.assign(kMostNameBytes + 1, 'x');
  EXPECT_THAT(First<Refused>(dispatcher.Handle(13, worker, 0)).reason, HasSubstr("301 bytes"));
  EXPECT_THAT(dispatcher.status().workers, IsEmpty());
}

// Rule 6, first part: the process sends its Join on a connection that stalls, connects again, and
// the job begins. Then the first Join arrives.
TEST(ServiceJoin, ARepeatedJoinIsTheSameRankAndNeverANewGeneration) {
  Dispatcher dispatcher = MakeDispatcher();
  dispatcher.Handle(11, JoinOf(0, 20, 2), 0);
  dispatcher.Handle(12, JoinOf(1, 21), 0);
  EXPECT_THAT(dispatcher.Handle(10, JoinOf(0, 20, 1), 0), IsEmpty());
  EXPECT_EQ(dispatcher.status().generation, 1u);
  EXPECT_TRUE(dispatcher.status().is_running);
  // Without the number of its process it would have begun the next generation.
  EXPECT_THAT(Receivers<Again>(dispatcher.Handle(13, JoinOf(0, 99, 1), 0)), ElementsAre(11, 12));
  EXPECT_EQ(dispatcher.status().generation, 2u);
}

// Rule 6, second part: what the overtaken Join says of rows is older than what is known.
TEST(ServiceJoin, AnOvertakenJoinBringsNoRows) {
  for (const bool is_overtaken : {true, false}) {
    Dispatcher dispatcher = MakeDispatcher();
    Join later = JoinOf(0, 20, 2), earlier = JoinOf(0, 20, is_overtaken ? 1 : 3);
    later.generation = earlier.generation = 1;
    later.term = earlier.term = 7;
    later.states = {StateWith({kFirstRows})};
    dispatcher.Handle(11, later, 0);
    dispatcher.Handle(10, earlier, 0);
    Join other = JoinOf(1, 21);
    other.generation = 1;
    other.term = 7;
    dispatcher.Handle(12, other, 0);
    dispatcher.Handle(20, Register{}, 0);
    const Lease lease = First<Lease>(dispatcher.Handle(20, Ask{dispatcher.status().term, 1}, 0));
    // Rows 0 and 1 go to another rank, a second time, unless the later Join counts.
    EXPECT_EQ(lease.wanted[0], is_overtaken ? (RowRange{2, 2}) : (RowRange{0, 4}));
  }
}

// Rule 6, third part: the term was begun by an earlier Join, before rows that a later one tells of.
TEST(ServiceJoin, AClientHeedsOnlyTheAnswerToItsLatestJoin) {
  Client client(ClientOptions{.rank = 0, .ranks = 2, .instance = 20});
  const Join first = client.Connected(), second = client.Connected();
  EXPECT_EQ(second.number, first.number + 1);
  Started started;
  started.instance = 20;
  started.term = 100;
  started.generation = started.epochs = 1;
  started.splits = 2;
  started.split_runs = {{4, 2}};
  started.number = first.number;
  client.Handle(started);
  EXPECT_EQ(client.state(), Client::State::kJoining);
  EXPECT_EQ(client.Admit(100, {&kFirstRows, 1}), Client::Admission::kWait);
  started.number = second.number;
  client.Handle(started);
  EXPECT_EQ(client.state(), Client::State::kActive);
  EXPECT_EQ(client.Admit(100, {&kFirstRows, 1}), Client::Admission::kNew);
  EXPECT_EQ(client.Admit(100, {&kFirstRows, 1}), Client::Admission::kHave);
  EXPECT_EQ(client.Admit(99, {&kFirstRows, 1}), Client::Admission::kStale);
}

// Rule 3: from the Join on nothing is admitted, for the Join has said what was.
TEST(ServiceJoin, JoiningIsACut) {
  Client client(ClientOptions{.instance = 20});
  Started started;
  started.instance = 20;
  started.term = 100;
  started.generation = started.epochs = 1;
  started.splits = 2;
  started.split_runs = {{4, 2}};
  started.number = client.Connected().number;
  client.Handle(started);
  client.Connected();
  EXPECT_EQ(client.Admit(100, {&kFirstRows, 1}), Client::Admission::kWait);
  EXPECT_FALSE(client.TakeReport());
}

// Rule 5.
TEST(ServiceJoin, StatesOfDifferentMomentsFormNoGroup) {
  Dispatcher dispatcher = MakeDispatcher();
  Join one = JoinOf(0, 20), other = JoinOf(1, 21);
  one.checkpoint = 5;
  other.checkpoint = 6;
  dispatcher.Handle(10, one, 0);
  const auto out = dispatcher.Handle(11, other, 0);
  EXPECT_THAT(Receivers<Superseded>(out), ElementsAre(10));
  EXPECT_THAT(First<Superseded>(out).reason, HasSubstr("rank 1"));
  EXPECT_THAT(First<Waiting>(out).missing, ElementsAre(0));
  EXPECT_FALSE(dispatcher.status().is_running);
}

// Rule 4.
TEST(ServiceJoin, StatesThatShareARowAreRefused) {
  Dispatcher dispatcher = MakeDispatcher();
  Join one = JoinOf(0, 20), other = JoinOf(1, 21);
  one.states = other.states = {StateWith({kFirstRows})};
  dispatcher.Handle(10, one, 0);
  const auto out = dispatcher.Handle(11, other, 0);
  EXPECT_THAT(Receivers<Refused>(out), ElementsAre(10, 11));
  EXPECT_THAT(First<Refused>(out).reason, HasSubstr("different moments"));
  EXPECT_EQ(First<Refused>(out).code, static_cast<uint32_t>(ExitCode::kUsage));
}

// Rule 7: a launcher that restarts the ranks while the job runs.
TEST(ServiceJoin, AFreshRankBeginsTheNextGenerationAndTheOldRanksEnd) {
  Dispatcher dispatcher = MakeDispatcher();
  dispatcher.Handle(10, JoinOf(0, 20), 0);
  dispatcher.Handle(11, JoinOf(1, 21), 0);
  EXPECT_THAT(Receivers<Again>(dispatcher.Handle(12, JoinOf(0, 30), 0)), ElementsAre(10, 11));
  Join old = JoinOf(1, 21, 2);  // it has been in a term, so it joins with its generation
  old.generation = 1;
  old.term = 100;
  EXPECT_THAT(Receivers<Superseded>(dispatcher.Handle(11, old, 0)), ElementsAre(11));
  const auto out = dispatcher.Handle(13, JoinOf(1, 31), 0);
  EXPECT_THAT(Receivers<Started>(out), ElementsAre(12, 13));
  EXPECT_GT(First<Started>(out).term, 100u);
  EXPECT_EQ(First<Started>(out).generation, 2u);
}

// A dispatcher whose clock is behind that of the one before may count to the same term. A worker
// that has leases of that one would send rows by its deals.
TEST(ServiceJoin, ATermOfAnotherDispatcherWithTheSameNumberIsAnotherTerm) {
  Dispatcher dispatcher = MakeDispatcher();
  dispatcher.Handle(10, JoinOf(0, 20), 0);
  dispatcher.Handle(11, JoinOf(1, 21), 0);
  Register ours, other;
  ours.instance = 30;
  EXPECT_EQ(First<Session>(dispatcher.Handle(12, ours, 0)).term, 100u);
  // One that was told of it comes again: nothing is wrong.
  dispatcher.Gone(12, 0);
  ours.term = 100;
  EXPECT_EQ(First<Session>(dispatcher.Handle(13, ours, 0)).term, 100u);
  other.instance = 31;
  other.term = 100;
  EXPECT_THAT(Receivers<Again>(dispatcher.Handle(14, other, 0)), ElementsAre(10, 11));
  EXPECT_FALSE(dispatcher.status().is_running);
  for (const uint32_t rank : {0u, 1u}) {
    Join join = JoinOf(rank, 20 + rank, 2);
    join.generation = 1;
    join.term = 100;
    dispatcher.Handle(10 + rank, join, 0);
  }
  EXPECT_TRUE(dispatcher.status().is_running);
  EXPECT_GT(dispatcher.status().term, 100u);
}

// A dispatcher that has forgotten everything meets a rank that began anew and one that did not.
TEST(ServiceJoin, FreshAndRejoiningRanksNeverFormOneGroup) {
  Join old = JoinOf(1, 21, 2);
  old.generation = 1;
  old.term = 7;
  {
    Dispatcher dispatcher = MakeDispatcher();
    dispatcher.Handle(10, JoinOf(0, 30), 0);
    EXPECT_THAT(Receivers<Superseded>(dispatcher.Handle(11, old, 0)), ElementsAre(11));
  }
  Dispatcher dispatcher = MakeDispatcher();
  dispatcher.Handle(11, old, 0);
  EXPECT_THAT(Receivers<Again>(dispatcher.Handle(10, JoinOf(0, 30), 0)), ElementsAre(11));
  EXPECT_FALSE(dispatcher.status().is_running);
}

TEST(ServiceJoin, ATermIsLaterThanAnyThatARankWasIn) {
  Dispatcher dispatcher = MakeDispatcher();
  Join one = JoinOf(0, 20), other = JoinOf(1, 21);
  one.generation = other.generation = 3;
  one.term = other.term = 5000;  // of a dispatcher whose clock was ahead
  dispatcher.Handle(10, one, 0);
  const auto out = dispatcher.Handle(11, other, 0);
  EXPECT_EQ(First<Started>(out).term, 5001u);
  EXPECT_EQ(First<Started>(out).generation, 3u);
}

TEST(ServiceJoin, AnotherNumberOfRanksIsRefusedWithTheRightOne) {
  Dispatcher dispatcher = MakeDispatcher();
  Join join = JoinOf(0, 20);
  join.ranks = 3;
  const Refused refused = First<Refused>(dispatcher.Handle(10, join, 0));
  EXPECT_THAT(refused.reason, HasSubstr("2 ranks"));
  EXPECT_THAT(refused.fix, HasSubstr("N/2"));
}

TEST(ServiceJoin, AStateOfAnotherTableIsRefusedWithThePartThatDiffers) {
  Dispatcher dispatcher = MakeDispatcher();
  Checkpoint state;
  state.splits = kSplits.size();
  state.fingerprint.table = 1;
  Join join = JoinOf(0, 20);
  join.states = {SerializeCheckpoint(state)};
  EXPECT_THAT(First<Refused>(dispatcher.Handle(10, join, 0)).reason, HasSubstr("table"));
}

// A process that died while others were waited for is not there when they come.
TEST(ServiceJoin, ARankThatWentBeforeTheGroupWasWholeIsMissing) {
  Dispatcher dispatcher = MakeDispatcher();
  dispatcher.Handle(10, JoinOf(0, 20), 0);
  dispatcher.Gone(10, 0);
  const auto out = dispatcher.Handle(11, JoinOf(1, 21), 0);
  EXPECT_THAT(Receivers<Started>(out), IsEmpty());
  EXPECT_THAT(First<Waiting>(out).missing, ElementsAre(0));
  dispatcher.Handle(12, JoinOf(0, 30), 0);
  EXPECT_TRUE(dispatcher.status().is_running);
  EXPECT_EQ(dispatcher.status().generation, 1u);
}

TEST(ServiceJoin, WhoWaitsIsToldOfARankThatWent) {
  DispatcherOptions options;
  options.job = {3, 1, kSplits, {}, 100};
  options.board = {Mode::kLockstep, 3, 1, 2, true};
  Dispatcher dispatcher(std::move(options));
  for (uint32_t rank = 0; rank < 2; ++rank) {
    Join join = JoinOf(rank, 20 + rank);
    join.ranks = 3;
    dispatcher.Handle(10 + rank, join, 0);
  }
  const auto out = dispatcher.Gone(10, 0);
  EXPECT_THAT(Receivers<Waiting>(out), ElementsAre(11));
  EXPECT_THAT(First<Waiting>(out).missing, ElementsAre(0, 2));
}

Report ReportOf(uint64_t instance, uint32_t progress, std::vector<RowSpan> admitted = {}) {
  Report report;
  report.instance = instance;
  report.term = 100;
  report.progress = progress;
  report.admitted = std::move(admitted);
  return report;
}

// All rows of kSplits are admitted, by both ranks, and the connections of the ranks are 10 and 11.
Dispatcher AdmittedJob() {
  Dispatcher dispatcher = MakeDispatcher();
  dispatcher.Handle(10, JoinOf(0, 20), 0);
  dispatcher.Handle(11, JoinOf(1, 21), 0);
  dispatcher.Handle(10, ReportOf(20, Report::kReading, {{0, 0, 0, 4, 4}}), 0);
  const auto out = dispatcher.Handle(11, ReportOf(21, Report::kReading, {{0, 1, 4, 4, 4}}), 0);
  EXPECT_THAT(Receivers<Ended>(out), ElementsAre(10, 11));
  return dispatcher;
}

TEST(ServiceEnd, AJobIsOverWhenEveryRankHasDeliveredItsRowsAndGone) {
  Dispatcher dispatcher = AdmittedJob();
  dispatcher.Handle(10, ReportOf(20, Report::kFinished), 0);
  EXPECT_THAT(Receivers<Bye>(dispatcher.Handle(11, ReportOf(21, Report::kHeardEnded), 0)),
              ElementsAre(10, 11));
  dispatcher.Gone(10, 0);
  EXPECT_FALSE(dispatcher.status().is_complete);
  dispatcher.Handle(11, ReportOf(21, Report::kFinished), 0);
  EXPECT_TRUE(dispatcher.status().is_complete);
  EXPECT_FALSE(dispatcher.is_over());
  dispatcher.Gone(11, 0);
  EXPECT_TRUE(dispatcher.is_over());
}

// A Report answers each Bye: a Bye for each Report would keep both busy until the last step.
TEST(ServiceEnd, ARankIsToldOnceThatItMayGo) {
  Dispatcher dispatcher = AdmittedJob();
  dispatcher.Handle(10, ReportOf(20, Report::kHeardEnded), 0);
  EXPECT_THAT(Receivers<Bye>(dispatcher.Handle(11, ReportOf(21, Report::kHeardEnded), 0)),
              ElementsAre(10, 11));
  for (const uint32_t progress : {Report::kHeardEnded, Report::kFinished})
    EXPECT_THAT(dispatcher.Handle(10, ReportOf(20, progress), 0), IsEmpty());
  // On another connection it has not heard of it.
  dispatcher.Gone(11, 0);
  Join join = JoinOf(1, 21, 2);
  join.generation = 1;
  join.term = 100;
  join.states = {StateWith({{0, 1, 4, 4, 4}})};
  EXPECT_THAT(Receivers<Ended>(dispatcher.Handle(12, join, 0)), ElementsAre(12));
  EXPECT_THAT(Receivers<Bye>(dispatcher.Handle(12, ReportOf(21, Report::kHeardEnded), 0)),
              ElementsAre(12));
}

// It has rows in memory that its trainer never saw.
TEST(ServiceEnd, AJobIsNotOverWhenARankDiesWithRowsThatItDidNotDeliver) {
  Dispatcher dispatcher = AdmittedJob();
  dispatcher.Handle(10, ReportOf(20, Report::kFinished), 0);
  dispatcher.Handle(11, ReportOf(21, Report::kHeardEnded), 0);
  dispatcher.Gone(10, 0);
  dispatcher.Gone(11, 0);  // killed
  EXPECT_FALSE(dispatcher.is_over());
  // All ranks begin again, and what was said before does not count.
  for (const uint32_t rank : {1u, 0u}) {
    Join join = JoinOf(rank, 30 + rank);
    const uint64_t row = uint64_t{2} * rank;  // of units rank and rank + 2
    join.states = {StateWith({{0, 0, row, 2, 2}, {0, 1, 4 + row, 2, 2}})};
    dispatcher.Handle(12 + rank, join, 0);
  }
  EXPECT_TRUE(dispatcher.status().is_running);
  for (const uint32_t rank : {0u, 1u}) {
    Report report = ReportOf(30 + rank, Report::kFinished);
    report.term = dispatcher.status().term;
    EXPECT_FALSE(dispatcher.status().is_complete);
    dispatcher.Handle(12 + rank, report, 0);
    dispatcher.Gone(12 + rank, 0);
  }
  EXPECT_TRUE(dispatcher.is_over());
}

TEST(ServiceEnd, RanksAndWorkersAreToldThatTheJobWasEnded) {
  Dispatcher dispatcher = MakeDispatcher();
  dispatcher.Handle(10, JoinOf(0, 20), 0);
  dispatcher.Handle(20, Register{}, 0);
  const auto out = dispatcher.Part(Refused{1, "the job was ended", ""});
  EXPECT_THAT(Receivers<Refused>(out), ElementsAre(10));
  EXPECT_THAT(Receivers<Bye>(out), ElementsAre(20));
  EXPECT_TRUE(dispatcher.has_peers());
  dispatcher.Gone(10, 0);
  dispatcher.Gone(20, 0);
  EXPECT_FALSE(dispatcher.has_peers());
}

TEST(ServiceWorkers, ThatFailThreeTimesInARowEndTheJob) {
  Dispatcher dispatcher = MakeDispatcher(1);
  Join join = JoinOf(0, 20);
  join.ranks = 1;
  dispatcher.Handle(10, join, 0);
  std::vector<Addressed> out;
  for (uint64_t worker = 20; worker < 23; ++worker) {
    EXPECT_FALSE(dispatcher.failure());
    dispatcher.Handle(worker, Register{}, 0);
    out = dispatcher.Handle(worker, Failed{5, "stripe 3 is damaged"}, 0);
  }
  EXPECT_THAT(First<Refused>(out).reason, HasSubstr("stripe 3 is damaged"));
  EXPECT_EQ(First<Refused>(out).code, 5u);
}

TEST(ServiceWorkers, ThatGoSilentAreTakenForLostAndThenServedAgain) {
  Dispatcher dispatcher = MakeDispatcher(1);
  Join join = JoinOf(0, 20);
  join.ranks = 1;
  dispatcher.Handle(10, join, 0);
  dispatcher.Handle(20, Register{}, 0);
  dispatcher.Handle(21, Register{}, 0);
  EXPECT_THAT(Receivers<Lease>(dispatcher.Handle(20, Ask{100, 2}, 0)), ElementsAre(20, 20));
  EXPECT_THAT(dispatcher.Handle(21, Ask{100, 2}, 4'000'000'000), IsEmpty());
  EXPECT_THAT(Receivers<Lease>(dispatcher.Tick(4'000'000'001)), ElementsAre(21, 21));
  EXPECT_TRUE(dispatcher.status().workers[0].is_silent);
  dispatcher.Handle(20, Alive{}, 4'000'000'002);
  EXPECT_FALSE(dispatcher.status().workers[0].is_silent);
}

TEST(ServiceWorkers, OneTooManyIsRefusedAndRanksAreNot) {
  DispatcherOptions options;
  options.job = {1, 1, kSplits, {}, 100};
  options.most_workers = 1;
  Dispatcher dispatcher(std::move(options));
  const Register first = {1, 1, "a", 0}, second = {2, 2, "a", 0};
  EXPECT_THAT(Receivers<Refused>(dispatcher.Handle(19, first, 0)), IsEmpty());
  const auto out = dispatcher.Handle(21, second, 0);
  EXPECT_THAT(Receivers<Refused>(out), ElementsAre(21));
  EXPECT_THAT(First<Refused>(out).reason, HasSubstr("1 workers"));
  EXPECT_EQ(First<Refused>(out).code, static_cast<uint32_t>(ExitCode::kResources));
  // On another connection: the former one is dead, and nobody knows it yet.
  EXPECT_THAT(Receivers<Refused>(dispatcher.Handle(20, first, 0)), IsEmpty());
  EXPECT_THAT(Receivers<Refused>(dispatcher.Handle(20, first, 0)), IsEmpty());  // once more
  EXPECT_EQ(dispatcher.status().workers.size(), 1u);
  dispatcher.Gone(19, 0);
  EXPECT_EQ(dispatcher.status().workers.size(), 1u);
  Join join = JoinOf(0, 20);
  join.ranks = 1;
  EXPECT_THAT(Receivers<Started>(dispatcher.Handle(10, join, 0)), ElementsAre(10));
  dispatcher.Gone(20, 0);
  EXPECT_THAT(Receivers<Session>(dispatcher.Handle(22, second, 0)), ElementsAre(22));
}

TEST(ServiceWorkers, LeasesAndTimeWithoutASplitAreCounted) {
  constexpr int64_t kSecond = 1'000'000'000;
  Dispatcher dispatcher = MakeDispatcher(1);
  Join join = JoinOf(0, 20);
  join.ranks = 1;
  dispatcher.Handle(10, join, 0);
  for (const uint64_t worker : {20, 21}) dispatcher.Handle(worker, Register{}, 0);
  dispatcher.Handle(20, Ask{100, 1}, 0);
  dispatcher.Handle(21, Ask{100, 2}, 0);
  dispatcher.Tick(kSecond);
  dispatcher.Tick(2 * kSecond);
  EXPECT_EQ(dispatcher.counts().leases, 2u);
  EXPECT_EQ(dispatcher.counts().again, 0u);
  EXPECT_EQ(dispatcher.counts().no_split_ns, 0);  // who asks for more has one to work on
  dispatcher.Gone(20, 2 * kSecond);
  EXPECT_EQ(dispatcher.counts().leases, 3u);
  EXPECT_EQ(dispatcher.counts().again, 1u);
  EXPECT_EQ(dispatcher.counts().again_rows, 4u);
  dispatcher.Handle(22, Register{}, 2 * kSecond);
  dispatcher.Handle(22, Ask{100, 1}, 2 * kSecond);
  dispatcher.Tick(3 * kSecond);
  EXPECT_EQ(dispatcher.counts().no_split_ns, kSecond);
  // Up to the end, for whoever looks a last time.
  EXPECT_FALSE(dispatcher.is_ending());
  dispatcher.BeginEnding(3 * kSecond + 5);
  EXPECT_TRUE(dispatcher.is_ending());
  EXPECT_EQ(dispatcher.counts().no_split_ns, kSecond + 5);
}

TEST(ServiceWorkers, ThatAWindowHoldsBackDoNotLackSplits) {
  std::vector<RowRange> splits;
  for (uint64_t split = 0; split < 20; ++split) splits.push_back({4 * split, 4});
  Dispatcher dispatcher = MakeDispatcher(1, splits);
  Join join = JoinOf(0, 20);
  join.ranks = 1;
  dispatcher.Handle(10, join, 0);
  for (const uint64_t worker : {20, 21}) dispatcher.Handle(worker, Register{}, 0);
  dispatcher.Handle(20, Ask{100, 20}, 0);
  EXPECT_THAT(dispatcher.Handle(21, Ask{100, 1}, 0), IsEmpty());
  dispatcher.Tick(1'000'000'000);
  dispatcher.Tick(2'000'000'000);
  EXPECT_EQ(dispatcher.counts().no_split_ns, 0);
}

TEST(ServiceWorkers, AreDrainedOnceTheirLeasesAreDone) {
  Dispatcher dispatcher = MakeDispatcher(1);
  Join join = JoinOf(0, 20);
  join.ranks = 1;
  dispatcher.Handle(10, join, 0);
  dispatcher.Handle(20, Register{}, 0);
  dispatcher.Handle(20, Ask{100, 1}, 0);
  std::vector<Addressed> out;
  EXPECT_FALSE(dispatcher.Drain(99, &out));
  EXPECT_TRUE(dispatcher.Drain(20, &out));
  EXPECT_THAT(Receivers<Drain>(out), ElementsAre(20));
  EXPECT_THAT(Receivers<Bye>(out), IsEmpty());
  Report report;
  report.instance = 20;
  report.term = 100;
  report.admitted = {{0, 0, 0, 4, 4}};
  EXPECT_THAT(Receivers<Bye>(dispatcher.Handle(10, report, 0)), ElementsAre(20));
}

TEST(ServiceWorkers, ThatDrainGiveBackWhatTheyHaveMadeNoRowOf) {
  Dispatcher dispatcher = MakeDispatcher(1, {{0, 4}, {4, 4}, {8, 4}, {12, 4}});
  Join join = JoinOf(0, 20);
  join.ranks = 1;
  dispatcher.Handle(10, join, 0);
  Worker worker(WorkerOptions{.instance = 7, .ahead = 4});
  const auto tell = [&](const std::vector<Addressed>& out) {
    for (const Addressed& one : out)
      if (one.peer == 20) worker.Handle(one.message);
  };
  tell(dispatcher.Handle(20, worker.Connected(), 0));
  dispatcher.Handle(21, Register{}, 0);
  tell(dispatcher.Handle(20, *worker.TakeAsk(), 0));
  // Of four leases rows of one have come, two are in the pipeline, and one waits here.
  std::vector<Worker::Taken> taken;
  for (int lease = 0; lease < 3; ++lease) taken.push_back(*worker.Take());
  ASSERT_TRUE(worker.MarkMade(taken[0].local));
  EXPECT_FALSE(worker.TakeUnmade()) << "it does not drain";
  std::vector<Addressed> out;
  dispatcher.Drain(20, &out);
  tell(out);
  const auto back = worker.TakeUnmade();
  ASSERT_TRUE(back);
  EXPECT_EQ(back->splits.size(), 3u);
  EXPECT_FALSE(worker.Take());
  EXPECT_FALSE(worker.TakeAsk());
  EXPECT_FALSE(worker.TakeUnmade()) << "once";
  EXPECT_TRUE(worker.Place(taken[0].local, 0, 1)) << "what it has made rows of goes on";
  EXPECT_FALSE(worker.MarkMade(taken[1].local));
  EXPECT_FALSE(worker.Place(taken[1].local, 0, 1));
  GiveBack old = *back;
  old.term = 99;
  dispatcher.Handle(20, old, 0);
  EXPECT_EQ(dispatcher.status().workers[0].open_leases, 4u) << "of another term";
  // Whoever asked before gets them, and nothing is counted as made again.
  EXPECT_THAT(Receivers<Lease>(dispatcher.Handle(21, Ask{100, 5}, 0)), IsEmpty());
  EXPECT_THAT(Receivers<Lease>(dispatcher.Handle(20, *back, 0)), ElementsAre(21, 21, 21));
  EXPECT_EQ(dispatcher.counts().again, 0u);
  Report report;
  report.instance = 20;
  report.term = 100;
  const uint64_t split = taken[0].lease.split;
  report.admitted = {{0, split, 4 * split, 4, 4}};
  EXPECT_THAT(Receivers<Bye>(dispatcher.Handle(10, report, 0)), ElementsAre(20))
      << "it waits for that one alone";
}

TEST(ServiceWorkers, ThatDrainAndHaveMadeNothingMayGoAtOnce) {
  Dispatcher dispatcher = MakeDispatcher(1, {{0, 4}, {4, 4}});
  Join join = JoinOf(0, 20);
  join.ranks = 1;
  dispatcher.Handle(10, join, 0);
  dispatcher.Handle(20, Register{}, 0);
  dispatcher.Handle(20, Ask{100, 2}, 0);
  std::vector<Addressed> out;
  dispatcher.Drain(20, &out);
  EXPECT_THAT(Receivers<Bye>(dispatcher.Handle(20, GiveBack{100, {{0, 0}}}, 0)), IsEmpty());
  EXPECT_THAT(Receivers<Bye>(dispatcher.Handle(20, GiveBack{100, {{0, 1}}}, 0)), ElementsAre(20));
}

}  // namespace
}  // namespace headrace::reader::service
