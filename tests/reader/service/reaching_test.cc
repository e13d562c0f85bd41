// Who cannot be reached, or goes at once, is waited for in peace, and with a line.
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <mutex>
#include <regex>
#include <string>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "base/error.h"
#include "reader/pipeline/delivery/connect.h"
#include "reader/pipeline/delivery/unix_socket.h"
#include "reader/service/job_folder.h"
#include "reader/service/send_lanes.h"
#include "reader/service/worker_process.h"

namespace headrace::reader::service {
namespace {

namespace fs = std::filesystem;

class ServiceReaching : public testing::Test {
 protected:
  ServiceReaching() {
    std::string pattern = (fs::temp_directory_path() / "reaching_test.XXXXXX").string();
    folder_ = ::mkdtemp(pattern.data());
  }
  ~ServiceReaching() override { fs::remove_all(folder_); }
  void Note(const std::string& line) {
    std::lock_guard lock(mutex_);
    lines_.push_back(line);
  }
  std::vector<std::string> lines() {
    std::lock_guard lock(mutex_);
    return lines_;
  }

  const int64_t deadline_ = MonotonicNs() + 600'000'000'000;  // no test may hang
  fs::path folder_;

 private:
  std::mutex mutex_;
  std::vector<std::string> lines_;
};

TEST_F(ServiceReaching, ADispatcherThatGoesWithoutAWordIsCalledAtMostTenTimesASecond) {
  const std::string folder = (folder_ / "job").string();
  WorkerProcessOptions options;
  options.place = std::make_shared<JobPlace>(folder, SecretFiles{}, true);
  options.wait_ns = 1'000'000'000;
  options.note = [this](const std::string& line) { Note(line); };
  BoundSocket dispatcher(DispatcherSocket(folder), Error(ExitCode::kUsage, "taken"));
  std::atomic<bool> is_over{false};
  int calls = 0;
  std::thread closing([&] {
    while (!is_over && MonotonicNs() < deadline_) {
      pollfd one = {dispatcher.fd(), POLLIN, 0};
      if (poll(&one, 1, 50) <= 0) continue;
      ++calls;
      close(accept4(dispatcher.fd(), nullptr, nullptr, SOCK_CLOEXEC));
    }
  });
  const int64_t begin = MonotonicNs();
  try {
    RunWorker(options);
    ADD_FAILURE() << "it has a dispatcher";
  } catch (const Error& error) {
    EXPECT_NE(error.fact().find("waited 1 s for the dispatcher"), std::string::npos)
        << error.what();
  }
  const int64_t tenths = (MonotonicNs() - begin) / 100'000'000;
  is_over = true;
  closing.join();
  EXPECT_GE(calls, 2);
  EXPECT_LE(calls, tenths + 2);
  ASSERT_EQ(lines().size(), 1u);
  EXPECT_NE(lines()[0].find("gone without a word"), std::string::npos) << lines()[0];
}

Element UnitOfTerm(Term term) {
  TensorBatch batch;
  batch.term = term;
  Element element;
  element.payload = std::move(batch);
  return element;
}

// It may be about to start again, which is nothing to tell.
TEST_F(ServiceReaching, AWorkerSaysWhichRankItCannotReachOnceAndOnlyIfItLasts) {
  const std::string address = "unix:" + (folder_ / "rank-0").string();
  constexpr int64_t kPatienceNs = 1'000'000'000;
  SendLanes lanes(
      {.warn = [this](const std::string& line) { Note(line); }, .patience_ns = kPatienceNs});
  lanes.SetTerm(1, {address});
  StopSignal stop;

  const int64_t begin = MonotonicNs();
  ASSERT_TRUE(lanes.Put(0, UnitOfTerm(1), &stop));
  while (lines().empty() && MonotonicNs() < deadline_) usleep(10'000);
  EXPECT_GE(MonotonicNs() - begin, kPatienceNs);
  usleep(500'000);  // ten more tries
  ASSERT_EQ(lines().size(), 1u);
  EXPECT_TRUE(std::regex_search(lines()[0], std::regex("has not reached rank 0 for [0-9]+ s: ")))
      << lines()[0];
  EXPECT_NE(lines()[0].find(address + ": nobody listens there"), std::string::npos) << lines()[0];
  EXPECT_NE(lines()[0].find("start all ranks again, each from its checkpoint"), std::string::npos);
  // It starts again, elsewhere.
  const DeliveryAddress elsewhere = {DeliveryKind::kUnix, (folder_ / "rank-0-again").string(), {}};
  Listener listener(elsewhere);
  std::unique_ptr<Receiver> rank;
  std::thread accepting([&] { rank = listener.Accept([&] { return MonotonicNs() > deadline_; }); });
  lanes.SetTerm(2, {FormatDeliveryAddress(elsewhere)});
  ASSERT_TRUE(lanes.Put(0, UnitOfTerm(2), &stop));
  accepting.join();
  EXPECT_TRUE(rank);
  while (lines().size() < 2 && MonotonicNs() < deadline_) usleep(10'000);
  lanes.Stop();
  ASSERT_EQ(lines().size(), 2u);
  EXPECT_EQ(lines()[1], "reaches rank 0 again");
}

TEST_F(ServiceReaching, ARankThatIsStartedAgainSoonIsNothingToTell) {
  const DeliveryAddress address = {DeliveryKind::kUnix, (folder_ / "rank-0").string(), {}};
  SendLanes lanes({.warn = [this](const std::string& line) { Note(line); }});
  lanes.SetTerm(1, {FormatDeliveryAddress(address)});
  StopSignal stop;
  ASSERT_TRUE(lanes.Put(0, UnitOfTerm(1), &stop));
  usleep(300'000);  // six tries
  Listener listener(address);
  auto rank = listener.Accept([&] { return MonotonicNs() > deadline_; });
  EXPECT_TRUE(rank);
  lanes.Stop();
  EXPECT_TRUE(lines().empty()) << lines()[0];
}

// The units that wait for it would hold everybody up: the worker ends, and leaves its splits.
TEST_F(ServiceReaching, AWorkerTooManyForARankIsAskedForNoMoreUnits) {
  const DeliveryAddress address = {DeliveryKind::kUnix, (folder_ / "rank-0").string(), {}};
  Listener listener(address);
  listener.Bound(0, [] { return size_t{0}; });
  std::atomic<bool> is_over{false};
  std::thread accepting([&] {
    EXPECT_FALSE(listener.Accept([&] { return is_over || MonotonicNs() > deadline_; }, false,
                                 [this](const std::string& line) { Note(line); }));
  });
  SendLanes lanes({.full_patience_ns = 100'000'000});
  lanes.SetTerm(1, {FormatDeliveryAddress(address)});
  StopSignal stop;
  try {
    while (MonotonicNs() < deadline_) lanes.Put(0, UnitOfTerm(1), &stop);
    ADD_FAILURE() << "it takes them all";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::kResources) << error.what();
    EXPECT_NE(std::string(error.what()).find("--most-workers"), std::string::npos) << error.what();
  }
  EXPECT_TRUE(lanes.is_one_too_many());
  EXPECT_THROW(lanes.Check(), Error);
  lanes.Stop();
  is_over = true;
  accepting.join();
  ASSERT_FALSE(lines().empty());
  EXPECT_NE(lines()[0].find("as many as it takes"), std::string::npos) << lines()[0];
}

// One that died is known to be gone a moment later.
TEST_F(ServiceReaching, AWorkerWaitsForTheRoomThatOneThatDiedLeaves) {
  const DeliveryAddress address = {DeliveryKind::kUnix, (folder_ / "rank-0").string(), {}};
  Listener listener(address);
  int seen = 0;
  listener.Bound(1, [&seen] { return size_t{++seen <= 3 ? 1u : 0u}; });  // by one thread
  std::unique_ptr<Receiver> rank;
  std::thread accepting([&] { rank = listener.Accept([&] { return MonotonicNs() > deadline_; }); });
  SendLanes lanes({.full_patience_ns = 500'000'000'000});
  lanes.SetTerm(1, {FormatDeliveryAddress(address)});
  StopSignal stop;
  EXPECT_TRUE(lanes.Put(0, UnitOfTerm(1), &stop));
  accepting.join();
  EXPECT_TRUE(rank);
  EXPECT_EQ(seen, 4);
  EXPECT_FALSE(lanes.is_one_too_many());
  lanes.Check();
}

// That is no worker too many: the job is to hear of it.
TEST_F(ServiceReaching, AWorkerWithoutMemoryForARingHasFailed) {
  const DeliveryAddress address = {DeliveryKind::kShm, (folder_ / "rank-0").string(), {}};
  Listener listener(address);
  std::atomic<bool> is_over{false};
  std::thread accepting([&] {
    while (auto rank = listener.Accept([&] { return is_over || MonotonicNs() > deadline_; })) {
    }
  });
  // Memory that is shared is a file, of which there may be little now.
  rlimit before = {};
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
  rlimit little = before;
  little.rlim_cur = 64;
  const auto handler = signal(SIGXFSZ, SIG_IGN);
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &little), 0);
  SendLanes lanes(LaneOptions{});
  lanes.SetTerm(1, {FormatDeliveryAddress(address)});
  StopSignal stop;
  ASSERT_TRUE(lanes.Put(0, UnitOfTerm(1), &stop));
  const int64_t until = MonotonicNs() + 30'000'000'000;
  bool has_failed = false;
  while (!has_failed && MonotonicNs() < until) {
    usleep(10'000);
    try {
      lanes.Check();
    } catch (const Error& error) {
      has_failed = error.code() == ExitCode::kResources;
    }
  }
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &before), 0);
  signal(SIGXFSZ, handler);
  EXPECT_TRUE(has_failed);
  EXPECT_FALSE(lanes.is_one_too_many());
  lanes.Stop();
  is_over = true;
  accepting.join();
}

// It never mends by itself.
TEST_F(ServiceReaching, ARankOfAnotherHeadraceIsNamedAtOnceWithWhatToDo) {
  Listener listener({DeliveryKind::kShm, (folder_ / "rank-0").string(), {}});
  std::atomic<bool> is_over{false};
  std::thread accepting(
      [&] { EXPECT_FALSE(listener.Accept([&] { return is_over || MonotonicNs() > deadline_; })); });
  SendLanes lanes({.warn = [this](const std::string& line) { Note(line); }});
  lanes.SetTerm(1, {"unix:" + (folder_ / "rank-0").string()});
  StopSignal stop;
  const int64_t until = MonotonicNs() + 30'000'000'000;  // half of its patience
  ASSERT_TRUE(lanes.Put(0, UnitOfTerm(1), &stop));
  while (lines().empty() && MonotonicNs() < until) usleep(10'000);
  lanes.Stop();
  is_over = true;
  accepting.join();
  ASSERT_EQ(lines().size(), 1u);
  for (const char* part : {"cannot reach rank 0: ", "listens for shm, not unix",
                           "write the same address on both sides"})
    EXPECT_NE(lines()[0].find(part), std::string::npos) << lines()[0];
}

// A rank that joined with a plain address on a network, where the worker's user allows none.
TEST_F(ServiceReaching, AWorkerSendsNothingToAnAddressThatOthersCouldReadAt) {
  const JobPlace place((folder_ / "job").string(), SecretFiles{}, true);
  SendLanes lanes({.check_address = [&](const DeliveryAddress& to) { place.CheckExposed(to); },
                   .warn = [this](const std::string& line) { Note(line); }});
  lanes.SetTerm(1, {"tcp:192.0.2.1:7070"});

  StopSignal stop;
  ASSERT_TRUE(lanes.Put(0, UnitOfTerm(1), &stop));
  while (lines().empty() && MonotonicNs() < deadline_) usleep(10'000);
  lanes.Stop();
  ASSERT_FALSE(lines().empty());
  for (const char* part : {"cannot reach rank 0: tcp:192.0.2.1:7070", "--insecure"})
    EXPECT_NE(lines()[0].find(part), std::string::npos) << lines()[0];
}

// What lies in a connection's buffers a worker that drains waits for: of small units hundreds
// would.
TEST_F(ServiceReaching, FewUnitsAreOnTheWayToARankThatTakesNone) {
  struct Case {
    const char* name;
    size_t bytes;  // of a unit, at least
    uint64_t units;
  };
  for (const DeliveryKind kind : {DeliveryKind::kUnix, DeliveryKind::kShm}) {
    for (const Case& one :
         {Case{"small", 4, 16}, {"of 300 KB", 300'000, 4}, {"large", 2 << 20, 2}}) {
      SCOPED_TRACE(one.name);
      const DeliveryAddress address = {kind, (folder_ / one.name).string(), {}};
      Listener listener(address);
      SendLanes lanes({.ring_bytes = 64 << 20});
      lanes.SetTerm(1, {FormatDeliveryAddress(address)});
      StopSignal stop;
      std::thread putting([&] {
        for (int i = 0; i < 40; ++i) {
          Element unit = UnitOfTerm(1);
          auto& batch = unit.payload.As<TensorBatch>();
          batch.dense_names = {"one"};
          batch.rows = one.bytes / sizeof(float);
          batch.dense.resize(batch.rows);
          batch.spans = {{0, 0, 0, batch.rows, batch.rows}};
          if (!lanes.Put(0, std::move(unit), &stop)) return;
        }
      });
      const auto rank = listener.Accept([&] { return MonotonicNs() > deadline_; });
      ASSERT_TRUE(rank);
      std::atomic<uint64_t> received{0};
      std::thread receiving([&] {  // reads, as the system's buffers do
        try {
          for (;; ++received) rank->Receive(0);
        } catch (const Error&) {
        }
      });
      const auto sent_at_last = [&](uint64_t units) {
        while (lanes.sent() < units && MonotonicNs() < deadline_) usleep(1'000);
        usleep(50'000);  // it would send more
        while (received < units && MonotonicNs() < deadline_) usleep(1'000);
        return lanes.sent();
      };
      EXPECT_EQ(sent_at_last(one.units), one.units);
      rank->Acknowledge(1);
      EXPECT_EQ(sent_at_last(one.units + 1), one.units + 1);
      rank->Acknowledge(1 + one.units);
      EXPECT_EQ(sent_at_last(1 + 2 * one.units), 1 + 2 * one.units);
      lanes.Stop();
      stop.Stop();
      putting.join();
      receiving.join();
    }
  }
}

// It is at fault, and its rows come again.
TEST_F(ServiceReaching, ARankThatAcknowledgesWhatWasNotSentIsCutOff) {
  const DeliveryAddress address = {DeliveryKind::kUnix, (folder_ / "rank-0").string(), {}};
  Listener listener(address);
  std::atomic<int> cuts{0};
  SendLanes lanes({.cut = [&](Term, uint32_t) { ++cuts; }});
  lanes.SetTerm(1, {FormatDeliveryAddress(address)});
  StopSignal stop;
  ASSERT_TRUE(lanes.Put(0, UnitOfTerm(1), &stop));
  const auto rank = listener.Accept([&] { return MonotonicNs() > deadline_; });
  ASSERT_TRUE(rank);
  rank->Receive(0);
  rank->Acknowledge(UINT64_MAX / 2);
  while (cuts == 0 && MonotonicNs() < deadline_) {
    ASSERT_TRUE(lanes.Put(0, UnitOfTerm(1), &stop));
    usleep(10'000);
  }
  EXPECT_GT(cuts, 0);
  lanes.Check();  // that is no failure of the worker's
  lanes.Stop();
}

}  // namespace
}  // namespace headrace::reader::service
