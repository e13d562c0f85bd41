// The server's socket: what is refused, and that nobody keeps others waiting.
#include <arpa/inet.h>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <thread>

#include "base/clock.h"
#include "base/error.h"
#include "base/gzip.h"
#include "dashboards/pages/assets.h"
#include "tests/dashboards/served_site.h"

namespace headrace::dashboards {
namespace {

using testing::HasSubstr;

// A connection to the server of a test.
class Client {
 public:
  // `room`: how many bytes the kernel keeps for it; 0: as usual.
  explicit Client(uint16_t port, int room = 0)
      : fd_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    if (room > 0) setsockopt(fd_, SOL_SOCKET, SO_RCVBUF, &room, sizeof room);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    connected_ = connect(fd_, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0;
  }
  ~Client() { close(fd_); }
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;

  bool connected() const { return connected_; }
  void Send(const std::string& text) { (void)!send(fd_, text.data(), text.size(), MSG_NOSIGNAL); }
  // What comes until `until` is in it, the other side closes, or the time is over.
  std::string Receive(const std::string& until = "", int64_t limit_ns = 20'000'000'000) {
    std::string text;
    const int64_t end_ns = MonotonicNs() + limit_ns;
    while (MonotonicNs() < end_ns && (until.empty() || text.find(until) == std::string::npos)) {
      pollfd wait{fd_, POLLIN, 0};
      if (poll(&wait, 1, 100) <= 0) continue;
      char buffer[65536];
      const ssize_t got = recv(fd_, buffer, sizeof buffer, 0);
      if (got <= 0) break;
      text.append(buffer, static_cast<size_t>(got));
    }
    return text;
  }

 private:
  int fd_;
  bool connected_ = false;
};

class ServedSocket : public ServedSite {
 protected:
  void SetUp() override {
    ServedSite::SetUp();
    server_ = std::make_unique<Server>(*site_, "127.0.0.1", 0);
    thread_ = std::thread([this] { server_->Run(); });
  }
  void TearDown() override {
    server_->Stop();
    thread_.join();
  }
  std::string Head(const std::string& line) const {
    return fmt::format("{} HTTP/1.1\r\nHost: 127.0.0.1:{}\r\n", line, server_->port());
  }
  // The answer to one request on a connection of its own.
  std::string Ask(const std::string& request) {
    Client client(server_->port());
    client.Send(request);
    return client.Receive();
  }

