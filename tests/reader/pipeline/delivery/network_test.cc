// Deliveries over TCP and TLS: all that was sent comes out; who has no part in the job is refused
// with one line, whatever it says, and holds nobody up.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <openssl/ssl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <thread>

#include "base/clock.h"
#include "base/error.h"
#include "reader/pipeline/delivery/connect.h"
#include "reader/pipeline/delivery/wire.h"
#include "tests/reader/pipeline/delivery/random_batch.h"
#include "tests/reader/pipeline/delivery/same_batch.h"

namespace headrace::reader {
namespace {

namespace fs = std::filesystem;

constexpr const char* kSecret = "0123456789abcdef0123456789abcdef";

std::shared_ptr<const Credentials> CredentialsOf(const std::string& secret,
                                                 const CertificateFiles& files = {}) {
  return std::make_shared<const Credentials>(Token(secret, "the test"), files);
}

class Network : public testing::TestWithParam<DeliveryKind> {
 protected:
  std::unique_ptr<Receiver> Accept(Listener* listener) {
    return listener->Accept([&] { return is_over_ || MonotonicNs() > deadline_; }, false,
                            [&](const std::string& line) { lines_ += line + "\n"; });
  }
  // What a producer with these credentials is told.
  std::string Call(const DeliveryAddress& to, std::shared_ptr<const Credentials> credentials,
                   ExitCode code) {
    try {
      ConnectSender(to, {.credentials = std::move(credentials)});
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), code) << error.what();
      return error.what();
    }
    return "no error";
  }
  // While `act` runs, producers are let in.
  void Serving(Listener* listener, const std::function<void()>& act) {
    std::thread accepting([&] {
      while (!is_over_ && MonotonicNs() < deadline_) Accept(listener);
    });
    act();
    is_over_ = true;
    accepting.join();
    is_over_ = false;
  }
  bool is_encrypted() const { return GetParam() == DeliveryKind::kTls; }

  const DeliveryAddress any_ = {GetParam(), {}, {"127.0.0.1", 0}};
  const std::shared_ptr<const Credentials> ours_ = CredentialsOf(kSecret);
  const int64_t deadline_ = MonotonicNs() + 600'000'000'000;  // no test may hang
  std::atomic<bool> is_over_{false};
  std::string lines_;
};

TEST_P(Network, FramesOfEverySizeArriveWholeAndAreAcknowledged) {
  std::mt19937_64 random(TestSeed());
  Listener listener(any_, ours_);
  std::vector<TensorBatch> sent;
  for (const uint64_t rows : {1, 1000, 3, 100000, 0, 500, 200000, 2, 20000})
    sent.push_back(RandomBatch({.rows = rows, .dense = 3, .sparse = 2, .longest = 4}, random));
  std::thread producer([&] {
    // Its own credentials: of another process only the token is the same.
    auto sender = ConnectSender(listener.address(),
                                {.credentials = CredentialsOf(std::string(kSecret) + "\n")});
    FrameEncoder encoder;
    for (const TensorBatch& batch : sent)
      for (const Frame& frame : encoder.Encode(batch)) sender->Send(frame, UINT32_MAX);
    sender->Send(encoder.End(true), UINT32_MAX);
    sender->AwaitAcknowledged(sent.size());
  });
  auto receiver = Accept(&listener);
  ASSERT_TRUE(receiver) << lines_;
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
    receiver->Acknowledge(at);
  }
  producer.join();
  EXPECT_EQ(at, sent.size());
}

