// A job that reads its table again and again: what its ranks keep of it does not grow.
#include <gtest/gtest.h>

#include <array>
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "base/error.h"
#include "reader/service/client.h"
#include "reader/service/dispatcher.h"
#include "reader/service/worker.h"

namespace headrace::reader::service {
namespace {

constexpr uint64_t kRanks = 2, kSplitRows = 8, kUnitRows = 1, kWorkerPeer = 100;

// A dispatcher, a worker and two ranks, of which nothing is lost or late. Connection 1 + n is rank
// n's.
class EndlessJob {
 public:
  // Each consumer is `behind` rows behind what its rank admitted.
  explicit EndlessJob(std::vector<bool> keeps, size_t behind = 0) : behind_(behind) {
    DispatcherOptions options;
    options.job.ranks = options.board.ranks = kRanks;
    options.job.epochs = options.board.epochs = kEndlessEpochs;
    for (uint64_t split = 0; split < 4; ++split)
      options.job.splits.push_back({split * kSplitRows, kSplitRows});
    options.board.unit_rows = kUnitRows;
    options.batch_rows = kUnitRows;
    dispatcher_ = std::make_unique<Dispatcher>(std::move(options));
    for (uint32_t rank = 0; rank < kRanks; ++rank)
      clients_.emplace_back(ClientOptions{.rank = rank,
                                          .ranks = kRanks,
                                          .instance = rank + 1,
                                          .writes_checkpoints = keeps[rank],
                                          .address = "x"});
    for (uint32_t rank = 0; rank < kRanks; ++rank) Say(1 + rank, clients_[rank].Connected());
    Say(kWorkerPeer, worker_.Connected());
  }

  // So many splits are read and delivered; each rank writes its checkpoint now and then, the second
  // one more seldom.
  void Read(uint64_t splits) {
    while (splits > 0) {
      if (const auto ask = worker_.TakeAsk()) Say(kWorkerPeer, *ask);
      const auto taken = worker_.Take();
      ASSERT_TRUE(taken);
      --splits;
      for (const RowRange& range : taken->lease.wanted)
        for (uint64_t row = range.first; row < range.end(); ++row) Deliver(*taken, row);
      for (uint32_t rank = 0; rank < kRanks; ++rank) {
        if (splits % (rank == 0 ? 3 : 5) == 0) {
          clients_[rank].Save("");
          clients_[rank].SaveIsDurable();
        }
        Say(1 + rank, *clients_[rank].TakeReport());
      }
      Hear(dispatcher_->Tick(now_ += 1'000'000));
    }
  }
  size_t CheckpointBytes(uint32_t rank) {
    return SerializeCheckpoint(clients_[rank].Save("")).size();
  }
  size_t JoinBytes(uint32_t rank) { return Serialize(clients_[rank].Connected()).size(); }

 private:
  void Deliver(const Worker::Taken& taken, uint64_t row) {
    const auto route = worker_.Place(taken.local, row % kSplitRows / kUnitRows, 1);
    ASSERT_TRUE(route);
    const RowSpan span{route->epoch, taken.lease.split, row, 1, 1};
    ASSERT_EQ(clients_[route->rank].Admit(route->term, {&span, 1}), Client::Admission::kNew);
    std::deque<RowSpan>& queue = queues_[route->rank];
    queue.push_back(span);
    if (queue.size() <= behind_) return;
    clients_[route->rank].Delivered({&queue.front(), 1}, 1);
    queue.pop_front();
  }
  void Say(uint64_t peer, const Message& message) {
    Hear(dispatcher_->Handle(peer, message, now_));
  }
  void Hear(std::vector<Addressed> messages) {
    for (const Addressed& one : messages) {
      if (one.peer == kWorkerPeer) {
        worker_.Handle(one.message);
      } else if (const auto answer = clients_[one.peer - 1].Handle(one.message)) {
        Say(one.peer, *answer);
      }
    }
  }

