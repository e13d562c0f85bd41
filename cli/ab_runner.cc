#include "cli/ab_runner.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "analysis/run_view.h"
#include "analysis/statistics.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/units.h"
#include "cli/command.h"
#include "collectors/child.h"
#include "collectors/store/store.h"

namespace headrace::cli {
namespace {

constexpr size_t kMostOut = 1 << 20;    // of a child's standard output
constexpr size_t kErrorTail = 1 << 14;  // the end of its standard error: where it says why
// What a child that was told to end has to do so, and to save what it recorded.
constexpr int64_t kEndWithinNs = 10'000'000'000;

struct Descriptor {
  int fd = -1;
  Descriptor() = default;
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  ~Descriptor() { Close(); }
  void Close() {
    if (fd >= 0) close(std::exchange(fd, -1));
  }
};

struct ChildEnd {
  int code = 0;  // as a shell gives it
  std::string out, error;
};

// Reads what is there; false at the end of the stream.
bool Drain(int fd, std::string* text, size_t most, bool keep_end) {
  char buffer[4096];
  for (;;) {
    const ssize_t got = read(fd, buffer, sizeof buffer);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return errno == EAGAIN;
    if (got == 0) return false;
    if (keep_end || text->size() < most) text->append(buffer, static_cast<size_t>(got));
    if (keep_end && text->size() > 2 * most) text->erase(0, text->size() - most);
  }
}

// In the child: only what may be called between fork and exec.
[[noreturn]] void Become(const std::vector<char*>& argv, pid_t parent, int out, int error) {
  prctl(PR_SET_PDEATHSIG, SIGTERM, 0, 0, 0);  // nothing is recorded for nobody
  if (getppid() != parent) _exit(125);
  setpgid(0, 0);
  signal(SIGINT, SIG_DFL);
  signal(SIGTERM, SIG_DFL);
  signal(SIGPIPE, SIG_DFL);
  const int null = open("/dev/null", O_RDWR);
  dup2(null, STDIN_FILENO);
  dup2(out >= 0 ? out : null, STDOUT_FILENO);
  dup2(error, STDERR_FILENO);
  execv(argv[0], argv.data());
  _exit(127);
}

// Runs `words` to its end, in a process group of its own: an interrupt is for all that it started,
// and what has not ended then is killed. Its standard input is empty, its output is kept, or
// dropped.
ChildEnd RunChild(const std::vector<std::string>& words, bool keep_output) {
  int out[2], error[2];
  if (pipe2(out, O_CLOEXEC | O_NONBLOCK) != 0) throw ErrnoError(errno, "make", "a pipe");
  Descriptor out_read, out_write, error_read, error_write;
  out_read.fd = out[0];
  out_write.fd = out[1];
  if (pipe2(error, O_CLOEXEC | O_NONBLOCK) != 0) throw ErrnoError(errno, "make", "a pipe");
  error_read.fd = error[0];
  error_write.fd = error[1];
  // Only our end may refuse to block: the child writes as to any pipe.
  for (const int fd : {out_write.fd, error_write.fd}) fcntl(fd, F_SETFL, 0);
  std::vector<char*> argv;
  for (const std::string& word : words) argv.push_back(const_cast<char*>(word.c_str()));
  argv.push_back(nullptr);
  const pid_t parent = getpid();
  const pid_t pid = fork();
  if (pid < 0) throw ErrnoError(errno, "start", words[0]);
  if (pid == 0) Become(argv, parent, keep_output ? out_write.fd : -1, error_write.fd);
  setpgid(pid, pid);  // whoever is first
  SetGroupOfChild(pid);
  out_write.Close();
  error_write.Close();
  Descriptor ended;
  ended.fd = static_cast<int>(syscall(SYS_pidfd_open, pid, 0));
  ChildEnd end;
  bool out_open = true, error_open = true;
  int64_t told_ns = 0;  // to end
  for (bool alive = true; alive;) {
    pollfd polled[3] = {{ended.fd, POLLIN, 0},
                        {out_open ? out_read.fd : -1, POLLIN, 0},
                        {error_open ? error_read.fd : -1, POLLIN, 0}};
    poll(polled, 3, ended.fd >= 0 ? 100 : 10);
    if (out_open) out_open = Drain(out_read.fd, &end.out, kMostOut, false);
    if (error_open) error_open = Drain(error_read.fd, &end.error, kErrorTail, true);
    if (Interrupted() && told_ns == 0) {
      told_ns = MonotonicNs();
      kill(-pid, InterruptSignal());
    }
    if (told_ns != 0 && MonotonicNs() - told_ns > kEndWithinNs) kill(-pid, SIGKILL);
    siginfo_t info = {};
    alive = waitid(P_PID, static_cast<id_t>(pid), &info, WEXITED | WNOHANG | WNOWAIT) == 0 &&
            info.si_pid == 0;
  }
  if (told_ns != 0)
    kill(-pid, SIGKILL);  // before it is reaped: the group's number is still its own
  SetGroupOfChild(0);
  int status = 0;
  while (waitpid(pid, &status, 0) < 0 && errno == EINTR) continue;
  // What is still in the pipes; another process may hold them open for long.
  if (out_open) Drain(out_read.fd, &end.out, kMostOut, false);
  if (error_open) Drain(error_read.fd, &end.error, kErrorTail, true);
  end.code = collectors::ShellStatus(status);
  return end;
}

std::string LastLine(const std::string& text) {
  size_t end = text.find_last_not_of(" \n\r\t");
  if (end == std::string::npos) return "";
  const size_t newline = text.rfind('\n', end);
  const size_t begin = newline == std::string::npos ? 0 : newline + 1;
  return text.substr(begin, end - begin + 1);
}

[[noreturn]] void Failed(const AbSide& side, const ChildEnd& end) {
  const std::string where = "side " + side.label;
  std::string line = LastLine(end.error);
  if (side.command.empty()) {
    if (line.rfind("headrace run: ", 0) == 0) line.erase(0, std::strlen("headrace run: "));
    if (line.empty()) line = fmt::format("headrace run ended with exit code {}", end.code);
    const bool known = end.code >= 1 && end.code <= 7;
    throw Error(known ? static_cast<ExitCode>(end.code) : ExitCode::kFailure, line, where);
  }
  if (line.rfind("headrace profile: ", 0) == 0) {
    line.erase(0, std::strlen("headrace profile: "));
    throw Error(
        end.code >= 1 && end.code <= 7 ? static_cast<ExitCode>(end.code) : ExitCode::kFailure, line,
        where);
  }
  // As sh: the command was not found, or cannot be executed.
  const bool missing = end.code == 126 || end.code == 127;
  throw Error(missing ? static_cast<ExitCode>(end.code) : ExitCode::kFailure,
              fmt::format("'{}' ended with exit code {}{}", Printable(side.command, 60), end.code,
                          line.empty() ? "" : ": " + Printable(line)),
              where, "a side has to end well to be compared");
}

class Runner {
 public:
  explicit Runner(const AbOptions& options) : options_(options), self_(SelfPath()) {}

