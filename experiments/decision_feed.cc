#include "experiments/decision_feed.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <vector>

#include "base/clock.h"
#include "base/error.h"
#include "base/terminal_text.h"
#include "experiments/decision_record.h"

namespace headrace::experiments {
namespace {

constexpr int64_t kLingerNs = 1'000'000'000;
constexpr size_t kMostLines = 1024;    // that wait for standard output
constexpr size_t kAtOnce = 4096;       // PIPE_BUF: what a pipe that is ready takes without blocking
constexpr size_t kMostReaders = 1000;  // descriptors are few

sockaddr_un AddressOf(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.empty() || path.size() >= sizeof(address.sun_path)) {
    throw Error(ExitCode::kUsage,
                path.empty() ? std::string("names no socket")
                             : fmt::format("a socket's path has at most {} bytes",
                                           sizeof(address.sun_path) - 1),
                "--feed", "try unix:/run/user/1000/headrace.sock");
  }
  std::memcpy(address.sun_path, path.data(), path.size());
  return address;
}

// A socket that nobody serves any more is left over.
bool IsLeftOver(const sockaddr_un& address) {
  struct stat status {};
  if (lstat(address.sun_path, &status) != 0 || !S_ISSOCK(status.st_mode)) return false;
  const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (fd < 0) return false;
  const bool refused =
      connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0 &&
      errno == ECONNREFUSED;
  close(fd);
  return refused;
}

// What may reach a terminal of a line: names are other programs'. The same JSON.
std::string Shown(const std::string& line) {
  TerminalFilter filter;
  const std::string most = filter.Pass(line);
  return most + filter.Finish();
}

}  // namespace

DecisionFeed::DecisionFeed(const std::string& where) {
  constexpr std::string_view kUnix = "unix:";
  if (where != "-") {
    if (!where.starts_with(kUnix)) {
      throw Error(ExitCode::kUsage,
                  fmt::format("'{}' is not a place to write to", Printable(where)), "--feed",
                  "say - for standard output, or unix:PATH");
    }
    path_ = where.substr(kUnix.size());
    Listen();
  }
  thread_ = std::thread([this] {
    // A reader that has gone is an error of write(), not the end of the pipeline.
    sigset_t pipe;
    sigemptyset(&pipe);
    sigaddset(&pipe, SIGPIPE);
    pthread_sigmask(SIG_BLOCK, &pipe, nullptr);
    if (on_stdout()) {
      Write();
    } else {
      Serve();
    }
  });
}

void DecisionFeed::Listen() {
  const sockaddr_un address = AddressOf(path_);
  if (IsLeftOver(address)) unlink(path_.c_str());
  listen_ = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (listen_ < 0) throw ErrnoError(errno, "make a socket", path_);
  wake_ = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  const auto fail = [&](const char* action) {
    const int error = errno;
    close(listen_);
    if (wake_ >= 0) close(wake_);
    if (error == EADDRINUSE) {
      throw Error(ExitCode::kUsage, "exists already", path_, "name another path for --feed");
    }
    throw ErrnoError(error, action, path_);
  };
  if (wake_ < 0) fail("watch");
  if (bind(listen_, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0) {
    fail("make the socket");
  }
  if (chmod(path_.c_str(), 0600) != 0 || listen(listen_, 64) != 0) {
    const int error = errno;
    unlink(path_.c_str());
    errno = error;
    fail("listen on");
  }
}

DecisionFeed::~DecisionFeed() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  Wake();
  thread_.join();
  if (listen_ >= 0) {
    close(listen_);
    close(wake_);
    unlink(path_.c_str());
  }
}

uint64_t DecisionFeed::dropped_readers() const {
  const std::lock_guard lock(mutex_);
  return dropped_;
}

uint64_t DecisionFeed::lost_lines() const {
  const std::lock_guard lock(mutex_);
  return lost_;
}

void DecisionFeed::Take(const analysis::Decision& decision) { Send(DecisionJson(decision) + "\n"); }

void DecisionFeed::Send(const std::string& line) {
  {
    const std::lock_guard lock(mutex_);
    last_ = line;
    if (on_stdout() && (closed_ || lines_.size() >= kMostLines)) {
      ++lost_;
      return;
    }
    lines_.push_back(line);
  }
  Wake();
}

void DecisionFeed::Wake() {
  more_.notify_one();
  const uint64_t one = 1;
  if (wake_ >= 0) [[maybe_unused]]
    const ssize_t n = write(wake_, &one, sizeof(one));
}

// ---- standard output ----------------------------------------------------------------------------

