// Deliveries between a producer and a consumer: all that was sent comes out, by either transport; a
// side that dies is seen; what should not be connected is told why.
#include "reader/pipeline/delivery/transport.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <thread>

#include "base/clock.h"
#include "base/error.h"
#include "probes/account/account.h"
#include "reader/pipeline/delivery/connect.h"
#include "reader/pipeline/delivery/receive_pipeline.h"
#include "reader/pipeline/delivery/ring.h"
#include "reader/pipeline/delivery/send_consumer.h"
#include "reader/pipeline/delivery/socket.h"
#include "reader/pipeline/delivery/transport_parts.h"
#include "tests/reader/pipeline/delivery/random_batch.h"

namespace headrace::reader {
namespace {

namespace fs = std::filesystem;

class Transport : public testing::TestWithParam<DeliveryKind> {
 protected:
  Transport() : folder_(fs::temp_directory_path() / ("hr" + std::to_string(getpid()))) {
    fs::create_directory(folder_);
    address_ = {GetParam(), (folder_ / "s").string()};
  }
  ~Transport() override { fs::remove_all(folder_); }

  std::unique_ptr<Receiver> Accept(Listener* listener) {
    return listener->Accept([&] { return MonotonicNs() > deadline_; });
  }

  fs::path folder_;
  DeliveryAddress address_;
  int64_t deadline_ = MonotonicNs() + 600'000'000'000;  // no test may hang
};

std::string TransportErrorOf(const std::function<void()>& act, ExitCode code = ExitCode::kFailure) {
  try {
    act();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), code) << error.what();
    return error.what();
  }
  return "no error";
}

// Hashes rows in the order in which they come, and their number.
struct Seen {
  uint64_t rows = 0, batches = 0, values = 0;
  std::map<uint64_t, uint64_t> last_of;  // by producer (in first_row): the last batch's row id
  bool in_order = true;
};

class Collector final : public Consumer {
 public:
  Collector(Seen* seen, int64_t step_ns = 0) : seen_(seen), step_ns_(step_ns) {}
  void Step(Element&& element, StopSignal* stop) override {
    const auto& batch = element.payload.As<TensorBatch>();
    ++seen_->batches;
    seen_->rows += batch.rows;
    for (size_t i = 0; i < batch.sparse.values.size(); ++i)
      seen_->values += static_cast<uint64_t>(batch.sparse.values[i]);
    auto [last, first] = seen_->last_of.emplace(batch.first_row, batch.row_ids[0]);
    if (!first) {
      seen_->in_order = seen_->in_order && last->second + 1 == batch.row_ids[0];
      last->second = batch.row_ids[0];
    }
    if (step_ns_ > 0) stop->SleepFor(step_ns_);
  }

 private:
  Seen* seen_;
  int64_t step_ns_;
};

TEST_P(Transport, FramesOfEverySizeArriveWhole) {
  std::mt19937_64 random(TestSeed());
  Listener listener(address_);
  std::vector<TensorBatch> sent;
  // 1 row to 8 MiB, larger than the ring at first.
  for (const uint64_t rows : {1, 1000, 3, 100000, 0, 500, 200000, 2, 20000})
    sent.push_back(RandomBatch({.rows = rows, .dense = 3, .sparse = 2, .longest = 4}, random));
  std::thread producer([&] {
    auto sender = ConnectSender(address_, {.ring_bytes = 65536});
    FrameEncoder encoder;
    for (const TensorBatch& batch : sent)
      for (const Frame& frame : encoder.Encode(batch)) sender->Send(frame, UINT32_MAX);
    sender->Send(encoder.End(true), UINT32_MAX);
    sender->AwaitAcknowledged(sent.size());
  });
  auto receiver = Accept(&listener);
  ASSERT_TRUE(receiver);
  FrameDecoder decoder;
  size_t at = 0;
  while (!decoder.ended()) {
    const ReceivedFrame frame = receiver->Receive(UINT32_MAX);
    const auto batch = decoder.Decode(frame.header, frame.body);
    if (!batch) continue;
    const TensorBatch& original = sent[at++];
    EXPECT_EQ(batch->rows, original.rows);
    ASSERT_EQ(batch->sparse.values.size(), original.sparse.values.size());
    EXPECT_TRUE(std::equal(batch->sparse.values.begin(), batch->sparse.values.end(),
                           original.sparse.values.begin()));
    EXPECT_TRUE(std::equal(batch->dense.begin(), batch->dense.end(), original.dense.begin()));
    receiver->Acknowledge(at);
  }
  producer.join();
  EXPECT_EQ(at, sent.size());
}

