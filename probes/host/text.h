// Bounded reading of the small text files of /proc and /sys. A line counts only if it ends in a
// newline, and a number only if its whole field is a number: anything cut off or damaged is absent.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/ascii.h"  // NextLine
#include "probes/host.h"

namespace headrace::probes {

// Words of a line, separated by blanks and tabs; at most `limit` of them.
std::vector<std::string_view> Fields(std::string_view line, size_t limit = 64);
// The whole of `field` as a decimal (or hexadecimal) integer.
std::optional<int64_t> Integer(std::string_view field, int base = 10);
// The same, but a negative number is absent, too; for counters and sizes.
std::optional<int64_t> Count(std::string_view field, int base = 10);
// The number after `key` in lines "key number ..." or "key: number ..."; the first such line
// counts.
std::optional<int64_t> KeyedCount(std::string_view text, std::string_view key);
// A file of one line holding one integer. errno is EINVAL when it holds something else.
std::optional<int64_t> ReadInteger(const Host& host, const std::string& path);
std::optional<int64_t> ReadCount(const Host& host, const std::string& path);
// A file of one line, without its end.
std::optional<std::string> ReadWord(const Host& host, const std::string& path);
// The number N of a name "prefixN", as in node0 or cpu12.
std::optional<int64_t> NumberAfter(std::string_view name, std::string_view prefix);

// "open PATH: No such file or directory": why the last read of PATH failed, from errno; EINVAL
// means that its content was not understood.
std::string ReadFailure(const std::string& path);
// How to fix a refused read: more privileges if errno says so, else `otherwise`.
std::string ReadFix(const std::string& otherwise);

}  // namespace headrace::probes
