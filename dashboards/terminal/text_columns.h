// Columns of text on a terminal: how many cells a text takes, and texts cut or filled to a number
// of cells. Terminals give East Asian characters and pictures two cells, and combining marks none.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace headrace::dashboards {

// Cells of one character: 0, 1 or 2.
size_t ColumnsOf(uint32_t code_point);

// Cells of `text`, which is well-formed UTF-8 without control characters (Printable).
size_t TextColumns(std::string_view text);

// `text` filled with blanks to exactly `columns` cells. A text that is longer keeps its beginning
// and its end, with ".." between them, so that names that begin alike stay different.
std::string FitName(const std::string& text, size_t columns);

// `text` with blanks before it, for numbers. A text that is longer is returned as it is: no part of
// a number is ever cut off.
std::string RightAlign(const std::string& text, size_t columns);

// The words of `text` in lines of at most `columns` cells. A word that is longer, a path or a
// command, has a line of its own and is cut into pieces.
std::vector<std::string> WrapColumns(const std::string& text, size_t columns);

// `text` with every cell of a character beyond ASCII as "?", so that it is as wide as before.
std::string InAscii(const std::string& text);

}  // namespace headrace::dashboards