// A producer: `batches` of 4 rows whose ids count from 0; first_row names it.
void Produce(const DeliveryOptions& options, uint64_t name, uint64_t batches, bool complete,
             std::function<bool()> interrupted = {}) {
  SendConsumer sender(options, std::move(interrupted));
  StopSignal stop;
  std::mt19937_64 random(name);
  for (uint64_t i = 0; i < batches; ++i) {
    TensorBatch batch = RandomBatch({.rows = 4, .dense = 2, .sparse = 2}, random);
    batch.first_row = name;
    batch.row_ids[0] = i;
    Element element;
    element.rows = batch.rows;
    element.payload = std::move(batch);
    sender.Step(std::move(element), &stop);
    EXPECT_LE(sender.sent() - sender.acknowledged(), options.window);  // a window of 0 included
  }
  sender.Finish(complete);
  EXPECT_EQ(sender.acknowledged(), batches);
}

TEST_P(Transport, SeveralProducersFeedOneConsumer) {
  Seen seen;
  ReceivePipeline receive({.from = address_, .producers = 3}, std::make_unique<Collector>(&seen));
  std::vector<std::thread> producers;
  for (uint64_t p = 0; p < 3; ++p) {
    producers.emplace_back(
        [&, p] { Produce({.to = address_, .ring_bytes = 65536, .window = 5 * p}, p, 500, true); });
  }
  receive.Run();
  for (std::thread& producer : producers) producer.join();
  EXPECT_EQ(seen.batches, 1500u);
  EXPECT_EQ(seen.rows, 6000u);
  EXPECT_EQ(seen.last_of.size(), 3u);
  EXPECT_TRUE(seen.in_order);
  EXPECT_EQ(receive.progress().batches, 1500u);
}

TEST_P(Transport, ASlowConsumerHoldsTheProducerBack) {
  Seen seen;
  ReceivePipeline receive({.from = address_}, std::make_unique<Collector>(&seen, 2'000'000));
  const int64_t start = MonotonicNs();
  // Produce checks that never more than the window is on its way.
  std::thread producer([&] { Produce({.to = address_, .window = 2}, 0, 50, true); });
  receive.Run();
  producer.join();
  EXPECT_GE(MonotonicNs() - start, 50 * 2'000'000);
  EXPECT_EQ(seen.batches, 50u);
}

TEST_P(Transport, AProducerThatIsStoppedIsNoEnd) {
  Seen seen;
  ReceivePipeline receive({.from = address_}, std::make_unique<Collector>(&seen));
  std::thread producer([&] { Produce({.to = address_}, 0, 5, false); });
  EXPECT_NE(TransportErrorOf([&] { receive.Run(); }).find("was stopped after 5 batches"),
            std::string::npos);
  producer.join();
  EXPECT_EQ(seen.batches, 5u);
}

// Sends until the consumer is gone.
void Flood(const DeliveryAddress& address) {
  try {
    auto sender = ConnectSender(address, {.ring_bytes = 65536});
    FrameEncoder encoder;
    std::mt19937_64 random(2);
    const TensorBatch batch = RandomBatch({.rows = 4, .sparse = 1}, random);
    for (;;) {
      for (const Frame& frame : encoder.Encode(batch)) sender->Send(frame, UINT32_MAX);
      sender->Acknowledged();  // reads what would fill the socket
    }
  } catch (const Error&) {
  }
}

// Runs to the end, or ends the process: a thread that hangs cannot be given up.
std::string RunWithin(ReceivePipeline* receive, int64_t seconds) {
  std::atomic<bool> done{false};
  std::thread watcher([&] {
    for (int64_t i = 0; i < 100 * seconds && !done; ++i) SleepUntilNs(MonotonicNs() + 10'000'000);
    if (done) return;
    std::fputs("the pipeline hangs\n", stderr);
    std::_Exit(1);
  });
  std::string text = TransportErrorOf([&] { receive->Run(); });
  done = true;
  watcher.join();
  return text;
}