TEST_P(Network, CompressedBatchesArriveAsTheyWere) {
  std::mt19937_64 random(TestSeed());
  for (const WireSetting codec :
       {WireSetting(WireCodec::kRaw), WireSetting(WireCodec::kNarrow), WireSetting(WireCodec::kLz4),
        WireSetting(WireCodec::kZstd), WireSetting()}) {
    Listener listener(any_, ours_);
    std::vector<TensorBatch> sent;
    for (const uint64_t rows : {1, 1000, 100000, 0, 500}) {
      sent.push_back(RandomBatch({.rows = rows, .dense = 3, .sparse = 2, .longest = 4}, random));
      for (int64_t& id : sent.back().sparse.values) id &= 0xfff;
    }
    std::thread producer([&] {
      auto sender = ConnectSender(listener.address(), {.credentials = ours_});
      EXPECT_TRUE(sender->network_ns().has_value());
      EXPECT_TRUE(sender->Takes(WireCodec::kZstd));
      FrameEncoder encoder;
      Wire wire(sender.get(), {.setting = codec});
      for (const TensorBatch& batch : sent) {
        wire.Begin();
        uint64_t plain = 0, sent_bytes = 0;
        for (const Frame& frame : encoder.Encode(batch)) {
          sent_bytes += sender->Send(frame, UINT32_MAX);
          plain += frame.bytes();
        }
        if (batch.rows >= 1000) {
          EXPECT_EQ(sent_bytes < plain, codec != WireCodec::kRaw);
        }
        wire.Sent(plain);
      }
      sender->Send(encoder.End(true), UINT32_MAX);
      sender->AwaitAcknowledged(sent.size());
    });
    auto receiver = Accept(&listener);
    ASSERT_TRUE(receiver) << lines_;
    FrameDecoder decoder;
    size_t at = 0;
    while (!decoder.ended()) {
      const ReceivedFrame frame = receiver->Receive(UINT32_MAX);
      EXPECT_FALSE(IsPacked(frame.header));
      const auto batch = decoder.Decode(frame.header, frame.body, frame.keep, frame.memory);
      if (!batch) continue;
      ExpectSame(sent[at++], *batch);
      receiver->Acknowledge(at);
    }
    producer.join();
    EXPECT_EQ(at, sent.size());
  }
}

TEST_P(Network, AnotherTokenIsRefusedAndBothSidesSayIt) {
  Listener listener(any_, ours_);
  Serving(&listener, [&] {
    const std::string text = Call(listener.address(), CredentialsOf("f" + std::string(kSecret, 31)),
                                  ExitCode::kPrivilege);
    EXPECT_NE(text.find("refuses this process's token"), std::string::npos) << text;
  });
  EXPECT_NE(lines_.find("has another token than this job's"), std::string::npos) << lines_;
}

TEST_P(Network, WithoutATokenNothingConnects) {
  const std::string text = Call({GetParam(), {}, {"127.0.0.1", 1}}, nullptr, ExitCode::kPrivilege);
  EXPECT_NE(text.find("no token is given"), std::string::npos) << text;
}

TEST_P(Network, TlsAndPlainDoNotMeet) {
  Listener listener(any_, ours_);
  DeliveryAddress other = listener.address();
  other.kind = is_encrypted() ? DeliveryKind::kTcp : DeliveryKind::kTls;
  Serving(&listener, [&] {
    const std::string text = Call(other, ours_, ExitCode::kFailure);
    EXPECT_NE(text.find(is_encrypted() ? "speaks TLS; write tls:HOST:PORT"
                                       : "write tcp:HOST:PORT if it listens without TLS"),
              std::string::npos)
        << text;
  });
  EXPECT_NE(lines_.find(is_encrypted() ? "no TLS 1.3" : "speaks TLS"), std::string::npos) << lines_;
}

