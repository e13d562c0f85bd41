#include "cli/command.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>

#include "base/clock.h"
#include "base/error.h"
#include "base/units.h"

namespace headrace::cli {
namespace {

volatile std::sig_atomic_t interrupted = 0;
volatile std::sig_atomic_t interrupt_signal = 0, interrupt_from_terminal = 0;
volatile std::sig_atomic_t group_of_child = 0;
std::string program_name = "headrace";
ColorMode color_mode = ColorMode::kAuto;

// A number above 0 in an environment variable.
std::optional<int> NumberIn(const char* variable) {
  const char* text = std::getenv(variable);
  const int value = text == nullptr ? 0 : std::atoi(text);
  return value > 0 ? std::optional<int>(value) : std::nullopt;
}

std::optional<winsize> SizeOf(int descriptor) {
  winsize size = {};
  if (isatty(descriptor) != 1 || ioctl(descriptor, TIOCGWINSZ, &size) != 0) return std::nullopt;
  return size;
}

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

void SetColorMode(ColorMode mode) { color_mode = mode; }

int TerminalWidth(int descriptor) {
  constexpr int kUsual = 120;
  if (const auto columns = NumberIn("COLUMNS")) return *columns;
  const auto size = SizeOf(descriptor);
  return size && size->ws_col > 0 ? size->ws_col : kUsual;
}

std::optional<int> TerminalRows(int descriptor) {
  const auto size = SizeOf(descriptor);
  if (!size) return std::nullopt;
  if (const auto rows = NumberIn("LINES")) return rows;
  return size->ws_row > 0 ? std::optional<int>(size->ws_row) : std::nullopt;
}

bool UseColor(int descriptor) {
  if (color_mode != ColorMode::kAuto) return color_mode == ColorMode::kAlways;
  const char* term = std::getenv("TERM");
  const char* no_color = std::getenv("NO_COLOR");
  if (no_color != nullptr && *no_color != '\0') return false;
  if (term != nullptr && std::strcmp(term, "dumb") == 0) return false;
  return isatty(descriptor) == 1;
}

std::string ProgressLine(const std::string& title, double fraction, double left_s,
                         const std::string& note, int width) {
  constexpr int kBarWidth = 24;
  const double share = std::clamp(fraction, 0.0, 1.0);
  const int filled = static_cast<int>(share * kBarWidth + 0.5);
  std::string bar = "  [";
  for (int i = 0; i < kBarWidth; ++i) bar += i < filled ? '#' : '.';
  bar += "]";
  const std::string left =
      fmt::format("  {:.0f} %{}", 100 * share,
                  left_s < 0 ? "" : fmt::format(", {:.0f} s left", std::ceil(left_s)));
  std::string line = title;
  // The last column stays free: some terminals wrap there.
  const auto most = static_cast<size_t>(std::max(20, width - 1));
  for (const std::string& part : {bar, left, note.empty() ? std::string() : "  " + note}) {
    if (line.size() + part.size() <= most) line += part;
  }
  if (line.size() > most) line.resize(most);
  return line;
}

Progress::Progress(std::string title) : title_(Printable(title)), begin_ns_(MonotonicNs()) {
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
  // From a twentieth of the work and half a second on, what is left can be told.
  const double used_s = static_cast<double>(now - begin_ns_) / 1e9;
  const double left_s =
      fraction > 0.05 && used_s > 0.5 ? used_s * std::max(0.0, 1 / fraction - 1) : -1;
  if (terminal_) {
    const std::string line =
        ProgressLine(title_, fraction, left_s, note, TerminalWidth(STDERR_FILENO));
    std::fputs(("\r\x1b[K" + line).c_str(), stderr);
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

TransientNote::TransientNote(const std::string& text) : drawn_(isatty(STDERR_FILENO) == 1) {
  if (!drawn_) return;
  const auto width = static_cast<size_t>(std::max(20, TerminalWidth(STDERR_FILENO) - 1));
  std::fputs(Printable(text, width).c_str(), stderr);
  std::fflush(stderr);
}

TransientNote::~TransientNote() {
  if (!drawn_) return;
  std::fputs("\r\x1b[K", stderr);
  std::fflush(stderr);
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
