// TomlDepth: refuses a TOML text that nests deeper than any file of ours, before the parser sees
// it. The parser makes a table of every part of a dotted key and takes them down by recursion: a
// key of 200,000 parts (400 KB) ends the process for want of stack.
#pragma once
#include <string>
#include <string_view>

#include "base/error.h"

namespace headrace {

// Dots in one key, and brackets open at once.
inline constexpr int kMostTomlDots = 32, kMostTomlBrackets = 32;

// Throws Error `code`, with `where` and the line, when a key outside texts and comments has more
// than kMostTomlDots dots or more than kMostTomlBrackets brackets are open. Says nothing of other
// mistakes. One pass, no allocation.
void CheckTomlDepth(std::string_view text, const std::string& where, ExitCode code);

}  // namespace headrace
