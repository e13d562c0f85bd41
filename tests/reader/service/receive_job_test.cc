// A whole job in one process: a dispatcher, a worker and two ranks, each on a thread. Each row
// comes once also where the ranks are interrupted and go on from their checkpoints. Under
// ThreadSanitizer it shows what a rank's threads share. Two workers of one process would share the
// accounts of their queues, which are found by name.
#include "reader/service/receive_job.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "base/error.h"
#include "reader/pipeline/delivery/connect.h"
#include "reader/service/control.h"
#include "reader/service/dispatcher_process.h"
#include "reader/service/job_folder.h"
#include "reader/service/worker_process.h"
#include "workloads/generator.h"

namespace headrace::reader::service {
namespace {

namespace fs = std::filesystem;

using testing::AllOf, testing::Contains, testing::HasSubstr;

constexpr uint32_t kRanks = 2;
constexpr uint64_t kRows = 1000, kEpochs = 3;

struct Taken {
  std::mutex mutex;
  std::multiset<uint64_t> rows;
  std::vector<std::string> notes;
  std::atomic<uint64_t> count{0};
};

class KeepRows final : public Consumer {
 public:
  explicit KeepRows(Taken* taken) : taken_(taken) {}
  void Step(Element&& element, StopSignal* /*stop*/) override {
    const auto& batch = element.payload.As<TensorBatch>();
    std::lock_guard lock(taken_->mutex);
    for (uint64_t row = 0; row < batch.rows; ++row) taken_->rows.insert(batch.RowId(row));
    taken_->count += batch.rows;
  }

 private:
  Taken* const taken_;
};

class WholeJob : public testing::Test {
 protected:
  WholeJob() {
    std::string pattern = (fs::temp_directory_path() / "job_test.XXXXXX").string();
    folder_ = ::mkdtemp(pattern.data());
    workloads::WorkloadSpec spec = workloads::ForModel("rm1", 0.02, kRows, 11);
    spec.stripe_rows = 100;
    workloads::GenerateTable(spec, folder_ / "t");
    fs::create_directory(folder_ / "job");
    fs::permissions(folder_ / "job", fs::perms::owner_all);
  }
  ~WholeJob() override { fs::remove_all(folder_); }

  std::shared_ptr<JobPlace> Place() const {
    return std::make_shared<JobPlace>((folder_ / "job").string(), SecretFiles{}, false);
  }

  // Errors fail the test.
  template <typename Run>
  std::thread Start(const char* who, Run run) {
    return std::thread([who, run = std::move(run)] {
      try {
        run();
      } catch (const Error& error) {
        ADD_FAILURE() << who << ": " << error.what();
      }
    });
  }

  DispatcherProcessOptions Job(uint64_t epochs) const {
    DispatcherProcessOptions options;
    options.pipeline = (folder_ / "t/pipeline.toml").string();
    options.settings = {{"source.epochs", std::to_string(epochs)}, {"pipeline.batch_rows", "20"}};
    options.folder = (folder_ / "job").string();
    options.ranks = kRanks;
    return options;
  }

  // A worker that sends one unit which is whole and of the running term, and has other features
  // than the job. Returns once the rank has hung up.
  void SendOddUnit() const {
    const auto dispatcher = ControlConnection::Connect(DispatcherSocket(folder_ / "job"));
    ASSERT_TRUE(dispatcher);
    dispatcher->Send(Register{.instance = 77, .pid = getpid(), .host = "here"});
    std::optional<Session> session;
    while (!session) {
      for (const Message& message : dispatcher->Receive(1000))
        if (const auto* is = std::get_if<Session>(&message)) session = *is;
      ASSERT_FALSE(dispatcher->is_closed());
    }
    const auto to_rank = ConnectSender(ParseDeliveryAddress(session->clients.at(0), "/"), {});
    TensorBatch unit;
    unit.rows = 20;
    unit.term = session->term;
    unit.dense_names = {"odd"};
    unit.dense.resize(20);
    unit.spans = {{0, 0, 0, 20, 20}};
    FrameEncoder encoder;
    for (const Frame& frame : encoder.Encode(unit)) to_rank->Send(frame, 0);
    EXPECT_THROW(to_rank->AwaitAcknowledged(1), Error);
  }

