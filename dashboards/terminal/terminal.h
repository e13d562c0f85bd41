// The terminal that text is printed on: its size, and whether it has colours.
#pragma once
#include <cstdint>
#include <optional>

namespace headrace::dashboards {

// When output has colours: every command has --color.
enum class ColorMode : uint8_t { kAuto, kAlways, kNever };
void SetColorMode(ColorMode mode);
// stdout is data, stderr is talk. As --color says; else true when the stream is a terminal and
// NO_COLOR and TERM=dumb do not forbid.
bool UseColor(int descriptor);

// Columns and rows of the terminal on stream `descriptor` ($COLUMNS and $LINES first); 120 columns
// and no number of rows where it is none.
int TerminalWidth(int descriptor);
std::optional<int> TerminalRows(int descriptor);

}  // namespace headrace::dashboards
