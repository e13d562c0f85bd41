// Turns cells into short texts, and lays out columns to a given width.
#pragma once
#include <string>
#include <vector>

#include "dashboards/report/report.h"

namespace headrace::dashboards {

// "98.0 %", "1.90 GB/s", "-" for unavailable (the reason is in a note under the table and in JSON).
std::string CellText(const Value& value);
bool IsNumber(const Value& value);

// Lines of the table, at most `width` columns wide; columns that do not fit are left out from the
// right and named in a last line.
std::vector<std::string> LayOut(const Table& table, int width);

// Words of `text` in lines of at most `width` characters.
std::vector<std::string> Wrap(const std::string& text, size_t width);

}  // namespace headrace::dashboards