  AbResult Run() {
    InstallInterruptHandler();
    const int64_t start = MonotonicNs();
    if (!options_.quiet) progress_.emplace("comparing");
    for (size_t i = 0; i < options_.warmup && !Interrupted(); ++i) {
      WarmUp(options_.a);
      if (!Interrupted()) WarmUp(options_.b);
    }
    AbResult result;
    const std::vector<bool> orders = AbOrders(options_.pairs, options_.seed);
    const int64_t first_pair = MonotonicNs();
    for (size_t i = 0; i < options_.pairs && !Interrupted(); ++i) {
      const int64_t now = MonotonicNs();
      const int64_t each = i > 0 ? (now - first_pair) / static_cast<int64_t>(i) : 0;
      if (options_.budget_ns > 0 && i > 0 && now - start + each > options_.budget_ns) {
        result.end = AbEnd::kBudget;
        break;
      }
      AbPair pair;
      pair.index = i;
      pair.b_first = orders[i];
      const bool first_done = RunSide(pair, pair.b_first);
      if (!first_done || !RunSide(pair, !pair.b_first)) break;
      result.pairs.push_back(pair);
      last_ = pair;
      if (options_.finished && !options_.finished(pair)) {
        result.end = AbEnd::kStopped;
        break;
      }
    }
    if (Interrupted()) result.end = AbEnd::kInterrupted;
    result.wall_ns = MonotonicNs() - start;
    if (progress_) {
      progress_->Finish(fmt::format("{}{} pair{} in {}", Interrupted() ? "stopped; " : "",
                                    result.pairs.size(), result.pairs.size() == 1 ? "" : "s",
                                    FormatDuration(static_cast<double>(result.wall_ns))));
    }
    return result;
  }

 private:
  std::vector<std::string> PipelineWords(const AbSide& side) const {
    std::vector<std::string> words = {self_, "run", side.pipeline, "--json", "--quiet"};
    if (options_.duration_ns > 0) {
      words.insert(words.end(), {"--duration", fmt::format("{}ns", options_.duration_ns)});
    }
    for (const std::string& setting : side.settings) words.insert(words.end(), {"--set", setting});
    words.insert(words.end(), side.arguments.begin(), side.arguments.end());
    return words;
  }