  const size_t behind_;
  std::array<std::deque<RowSpan>, kRanks> queues_;
  int64_t now_ = 1;
  std::unique_ptr<Dispatcher> dispatcher_;
  std::vector<Client> clients_;
  Worker worker_{{.instance = 99}};
};

TEST(EpochsOver, StatesOfAnEndlessJobDoNotGrow) {
  for (const bool keep : {true, false}) {
    EndlessJob job({keep, keep});
    job.Read(40);  // ten epochs
    const size_t checkpoint = job.CheckpointBytes(1);
    job.Read(4000);
    // Epochs that are not over everywhere yet may be a few more or fewer.
    for (uint32_t rank = 0; rank < kRanks; ++rank) {
      EXPECT_LE(job.CheckpointBytes(rank), 2 * checkpoint) << keep;
      EXPECT_LE(job.JoinBytes(rank), 2 * checkpoint + 200) << keep;
    }
  }
}

// Epochs are short, and a queue holds several: what is over everywhere else is never all delivered.
TEST(EpochsOver, StatesDoNotGrowWhereAConsumerIsEpochsBehind) {
  constexpr size_t kEpochs = 3, kRowsOfRank = 4 * kSplitRows / kRanks;
  for (const bool keep : {true, false}) {
    EndlessJob job({keep, keep}, kEpochs * kRowsOfRank);
    job.Read(60);
    const size_t checkpoint = job.CheckpointBytes(1);
    job.Read(4000);
    for (uint32_t rank = 0; rank < kRanks; ++rank) {
      EXPECT_LE(job.CheckpointBytes(rank), 2 * checkpoint) << keep;
      EXPECT_LE(job.JoinBytes(rank), 2 * checkpoint + 200) << keep;
    }
  }
}

// One of them begins again from nothing when it dies: the other must know which rows are its own.
TEST(EpochsOver, RanksForgetNothingWhereOnlySomeWriteCheckpoints) {
  EndlessJob job({true, false});
  job.Read(40);
  const size_t checkpoint = job.CheckpointBytes(0);
  job.Read(400);
  EXPECT_GE(job.CheckpointBytes(0), 5 * checkpoint);
}

// The ranks' states are of different moments: rows of an epoch that one of them knows to be over
// are in none.
TEST(EpochsOver, AStateThatLacksRowsOfAnEpochThatIsOverIsRefused) {
  const std::vector<RowRange> splits = {{0, 10}};
  DispatcherOptions options;
  options.job.ranks = options.board.ranks = kRanks;
  options.job.epochs = options.board.epochs = 9;
  options.job.splits = splits;
  Dispatcher dispatcher(options);
  std::vector<Addressed> said;
  for (uint32_t rank = 0; rank < kRanks; ++rank) {
    Join join;
    join.rank = rank;
    join.ranks = kRanks;
    join.instance = rank + 1;
    Checkpoint saved;
    saved.splits = 1;
    saved.delivered.first_epoch = rank == 0 ? 2 : 0;
    if (rank == 0) saved.delivered.closed = {10, 1};
    if (rank == 1) saved.delivered.epochs[0] = {{0}, {{0, 5}}};
    join.states.push_back(SerializeCheckpoint(saved));
    said = dispatcher.Handle(1 + rank, join, 1);
  }
  int refused = 0;
  for (const Addressed& one : said) {
    const auto* message = std::get_if<Refused>(&one.message);
    if (message == nullptr) continue;
    ++refused;
    EXPECT_EQ(message->code, static_cast<uint32_t>(ExitCode::kUsage));
    EXPECT_NE(message->reason.find("5 rows of the epochs before 2"), std::string::npos)
        << message->reason;
  }
  EXPECT_EQ(refused, 2);
  EXPECT_FALSE(dispatcher.status().is_running);
}

// Both ranks have the same rows of epochs that are over, in two histories of the job: the numbers
// of rows fit, and half of the rows would never come.
TEST(EpochsOver, StatesOfTwoHistoriesWhoseNumbersFitAreRefused) {
  const std::vector<RowRange> splits = {{0, 10}};
  for (const bool are_both_closed : {true, false}) {
    DispatcherOptions options;
    options.job.ranks = options.board.ranks = kRanks;
    options.job.epochs = options.board.epochs = 9;
    options.job.splits = splits;
    Dispatcher dispatcher(options);
    std::vector<Addressed> said;
    for (uint32_t rank = 0; rank < kRanks; ++rank) {
      DeliveryLedger ledger(splits);
      for (uint64_t epoch = 0; epoch < 2; ++epoch) {
        const RowSpan span{epoch, 0, 0, 5, 5};
        ledger.Settle({&span, 1});
      }
      if (are_both_closed || rank == 0) ledger.Close(2);
      Checkpoint saved;
      saved.splits = splits.size();
      saved.delivered = ledger.state();
      Join join;
      join.rank = rank;
      join.ranks = kRanks;
      join.instance = rank + 1;
      join.states.push_back(SerializeCheckpoint(saved));
      said = dispatcher.Handle(1 + rank, join, 1);
    }
    EXPECT_FALSE(dispatcher.status().is_running) << are_both_closed;
    int refused = 0;
    for (const Addressed& one : said) {
      const auto* message = std::get_if<Refused>(&one.message);
      if (message == nullptr) continue;
      ++refused;
      EXPECT_EQ(message->code, static_cast<uint32_t>(ExitCode::kUsage));
    }
    EXPECT_EQ(refused, 2) << are_both_closed;
  }
}

}  // namespace
}  // namespace headrace::reader::service
