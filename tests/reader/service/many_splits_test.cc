// Tables of many splits of unlike length, whose list is long: ranks get it in parts.
#include <gtest/gtest.h>

#include <ctime>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/error.h"
#include "reader/service/client.h"
#include "reader/service/control.h"
#include "reader/service/dispatcher.h"

namespace headrace::reader::service {
namespace {

namespace fs = std::filesystem;

std::vector<RowRange> UnevenSplits(uint64_t count) {
  std::vector<RowRange> splits;
  uint64_t row = 0;
  for (uint64_t split = 0; split < count; ++split) {
    splits.push_back({row, split % 3});
    row += split % 3;
  }
  return splits;
}

DispatcherOptions JobOf(uint32_t ranks, std::vector<RowRange> splits) {
  DispatcherOptions options;
  options.job.ranks = options.board.ranks = ranks;
  options.job.splits = std::move(splits);
  options.job.first_term = 100;
  return options;
}

Client RankOf(uint32_t rank, uint32_t ranks) {
  return Client(ClientOptions{.rank = rank, .ranks = ranks, .instance = rank + 1});
}

// Their lists together are many times what may wait for all of them.
TEST(ManySplits, AllRanksBeginWhateverTheLengthOfTheirLists) {
  constexpr uint32_t kRanks = 8;
  constexpr uint64_t kSplits = 100'000, kMostUnsent = 512 << 10;
  std::string folder = (fs::temp_directory_path() / "many_splits.XXXXXX").string();
  ASSERT_NE(::mkdtemp(folder.data()), nullptr);
  const std::string path = folder + "/dispatcher";
  ControlServer server(path, {.unsent_bytes = kMostUnsent});
  const std::vector<RowRange> splits = UnevenSplits(kSplits);
  Dispatcher dispatcher(JobOf(kRanks, splits));
  std::vector<Client> clients;
  std::vector<std::unique_ptr<ControlConnection>> connections;
  for (uint32_t rank = 0; rank < kRanks; ++rank) {
    clients.push_back(RankOf(rank, kRanks));
    connections.push_back(ControlConnection::Connect(path));
    connections.back()->Send(clients.back().Connected());
  }
  uint32_t active = 0;
  const int64_t deadline = MonotonicNs() + 120'000'000'000;
  for (int turn = 0; active < kRanks && MonotonicNs() < deadline; ++turn) {
    for (const auto& event : server.Wait(1)) {
      ASSERT_FALSE(event.is_gone) << event.why;
      for (const Message& message : event.messages)
        for (const Addressed& one : dispatcher.Handle(event.peer, message, turn))
          server.Send(one.peer, one.message);
    }
    active = 0;
    for (uint32_t rank = 0; rank < kRanks; ++rank) {
      for (const Message& message : connections[rank]->Receive(0))
        if (const auto answer = clients[rank].Handle(message)) connections[rank]->Send(*answer);
      active += clients[rank].state() == Client::State::kActive;
    }
  }
  EXPECT_EQ(active, kRanks);
  for (const Client& client : clients) {
    ASSERT_TRUE(client.has_started());
    EXPECT_EQ(client.admitted().splits(), splits);
  }
  connections.clear();
  fs::remove_all(folder);
}

// What a dispatcher says to one rank and hears from it, with no other between.
class OneRank {
 public:
  explicit OneRank(uint64_t splits) : dispatcher_(JobOf(1, UnevenSplits(splits))) {}

  std::vector<Message> Say(const Message& message) {
    std::vector<Message> said;
    for (Addressed& one : dispatcher_.Handle(1, message, 1)) said.push_back(std::move(one.message));
    return said;
  }

