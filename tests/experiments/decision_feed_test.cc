// The feed of decisions: who connects, who is slow, who goes away; and standard output.
#include "experiments/decision_feed.h"

#include <gtest/gtest.h>
#include <pty.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/clock.h"
#include "base/error.h"

namespace headrace::experiments {
namespace {

constexpr int64_t kSecond = 1'000'000'000;

class Folder {
 public:
  Folder() {
    std::string path = testing::TempDir() + "headrace-feed-XXXXXX";
    path_ = mkdtemp(path.data());
  }
  ~Folder() { std::filesystem::remove_all(path_); }
  std::string operator/(const std::string& name) const { return path_ + "/" + name; }

 private:
  std::string path_;
};

analysis::Decision Numbered(int index, size_t reason_bytes = 10) {
  analysis::Decision decision;
  decision.index = index;
  decision.reason = std::string(reason_bytes, 'x');
  return decision;
}

class Client {
 public:
  explicit Client(const std::string& path) {
    fd_ = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::memcpy(address.sun_path, path.data(), path.size());
    EXPECT_EQ(connect(fd_, reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0) << path;
    const timeval patience{20, 0};
    setsockopt(fd_, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
  }
  ~Client() { Close(); }
  void Close() {
    if (fd_ >= 0) close(fd_);
    fd_ = -1;
  }
  void StopWriting() { shutdown(fd_, SHUT_WR); }
  // The number of the next decision; nothing at the end.
  std::optional<int> Next() {
    size_t end;
    while ((end = text_.find('\n')) == std::string::npos) {
      char bytes[65536];
      const ssize_t n = recv(fd_, bytes, sizeof(bytes), 0);
      if (n <= 0) return std::nullopt;
      text_.append(bytes, static_cast<size_t>(n));
    }
    const nlohmann::json line = nlohmann::json::parse(text_.substr(0, end));
    text_.erase(0, end + 1);
    EXPECT_EQ(line["schema"], "headrace.decision/1");
    return line["decision"].get<int>();
  }

 private:
  int fd_ = -1;
  std::string text_;
};

TEST(DecisionFeed, EveryReaderGetsEveryDecisionAndWhoComesLaterTheLast) {
  const Folder folder;
  std::optional<Client> later;
  {
    DecisionFeed feed("unix:" + (folder / "s"));
    EXPECT_FALSE(feed.on_stdout());
    Client first(folder / "s"), second(folder / "s");
    feed.Take(Numbered(0));
    EXPECT_EQ(first.Next(), 0);
    EXPECT_EQ(second.Next(), 0);
    feed.Take(Numbered(1));
    EXPECT_EQ(first.Next(), 1);
    EXPECT_EQ(second.Next(), 1);
    later.emplace(folder / "s");
    EXPECT_EQ(later->Next(), 1);
    second.Close();
    feed.Take(Numbered(2));
    EXPECT_EQ(first.Next(), 2);
    EXPECT_EQ(later->Next(), 2);
    first.StopWriting();  // as `nc -U` does at the end of its input: it still reads
    feed.Take(Numbered(3));
    EXPECT_EQ(first.Next(), 3);
    feed.Take(Numbered(4));
    EXPECT_EQ(feed.dropped_readers(), 0u);
  }
  // What was told before the end arrives, then the end.
  EXPECT_EQ(later->Next(), 3);
  EXPECT_EQ(later->Next(), 4);
  EXPECT_EQ(later->Next(), std::nullopt);
  EXPECT_FALSE(std::filesystem::exists(folder / "s"));
}

TEST(DecisionFeed, ASlowReaderIsDroppedAndHoldsNobodyUp) {
  const Folder folder;
  DecisionFeed feed("unix:" + (folder / "s"));
  Client slow(folder / "s"), quick(folder / "s");
  feed.Take(Numbered(0));
  EXPECT_EQ(quick.Next(), 0);
  constexpr int kLines = 200;
  for (int i = 1; i <= kLines; ++i) {
    feed.Take(Numbered(i, 20'000));  // 4 MB in all
    EXPECT_EQ(quick.Next(), i);
  }
  for (int i = 0; i < 400 && feed.dropped_readers() == 0; ++i) {
    SleepUntilNs(MonotonicNs() + kSecond / 20);
  }
  EXPECT_EQ(feed.dropped_readers(), 1u);
  // What was on its way to it arrives, not all.
  int got = 0;
  while (slow.Next()) ++got;
  EXPECT_LT(got, kLines);
}

TEST(DecisionFeed, ThePathMustBeFreeOrLeftOver) {
  const Folder folder;
  const auto refused = [](const std::string& where) {
    try {
      DecisionFeed feed(where);
    } catch (const Error& e) {
      EXPECT_EQ(e.code(), ExitCode::kUsage) << e.what();
      EXPECT_FALSE(e.fix().empty());
      return true;
    }
    return false;
  };
  std::ofstream(folder / "file") << "mine";
  EXPECT_TRUE(refused("unix:" + (folder / "file")));
  std::string content;
  std::ifstream(folder / "file") >> content;
  EXPECT_EQ(content, "mine");
  {
    DecisionFeed feed("unix:" + (folder / "s"));
    struct stat status {};
    ASSERT_EQ(stat((folder / "s").c_str(), &status), 0);
    EXPECT_EQ(status.st_mode & 0777, 0600u);
    EXPECT_TRUE(refused("unix:" + (folder / "s")));
  }
  // One whose server was killed.
  const int fd = socket(AF_UNIX, SOCK_STREAM, 0);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  const std::string path = folder / "old";
  std::memcpy(address.sun_path, path.data(), path.size());
  ASSERT_EQ(bind(fd, reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0);
  close(fd);
  EXPECT_FALSE(refused("unix:" + path));
  for (const std::string where : {"", "tcp:1", "unix:", "stdout"}) EXPECT_TRUE(refused(where));
  EXPECT_TRUE(refused("unix:" + (folder / std::string(200, 'a'))));
}

// Standard output is a pipe meanwhile.
class Output {
 public:
  Output() {
    std::fflush(stdout);
    saved_ = dup(STDOUT_FILENO);
    EXPECT_EQ(pipe(ends_), 0);
    dup2(ends_[1], STDOUT_FILENO);
    close(ends_[1]);
  }
  void CloseReader() {
    if (ends_[0] >= 0) close(ends_[0]);
    ends_[0] = -1;
  }
  // All that was written; ends the writing.
  std::string Read() {
    dup2(saved_, STDOUT_FILENO);
    std::string text;
    char bytes[65536];
    for (ssize_t n; (n = read(ends_[0], bytes, sizeof(bytes))) > 0;) {
      text.append(bytes, static_cast<size_t>(n));
    }
    return text;
  }
  ~Output() {
    dup2(saved_, STDOUT_FILENO);
    close(saved_);
    CloseReader();
  }

 private:
  int ends_[2] = {-1, -1}, saved_ = -1;
};

TEST(DecisionFeed, StandardOutputIsALineADecision) {
  Output output;
  {
    DecisionFeed feed("-");
    for (int i = 0; i < 5; ++i) feed.Take(Numbered(i, 6000));  // longer than a pipe takes at once
  }
  const std::string text = output.Read();
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 5);
  std::istringstream lines(text);
  int expected = 0;
  for (std::string line; std::getline(lines, line);) {
    EXPECT_EQ(nlohmann::json::parse(line)["decision"], expected++);
  }
}

TEST(DecisionFeed, NoNameIsObeyedByATerminal) {
  int terminal = -1, program = -1;
  ASSERT_EQ(openpty(&terminal, &program, nullptr, nullptr, nullptr), 0);
  std::fflush(stdout);
  const int saved = dup(STDOUT_FILENO);
  dup2(program, STDOUT_FILENO);
  {
    DecisionFeed feed("-");
    analysis::Decision decision = Numbered(1);
    decision.reason = "right \u202e left \u009b2J";
    feed.Take(decision);
  }
  dup2(saved, STDOUT_FILENO);
  close(saved);
  close(program);
  std::string text;
  char bytes[4096];
  for (ssize_t n; (n = read(terminal, bytes, sizeof(bytes))) > 0;) {
    text.append(bytes, static_cast<size_t>(n));
  }
  close(terminal);
  EXPECT_NE(text.find("right \\u202e left \\u009b2J"), std::string::npos) << text;
  EXPECT_EQ(nlohmann::json::parse(text)["reason"], "right \u202e left \u009b2J");
}

TEST(DecisionFeed, AClosedOutputIsNotTheEndOfTheProgram) {
  Output output;
  output.CloseReader();
  DecisionFeed feed("-");
  feed.Take(Numbered(0));
  for (int i = 0; i < 400 && feed.lost_lines() == 0; ++i) {
    SleepUntilNs(MonotonicNs() + kSecond / 20);
  }
  EXPECT_EQ(feed.lost_lines(), 1u);
  feed.Take(Numbered(1));
  EXPECT_EQ(feed.lost_lines(), 2u);
}

TEST(DecisionFeed, AnOutputThatNobodyReadsDoesNotKeepItFromEnding) {
  Output output;
  const int64_t begin_ns = MonotonicNs();
  {
    DecisionFeed feed("-");
    for (int i = 0; i < 2000; ++i) feed.Take(Numbered(i, 1000));  // 2 MB into a pipe of 64 KiB
    EXPECT_GT(feed.lost_lines(), 0u);
  }
  EXPECT_LT(MonotonicNs() - begin_ns, 60 * kSecond);
}

}  // namespace
}  // namespace headrace::experiments
