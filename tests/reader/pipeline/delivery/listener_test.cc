// Who is let in to a consumer that listens, and what the others are told.
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <atomic>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <random>
#include <thread>

#include "reader/pipeline/delivery/connect.h"
#include "reader/pipeline/delivery/frame.h"
#include "reader/pipeline/delivery/socket.h"
#include "reader/pipeline/delivery/transport_parts.h"
#include "tests/reader/pipeline/delivery/random_batch.h"
#include "tests/reader/pipeline/delivery/transport_fixture.h"

namespace headrace::reader {
namespace {

class Listening : public Transport {};

TEST_P(Listening, OneConsumerAtAnAddress) {
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

TEST_P(Listening, NobodyListens) {
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

TEST_P(Listening, AProducerTooManyIsToldSoUntilThereIsAPlace) {
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
TEST_P(Listening, WaitsWhileThereAreNoDescriptorsAndThenGoesOn) {
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

TEST_P(Listening, StrangersAreToldAndLeft) {
  std::vector<std::string> notes;
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

TEST_P(Listening, ASilentConnectionHoldsTheOthersUpForAMoment) {
  Listener listener(address_);
  const int silent = Dial(address_);
  std::thread producer([&] { ConnectSender(address_, {}); });
  EXPECT_TRUE(Accept(&listener));
  EXPECT_LT(MonotonicNs(), deadline_) << "not until the silent one goes";
  producer.join();
  close(silent);
}

TEST_P(Listening, AConsumerOfAnotherVersionRefuses) {
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
TEST_P(Listening, NoiseIsRefusedInOneLine) {
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

INSTANTIATE_TEST_SUITE_P(Kinds, Listening, testing::Values(DeliveryKind::kUnix, DeliveryKind::kShm),
                         [](const auto& info) {
                           return info.param == DeliveryKind::kUnix ? "Unix" : "SharedMemory";
                         });

}  // namespace
}  // namespace headrace::reader