TEST_P(Transport, AProducerThatIsLostEndsTheOthersToo) {
  for (const int64_t step_ns : {int64_t{0}, int64_t{2'000'000}}) {
    Seen seen;
    auto receive = std::make_unique<ReceivePipeline>(
        ReceiveOptions{.from = address_, .producers = 2, .queue = 1},
        std::make_unique<Collector>(&seen, step_ns));
    std::thread lost([&] { Produce({.to = address_, .window = 1}, 0, 3, false); });
    std::thread endless([&] { Flood(address_); });
    const std::string text = RunWithin(receive.get(), 30);
    EXPECT_NE(text.find("was stopped after 3 batches"), std::string::npos) << text;
    receive.reset();
    lost.join();
    endless.join();
  }
}

TEST_P(Transport, AnInterruptionIsNoFaultOfTheProducer) {
  Seen seen;
  class Interrupting final : public Consumer {
   public:
    explicit Interrupting(std::atomic<bool>* stop) : stop_(stop) {}
    void Step(Element&&, StopSignal* signal) override {
      signal->SleepFor(20'000'000);  // meanwhile the queue is full
      if (++steps_ == 4) *stop_ = true;
    }
    std::atomic<bool>* stop_;
    int steps_ = 0;
  };
  std::atomic<bool> stop{false};
  auto receive = std::make_unique<ReceivePipeline>(
      ReceiveOptions{.from = address_, .queue = 1, .interrupted = [&] { return stop.load(); }},
      std::make_unique<Interrupting>(&stop));
  std::thread endless([&] { Flood(address_); });
  EXPECT_EQ(RunWithin(receive.get(), 30), "no error");
  receive.reset();
  endless.join();
}

TEST_P(Transport, AKilledProducerIsSeen) {
  Seen seen;
  ReceivePipeline receive({.from = address_}, std::make_unique<Collector>(&seen));
  const pid_t child = fork();
  if (child == 0) {
    try {
      auto sender = ConnectSender(address_, {});
      FrameEncoder encoder;
      std::mt19937_64 random(1);
      for (int i = 0; i < 7; ++i) {
        const TensorBatch batch = RandomBatch({.rows = 4, .sparse = 1}, random);
        for (const Frame& frame : encoder.Encode(batch)) sender->Send(frame, UINT32_MAX);
      }
      raise(SIGKILL);
    } catch (const Error&) {
    }
    _exit(1);
  }
  const std::string text = TransportErrorOf([&] { receive.Run(); });
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_TRUE(WIFSIGNALED(status));
  EXPECT_NE(text.find("is gone after 7 batches, before its end"), std::string::npos) << text;
  EXPECT_EQ(seen.batches, 7u);
}

TEST_P(Transport, AKilledConsumerIsSeen) {
  int ready[2];
  ASSERT_EQ(pipe(ready), 0);
  const pid_t child = fork();
  if (child == 0) {
    try {
      Listener listener(address_);
      if (write(ready[1], "x", 1) != 1) _exit(2);
      auto receiver = listener.Accept({});
      for (int i = 0; i < 4; ++i) receiver->Receive(UINT32_MAX);  // the names and three batches
      receiver->Acknowledge(2);
      raise(SIGKILL);
    } catch (const Error&) {
    }
    _exit(1);
  }
  char byte = 0;
  ASSERT_EQ(read(ready[0], &byte, 1), 1);
  const std::string text =
      TransportErrorOf([&] { Produce({.to = address_, .window = 3}, 0, 1000, true); });
  EXPECT_NE(text.find("is gone; 2 of"), std::string::npos) << text;
  EXPECT_NE(text.find(" batches sent were acknowledged; start 'headrace consume'"),
            std::string::npos)
      << text;
  waitpid(child, nullptr, 0);
  close(ready[0]);
  close(ready[1]);
  Listener again(address_);  // the file of a killed consumer is no obstacle
}

