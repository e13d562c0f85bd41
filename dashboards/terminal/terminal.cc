#include "dashboards/terminal/terminal.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>

namespace headrace::dashboards {
namespace {

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

}  // namespace headrace::dashboards