 private:
  Dispatcher dispatcher_;
};

TEST(ManySplits, NoMessageHasMoreThanAPart) {
  OneRank job(10'000);
  Client client = RankOf(0, 1);
  std::vector<Message> said = job.Say(client.Connected());
  size_t parts = 0;
  while (!said.empty()) {
    ASSERT_EQ(said.size(), 1u);
    EXPECT_LE(Serialize(said[0]).size(), kMostSplitRuns * 16 + 200);
    ++parts;
    const auto answer = client.Handle(said[0]);
    said = answer ? job.Say(*answer) : std::vector<Message>();
  }
  EXPECT_EQ(parts, 10u);
  EXPECT_EQ(client.state(), Client::State::kActive);
  // It has them: a rank that joins again is not told.
  const auto again = job.Say(client.Connected());
  ASSERT_EQ(again.size(), 1u);
  EXPECT_TRUE(std::get<Started>(again[0]).split_runs.empty());
  client.Handle(again[0]);
  EXPECT_EQ(client.state(), Client::State::kActive);
}

// The dispatcher is lost between two parts; the next one says the others. What is said of the term
// meanwhile counts once all have come.
TEST(ManySplits, APartThatCameBeforeTheDispatcherWasLostIsNotAskedForAgain) {
  Client client = RankOf(0, 1);
  OneRank first(3000);
  const auto started = first.Say(client.Connected());
  const auto ask = client.Handle(started.at(0));
  ASSERT_TRUE(ask);
  EXPECT_EQ(std::get<AskSplits>(*ask).first, kMostSplitRuns);
  client.Handle(first.Say(*ask).at(0));
  EXPECT_EQ(client.state(), Client::State::kJoining);
  OneRank second(3000);
  const auto again = second.Say(client.Connected());
  const auto rest = client.Handle(again.at(0));
  ASSERT_TRUE(rest);
  EXPECT_EQ(std::get<AskSplits>(*rest).first, 2 * kMostSplitRuns);
  const RowSpan row{0, 1, 0, 1, 1};
  EXPECT_EQ(client.Admit(100, {&row, 1}), Client::Admission::kWait);
  client.Handle(Ended{100});
  EXPECT_FALSE(client.has_ended());
  EXPECT_FALSE(client.Handle(second.Say(*rest).at(0)));
  EXPECT_EQ(client.admitted().splits(), UnevenSplits(3000));
  EXPECT_TRUE(client.has_ended());
}

// Whatever the table has, and also where rows of an epoch that is over elsewhere wait to be
// delivered here. It took 2 s of CPU time where each report went through all splits.
TEST(ManySplits, AReportCostsWhatItHolds) {
  constexpr uint64_t kSplits = 1'000'000;
  Client client = RankOf(0, 1);
  Started started;
  started.instance = 1;
  started.number = client.Connected().number;
  started.term = 100;
  started.generation = 1;
  started.epochs = 2;
  started.splits = kSplits;
  started.split_runs = {{1, kSplits}};
  client.Handle(started);
  const RowSpan row{0, 7, 7, 1, 1};
  ASSERT_EQ(client.Admit(100, {&row, 1}), Client::Admission::kNew);
  client.Handle(EpochsOver{100, 1, 0});
  const std::clock_t begin = std::clock();
  for (int report = 0; report < 2000; ++report) EXPECT_EQ(client.TakeReport()->durable_epochs, 0u);
  EXPECT_LT(static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC, 0.5);
  client.Delivered({&row, 1}, 1);
  EXPECT_EQ(client.TakeReport()->durable_epochs, 1u);
}

// Refused at once, and not once a rank has so many rows that it cannot say which.
TEST(ManySplits, MoreUnitsThanARankCanTellOfAreRefused) {
  DispatcherOptions options = JobOf(2, {{0, uint64_t{1} << 30}});
  options.board.unit_rows = 1;
  try {
    CheckStatesFit(options);
    ADD_FAILURE() << "taken";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::kResources);
    EXPECT_NE(error.fix().find("pipeline.worker_rows"), std::string::npos);
  }
  options.board.unit_rows = 1000;
  CheckStatesFit(options);
  options.board.unit_rows = 1;
  options.board.mode = Mode::kIndependent;
  CheckStatesFit(options);  // whole splits are a bit each
  // What is told of every second unit is indeed as long as that.
  constexpr uint64_t kUnits = 10'000, kUnitRows = 100;
  RowSet rows;
  for (uint64_t unit = 0; unit < kUnits; ++unit) rows.Append({2 * unit * kUnitRows, kUnitRows});
  EXPECT_NEAR(static_cast<double>(rows.Serialize().size()), 2.0 * kUnits, 10.0);
}

TEST(ManySplits, WhatCannotBeTheTableIsRefused) {
  const auto begun = [](Client* client, uint64_t splits, std::vector<SplitRun> runs) {
    Started started;
    started.instance = 1;
    started.number = client->Connected().number;
    started.term = 100;
    started.generation = started.epochs = 1;
    started.splits = splits;
    started.split_runs = std::move(runs);
    return client->Handle(started);
  };
  for (const auto& [splits, runs] : std::vector<std::pair<uint64_t, std::vector<SplitRun>>>{
           {kMostSplits + 1, {{1, 1}}},
           {2, {{1, 3}}},
           {3, {{1, 2}, {1, 2}}},
           {3, {{uint64_t{1} << 62, 1}, {1, 1}}},
           {2, {{uint64_t{1} << 62, 2}}},
           {2, {{UINT64_MAX, 1}}}}) {
    Client client = RankOf(0, 1);
    EXPECT_THROW(begun(&client, splits, runs), Error) << splits;
  }
  Client client = RankOf(0, 1);
  ASSERT_TRUE(begun(&client, 5, {{1, 2}}));
  EXPECT_FALSE(client.Handle(Splits{99, 2, {{1, 1}}}));   // of another term
  EXPECT_FALSE(client.Handle(Splits{100, 0, {{1, 1}}}));  // not asked for
  EXPECT_THROW(client.Handle(Splits{100, 2, {{1, 4}}}), Error);
  EXPECT_THROW(client.Handle(Splits{100, 2, {}}), Error);
  EXPECT_THROW(client.Handle(Splits{100, 2, {{1, 0}}}), Error);
  ASSERT_TRUE(client.Handle(Splits{100, 2, {{1, 2}}}));
  EXPECT_FALSE(client.Handle(Splits{100, 4, {{7, 1}}}));
  EXPECT_EQ(client.state(), Client::State::kActive);
  EXPECT_EQ(client.admitted().splits().back(), (RowRange{4, 7}));
  OneRank job(5);
  Client other = RankOf(0, 1);
  job.Say(other.Connected());
  const auto refused = job.Say(AskSplits{100, 5});
  ASSERT_EQ(refused.size(), 1u);
  EXPECT_TRUE(std::holds_alternative<Refused>(refused[0]));
}

}  // namespace
}  // namespace headrace::reader::service