TEST_P(Transport, MoreAcknowledgedThanSentIsTheConsumersFault) {
  Listener listener(address_);
  std::thread consumer([&] {
    auto receiver = Accept(&listener);
    ASSERT_TRUE(receiver);
    for (int i = 0; i < 2; ++i) receiver->Receive(UINT32_MAX);  // names and a batch
    receiver->Acknowledge(5);
    EXPECT_THROW(
        {
          for (;;) receiver->Receive(UINT32_MAX);  // its end, and that of the connection
        },
        Error);
  });
  {
    SendConsumer sender({.to = address_, .window = 8}, {});
    StopSignal signal;
    std::mt19937_64 random(1);
    Element element;
    element.payload = RandomBatch({.rows = 4}, random);
    sender.Step(std::move(element), &signal);
    std::string text;
    while ((text = TransportErrorOf([&] { sender.DeliveredSteps(1); })) == "no error")
      ASSERT_LT(MonotonicNs(), deadline_);
    EXPECT_NE(text.find("acknowledged 5 batches, and 1 were sent"), std::string::npos) << text;
    text = TransportErrorOf([&] { sender.Finish(true); });
    EXPECT_NE(text.find("acknowledge batches only"), std::string::npos) << text;
  }
  consumer.join();
}

TEST_P(Transport, AStepBehindAWrongCountSaysWhoseFaultItIs) {
  Listener listener(address_);
  std::thread consumer([&] {
    auto receiver = Accept(&listener);
    ASSERT_TRUE(receiver);
    for (int i = 0; i < 2; ++i) receiver->Receive(UINT32_MAX);  // names and a batch
    receiver->Acknowledge(5);
    EXPECT_THROW(receiver->Receive(UINT32_MAX), Error);  // the end of the connection
  });
  {
    SendConsumer sender({.to = address_, .window = 1}, {});
    StopSignal signal;
    std::mt19937_64 random(1);
    const auto step = [&] {
      Element element;
      element.payload = RandomBatch({.rows = 4}, random);
      sender.Step(std::move(element), &signal);
    };
    step();
    while (TransportErrorOf([&] { sender.DeliveredSteps(1); }) == "no error")
      ASSERT_LT(MonotonicNs(), deadline_);
    const std::string text = TransportErrorOf(step);
    EXPECT_NE(text.find("acknowledged 5 batches, and 1 were sent"), std::string::npos) << text;
    EXPECT_NE(text.find("acknowledge batches only"), std::string::npos) << text;
    EXPECT_EQ(text.find("headrace consume"), std::string::npos) << text;
  }
  consumer.join();
}

TEST_P(Transport, AStopRequestEndsEveryWait) {
  std::atomic<bool> stop{false};
  Listener listener(address_);
  std::thread stopper([&] {
    SleepUntilNs(MonotonicNs() + 150'000'000);
    stop = true;
  });
  std::thread producer([&] {
    // Nobody acknowledges: the second batch waits for ever.
    EXPECT_NO_THROW({
      SendConsumer sender({.to = address_, .window = 1}, [&] { return stop.load(); });
      StopSignal signal;
      std::mt19937_64 random(1);
      for (int i = 0; i < 2; ++i) {
        Element element;
        element.payload = RandomBatch({.rows = 4}, random);
        sender.Step(std::move(element), &signal);
      }
      EXPECT_EQ(sender.sent(), 1u);
      sender.Finish(false);
    });
  });
  auto receiver = Accept(&listener);
  ASSERT_TRUE(receiver);
  producer.join();
  stopper.join();
  Seen seen;
  fs::remove(address_.path);
  const DeliveryAddress other{address_.kind, address_.path + "2"};
  ReceivePipeline idle({.from = other, .interrupted = [&] { return stop.load(); }},
                       std::make_unique<Collector>(&seen));
  idle.Run();  // interrupted from the beginning: nobody comes
  EXPECT_EQ(seen.batches, 0u);
}

TEST_P(Transport, OneConsumerAtAnAddress) {
  {
    Listener first(address_);
    EXPECT_NE(TransportErrorOf([&] { Listener second(address_); }, ExitCode::kUsage)
                  .find("another consumer listens there"),
              std::string::npos);
    EXPECT_EQ(fs::status(address_.path).permissions() & fs::perms::all,
              fs::perms::owner_read | fs::perms::owner_write);
  }
  EXPECT_FALSE(fs::exists(address_.path));
  std::ofstream(address_.path) << "mine";
  EXPECT_NE(TransportErrorOf([&] { Listener third(address_); }, ExitCode::kUsage)
                .find("it is not a socket"),
            std::string::npos);
  EXPECT_TRUE(fs::exists(address_.path));
}