  // One generation of ranks: until the job ends, or they have taken so many rows.
  void Consume(uint64_t until, bool shared_memory) {
    std::vector<std::thread> ranks;
    std::vector<std::shared_ptr<ReceiveJob>> jobs;
    for (uint32_t rank = 0; rank < kRanks; ++rank) {
      ReceiveJobOptions options;
      options.place = Place();
      options.rank = rank;
      options.ranks = kRanks;
      options.through_shared_memory = shared_memory;
      options.checkpoint.path = (folder_ / ("rank" + std::to_string(rank))).string();
      options.checkpoint.resume = true;
      options.checkpoint.every = 3;
      options.interrupted = [this, until] { return taken_.count >= until; };
      options.note = [this](const std::string& text) {
        std::lock_guard lock(taken_.mutex);
        taken_.notes.push_back(text);
      };
      auto job =
          std::make_shared<ReceiveJob>(std::move(options), std::make_unique<KeepRows>(&taken_));
      ranks.push_back(Start("rank", [job] { job->Run(); }));
      jobs.push_back(job);
    }
    std::atomic<bool> has_ended{false};
    std::thread looking([&] {  // as whoever shows how far it is
      while (!has_ended) {
        for (const auto& job : jobs) EXPECT_LE(job->progress().rows, kRows * kEpochs);
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
      }
    });
    for (std::thread& rank : ranks) rank.join();
    has_ended = true;
    looking.join();
  }

  fs::path folder_;
  Taken taken_;
};

TEST(TextOfRanks, NamesTheFirstOfMany) {
  EXPECT_EQ(TextOfRanks(std::vector<uint32_t>{7}), "rank 7");
  EXPECT_EQ(TextOfRanks(std::vector<uint32_t>{0, 2}), "ranks 0, 2");
  EXPECT_EQ(TextOfRanks(std::vector<uint32_t>(4096, 3)),
            "ranks 3, 3, 3, 3, 3, 3, 3, 3, 3, 3 and 4086 more");
}

TEST_F(WholeJob, GivesEachRowOnceAlsoToRanksThatGoOnFromTheirCheckpoints) {
  DispatcherProcess dispatcher(Job(kEpochs));
  std::thread handing = Start("dispatcher", [&] { EXPECT_TRUE(dispatcher.Run()); });
  std::thread working = Start("worker", [this] { EXPECT_TRUE(RunWorker({.place = Place()})); });
  Consume(kRows / 2, false);
  Consume(kRows * 2, true);
  Consume(UINT64_MAX, false);
  handing.join();
  working.join();
  EXPECT_EQ(taken_.rows.size(), kRows * kEpochs);
  for (uint64_t row = 0; row < kRows; ++row) EXPECT_EQ(taken_.rows.count(row), kEpochs) << row;
}

// What is right does not depend on who comes first.
TEST_F(WholeJob, TakesNoUnitOfOtherFeaturesAlsoWhereItIsTheFirst) {
  DispatcherProcess dispatcher(Job(1));
  std::thread handing = Start("dispatcher", [&] { EXPECT_TRUE(dispatcher.Run()); });
  std::thread working = Start("workers", [this] {
    SendOddUnit();
    EXPECT_TRUE(RunWorker({.place = Place()}));
  });
  Consume(UINT64_MAX, false);
  handing.join();
  working.join();
  EXPECT_EQ(taken_.rows.size(), kRows);
  EXPECT_EQ(std::set(taken_.rows.begin(), taken_.rows.end()).size(), kRows);
  EXPECT_THAT(taken_.notes,
              Contains(AllOf(HasSubstr(fmt::format("the worker (process {})", getpid())),
                             HasSubstr("a unit has other features than the job"))));
}

}  // namespace
}  // namespace headrace::reader::service
