// Screen: the terminal as a full screen: paints styled lines and reads keys. The only unit that
// knows ncurses. One at a time, used by one thread.
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "dashboards/terminal/keys.h"
#include "dashboards/terminal/styled_text.h"

namespace headrace::dashboards {

class Screen {
 public:
  // Takes over the terminal on standard input and output. Until the object ends, nothing else may
  // be printed there. Signals that end the process at once because of a bug (SIGSEGV, SIGABRT and
  // the like) give the terminal back first; SIGINT and SIGTERM are the caller's. Throws Error
  // kUsage where standard input or output is not a terminal, and kFailure where the terminal's type
  // ($TERM) cannot do it.
  explicit Screen(bool color);
  // Gives the terminal back as it was.
  ~Screen();
  Screen(const Screen&) = delete;
  Screen& operator=(const Screen&) = delete;

  // Of the terminal now, in cells.
  size_t width() const;
  size_t height() const;
  // Shows these lines and nothing else; what does not fit is not shown.
  void Show(const std::vector<StyledLine>& lines);
  // The next key; nothing if none comes within `wait_ns`, or a signal does.
  std::optional<Key> WaitForKey(int64_t wait_ns);

 private:
  void FollowSize();

  struct Terminal;
  std::unique_ptr<Terminal> terminal_;
};

}  // namespace headrace::dashboards