  void Prepare(const AbSide& side) const {
    if (options_.prepare.empty()) return;
    const ChildEnd end = RunChild({"/bin/sh", "-c", options_.prepare}, false);
    if (end.code == 0 || Interrupted()) return;
    const std::string line = LastLine(end.error);
    throw Error(ExitCode::kFailure,
                fmt::format("'{}' ended with exit code {}{}", Printable(options_.prepare, 60),
                            end.code, line.empty() ? "" : ": " + Printable(line)),
                "--prepare before side " + side.label);
  }

  void WarmUp(const AbSide& side) {
    if (progress_) progress_->Update(0, "warming up side " + side.label);
    Prepare(side);
    std::vector<std::string> words = {"/bin/sh", "-c", side.command};
    if (side.command.empty()) {
      words = PipelineWords(side);
      words.push_back("--no-record");
    }
    if (Interrupted()) return;
    const ChildEnd end = RunChild(words, false);
    if (end.code != 0 && !Interrupted()) Failed(side, end);
  }

  // False: interrupted.
  bool RunSide(AbPair& pair, bool is_b) {
    const AbSide& side = is_b ? options_.b : options_.a;
    if (progress_) {
      progress_->Update(static_cast<double>(2 * pair.index + (is_b == pair.b_first ? 0 : 1)) /
                            static_cast<double>(2 * options_.pairs),
                        fmt::format("pair {} of {}: side {}{}", pair.index + 1, options_.pairs,
                                    side.label, SoFar()));
    }
    Prepare(side);
    if (Interrupted()) return false;
    const std::string name = fmt::format("{}-{}-{}", options_.name, side.label, pair.index + 1);
    std::vector<std::string> words;
    if (side.command.empty()) {
      words = PipelineWords(side);
      words.insert(words.end(), {"--db", options_.database, "--name", name});
    } else {
      words = {self_, "profile", "--db", options_.database, "--name", name, "--quiet"};
      words.insert(words.end(), side.arguments.begin(), side.arguments.end());
      words.insert(words.end(), {"--", "sh", "-c", side.command});
    }
    const ChildEnd end = RunChild(words, side.command.empty());
    if (Interrupted() || (end.code == 130 && side.command.empty())) return false;
    if (end.code != 0) Failed(side, end);
    AbRun& run = is_b ? pair.b : pair.a;
    run.run_id = RunIdOf(side, end, name);
    collectors::RunStore(options_.database)
        .SetTags(run.run_id, fmt::format("compare {0} {0}-{1}", options_.name, side.label));
    run.figures =
        analysis::FiguresOf(analysis::LoadRun(options_.database, std::to_string(run.run_id)));
    return true;
  }

  int64_t RunIdOf(const AbSide& side, const ChildEnd& end, const std::string& name) const {
    if (!side.command.empty()) return collectors::ReadStore(options_.database).FindRun(name);
    const nlohmann::json said = nlohmann::json::parse(end.out, nullptr, false);
    if (said.is_object() && said.contains("run_id") && said["run_id"].is_number_integer())
      return said["run_id"].get<int64_t>();
    throw Error(ExitCode::kFailure, "the run was not recorded", "side " + side.label,
                "'headrace run' alone says why");
  }

  // What the last pair gave, for the progress line.
  std::string SoFar() const {
    if (!last_) return "";
    for (const analysis::Figure figure :
         {analysis::Figure::kRowsPerSecond, analysis::Figure::kElapsed}) {
      const analysis::Real a = last_->a.figures.Of(figure), b = last_->b.figures.Of(figure);
      if (!a || !b) continue;
      if (figure == analysis::Figure::kElapsed) {
        return fmt::format("; last A {}, B {}", FormatDuration(*a * 1e9), FormatDuration(*b * 1e9));
      }
      return fmt::format("; last A {}, B {}", FormatRate(*a, "rows"), FormatRate(*b, "rows"));
    }
    return "";
  }

  const AbOptions& options_;
  std::string self_;
  std::optional<Progress> progress_;
  std::optional<AbPair> last_;
};

}  // namespace

std::vector<bool> AbOrders(size_t pairs, uint64_t seed) {
  analysis::Random random(seed);
  std::vector<bool> orders(pairs);
  for (size_t i = 0; i < pairs; ++i) orders[i] = i % 2 == 0 ? random.Below(2) == 1 : !orders[i - 1];
  return orders;
}

AbResult RunPairs(const AbOptions& options) { return Runner(options).Run(); }

}  // namespace headrace::cli