void DecisionFeed::Write() {
  const bool terminal = isatty(STDOUT_FILENO);
  std::unique_lock lock(mutex_);
  while (true) {
    more_.wait(lock, [&] { return stopping_ || !lines_.empty(); });
    if (lines_.empty()) return;
    const std::string line = std::move(lines_.front());
    lines_.pop_front();
    lock.unlock();
    const bool written = WriteLine(terminal ? Shown(line) : line);
    lock.lock();
    if (!written) {
      lost_ += 1 + lines_.size();
      lines_.clear();
      closed_ = true;
    }
  }
}

// Never waits in write() itself, so that a reader that sleeps does not keep the program from
// ending.
bool DecisionFeed::WriteLine(const std::string& line) {
  size_t at = 0;
  int64_t end_ns = 0;
  while (at < line.size()) {
    pollfd ready{STDOUT_FILENO, POLLOUT, 0};
    const int found = poll(&ready, 1, 100);
    if (found < 0 && errno != EINTR) return false;
    if (found > 0) {
      if ((ready.revents & POLLOUT) == 0) return false;
      const ssize_t n = write(STDOUT_FILENO, line.data() + at, std::min(line.size() - at, kAtOnce));
      if (n < 0 && errno != EINTR && errno != EAGAIN) return false;
      if (n > 0) at += static_cast<size_t>(n);
      continue;
    }
    const std::lock_guard lock(mutex_);
    if (!stopping_) continue;
    if (end_ns == 0) end_ns = MonotonicNs() + kLingerNs;
    if (MonotonicNs() > end_ns) return false;
  }
  return true;
}

// ---- socket -------------------------------------------------------------------------------------

bool DecisionFeed::Accept() {
  while (true) {
    const int fd = accept4(listen_, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (fd < 0) return errno != EMFILE && errno != ENFILE;
    if (readers_.size() >= kMostReaders) {
      close(fd);
      const std::lock_guard lock(mutex_);
      ++dropped_;
      continue;
    }
    readers_.push_back({fd, {}});
    const std::lock_guard lock(mutex_);
    // What is in lines_ comes to it with the others.
    if (lines_.empty()) readers_.back().waiting = last_;
  }
}

bool DecisionFeed::Drain(Reader* reader) {
  while (!reader->waiting.empty()) {
    const ssize_t n = send(reader->fd, reader->waiting.data(), reader->waiting.size(),
                           MSG_DONTWAIT | MSG_NOSIGNAL);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0 && errno != EAGAIN && errno != EWOULDBLOCK) return false;
    if (n < 0) break;
    reader->waiting.erase(0, static_cast<size_t>(n));
  }
  // What readers say is not listened to. One that has nothing more to say may still read.
  char said[512];
  ssize_t got = 1;
  while (!reader->silent && (got = recv(reader->fd, said, sizeof(said), MSG_DONTWAIT)) > 0) {
  }
  if (got == 0) reader->silent = true;
  pollfd state{reader->fd, 0, 0};
  return poll(&state, 1, 0) <= 0 || (state.revents & (POLLHUP | POLLERR)) == 0;
}

void DecisionFeed::Serve() {
  int64_t end_ns = 0;
  bool accepts = true;
  while (true) {
    // One who cannot be let in stays at the door: to watch it then would be to spin.
    std::vector<pollfd> watched = {{accepts ? listen_ : -1, POLLIN, 0}, {wake_, POLLIN, 0}};
    bool waiting = false;
    for (const Reader& reader : readers_) {
      const int wants = (reader.silent ? 0 : POLLIN) | (reader.waiting.empty() ? 0 : POLLOUT);
      waiting = waiting || !reader.waiting.empty();
      watched.push_back({reader.fd, static_cast<short>(wants), 0});
    }
    if (end_ns != 0 && (!waiting || MonotonicNs() > end_ns)) break;
    poll(watched.data(), watched.size(), end_ns != 0 ? 20 : 1000);
    uint64_t count = 0;
    [[maybe_unused]] const ssize_t n = read(wake_, &count, sizeof(count));
    std::deque<std::string> lines;
    accepts = Accept();
    {
      const std::lock_guard lock(mutex_);
      lines.swap(lines_);
      if (stopping_ && end_ns == 0) end_ns = MonotonicNs() + kLingerNs;
    }
    for (auto reader = readers_.begin(); reader != readers_.end();) {
      for (const std::string& line : lines) reader->waiting += line;
      bool stays = Drain(&*reader);
      if (stays && reader->waiting.size() > kMostWaiting) {
        stays = false;
        const std::lock_guard lock(mutex_);
        ++dropped_;
      }
      if (stays) {
        ++reader;
      } else {
        close(reader->fd);
        reader = readers_.erase(reader);
      }
    }
  }
  for (const Reader& reader : readers_) close(reader.fd);
  readers_.clear();
}

}  // namespace headrace::experiments