// A connection without a word of the protocol.
int Bare(const DeliveryAddress& to) {
  std::string why;
  const int fd = ConnectTcp(to.at, 10'000'000'000, {}, &why);
  EXPECT_GE(fd, 0) << why;
  return fd;
}

TEST_P(Network, StrangersAreRefusedAndHoldNobodyUp) {
  Listener listener(any_, ours_);
  std::vector<int> silent;
  for (int i = 0; i < 300; ++i) silent.push_back(Bare(listener.address()));  // half a greeting each
  for (const int fd : silent) ASSERT_EQ(send(fd, "hrhello1", 8, MSG_NOSIGNAL), 8);
  const int claims = Bare(listener.address());
  const std::string rubbish(1 << 16, '\xff');
  send(claims, rubbish.data(), rubbish.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
  std::atomic<bool> has_connected{false};
  std::thread producer([&] {
    auto sender = ConnectSender(listener.address(), {.credentials = ours_});
    has_connected = true;
  });
  EXPECT_TRUE(Accept(&listener)) << lines_;
  producer.join();
  EXPECT_TRUE(has_connected);
  for (const int fd : silent) close(fd);
  close(claims);
}

// After TLS stands it asks for new keys, again and again, and reads no answer. How many requests it
// could send, or -1 where it was never stopped.
int AskForKeys(int fd, int most, int64_t until_ns) {
  fcntl(fd, F_SETFL, 0);
  SSL_CTX* const context = SSL_CTX_new(TLS_client_method());
  SSL* const ssl = SSL_new(context);
  SSL_set_fd(ssl, fd);
  EXPECT_EQ(SSL_connect(ssl), 1);
  int asked = 0;
  while (asked < most && MonotonicNs() < until_ns &&
         SSL_key_update(ssl, SSL_KEY_UPDATE_REQUESTED) == 1 && SSL_do_handshake(ssl) == 1)
    ++asked;
  const bool is_stopped = asked < most && MonotonicNs() < until_ns;
  SSL_free(ssl);
  SSL_CTX_free(context);
  return is_stopped ? asked : -1;
}

TEST_P(Network, AStrangerThatAsksForKeysForEverIsRefused) {
  if (!is_encrypted()) GTEST_SKIP() << "there are no keys";
  signal(SIGPIPE, SIG_IGN);  // OpenSSL's own sockets send it
  Listener listener(any_, ours_);
  std::atomic<bool> is_stopped{false};
  Serving(&listener, [&] {
    const int fd = Bare(listener.address());
    is_stopped = AskForKeys(fd, 4'000'000, MonotonicNs() + 120'000'000'000) >= 0;
    close(fd);
    EXPECT_NO_THROW(ConnectSender(listener.address(), {.credentials = ours_}));
  });
  EXPECT_TRUE(is_stopped);
  EXPECT_NE(lines_.find("says too much"), std::string::npos) << lines_;
}

TEST_P(Network, WhoGoesWhileHeShakesHandsIsNotThereNow) {
  TcpListener listener({"127.0.0.1", 0});
  std::thread closing([&] {
    pollfd one = {listener.fd(), POLLIN, 0};
    poll(&one, 1, 60'000);
    close(accept4(listener.fd(), nullptr, nullptr, SOCK_CLOEXEC));
  });
  std::string why;
  EXPECT_FALSE(CallGuarded({GetParam(), {}, listener.at()}, Purpose::kControl, ours_, {}, &why));
  EXPECT_NE(why.find("closed the connection"), std::string::npos) << why;
  closing.join();
}

TEST_P(Network, AnotherVersionIsNamed) {
  if (is_encrypted()) GTEST_SKIP() << "the same bytes, inside of TLS";
  Listener listener(any_, ours_);
  Serving(&listener, [&] {
    const int fd = Bare(listener.address());
    uint8_t hello[64] = {'h', 'r', 'h', 'e', 'l', 'l', 'o', '1', 9, 0, 0, 0, 2};
    ASSERT_EQ(send(fd, hello, sizeof hello, MSG_NOSIGNAL), 64);
    fcntl(fd, F_SETFL, 0);
    uint8_t answer[64];
    ASSERT_EQ(recv(fd, answer, sizeof answer, MSG_WAITALL), 64);  // its own, and so its version
    EXPECT_EQ(recv(fd, answer, 1, 0), 0);
    close(fd);
  });
  EXPECT_NE(lines_.find("greets with version 9, this headrace with 1"), std::string::npos)
      << lines_;
}

TEST_P(Network, ADispatchersConnectionTakesNoBatches) {
  GuardedListener dispatcher(any_, Purpose::kControl, ours_);
  std::thread serving([&] {
    while (!is_over_) {
      std::vector<pollfd> polled;
      dispatcher.AddPolled(&polled);
      poll(polled.data(), polled.size(), 50);
      EXPECT_TRUE(dispatcher.Turn().empty());
    }
  });
  Call(dispatcher.address(), ours_, ExitCode::kFailure);
  is_over_ = true;
  serving.join();
}

TEST_P(Network, WhoeverPassesBytesOnLearnsNothing) {
  if (!is_encrypted()) GTEST_SKIP() << "without TLS the bytes could be read";
  // It ends the TLS of both sides, and passes on what they say inside.
  Listener listener(any_, ours_);
  TcpListener between({"127.0.0.1", 0});
  std::thread passing([&] {
    pollfd one = {between.fd(), POLLIN, 0};
    poll(&one, 1, 60'000);
    const int caller = accept4(between.fd(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
    const int listening = Bare(listener.address());
    const TlsContext tls{CertificateFiles{}};
    auto to_caller = tls.Begin(caller, Side::kListener);
    auto to_listener = tls.Begin(listening, Side::kCaller);
    while (!to_caller->Agree() || !to_listener->Agree()) SleepUntilNs(MonotonicNs() + 1'000'000);
    const int64_t until = MonotonicNs() + 60'000'000'000;
    for (bool open = true; open && MonotonicNs() < until;) {
      uint8_t bytes[256];
      for (auto [from, to] : {std::pair(to_caller.get(), to_listener.get()),
                              std::pair(to_listener.get(), to_caller.get())}) {
        const ptrdiff_t got = from->Read(bytes);
        open &= got != 0;
        if (got > 0) to->Write({bytes, static_cast<size_t>(got)});
      }
      SleepUntilNs(MonotonicNs() + 1'000'000);
    }
    close(caller);
    close(listening);
  });
  Serving(&listener, [&] {
    const std::string text = Call({GetParam(), {}, between.at()}, ours_, ExitCode::kPrivilege);
    EXPECT_NE(text.find("token"), std::string::npos) << text;
  });
  passing.join();
  EXPECT_NE(lines_.find("has another token"), std::string::npos) << lines_;
}

TEST_P(Network, MoreThanAReadMayTakeComesWithTheNext) {
  // Both ends of one connection: 32 MiB at once, of which a Read takes a part each time.
  GuardedListener listener(any_, Purpose::kControl, ours_);
  const std::vector<uint8_t> sent(32 << 20, 7);
  std::thread sending([&] {
    std::string why;
    auto channel = CallGuarded(listener.address(), Purpose::kControl, ours_, {}, &why);
    ASSERT_TRUE(channel) << why;
    for (size_t at = 0; at < sent.size() && MonotonicNs() < deadline_;) {
      const ptrdiff_t put = channel->Write({sent.data() + at, sent.size() - at});
      ASSERT_NE(put, 0);
      at += static_cast<size_t>(std::max<ptrdiff_t>(put, 0));
    }
  });
  std::vector<GuardedListener::Guest> guests;
  while (guests.empty() && MonotonicNs() < deadline_) guests = listener.Turn();
  ASSERT_FALSE(guests.empty());
  std::vector<uint8_t> got(sent.size());
  for (size_t at = 0; at < got.size() && MonotonicNs() < deadline_;) {
    const ptrdiff_t more = guests[0].channel.Read({got.data() + at, got.size() - at});
    ASSERT_NE(more, 0);
    at += static_cast<size_t>(std::max<ptrdiff_t>(more, 0));
  }
  sending.join();
  EXPECT_EQ(got, sent);
}

INSTANTIATE_TEST_SUITE_P(Kinds, Network, testing::Values(DeliveryKind::kTcp, DeliveryKind::kTls),
                         [](const auto& info) {
                           return info.param == DeliveryKind::kTcp ? "Tcp" : "Tls";
                         });

class NetworkFiles : public testing::Test {
 protected:
  NetworkFiles() {
    std::string pattern = (fs::temp_directory_path() / "network_test.XXXXXX").string();
    folder_ = ::mkdtemp(pattern.data());
  }
  ~NetworkFiles() override { fs::remove_all(folder_); }
  std::string At(const char* name) const { return (folder_ / name).string(); }
  fs::path folder_;
};

std::string TokenErrorOf(const std::function<void()>& act) {
  try {
    act();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::kPrivilege) << error.what();
    return error.what();
  }
  return "no error";
}

TEST_F(NetworkFiles, ATokenIsMadeOnceAndIsItsUsersAlone) {
  unsetenv("HEADRACE_TOKEN_FILE");
  unsetenv("HEADRACE_TOKEN");
  EXPECT_NE(TokenErrorOf([] { Token::OfEnvironment(); }).find("export HEADRACE_TOKEN_FILE"),
            std::string::npos);
  EXPECT_NE(TokenErrorOf([&] { Token::Find(At("token"), ""); }).find("is not there"),
            std::string::npos);
  const Token made = Token::FindOrMake(At("token"), "");
  struct stat status = {};
  ASSERT_EQ(stat(At("token").c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0600u);
  const Token again = Token::FindOrMake("", At("token"));
  EXPECT_TRUE(AreSame(made.Sign({}), again.Sign({})));
  EXPECT_FALSE(AreSame(made.Sign({}), Token::FindOrMake(At("other"), "").Sign({})));
  ASSERT_EQ(chmod(At("token").c_str(), 0640), 0);
  EXPECT_NE(TokenErrorOf([&] { Token::Find(At("token"), ""); }).find("nobody else can read"),
            std::string::npos);
  std::ofstream(At("short")) << "secret\n";
  ASSERT_EQ(chmod(At("short").c_str(), 0600), 0);
  EXPECT_NE(TokenErrorOf([&] { Token::Find(At("short"), ""); }).find("has 32 characters or more"),
            std::string::npos);
}

TEST_F(NetworkFiles, WhatSomebodyElsePutBesideATokenIsLeftAlone) {
  std::ofstream(At("victim")) << "precious";
  fs::create_symlink(At("victim"), At("token") + "." + std::to_string(getpid()));
  Token::FindOrMake(At("token"), "");
  EXPECT_EQ(fs::file_size(At("victim")), 8u);
  ASSERT_EQ(mkfifo(At("pipe").c_str(), 0600), 0);
  EXPECT_NE(TokenErrorOf([&] { Token::Find(At("pipe"), ""); }).find("is to be a file"),
            std::string::npos);
}

// `openssl` makes them: what sites have was not made by us. `names`: as of subjectAltName; empty:
// none but the subject's.
bool MakeCertificates(const fs::path& folder, const std::string& names = "IP:127.0.0.1") {
  const std::string in = "cd '" + folder.string() + "' && exec 2>/dev/null; ";
  const std::string authority =
      "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout ca.key -out "
      "ca.pem -subj /CN=site -days 30 && ";
  const std::string member =
      "openssl req -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout m.key -out m.csr "
      "-subj /CN=127.0.0.1 && ";
  const std::string extension =
      names.empty() ? ": > m.ext && " : "echo 'subjectAltName=" + names + "' > m.ext && ";
  const std::string sign =
      "openssl x509 -req -in m.csr -CA ca.pem -CAkey ca.key -CAcreateserial -extfile m.ext -out "
      "m.pem -days 30";
  return std::system((in + authority + member + extension + sign).c_str()) == 0;
}

TEST_F(NetworkFiles, WithAnAuthorityBothSidesShowACertificate) {
  if (!MakeCertificates(folder_)) GTEST_SKIP() << "openssl makes no certificates here";
  const CertificateFiles files = {At("m.pem"), At("m.key"), At("ca.pem")};
  Listener listener({DeliveryKind::kTls, {}, {"127.0.0.1", 0}}, CredentialsOf(kSecret, files));
  std::atomic<bool> is_over{false};
  std::string lines;
  std::thread accepting([&] {
    while (!is_over)
      listener.Accept([&] { return is_over.load(); }, false,
                      [&](const std::string& line) { lines += line + "\n"; });
  });
  EXPECT_NO_THROW(
      ConnectSender(listener.address(), {.credentials = CredentialsOf(kSecret, files)}));
  EXPECT_THROW(ConnectSender(listener.address(), {.credentials = CredentialsOf(kSecret)}), Error);
  is_over = true;
  accepting.join();
  EXPECT_NE(lines.find("no TLS 1.3"), std::string::npos) << lines;
  EXPECT_THROW(CredentialsOf(kSecret, {At("m.pem"), At("ca.key"), ""}), Error);
  EXPECT_THROW(CredentialsOf(kSecret, {At("m.pem"), "", ""}), Error);
}

TEST_F(NetworkFiles, WithAnAuthorityAListenersCertificateNamesWhomTheCallerMeans) {
  const struct {
    const char *names, *host;
    bool is_right;
  } kCases[] = {{"IP:127.0.0.1", "127.0.0.1", true},
                {"IP:127.0.0.2,DNS:localhost", "127.0.0.1", false},
                {"IP:127.0.0.2,DNS:localhost", "localhost", true},
                {"DNS:other,IP:127.0.0.1", "localhost", false},
                {"", "127.0.0.1", false}};  // the subject is called so, which does not count
  for (const auto& [names, host, is_right] : kCases) {
    SCOPED_TRACE(std::string(names) + " called as " + host);
    if (!MakeCertificates(folder_, names)) GTEST_SKIP() << "openssl makes no certificates here";
    const CertificateFiles files = {At("m.pem"), At("m.key"), At("ca.pem")};
    const auto credentials = CredentialsOf(kSecret, files);
    Listener listener({DeliveryKind::kTls, {}, {"127.0.0.1", 0}}, credentials);
    std::atomic<bool> is_over{false};
    std::string lines;
    std::atomic<bool> has_spoken{false};
    std::thread accepting([&] {
      while (!is_over)
        listener.Accept([&] { return is_over.load(); }, false,
                        [&](const std::string& line) {
                          lines += line + "\n";
                          has_spoken = true;
                        });
    });
    DeliveryAddress to = listener.address();
    to.at.host = host;
    std::string text = "no error";
    try {
      ConnectSender(to, {.credentials = credentials});
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ExitCode::kPrivilege);
      text = error.what();
    }
    // The refusal may come to the listener later than to the caller.
    for (int i = 0; !is_right && !has_spoken && i < 1000; ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    is_over = true;
    accepting.join();
    EXPECT_EQ(text.find("its certificate names other hosts") == std::string::npos, is_right)
        << text;
    EXPECT_EQ(text == "no error", is_right) << text;
    // The listener is told so, and could have known it before.
    EXPECT_EQ(lines.find("refuses this process's certificate") == std::string::npos, is_right)
        << lines;
    const auto named = [&] { CheckCertificateNames(*credentials, to); };
    if (is_right) {
      EXPECT_NO_THROW(named());
    } else {
      const std::string needs = (to.at.host == "localhost" ? "DNS:" : "IP:") + to.at.host;
      const std::string said = TokenErrorOf(named);
      EXPECT_NE(said.find(needs), std::string::npos) << said;
    }
    to.kind = DeliveryKind::kTcp;
    EXPECT_NO_THROW(named());
  }
}

// Without a terminal to ask at, a program that asks ends or hangs; this one is not to ask at all.
TEST_F(NetworkFiles, AKeyWithAPassphraseIsRefusedWithoutAQuestion) {
  if (!MakeCertificates(folder_)) GTEST_SKIP() << "openssl makes no certificates here";
  for (const char* format : {"pkcs8 -topk8", "ec -aes256"}) {
    const std::string lock = "cd '" + folder_.string() + "' && openssl " + format +
                             " -in m.key -out locked.key -passout pass:secret 2>/dev/null";
    ASSERT_EQ(std::system(lock.c_str()), 0) << format;
    const std::string text = TokenErrorOf([&] {
      CredentialsOf(kSecret, {At("m.pem"), At("locked.key"), ""});
    });
    EXPECT_NE(text.find("has a passphrase, which nobody is asked for"), std::string::npos) << text;
    EXPECT_NE(text.find("openssl pkey"), std::string::npos) << text;
  }
}

TEST(NetworkAddress, HostsAndPorts) {
  EXPECT_EQ(FormatDeliveryAddress(ParseDeliveryAddress("tls:node7:7070", "/")), "tls:node7:7070");
  EXPECT_EQ(FormatDeliveryAddress(ParseDeliveryAddress("tcp:[::1]:0", "/")), "tcp:[::1]:0");
  for (const char* wrong : {"tcp:", "tcp:node7", "tcp:node7:", "tcp::1", "tcp:::1:70",
                            "tcp:a:65536", "tcp:a:-1", "tcp:a:1x", "tls:[]:1", "tls:[::1]"})
    EXPECT_THROW(ParseDeliveryAddress(wrong, "/"), Error) << wrong;
  const auto exposed = [](const char* text, std::optional<bool> is_insecure) {
    try {
      CheckExposure(ParseDeliveryAddress(text, "/"), is_insecure);
      return false;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ExitCode::kPrivilege);
      EXPECT_EQ(error.fix().find("--insecure") != std::string::npos, is_insecure.has_value());
      return true;
    }
  };
  EXPECT_TRUE(exposed("tcp:0.0.0.0:1", false));
  EXPECT_TRUE(exposed("tcp:node7:1", false));
  EXPECT_TRUE(exposed("tcp:node7:1", {}));
  EXPECT_TRUE(exposed("tcp:[::]:1", false));
  EXPECT_FALSE(exposed("tcp:127.0.0.1:1", false));
  EXPECT_FALSE(exposed("tcp:[::1]:1", false));
  EXPECT_FALSE(exposed("tcp:localhost:1", false));
  EXPECT_FALSE(exposed("tls:0.0.0.0:1", false));
  EXPECT_FALSE(exposed("tcp:0.0.0.0:1", true));
}

}  // namespace
}  // namespace headrace::reader