TEST_P(Transport, NobodyListens) {
  EXPECT_NE(TransportErrorOf([&] {
              ConnectSender(address_, {});
            }).find("nobody listens there; start 'headrace consume "),
            std::string::npos);
  const DeliveryAddress lost{address_.kind, (folder_ / "no" / "such").string()};
  EXPECT_NE(
      TransportErrorOf([&] { Listener listener(lost); }, ExitCode::kBadData).find("listen at"),
      std::string::npos);
}

int Dial(const DeliveryAddress& address) {
  const int fd = socket(AF_UNIX, SOCK_STREAM, 0);
  sockaddr_un name = {};
  name.sun_family = AF_UNIX;
  std::strcpy(name.sun_path, address.path.c_str());
  EXPECT_EQ(connect(fd, reinterpret_cast<sockaddr*>(&name), sizeof name), 0);
  return fd;
}

TEST_P(Transport, AProducerTooManyIsToldSoUntilThereIsAPlace) {
  std::atomic<size_t> there{1};
  std::string notes;
  Listener listener(address_);
  listener.Bound(1, [&] { return there.load(); });
  std::unique_ptr<Receiver> receiver;
  std::thread accepting([&] {
    receiver = listener.Accept([&] { return MonotonicNs() > deadline_; }, false,
                               [&](const std::string& text) { notes += text; });
  });
  const std::string text =
      TransportErrorOf([&] { ConnectSender(address_, {}); }, ExitCode::kResources);
  EXPECT_NE(text.find("as many producers as it takes at a time"), std::string::npos) << text;
  there = 0;
  const auto sender = ConnectSender(address_, {});
  accepting.join();
  EXPECT_TRUE(receiver);
  EXPECT_NE(notes.find("1 are connected, as many as it takes"), std::string::npos) << notes;
}

// Who cannot be let in keeps the listening socket readable.
TEST_P(Transport, WaitsWhileThereAreNoDescriptorsAndThenGoesOn) {
  Listener listener(address_);
  const int caller = Dial(address_);
  Greeting hello;
  hello.kind = static_cast<uint32_t>(GetParam());
  ASSERT_EQ(write(caller, &hello, sizeof hello), 64);
  rlimit before = {};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
  const int next = dup(0);
  ASSERT_GE(next, 0);
  close(next);
  rlimit none = before;
  none.rlim_cur = static_cast<rlim_t>(next);
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &none), 0);
  int looks = 0;
  const int64_t until = MonotonicNs() + 500'000'000;
  EXPECT_FALSE(listener.Accept([&] {
    ++looks;
    return MonotonicNs() > until;
  }));
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &before), 0);
  EXPECT_LT(looks, 50);  // 5; it were hundreds of thousands
  EXPECT_TRUE(Accept(&listener));
  close(caller);
}

TEST_P(Transport, StrangersAreToldAndLeft) {
  std::vector<std::string> notes;
  Seen seen;
  Listener listener(address_);
  std::unique_ptr<Receiver> receiver;
  std::thread accepting([&] {
    receiver = listener.Accept([&] { return MonotonicNs() > deadline_; }, false,
                               [&](const std::string& text) { notes.push_back(text); });
  });
  close(Dial(address_));  // only looks whether somebody listens
  const int noise = Dial(address_);
  const std::string text(64, 'x');
  EXPECT_EQ(write(noise, text.data(), text.size()), 64);
  const auto refusal_of = [&](Greeting hello) {
    const int fd = Dial(address_);
    EXPECT_EQ(write(fd, &hello, sizeof hello), 64);
    Greeting answer;
    EXPECT_EQ(recv(fd, &answer, sizeof answer, MSG_WAITALL), 64);
    close(fd);
    return answer.refusal;
  };
  Greeting hello;
  hello.kind = static_cast<uint32_t>(GetParam());
  hello.version = 7;
  EXPECT_EQ(refusal_of(hello), kOtherVersion);
  hello.version = Greeting().version;
  hello.kind = 3 - hello.kind;
  EXPECT_EQ(refusal_of(hello), kOtherKind);
  auto sender = ConnectSender(address_, {});  // and one that is welcome
  accepting.join();
  EXPECT_TRUE(receiver);
  ASSERT_EQ(notes.size(), 3u);
  EXPECT_NE(notes[0].find("not a headrace producer"), std::string::npos);
  const std::string ours = std::to_string(Greeting().version);
  EXPECT_NE(notes[1].find("speaks version 7 of the delivery, this headrace " + ours),
            std::string::npos);
  EXPECT_NE(notes[2].find("does not send to"), std::string::npos);
  close(noise);
}

