#include "dashboards/terminal/screen.h"

#define NCURSES_WIDECHAR 1
#define NCURSES_NOMACROS 1
#include <curses.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <clocale>
#include <cstdio>
#include <cstdlib>
#include <cwchar>
#include <string>

#include "base/error.h"
#include "base/terminal_text.h"
#include "dashboards/terminal/text_columns.h"

namespace headrace::dashboards {
namespace {

// ---------------------------------------------------------------- a process that ends by a bug

constexpr int kFatalSignals[] = {SIGSEGV, SIGABRT, SIGBUS, SIGFPE, SIGILL};
termios terminal_before;
int terminal_fd = -1;

// Only what may be called in a signal handler: leaves the other screen, shows the cursor, plain
// text.
void OnFatalSignal(int number) {
  constexpr char kLeave[] = "\x1b[?1049l\x1b[?25h\x1b[0m\r\n";
  if (terminal_fd >= 0) {
    [[maybe_unused]] const ssize_t n = write(terminal_fd, kLeave, sizeof kLeave - 1);
    tcsetattr(terminal_fd, TCSANOW, &terminal_before);
  }
  signal(number, SIG_DFL);
  raise(number);
}

class FatalSignals {
 public:
  explicit FatalSignals(int fd) {
    if (tcgetattr(fd, &terminal_before) != 0) return;
    terminal_fd = fd;
    for (size_t i = 0; i < std::size(kFatalSignals); ++i) {
      struct sigaction action = {};
      action.sa_handler = OnFatalSignal;
      sigemptyset(&action.sa_mask);
      sigaction(kFatalSignals[i], &action, &before_[i]);
    }
  }
  ~FatalSignals() {
    if (terminal_fd < 0) return;
    for (size_t i = 0; i < std::size(kFatalSignals); ++i) {
      sigaction(kFatalSignals[i], &before_[i], nullptr);
    }
    terminal_fd = -1;
  }
  FatalSignals(const FatalSignals&) = delete;
  FatalSignals& operator=(const FatalSignals&) = delete;

 private:
  struct sigaction before_[std::size(kFatalSignals)] = {};
};

// ---------------------------------------------------------------- styles

enum ColorPair : short {
  kRedPair = 1,
  kBluePair,
  kYellowPair,
  kGoodPair,
  kModeratePair,
  kHighPair
};

bool StartColors() {
  if (has_colors() == FALSE || start_color() != OK) return false;
  const bool transparent = use_default_colors() == OK;
  const short background = transparent ? -1 : COLOR_BLACK;
  init_pair(kRedPair, COLOR_RED, background);
  init_pair(kBluePair, COLOR_BLUE, background);
  init_pair(kYellowPair, COLOR_YELLOW, background);
  init_pair(kGoodPair, COLOR_BLACK, COLOR_GREEN);
  init_pair(kModeratePair, COLOR_BLACK, COLOR_YELLOW);
  init_pair(kHighPair, COLOR_WHITE, COLOR_RED);
  return true;
}

attr_t AttributesOf(TextStyle style, bool color) {
  const auto pair = [&](short number, attr_t otherwise) {
    return color ? static_cast<attr_t>(COLOR_PAIR(number)) : otherwise;
  };
  switch (style) {
    case TextStyle::kPlain:
      return A_NORMAL;
    case TextStyle::kDim:
      return A_DIM;
    case TextStyle::kBold:
      return A_BOLD;
    case TextStyle::kLimit:
      return A_BOLD | pair(kRedPair, A_NORMAL);
    case TextStyle::kOwnTime:
      return pair(kBluePair, A_NORMAL);
    case TextStyle::kWants:
    case TextStyle::kWarning:
      return pair(kYellowPair, A_BOLD);
    case TextStyle::kGood:
      return pair(kGoodPair, A_REVERSE);
    case TextStyle::kModerate:
      return pair(kModeratePair, A_REVERSE);
    case TextStyle::kHigh:
      return A_BOLD | pair(kHighPair, A_REVERSE);
    case TextStyle::kNeutral:
      return A_REVERSE;
  }
  return A_NORMAL;
}

std::string Utf8Of(wint_t character) {
  char bytes[MB_LEN_MAX];
  std::mbstate_t state = {};
  const size_t count = std::wcrtomb(bytes, static_cast<wchar_t>(character), &state);
  return count == static_cast<size_t>(-1) ? std::string() : std::string(bytes, count);
}

Key KeyOf(int code, wint_t value) {
  if (code == KEY_CODE_YES) {
    switch (value) {
      case KEY_UP:
        return {Key::Kind::kUp};
      case KEY_DOWN:
        return {Key::Kind::kDown};
      case KEY_HOME:
        return {Key::Kind::kHome};
      case KEY_END:
        return {Key::Kind::kEnd};
      case KEY_ENTER:
        return {Key::Kind::kEnter};
      case KEY_BACKSPACE:
        return {Key::Kind::kBackspace};
      default:
        return {Key::Kind::kResize};  // KEY_RESIZE; others have no meaning and only redraw
    }
  }
  switch (value) {
    case '\r':
    case '\n':
      return {Key::Kind::kEnter};
    case 27:
      return {Key::Kind::kEscape};
    case 127:
    case '\b':
      return {Key::Kind::kBackspace};
    default:
      return {Key::Kind::kCharacter, Utf8Of(value)};
  }
}

}  // namespace

struct Screen::Terminal {
  // ncurses writes to a stream of its own: the program's is guarded against control sequences.
  explicit Terminal(bool wants_color) : fatal(STDIN_FILENO) {
    std::setlocale(LC_CTYPE, "");
    out = fdopen(fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3), "w");
    in = fdopen(fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 3), "r");
    if (out == nullptr || in == nullptr) {
      Close();
      throw ErrnoError(errno, "use", "the terminal");
    }
    // The size is the terminal's own, also while it changes, not that of $LINES and $COLUMNS.
    use_env(FALSE);
    use_tioctl(TRUE);
    screen = newterm(nullptr, out, in);
    if (screen == nullptr) {
      Close();
      const char* type = std::getenv("TERM");
      throw Error(ExitCode::kFailure,
                  "the terminal's type '" + Printable(type == nullptr ? "" : type, 40) +
                      "' is not known, or cannot move the cursor",
                  "$TERM", "set TERM, e.g. TERM=xterm, or use --once");
    }
    color = wants_color && StartColors();
    cbreak();
    noecho();
    nonl();
    curs_set(0);
    keypad(stdscr, TRUE);
    set_escdelay(50);
    nodelay(stdscr, TRUE);
  }
  ~Terminal() {
    endwin();
    delscreen(screen);
    Close();
  }
  Terminal(const Terminal&) = delete;
  Terminal& operator=(const Terminal&) = delete;

  void Close() {
    if (out != nullptr) fclose(out);
    if (in != nullptr) fclose(in);
  }

  FatalSignals fatal;
  FILE* out = nullptr;
  FILE* in = nullptr;
  SCREEN* screen = nullptr;
  bool color = false;
};

