#include "dashboards/terminal/progress.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "base/clock.h"
#include "base/terminal_text.h"
#include "dashboards/terminal/terminal.h"

namespace headrace::dashboards {

std::string ProgressLine(const std::string& title, double fraction, double left_s,
                         const std::string& note, int width) {
  constexpr int kBarWidth = 24;
  const double share = std::clamp(fraction, 0.0, 1.0);
  const int filled = static_cast<int>(std::lround(share * kBarWidth));
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

}  // namespace headrace::dashboards