  std::unique_ptr<Server> server_;
  std::thread thread_;
};

TEST_F(ServedSocket, AnswersAndClosesWhereItIsAskedTo) {
  const std::string text = Ask(Head("GET /healthz") + "Connection: close\r\n\r\n");
  EXPECT_THAT(text, HasSubstr("200 OK"));
  EXPECT_THAT(text, HasSubstr("default-src 'none'"));
  EXPECT_THAT(text, HasSubstr("nosniff"));
  EXPECT_THAT(text, testing::Not(HasSubstr("unsafe")));
}

TEST_F(ServedSocket, OneConnectionIsUsedAgain) {
  Client client(server_->port());
  for (int i = 0; i < 3; ++i) {
    client.Send(Head("GET /api/store") + "\r\n");
    EXPECT_THAT(client.Receive("runs_count"), HasSubstr("200 OK")) << i;
  }
}

// What is between the head and the end of an answer, and what the head says of it.
struct Read {
  explicit Read(const std::string& text)
      : head(text.substr(0, text.find("\r\n\r\n"))),
        body(text.substr(std::min(text.size(), head.size() + 4))) {
    constexpr std::string_view kLength = "\r\nContent-Length: ";
    const size_t at = head.find(kLength);
    if (at != std::string::npos) length = std::stoul(head.substr(at + kLength.size()));
  }
  std::string head, body;
  size_t length = 0;
};

TEST_F(ServedSocket, TheScriptComesCompressedToThoseWhoTakeIt) {
  const Read plain(Ask(Head("GET /app.js") + "Connection: close\r\n\r\n"));
  EXPECT_THAT(plain.head, testing::Not(HasSubstr("Content-Encoding")));
  EXPECT_EQ(plain.body, AppScript());
  EXPECT_EQ(plain.length, plain.body.size());
  const Read gzip(Ask(Head("GET /app.js") + "Accept-Encoding: gzip\r\nConnection: close\r\n\r\n"));
  EXPECT_THAT(gzip.head, HasSubstr("Content-Encoding: gzip"));
  EXPECT_EQ(gzip.length, gzip.body.size());
  EXPECT_LT(gzip.length, plain.length / 2);
  EXPECT_EQ(Gunzipped(gzip.body), AppScript());
}

TEST_F(ServedSocket, AnAnswerIsAsLongAsItsHeadSays) {
  Client client(server_->port());
  client.Send(Head("HEAD /app.js") + "\r\n");
  const Read head(client.Receive("\r\n\r\n"));
  EXPECT_EQ(head.length, AppScript().size());
  EXPECT_EQ(head.body, "");
  // One that is known already has no body: what follows is the next answer.
  constexpr std::string_view kTag = "\r\nETag: ";
  const size_t tag = head.head.find(kTag) + kTag.size();
  client.Send(Head("GET /app.js") +
              "If-None-Match: " + head.head.substr(tag, head.head.find('\r', tag) - tag) +
              "\r\n\r\n" + Head("GET /healthz") + "\r\n");
  const Read known(client.Receive("ok\n"));
  EXPECT_THAT(known.head, testing::StartsWith("HTTP/1.1 304 Not Modified\r\n"));
  EXPECT_THAT(known.body, testing::StartsWith("HTTP/1.1 200 OK\r\n"));
  const std::string old =
      fmt::format("GET /healthz HTTP/1.0\r\nHost: 127.0.0.1:{}\r\n", server_->port());
  const Read closed(Ask(old + "\r\n"));
  EXPECT_THAT(closed.head, testing::StartsWith("HTTP/1.0 200 OK\r\n"));
  EXPECT_THAT(closed.head, testing::Not(HasSubstr("Connection:")));
  client.Send(old + "Connection: keep-alive\r\n\r\n");
  EXPECT_THAT(client.Receive("ok"), HasSubstr("\r\nConnection: keep-alive\r\n"));
}

// A reader who takes nothing for a while: what the kernel has no room for is written in pieces.
TEST_F(ServedSocket, ASlowReaderGetsAllOfManyAnswers) {
  constexpr int kAnswers = 8;  // more than the kernel keeps for a connection, 4 MiB
  const std::string body = R"({"sql":"SELECT hex(zeroblob(400000)) AS zeros"})";
  const std::string ask =
      Head("POST /api/sql") +
      fmt::format("Content-Type: application/json\r\nContent-Length: {}\r\n\r\n{}", body.size(),
                  body);
  Client client(server_->port(), 4096);
  for (int i = 0; i < kAnswers; ++i) client.Send(ask);
  client.Send(Head("GET /app.js") + "Connection: close\r\n\r\n");
  std::this_thread::sleep_for(std::chrono::milliseconds(500));
  std::string rest = client.Receive("", 60'000'000'000);
  for (int i = 0; i < kAnswers; ++i) {
    const Read answer(rest);
    ASSERT_THAT(answer.head, HasSubstr("200 OK")) << i;
    ASSERT_GT(answer.length, 800'000u) << i;
    ASSERT_GT(answer.body.size(), answer.length) << i;
    const std::string zeros = answer.body.substr(0, answer.length);
    EXPECT_THAT(nlohmann::json::parse(zeros).dump(), HasSubstr(std::string(800'000, '0'))) << i;
    rest = answer.body.substr(answer.length);
  }
  const Read script(rest);
  EXPECT_THAT(script.head, HasSubstr("200 OK"));
  EXPECT_EQ(script.body, AppScript());
}

// Who has an answer under its tag gets none again; under another tag, or of another run, it comes.
TEST_F(ServedSocket, ATagIsOfOneAnswer) {
  const auto ask = [&](const std::string& target, const std::string& tag) {
    return Read(Ask(Head("GET " + target) + "If-None-Match: " + tag +
                    "\r\nAccept-Encoding: gzip\r\nConnection: close\r\n\r\n"));
  };
  const auto tag_of = [](const Read& answer) {
    constexpr std::string_view kTag = "\r\nETag: ";
    const size_t at = answer.head.find(kTag);
    if (at == std::string::npos) return std::string();
    const size_t begin = at + kTag.size();
    return answer.head.substr(begin, answer.head.find('\r', begin) - begin);
  };
  for (const char* target : {"/", "/style.css", "/api/runs/1/report", "/api/runs/1/course"}) {
    SCOPED_TRACE(target);
    const Read first = ask(target, "\"another\"");
    EXPECT_THAT(first.head, testing::StartsWith("HTTP/1.1 200 "));
    EXPECT_GT(first.length, 0u);
    const std::string tag = tag_of(first);
    EXPECT_THAT(tag, testing::MatchesRegex("\".+\""));
    const Read again = ask(target, tag);
    EXPECT_THAT(again.head, testing::StartsWith("HTTP/1.1 304 "));
    EXPECT_EQ(tag_of(again), tag);
    EXPECT_EQ(again.body, "");
    EXPECT_THAT(again.head, testing::Not(HasSubstr("Content-Length")));
  }
  EXPECT_NE(tag_of(ask("/", "")), tag_of(ask("/style.css", "")));
}

// A method that an address is not asked by is refused with those that it is asked by.
TEST_F(ServedSocket, ARefusedMethodIsAnsweredWithThoseThatAreAllowed) {
  const std::string body = "Content-Type: application/json\r\nContent-Length: 2\r\n";
  const struct {
    const char* line;
    const char* allowed;
  } kCases[] = {{"PUT /", "GET, HEAD, POST"},      {"DELETE /api/runs/1/report", "GET, HEAD, POST"},
                {"POST /", "GET, HEAD"},           {"POST /app.js", "GET, HEAD"},
                {"POST /api/runs", "GET, HEAD"},   {"POST /api/runs/1/report", "GET, HEAD"},
                {"GET /api/sql", "POST"},          {"HEAD /api/sql", "POST"},
                {"GET /api/runs/1/whatif", "POST"}};
  for (const auto& each : kCases) {
    const Read answer(Ask(Head(each.line) + body + "Connection: close\r\n\r\n{}"));
    EXPECT_THAT(answer.head, testing::StartsWith("HTTP/1.1 405 Method Not Allowed\r\n"))
        << each.line;
    EXPECT_THAT(answer.head + "\r\n", HasSubstr(fmt::format("\r\nAllow: {}\r\n", each.allowed)))
        << each.line;
  }
}

TEST_F(ServedSocket, RefusesWhatIsTooLargeOrNoRequest) {
  EXPECT_THAT(Ask(Head("GET /") + "X: " + std::string(9000, 'x') + "\r\n\r\n"), HasSubstr(" 431 "));
  EXPECT_THAT(Ask(Head("POST /api/sql") +
                  "Content-Type: application/json\r\nContent-Length: 70000\r\n\r\n" +
                  std::string(70000, 'x')),
              HasSubstr(" 413 "));
  EXPECT_THAT(Ask("no request at all\r\n\r\n"), HasSubstr(" 400 "));
  EXPECT_THAT(Ask("GET / HTTP/1.1\r\nHost: evil.example\r\nConnection: close\r\n\r\n"),
              HasSubstr(" 403 "));
  EXPECT_THAT(Ask(Head("GET /../../etc/passwd") + "Connection: close\r\n\r\n"), HasSubstr(" 400 "));
  EXPECT_THAT(Ask(Head("GET /healthz") + "Connection: close\r\n\r\n"), HasSubstr("200 OK"));
}

// A request that never ends is given up, after the five seconds that one may take.
TEST_F(ServedSocket, ARequestThatDoesNotArriveIsGivenUp) {
  Client client(server_->port());
  client.Send("GET / HTTP/1.1\r\nHost: 127");
  const int64_t begin_ns = MonotonicNs();
  EXPECT_EQ(client.Receive("", 120'000'000'000), "");
  EXPECT_LT(MonotonicNs() - begin_ns, 110'000'000'000) << "it was closed";
}

// One connection more than there may be ends the one that has waited longest, and no other.
TEST_F(ServedSocket, TheLongestIdleConnectionGivesWay) {
  rlimit files{};
  getrlimit(RLIMIT_NOFILE, &files);
  if (files.rlim_cur < 4 * Server::kMostConnections) GTEST_SKIP() << "needs more descriptors";
  std::vector<std::unique_ptr<Client>> clients;
  for (int i = 0; i < Server::kMostConnections; ++i) {
    clients.push_back(std::make_unique<Client>(server_->port()));
    clients.back()->Send(Head("GET /healthz") + "\r\n");
    ASSERT_THAT(clients.back()->Receive("ok\n"), HasSubstr("200 OK")) << i;
  }
  EXPECT_THAT(Ask(Head("GET /healthz") + "Connection: close\r\n\r\n"), HasSubstr("200 OK"));
  clients[1]->Send(Head("GET /healthz") + "\r\n");
  EXPECT_THAT(clients[1]->Receive("ok\n"), HasSubstr("200 OK")) << "others stay";
  EXPECT_EQ(clients[0]->Receive(""), "") << "the first one was closed";
}

// Questions that take long keep views waiting no more than slow readers do.
TEST_F(ServedSocket, LongQuestionsKeepNobodyWaiting) {
  const std::string sql =
      R"({"sql":"WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT MAX(i) FROM n"})";
  std::vector<std::unique_ptr<Client>> asking;
  for (int i = 0; i < Server::kMostQuestions + 2; ++i) {
    asking.push_back(std::make_unique<Client>(server_->port()));
    asking.back()->Send(Head("POST /api/sql") +
                        fmt::format("Content-Type: application/json\r\nContent-Length: {}\r\n"
                                    "Connection: close\r\n\r\n{}",
                                    sql.size(), sql));
  }
  const std::string refused = asking.back()->Receive();
  EXPECT_THAT(refused, HasSubstr(" 503 "));
  EXPECT_THAT(refused, HasSubstr("Retry-After"));
  EXPECT_THAT(Ask(Head("GET /api/runs/1/course") + "Connection: close\r\n\r\n"),
              HasSubstr("200 OK"));
  Client first(server_->port());
  EXPECT_EQ(asking.front()->Receive("\r\n\r\n", 1).find(" 200 "), std::string::npos)
      << "the first question is still being answered";
  const std::string given_up = asking.front()->Receive("}");
  EXPECT_THAT(given_up, HasSubstr(" 503 "));
  EXPECT_THAT(given_up, HasSubstr("stopped after 5 s"));
}

// Neither streams that nobody reads nor half requests keep an answer from another viewer. How fast
// it comes is in docs/measurements.md; here it comes at all, and the server goes on.
TEST_F(ServedSocket, StalledViewersKeepNobodyWaiting) {
  rlimit files{};
  getrlimit(RLIMIT_NOFILE, &files);
  const int many = static_cast<int>(std::min<rlim_t>(200, files.rlim_cur / 8));
  {
    collectors::RunStore store(files_.path());
    const analysis::RunView run = analysis::Record(SlowFetch(), 4, 5);
    const int64_t id = store.BeginRun(InfoOf(run, "live"));
    store.Append(id, {SampleOf(run, run.windows[0])});
  }
  std::vector<std::unique_ptr<Client>> stalled;
  for (int i = 0; i < many; ++i) {
    stalled.push_back(std::make_unique<Client>(server_->port()));
    ASSERT_TRUE(stalled.back()->connected());
    stalled.back()->Send(i % 2 == 0 ? Head("GET /api/runs/2/events") + "\r\n"
                                    : std::string("GET /api/runs HTTP/1.1\r\nHost: "));
  }
  EXPECT_THAT(Ask(Head("GET /healthz") + "Connection: close\r\n\r\n"), HasSubstr("200 OK"));
  EXPECT_THAT(Ask(Head("GET /api/runs/1/course") + "Connection: close\r\n\r\n"),
              HasSubstr("200 OK"));
  int served = 0, busy = 0;
  for (int i = 0; i < many; i += 2) {
    const std::string head = stalled[static_cast<size_t>(i)]->Receive("\r\n\r\n");
    served += head.find(" 200 ") != std::string::npos;
    busy += head.find(" 503 ") != std::string::npos;
  }
  EXPECT_GT(served, 0);
  EXPECT_EQ(served + busy, (many + 1) / 2);
  EXPECT_LE(served, Server::kMostStreams);
}

TEST(ServedAddress, ThatCannotBeListenedAtIsAnError) {
  TemporaryStore files;
  { collectors::RunStore store(files.path()); }
  Site site(files.path(), "headrace", "", {});
  EXPECT_THROW(Server(site, "no address", 0), Error);
  Server first(site, "127.0.0.1", 0);
  EXPECT_THROW(Server(site, "127.0.0.1", first.port()), Error);
}

}  // namespace
}  // namespace headrace::dashboards
