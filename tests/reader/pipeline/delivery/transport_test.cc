// Deliveries between a producer and a consumer: all that was sent comes out, by either transport; a
// side that dies is seen.
#include "reader/pipeline/delivery/transport.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstring>
#include <filesystem>
#include <map>
#include <thread>

#include "base/clock.h"
#include "base/error.h"
#include "probes/account/account.h"
#include "reader/pipeline/delivery/connect.h"
#include "reader/pipeline/delivery/receive_pipeline.h"
#include "reader/pipeline/delivery/send_consumer.h"
#include "reader/pipeline/delivery/socket.h"
#include "reader/pipeline/delivery/transport_parts.h"
#include "tests/reader/pipeline/delivery/random_batch.h"
#include "tests/reader/pipeline/delivery/transport_fixture.h"

namespace headrace::reader {
namespace {

namespace fs = std::filesystem;

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
    const auto batch = decoder.Decode(frame.header, frame.body, frame.keep, frame.memory);
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

// Acknowledgements that nobody reads fill the socket, and hold nobody up. Who reads at last gets
// the last one.
TEST(SocketReceiver, AProducerThatDoesNotReadAcknowledgementsBlocksNobody) {
  int fds[2];
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, fds), 0);
  constexpr uint64_t kLast = 200'000;
  {
    const auto receiver = MakeSocketReceiver(
        std::make_unique<Socket>(Channel(fds[0]), "the producer", std::function<bool()>()), 1,
        false);
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

// What a sender writes for a batch: the names and it.
std::vector<uint8_t> SentBytes(const TensorBatch& batch, bool is_hashed) {
  int fds[2];
  if (socketpair(AF_UNIX, SOCK_STREAM, 0, fds) != 0) return {};
  std::thread producer([&] {
    const auto sender = MakeSocketSender(
        std::make_unique<Socket>(Channel(fds[0]), "the consumer", nullptr), is_hashed);
    FrameEncoder encoder;
    for (const Frame& frame : encoder.Encode(batch)) sender->Send(frame, UINT32_MAX);
  });
  std::vector<uint8_t> bytes, some(1 << 16);
  ssize_t got = 0;
  while ((got = recv(fds[1], some.data(), some.size(), 0)) > 0)
    bytes.insert(bytes.end(), some.begin(), some.begin() + got);
  producer.join();
  close(fds[1]);
  return bytes;
}

// TCP keeps bytes whole by a sum of 16 bits, too little for terabytes; memory, pipes of this
// machine and TLS need no sum of ours.
TEST(SocketReceiver, OnlyWhatTcpCarriesHasAChecksum) {
  std::mt19937_64 random(TestSeed());
  const TensorBatch batch = RandomBatch({.rows = 10000, .dense = 8, .sparse = 2}, random);
  // `damaged`: a byte from the end, 0 for none.
  const auto error_of = [&](bool sender_hashes, bool receiver_hashes, size_t damaged) {
    std::vector<uint8_t> bytes = SentBytes(batch, sender_hashes);
    if (damaged > 0) bytes[bytes.size() - damaged] ^= 4;
    int fds[2];
    if (socketpair(AF_UNIX, SOCK_STREAM, 0, fds) != 0) return std::string("no socket");
    std::thread producer([&] {
      Socket socket(Channel(fds[0]), "the consumer", nullptr);
      try {
        socket.Write(bytes);
      } catch (const Error&) {  // it took enough of them
      }
    });
    const std::string text = TransportErrorOf(
        [&] {
          const auto receiver =
              MakeSocketReceiver(std::make_unique<Socket>(Channel(fds[1]), "the producer", nullptr),
                                 1, receiver_hashes);
          FrameDecoder decoder;
          for (int i = 0; i < 2; ++i) {
            const ReceivedFrame frame = receiver->Receive(UINT32_MAX);
            decoder.Decode(frame.header, frame.body, frame.keep, frame.memory);
          }
        },
        ExitCode::kBadData);
    producer.join();
    return text;
  };
  EXPECT_EQ(error_of(true, true, 0), "no error");
  EXPECT_EQ(error_of(false, false, 0), "no error");
  EXPECT_EQ(error_of(true, false, 0), "no error");
  for (const size_t at : {size_t{1}, size_t{100}, size_t{20'000}, size_t{600'000}}) {
    EXPECT_NE(error_of(true, true, at).find("the checksum of frame 0 differs"), std::string::npos);
    EXPECT_NE(error_of(true, false, at).find("the checksum of frame 0 differs"), std::string::npos);
  }
  EXPECT_NE(error_of(false, true, 0).find("without a checksum"), std::string::npos);
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