TEST_P(Transport, ASilentConnectionHoldsTheOthersUpForAMoment) {
  Listener listener(address_);
  const int silent = Dial(address_);
  std::thread producer([&] { ConnectSender(address_, {}); });
  EXPECT_TRUE(Accept(&listener));
  EXPECT_LT(MonotonicNs(), deadline_) << "not until the silent one goes";
  producer.join();
  close(silent);
}

TEST_P(Transport, AConsumerOfAnotherVersionRefuses) {
  const int fd = socket(AF_UNIX, SOCK_STREAM, 0);
  sockaddr_un name = {};
  name.sun_family = AF_UNIX;
  std::strcpy(name.sun_path, address_.path.c_str());
  ASSERT_EQ(bind(fd, reinterpret_cast<sockaddr*>(&name), sizeof name), 0);
  ASSERT_EQ(listen(fd, 1), 0);
  for (const uint32_t refusal : {kOtherVersion, kOtherKind, kEnough}) {
    std::thread consumer([&] {
      const int one = accept(fd, nullptr, nullptr);
      Greeting hello, answer;
      EXPECT_EQ(recv(one, &hello, sizeof hello, MSG_WAITALL), 64);
      EXPECT_EQ(hello.version, Greeting().version);
      answer.version = 1;
      answer.refusal = refusal;
      EXPECT_EQ(write(one, &answer, sizeof answer), 64);
      close(one);
    });
    const std::string text = TransportErrorOf([&] { ConnectSender(address_, {}); });
    const std::string expected = refusal == kOtherVersion
                                     ? "speaks version 1 of the delivery, this headrace " +
                                           std::to_string(Greeting().version)
                                 : refusal == kOtherKind ? "write the same address on both sides"
                                                         : "has all the producers it waited for";
    EXPECT_NE(text.find(expected), std::string::npos) << text;
    consumer.join();
  }
  close(fd);
}

// After a right greeting anything may come.
TEST_P(Transport, NoiseIsRefusedInOneLine) {
  std::mt19937_64 random(TestSeed());
  for (int i = 0; i < 20; ++i) {
    Listener listener(address_);
    std::thread stranger([&] {
      const int fd = Dial(address_);
      Greeting hello;
      hello.kind = static_cast<uint32_t>(GetParam());
      EXPECT_EQ(write(fd, &hello, sizeof hello), 64);
      EXPECT_EQ(recv(fd, &hello, sizeof hello, MSG_WAITALL), 64);
      std::vector<uint8_t> noise(16 + random() % 300);
      for (uint8_t& byte : noise) byte = static_cast<uint8_t>(random());
      if (i % 2 == 0) {  // a frame that claims the most a frame may have, and does not send it
        FrameHeader header;
        header.kind = static_cast<uint8_t>(FrameKind::kNames);
        header.body_bytes = kMaxFrameBytes;
        std::memcpy(noise.data(), &header, std::min(noise.size(), sizeof header));
      }
      EXPECT_GT(send(fd, noise.data(), noise.size(), MSG_NOSIGNAL), 0);
      close(fd);
    });
    auto receiver = Accept(&listener);
    ASSERT_TRUE(receiver);
    EXPECT_THROW(receiver->Receive(UINT32_MAX), Error);
    stranger.join();
  }
}

