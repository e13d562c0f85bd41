// Control connections: messages arrive whole and in order, and what is no message ends the
// connection and nothing else.
#include "reader/service/control.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <filesystem>

#include "base/clock.h"
#include "base/error.h"

namespace headrace::reader::service {
namespace {

namespace fs = std::filesystem;

class ServiceControl : public testing::Test {
 protected:
  ServiceControl() {
    std::string pattern = (fs::temp_directory_path() / "control_test.XXXXXX").string();
    folder_ = ::mkdtemp(pattern.data());
  }
  ~ServiceControl() override { fs::remove_all(folder_); }
  std::string path() const { return (folder_ / "dispatcher").string(); }

  // The next event that says something.
  static ControlServer::Event Next(ControlServer* server) {
    for (int turn = 0; turn < 1000; ++turn)
      for (auto& event : server->Wait(100))
        if (!event.messages.empty() || event.is_gone) return std::move(event);
    ADD_FAILURE() << "nothing came";
    return {};
  }

  fs::path folder_;
};

TEST_F(ServiceControl, CarriesMessagesBothWaysWhateverTheirLength) {
  ControlServer server(path());
  struct stat status = {};
  ASSERT_EQ(stat(path().c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0600u);
  auto connection = ControlConnection::Connect(path());
  ASSERT_TRUE(connection);
  Started large;
  large.split_runs.assign(500'000, {7, 1});  // more than a socket's buffer
  connection->Send(Ask{1, 2});
  connection->Send(large);
  connection->Send(Ask{3, 4});
  std::vector<Message> got;
  uint64_t peer = 0;
  while (got.size() < 3) {
    connection->Receive(0);  // sends what there was no room for
    for (auto& event : server.Wait(10)) {
      peer = event.peer;
      for (Message& message : event.messages) got.push_back(std::move(message));
    }
  }
  EXPECT_EQ(std::get<Ask>(got[0]).count, 2u);
  EXPECT_EQ(std::get<Started>(got[1]).split_runs, large.split_runs);
  EXPECT_EQ(std::get<Ask>(got[2]).term, 3u);
  server.Send(peer, Bye{});
  std::vector<Message> back;
  while (back.empty()) back = connection->Receive(100);
  EXPECT_TRUE(std::holds_alternative<Bye>(back[0]));
}

TEST_F(ServiceControl, SaysWhenTheOtherSideIsGoneAfterWhatItSaid) {
  ControlServer server(path());
  auto connection = ControlConnection::Connect(path());
  connection->Send(Bye{});
  connection.reset();
  size_t messages = 0;
  for (bool gone = false; !gone;) {
    const auto event = Next(&server);
    messages += event.messages.size();
    gone = event.is_gone;
  }
  EXPECT_EQ(messages, 1u);
}

TEST_F(ServiceControl, DisconnectsWhatSpeaksSomethingElse) {
  ControlServer server(path());
  auto stranger = ControlConnection::Connect(path());
  const std::string text = "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n";
  ASSERT_EQ(send(stranger->fd(), text.data(), text.size(), MSG_NOSIGNAL),
            static_cast<ssize_t>(text.size()));
  EXPECT_TRUE(Next(&server).is_gone);
  auto friendly = ControlConnection::Connect(path());
  friendly->Send(Bye{});
  EXPECT_EQ(Next(&server).messages.size(), 1u);
}

TEST_F(ServiceControl, AnotherVersionIsNamedToBothSides) {
  ControlServer server(path());
  auto other = ControlConnection::Connect(path());
  std::string bytes = Serialize(Bye{});
  bytes[4] = 99;
  ASSERT_EQ(send(other->fd(), bytes.data(), bytes.size(), MSG_NOSIGNAL),
            static_cast<ssize_t>(bytes.size()));
  const ControlServer::Event event = Next(&server);
  EXPECT_TRUE(event.is_gone);
  EXPECT_NE(event.why.find("version 99"), std::string::npos) << event.why;
  EXPECT_FALSE(other->has_spoken());
  const std::vector<Message> answer = other->Receive(1000);
  ASSERT_EQ(answer.size(), 1u);
  const auto* const refused = std::get_if<Refused>(&answer[0]);
  ASSERT_NE(refused, nullptr);
  EXPECT_NE(refused->reason.find("version 99"), std::string::npos) << refused->reason;
  EXPECT_TRUE(other->has_spoken());
}

TEST_F(ServiceControl, OneDispatcherHasAJobAndOneThatWasKilledIsNoObstacle) {
  {
    ControlServer server(path());
    EXPECT_THROW(ControlServer second(path()), Error);
  }
  EXPECT_FALSE(ControlConnection::Connect(path()));
  {
    ControlServer server(path());
    fs::rename(path(), folder_ / "kept");  // its file stays behind
  }
  fs::rename(folder_ / "kept", path());
  EXPECT_FALSE(ControlConnection::Connect(path()));
  ControlServer next(path());
  EXPECT_TRUE(ControlConnection::Connect(path()));
}

// It answers in another way than "nobody": of a live one.
TEST_F(ServiceControl, ASocketThatIsNotSeenToBeDeadIsLeftAlone) {
  const int other = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
  ASSERT_GE(other, 0);
  const sockaddr_un name = SocketName(path());
  ASSERT_EQ(bind(other, reinterpret_cast<const sockaddr*>(&name), sizeof name), 0);
  ASSERT_EQ(listen(other, 1), 0);
  EXPECT_TRUE(Listens(path()));  // EPROTOTYPE
  EXPECT_THROW(ControlServer server(path()), Error);
  EXPECT_TRUE(fs::exists(path()));
  close(other);
  EXPECT_FALSE(Listens(path() + "x"));
}

// More than a socket's buffer holds, at once: it is heard in turns, and others are heard in each.
TEST_F(ServiceControl, WhoeverSaysMuchIsHeardInTurnsAndHoldsNobodyUp) {
  constexpr size_t kMostInATurn = 16, kSaid = 20'000;
  ControlServer server(path());
  auto loud = ControlConnection::Connect(path());
  for (size_t i = 0; i < kSaid; ++i) loud->Send(Ask{i, 1});
  auto quiet = ControlConnection::Connect(path());
  size_t heard = 0, turns = 0, questions = 0, answered = 0;
  for (quiet->Send(Bye{}), ++questions; heard < kSaid && turns < 100'000; ++turns) {
    loud->Flush();
    for (const auto& event : server.Wait(100)) {
      EXPECT_LE(event.messages.size(), kMostInATurn);
      for (const Message& message : event.messages) {
        const auto* const ask = std::get_if<Ask>(&message);
        if (ask == nullptr) {
          ++answered;
          continue;
        }
        EXPECT_EQ(ask->term, heard);  // all of it, in order
        ++heard;
      }
    }
    // Both are let in within the first two turns; from then on a question waits for one.
    if (turns < 3) continue;
    EXPECT_EQ(answered, questions) << "turn " << turns;
    quiet->Send(Bye{});
    ++questions;
  }
  EXPECT_EQ(heard, kSaid);
  EXPECT_GE(turns, kSaid / kMostInATurn);
}

TEST_F(ServiceControl, WhoeverAsksAndDoesNotReadIsHeardNoMoreUntilHeDoes) {
  ControlServer server(path());
  auto asking = ControlConnection::Connect(path());
  constexpr size_t kAnswerBytes = 100'000, kQuestions = 1000;
  for (size_t i = 0; i < kQuestions; ++i) asking->Send(Command{"status", ""});
  const auto serve = [&](int timeout_ms) {
    size_t questions = 0;
    for (const auto& event : server.Wait(timeout_ms)) {
      EXPECT_FALSE(event.is_gone);
      questions += event.messages.size();
      for (size_t i = 0; i < event.messages.size(); ++i)
        server.Send(event.peer, Answer{0, std::string(kAnswerBytes, 'a')});
    }
    return questions;
  };
  size_t heard = 0;
  for (int turn = 0; turn < 200; ++turn) heard += serve(0);
  // A mebibyte, what the socket holds, and the answers of a last turn.
  EXPECT_LT(heard * kAnswerBytes, 10u << 20);
  EXPECT_TRUE(server.Wait(20).empty());  // what it has said wakes nobody
  size_t answers = 0;
  for (int turn = 0; turn < 100'000 && answers < kQuestions; ++turn) {
    answers += asking->Receive(0).size();
    heard += serve(0);
  }
  EXPECT_EQ(answers, kQuestions);
  EXPECT_EQ(heard, kQuestions);
  // One that goes without having read is gone.
  for (size_t i = 0; i < kQuestions; ++i) asking->Send(Command{"status", ""});
  for (int turn = 0; turn < 200; ++turn) serve(0);
  asking.reset();
  bool is_gone = false;
  for (int turn = 0; turn < 1000 && !is_gone; ++turn)
    for (const auto& event : server.Wait(10)) is_gone |= event.is_gone;
  EXPECT_TRUE(is_gone);
}

// Also where that it has read them shows while it is sent more: no poll tells of what came before.
TEST_F(ServiceControl, WhatWasSaidBeforeIsHeardOnceTheAnswersAreRead) {
  ControlServer server(path());
  auto asking = ControlConnection::Connect(path());
  constexpr size_t kQuestions = 100, kAnswerBytes = 2 << 20;
  for (size_t i = 0; i < kQuestions; ++i) asking->Send(Command{"status", ""});
  const ControlServer::Event first = Next(&server);
  size_t heard = first.messages.size();
  ASSERT_LT(heard, kQuestions);
  server.Send(first.peer, Answer{0, std::string(kAnswerBytes, 'a')});
  for (int turn = 0; turn < 3; ++turn)
    for (const auto& event : server.Wait(0)) EXPECT_TRUE(event.messages.empty());
  bool has_read = false;
  for (int turn = 0; turn < 100'000 && !has_read; ++turn) {
    server.Send(first.peer, Bye{});
    for (const Message& message : asking->Receive(0))
      has_read |= std::holds_alternative<Answer>(message);
  }
  ASSERT_TRUE(has_read);
  for (size_t more = 1; heard < kQuestions && more > 0; heard += more)
    more = Next(&server).messages.size();
  EXPECT_EQ(heard, kQuestions);
}

TEST_F(ServiceControl, AConnectionTooManyIsToldSoAndOthersStay) {
  ControlServer server(path(), {.peers = 2});
  std::vector<std::unique_ptr<ControlConnection>> members;
  for (int i = 0; i < 2; ++i) {
    members.push_back(ControlConnection::Connect(path()));
    members.back()->Send(Ask{1, 1});
    EXPECT_EQ(Next(&server).messages.size(), 1u);
  }
  auto other = ControlConnection::Connect(path());
  other->Send(Ask{1, 1});
  const ControlServer::Event event = Next(&server);
  EXPECT_TRUE(event.is_gone);
  EXPECT_NE(event.why.find("2 connections"), std::string::npos) << event.why;
  const std::vector<Message> answer = other->Receive(1000);
  ASSERT_EQ(answer.size(), 1u);
  const auto* const refused = std::get_if<Refused>(&answer[0]);
  ASSERT_NE(refused, nullptr);
  EXPECT_EQ(refused->code, static_cast<uint32_t>(ExitCode::kResources));
  EXPECT_NE(refused->fix.find("ulimit -Hn"), std::string::npos) << refused->fix;
  for (auto& member : members) {
    member->Send(Bye{});
    EXPECT_EQ(Next(&server).messages.size(), 1u);
  }
  // One that goes leaves its place.
  members.pop_back();
  EXPECT_TRUE(Next(&server).is_gone);
  auto next = ControlConnection::Connect(path());
  next->Send(Bye{});
  EXPECT_EQ(Next(&server).messages.size(), 1u);
}

// Each claims more than there is room for with what the others have begun.
TEST_F(ServiceControl, MessagesThatAreBegunAndNotEndedTakeBoundedMemory) {
  constexpr size_t kMost = 4 << 20, kBegun = 600 << 10;
  ControlServer server(path(), {.unread_bytes = kMost});
  const std::string message = Serialize(Answer{0, std::string(1 << 20, 'a')});
  const int64_t deadline = MonotonicNs() + 120'000'000'000;  // no loop without an end
  std::vector<std::unique_ptr<ControlConnection>> peers;
  size_t gone = 0;
  for (size_t i = 0; i < 20; ++i) {
    auto peer = ControlConnection::Connect(path());
    for (size_t sent = 0; sent < kBegun && MonotonicNs() < deadline;) {
      const ssize_t more =
          send(peer->fd(), message.data() + sent, kBegun - sent, MSG_NOSIGNAL | MSG_DONTWAIT);
      if (more > 0) sent += static_cast<size_t>(more);
      if (more < 0 && errno != EAGAIN) break;
      for (const auto& event : server.Wait(0)) {
        gone += event.is_gone;
        EXPECT_EQ(event.why.find("too many long messages") != std::string::npos, event.is_gone);
      }
    }
    peers.push_back(std::move(peer));
  }
  for (int turn = 0; turn < 100; ++turn)
    for (const auto& event : server.Wait(0)) gone += event.is_gone;
  EXPECT_GE(gone, 20 - kMost / kBegun);
  EXPECT_LT(gone, 20u);
  // There is room again once the others have gone.
  peers.clear();
  for (bool is_quiet = false; !is_quiet && MonotonicNs() < deadline;)
    is_quiet = server.Wait(100).empty();
  auto whole = ControlConnection::Connect(path());
  whole->Send(Answer{0, std::string(3 << 19, 'a')});
  bool has_come = false;
  while (!has_come && MonotonicNs() < deadline) {
    whole->Flush();
    for (const auto& event : server.Wait(10)) {
      ASSERT_FALSE(event.is_gone) << event.why;
      has_come |= !event.messages.empty();
    }
  }
  EXPECT_TRUE(has_come);
}

// The last of those who have begun a long one makes room, and the first is heard to its end.
TEST_F(ServiceControl, WhoeverSaysLittleIsHeardAlsoWhereOthersHaveBegunToSayMuch) {
  constexpr size_t kLong = 3, kShort = 20;
  constexpr size_t kLongBegun = 130 << 10, kShortBegun = 30 << 10;  // in at most twice the memory
  ControlServer server(path(), {.unread_bytes = 1 << 20});
  const std::string message = Serialize(Answer{0, std::string(1 << 20, 'a')});
  const int64_t deadline = MonotonicNs() + 120'000'000'000;
  std::vector<std::unique_ptr<ControlConnection>> peers;
  std::vector<uint64_t> gone;
  const auto serve = [&] {
    for (const auto& event : server.Wait(0))
      if (event.is_gone) gone.push_back(event.peer);
  };
  for (size_t i = 0; i < kLong + kShort; ++i) {
    peers.push_back(ControlConnection::Connect(path()));
    const size_t begun = i < kLong ? kLongBegun : kShortBegun;
    for (size_t sent = 0; sent < begun && MonotonicNs() < deadline; serve()) {
      const ssize_t more =
          send(peers[i]->fd(), message.data() + sent, begun - sent, MSG_NOSIGNAL | MSG_DONTWAIT);
      if (more > 0) sent += static_cast<size_t>(more);
      if (more < 0 && errno != EAGAIN) break;
    }
    for (int turn = 0; turn < 5; ++turn) serve();
  }
  ASSERT_FALSE(gone.empty());
  EXPECT_EQ(gone[0], kLong);  // they are counted from 1
  for (const uint64_t peer : gone) {
    EXPECT_GT(peer, 1u);
    EXPECT_LE(peer, kLong);
  }
}

// Each of them asks more than it reads; none alone is too much.
TEST_F(ServiceControl, WhatWaitsForAllTakesBoundedMemoryAndWhoeverReadsIsServed) {
  constexpr uint64_t kMost = 8 << 20;
  constexpr size_t kAnswerBytes = 10'000, kAsking = 60, kQuestions = 200;
  ControlServer server(path(), {.unsent_bytes = kMost});
  size_t gone = 0, answered = 0, asked = 0;
  const auto serve = [&] {
    for (const auto& event : server.Wait(0)) {
      gone += event.is_gone;
      EXPECT_EQ(event.why.find(" wait for it and ") != std::string::npos, event.is_gone);
      for (size_t i = 0; i < event.messages.size(); ++i, ++answered)
        server.Send(event.peer, Answer{0, std::string(kAnswerBytes, 'a')});
    }
  };
  std::vector<std::unique_ptr<ControlConnection>> peers;
  for (size_t i = 0; i < kAsking; ++i) {
    peers.push_back(ControlConnection::Connect(path()));
    serve();
    for (size_t q = 0; q < kQuestions; ++q) peers[i]->Send(Command{"status", ""});
    asked += kQuestions;
    for (int turn = 0; turn < 20; ++turn) serve();
  }
  EXPECT_GE(gone, 1u);
  EXPECT_LT(gone, kAsking / 2);  // the others wait, as they are heard less
  EXPECT_LT(answered, asked / 2);
  auto reading = ControlConnection::Connect(path());
  for (int question = 0; question < 20; ++question) {
    reading->Send(Command{"status", ""});
    const int64_t deadline = MonotonicNs() + 120'000'000'000;
    size_t answers = 0;
    while (answers == 0 && MonotonicNs() < deadline) {
      serve();
      answers = reading->Receive(0).size();
    }
    ASSERT_EQ(answers, 1u);
  }
}

// Also of what is sent without a Wait between.
TEST_F(ServiceControl, WhatIsSentAtOnceTakesBoundedMemory) {
  constexpr uint64_t kMost = 4 << 20, kAnswerBytes = 100'000, kPeers = 20;
  ControlServer server(path(), {.unsent_bytes = kMost});
  std::vector<std::unique_ptr<ControlConnection>> peers;
  std::vector<uint64_t> ids;
  for (size_t i = 0; i < kPeers; ++i) {
    peers.push_back(ControlConnection::Connect(path()));
    peers.back()->Send(Bye{});
    ids.push_back(Next(&server).peer);
  }
  for (int i = 0; i < 20; ++i) {
    for (const uint64_t id : ids) server.Send(id, Answer{0, std::string(kAnswerBytes, 'a')});
    EXPECT_LE(server.unsent_bytes(), kMost);
  }
  size_t gone = 0;
  for (const auto& event : server.Wait(0)) gone += event.is_gone;
  EXPECT_GE(gone, 1u);
  EXPECT_LT(gone, kPeers);
  for (const auto& event : server.Wait(0)) EXPECT_FALSE(event.is_gone);
}

// It has less to read than one that reads, and reads nothing.
TEST_F(ServiceControl, WhoeverReadsNothingForLongestMakesRoom) {
  constexpr uint64_t kAnswerBytes = 100'000;
  ControlServer server(path(), {.unsent_bytes = 6 << 20});
  auto stuck = ControlConnection::Connect(path());
  stuck->Send(Bye{});
  const uint64_t stuck_id = Next(&server).peer;
  auto slow = ControlConnection::Connect(path());
  slow->Send(Bye{});
  const uint64_t slow_id = Next(&server).peer;
  auto little = ControlConnection::Connect(path());  // stuck as well: what it has frees nothing
  little->Send(Bye{});
  const uint64_t little_id = Next(&server).peer;
  const Answer answer{0, std::string(kAnswerBytes, 'a')};
  for (int i = 0; i < 4; ++i) server.Send(little_id, answer);
  for (int i = 0; i < 26; ++i) server.Send(stuck_id, answer);
  std::vector<uint64_t> gone;
  std::vector<char> some(30'000);
  for (int i = 0; i < 75; ++i) {
    server.Send(slow_id, answer);
    EXPECT_GT(recv(slow->fd(), some.data(), some.size(), MSG_DONTWAIT), 0);
    for (const auto& event : server.Wait(0))
      if (event.is_gone) gone.push_back(event.peer);
  }
  EXPECT_EQ(gone, std::vector<uint64_t>{stuck_id});
}

TEST_F(ServiceControl, TheMemoryOfWhatIsReadIsGivenBack) {
  constexpr size_t kAnswers = 100, kAnswerBytes = 100'000;
  ControlServer server(path());
  auto reading = ControlConnection::Connect(path());
  reading->Send(Bye{});
  const uint64_t id = Next(&server).peer;
  for (size_t i = 0; i < kAnswers; ++i) server.Send(id, Answer{0, std::string(kAnswerBytes, 'a')});
  for (size_t left = kAnswers, turn = 0; left > 5 && turn < 100'000; ++turn) {
    left -= reading->Receive(0).size();
    server.Wait(0);
    EXPECT_LE(server.unsent_bytes(), (left + 1) * (kAnswerBytes + 100)) << left;
  }
}

// Who cannot be let in keeps the listening socket readable.
TEST_F(ServiceControl, WaitsWhileThereAreNoDescriptorsAndThenGoesOn) {
  ControlServer server(path());
  auto connection = ControlConnection::Connect(path());
  connection->Send(Bye{});
  rlimit before = {};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
  const int next = dup(0);
  ASSERT_GE(next, 0);
  close(next);
  rlimit none = before;
  none.rlim_cur = static_cast<rlim_t>(next);
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &none), 0);
  int waits = 0;
  for (const int64_t until = MonotonicNs() + 500'000'000; MonotonicNs() < until; ++waits)
    EXPECT_TRUE(server.Wait(20).empty());
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &before), 0);
  EXPECT_LT(waits, 100);  // 25, but for the tries to accept; it were hundreds of thousands
  EXPECT_EQ(Next(&server).messages.size(), 1u);
}

// A time and an amount that are told are never "0 s" and "0 MiB".
TEST(ControlText, SaysHowLongAndHowMuchWasNotRead) {
  EXPECT_EQ(TextOfUnread(0, 700 << 10, 3 << 20),
            "it reads too slowly: 700 KiB wait for it and 3.00 MiB for all, as much as may be; it "
            "may come again");
  EXPECT_EQ(TextOfUnread(999'999'999, 1, 1024),
            "it reads too slowly: 1 B wait for it and 1.00 KiB for all, as much as may be; it may "
            "come again");
  EXPECT_EQ(TextOfUnread(2'000'000'000, 512 << 20, 1 << 30),
            "it has read nothing for 2.00 s: 512 MiB wait for it and 1.00 GiB for all, as much as "
            "may be; it may come again");
}

}  // namespace
}  // namespace headrace::reader::service
