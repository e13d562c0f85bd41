#include "cli/command.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cmath>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>

#include "base/clock.h"
#include "base/error.h"

namespace headrace::cli {
namespace {

volatile std::sig_atomic_t interrupted = 0;
volatile std::sig_atomic_t interrupt_signal = 0, interrupt_from_terminal = 0;
volatile std::sig_atomic_t group_of_child = 0;
std::string program_name = "headrace";

void OnInterrupt(int signal_number, siginfo_t* info, void*) {
  if (interrupted) {
    // A second signal means "now": die by the signal itself, so that the parent sees the true
    // cause.
    if (group_of_child > 0) kill(-group_of_child, SIGKILL);
    std::signal(signal_number, SIG_DFL);
    raise(signal_number);
  }
  interrupt_signal = signal_number;
  interrupt_from_terminal = info->si_code == SI_KERNEL;
  interrupted = 1;
}

}  // namespace

bool UseColor(int descriptor) {
  const char* term = std::getenv("TERM");
  const char* no_color = std::getenv("NO_COLOR");
  if (no_color != nullptr && *no_color != '\0') return false;
  if (term != nullptr && std::strcmp(term, "dumb") == 0) return false;
  return isatty(descriptor) == 1;
}

Progress::Progress(std::string title) : title_(Printable(title)) {
  const char* term = std::getenv("TERM");
  terminal_ = isatty(STDERR_FILENO) == 1 && !(term != nullptr && std::strcmp(term, "dumb") == 0);
}

Progress::~Progress() {
  if (terminal_ && drawn_) std::fputs("\n", stderr);
}

void Progress::Update(double fraction, const std::string& note) {
  const int64_t now = MonotonicNs();
  const int64_t period_ns = terminal_ ? 100'000'000 : 2'000'000'000;
  if (last_ns_ == 0 && !terminal_)
    last_ns_ = now;  // a job shorter than the period prints its end only
  if (now - last_ns_ < period_ns) return;
  last_ns_ = now;
  if (terminal_) {
    constexpr int kWidth = 24;
    const int filled = static_cast<int>(fraction * kWidth + 0.5);
    std::string bar;
    for (int i = 0; i < kWidth; ++i) bar += i < filled ? "#" : ".";
    std::fputs(fmt::format("\r\x1b[K{}  [{}]  {}", title_, bar, note).c_str(), stderr);
    std::fflush(stderr);
  } else {
    std::fputs(fmt::format("{}  {:.0f} %  {}\n", title_, fraction * 100, note).c_str(), stderr);
  }
  drawn_ = true;
}

void Progress::Finish(const std::string& note) {
  std::fputs(fmt::format("{}{}  {}\n", terminal_ ? "\r\x1b[K" : "", title_, note).c_str(), stderr);
  drawn_ = false;
}

std::string ProgramName() { return program_name; }

void SetProgramName(std::string argv0) {
  if (argv0.find('/') != std::string::npos) program_name = std::move(argv0);
}

std::string SelfPath() {
  char path[4096];
  const ssize_t length = readlink("/proc/self/exe", path, sizeof path);
  if (length <= 0) throw ErrnoError(errno, "find this program's own path in", "/proc/self/exe");
  return std::string(path, static_cast<size_t>(length));
}

std::string DefaultDatabase() {
  const char* path = std::getenv("HEADRACE_DB");
  return path != nullptr && *path != '\0' ? path : "./headrace.db";
}

void InstallInterruptHandler() {
  struct sigaction action = {};
  action.sa_sigaction = OnInterrupt;
  action.sa_flags = SA_SIGINFO;
  sigemptyset(&action.sa_mask);
  sigaction(SIGINT, &action, nullptr);
  sigaction(SIGTERM, &action, nullptr);
}

bool Interrupted() { return interrupted != 0; }
int InterruptSignal() { return interrupt_signal; }
bool InterruptFromTerminal() { return interrupt_from_terminal != 0; }
void SetGroupOfChild(int group) { group_of_child = group; }

std::optional<Error> ErrorOf(const std::function<void()>& work) {
  try {
    work();
    return std::nullopt;
  } catch (const Error& error) {
    return error;
  } catch (const std::bad_alloc&) {
    return Error(ExitCode::kResources, "out of memory");
  } catch (const std::exception& error) {
    return Error(ExitCode::kFailure,
                 fmt::format("internal error: {}", Printable(error.what(), 500)));
  }
}

std::string Positive(const std::string& text) {
  char* end = nullptr;
  const double value = std::strtod(text.c_str(), &end);
  if (!text.empty() && *end == '\0' && value > 0 && std::isfinite(value)) return "";
  return "'" + Printable(text, 60) + "' is not a number above 0";
}

}  // namespace headrace::cli