// Acknowledgements that nobody reads fill the socket, and hold nobody up. Who reads at last gets
// the last one.
TEST(SocketReceiver, AProducerThatDoesNotReadAcknowledgementsBlocksNobody) {
  int fds[2];
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, fds), 0);
  constexpr uint64_t kLast = 200'000;
  {
    const auto receiver = MakeSocketReceiver(
        std::make_unique<Socket>(Channel(fds[0]), "the producer", std::function<bool()>()), 1);
    for (uint64_t i = 1; i <= kLast; ++i) receiver->Acknowledge(i);
    std::thread receiving([&] {
      try {
        receiver->Receive(0);
      } catch (const Error&) {  // the producer goes below
      }
    });
    const timeval limit = {20, 0};
    setsockopt(fds[1], SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    uint64_t count = 0, before = 0;
    bool rises = true;
    while (before < kLast) {
      uint64_t got = 0;
      if (recv(fds[1], &got, sizeof got, MSG_WAITALL) != sizeof got) break;
      rises = rises && got > before;
      before = got;
      ++count;
    }
    EXPECT_EQ(before, kLast);
    EXPECT_TRUE(rises);
    EXPECT_LT(count, kLast);  // there was no room for all
    close(fds[1]);
    receiving.join();
  }
}

// What the consumer sees when the producer, with all of the ring given back, replaced it and wrote
// into the next before the consumer looked again.
TEST(Ring, AFrameWrittenAfterAReplacementIsReadFromTheNextRing) {
  int fds[2];
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, fds), 0);
  Socket producer(Channel(fds[0]), "the consumer", {});
  auto receiver =
      MakeRingReceiver(std::make_unique<Socket>(Channel(fds[1]), "the producer", nullptr), 1);
  const auto control_memory = SharedMapping::Create(kRingControlBytes, 1);
  auto* control = reinterpret_cast<RingControl*>(control_memory->data());
  const auto first = SharedMapping::Create(65536, 2), next = SharedMapping::Create(131072, 2);
  const auto announce = [&](const SharedMapping& data, std::span<const int> descriptors) {
    const uint64_t message[] = {0x474e4952'4d485248, data.bytes()};
    producer.WriteWithDescriptors({reinterpret_cast<const uint8_t*>(message), sizeof message},
                                  descriptors);
  };
  const auto write = [&](const SharedMapping& data, uint64_t number) {
    FrameHeader header;
    header.kind = static_cast<uint8_t>(FrameKind::kEnd);
    header.sequence = number;
    const uint64_t written = control->written;
    std::memcpy(data.data() + written % data.bytes(), &header, sizeof header);
    control->written = written + sizeof header;
  };
  const int both[] = {control_memory->fd(), first->fd()};
  announce(*first, both);
  write(*first, 11);
  EXPECT_EQ(receiver->Receive(UINT32_MAX).header.sequence, 11u);
  const int one[] = {next->fd()};
  announce(*next, one);
  ++control->replaced;
  write(*next, 22);
  EXPECT_EQ(receiver->Receive(UINT32_MAX).header.sequence, 22u);
  write(*next, 33);
  EXPECT_EQ(receiver->Receive(UINT32_MAX).header.sequence, 33u);
}

INSTANTIATE_TEST_SUITE_P(Kinds, Transport, testing::Values(DeliveryKind::kUnix, DeliveryKind::kShm),
                         [](const auto& info) {
                           return info.param == DeliveryKind::kUnix ? "Unix" : "SharedMemory";
                         });

TEST(DeliveryAddress, MistakesAreNamed) {
  const auto error_of = [](const std::string& text) {
    return TransportErrorOf([&] { ParseDeliveryAddress(text, "/run"); }, ExitCode::kUsage);
  };
  EXPECT_EQ(FormatDeliveryAddress(ParseDeliveryAddress("unix:a.sock", "/run")), "unix:/run/a.sock");
  EXPECT_EQ(FormatDeliveryAddress(ParseDeliveryAddress("shm:/tmp/b", "/run")), "shm:/tmp/b");
  EXPECT_EQ(ParseDeliveryAddress("inline", "/").kind, DeliveryKind::kInline);
  EXPECT_NE(error_of("unxi:/a").find("did you mean 'unix:PATH'?"), std::string::npos);
  EXPECT_NE(error_of("inlin").find("did you mean 'inline'?"), std::string::npos);
  EXPECT_NE(error_of("unix:").find("names no path"), std::string::npos);
  EXPECT_NE(error_of("unix").find("write unix:PATH"), std::string::npos);
  EXPECT_NE(error_of("shm:/" + std::string(120, 'p')).find("at most 107 bytes, '/ppp"),
            std::string::npos);
}

}  // namespace
}  // namespace headrace::reader