Screen::Screen(bool color) {
  if (isatty(STDIN_FILENO) != 1 || isatty(STDOUT_FILENO) != 1) {
    throw Error(ExitCode::kUsage, "needs a terminal on standard input and output", "",
                "use --once for one screen as text, or --json");
  }
  terminal_ = std::make_unique<Terminal>(color);
}

Screen::~Screen() = default;

size_t Screen::width() const { return static_cast<size_t>(std::max(1, getmaxx(stdscr))); }
size_t Screen::height() const { return static_cast<size_t>(std::max(1, getmaxy(stdscr))); }

void Screen::Show(const std::vector<StyledLine>& lines) {
  erase();
  const size_t most = width();
  for (size_t y = 0; y < std::min(lines.size(), height()); ++y) {
    wmove(stdscr, static_cast<int>(y), 0);
    size_t used = 0;
    for (const StyledText& part : lines[y].parts) {
      const size_t columns = TextColumns(part.text);
      if (used + columns > most) break;  // between two draws the terminal became narrower
      attr_t attributes = AttributesOf(part.style, terminal_->color);
      if (lines[y].selected) attributes |= A_REVERSE;
      attrset(static_cast<int>(attributes));
      addstr(part.text.c_str());
      used += columns;
    }
    if (lines[y].selected && used < most) {
      attrset(A_REVERSE);
      addstr(std::string(most - used, ' ').c_str());
    }
    attrset(A_NORMAL);
  }
  refresh();
}

// ncurses learns of another size by a signal only when it reads a key; here it is asked for.
void Screen::FollowSize() {
  winsize size = {};
  if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_row == 0 || size.ws_col == 0) return;
  if (is_term_resized(size.ws_row, size.ws_col) == FALSE) return;
  resizeterm(size.ws_row, size.ws_col);
  clearok(curscr, TRUE);
}

std::optional<Key> Screen::WaitForKey(int64_t wait_ns) {
  const auto pressed = [&]() -> std::optional<Key> {
    wint_t value = 0;
    const int code = get_wch(&value);
    if (code == ERR) return std::nullopt;
    return KeyOf(code, value);
  };
  // What ncurses has read already is not seen by poll.
  if (const auto key = pressed()) return key;
  pollfd polled = {STDIN_FILENO, POLLIN, 0};
  const auto wait_ms = static_cast<int>(std::clamp<int64_t>(wait_ns / 1'000'000, 0, 60'000));
  const int ready = poll(&polled, 1, wait_ms);
  int available = 0;
  const bool counted = ioctl(STDIN_FILENO, FIONREAD, &available) == 0;
  const bool hung_up = (polled.revents & (POLLHUP | POLLERR | POLLNVAL)) != 0;
  // Readable, and nothing to read: the other side is closed.
  if (ready > 0 && (hung_up || (counted && available == 0))) return Key{Key::Kind::kClosed};
  const auto key = pressed();
  FollowSize();
  return key;
}

}  // namespace headrace::dashboards
