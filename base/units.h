// The only place that prints or parses quantities for people: 118 ms, 4.0 MiB, 1.9 GB/s, 46 %.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>

#include "base/quantity.h"

namespace headrace {

std::string FormatDuration(double ns);                             // "118 ms", "2.31 s", "740 ns"
std::string FormatBytes(double bytes);                             // binary: "4.00 MiB", "512 B"
std::string FormatRate(double per_second, std::string_view what);  // "1 260 rows/s", "51.8 krows/s"
std::string FormatBytesRate(double bytes_per_second);              // decimal: "1.90 GB/s"
std::string FormatPercent(
    double ratio);  // 0.46 -> "46.0 %"; below 0.1 % -> "<0.1 %" unless exactly 0
std::string FormatCount(double count);  // three significant digits with k, M, G
// Three significant digits; unavailable -> "unavailable (reason)"; estimates carry " (estimate)";
// an interval " [low, high]".
std::string Format(const Quantity& quantity);

// "10", "10s", "250ms", "2m", "1h30m", "7d", "5us", "7ns"; a bare number is seconds. Throws Error
// kUsage naming `what` for anything else, negative values included. Returns nanoseconds.
int64_t ParseDuration(std::string_view text, const std::string& what);
// "64MiB", "4G", "100 kB", "1024": binary for KiB/MiB/GiB/TiB and for bare K/M/G/T, decimal for
// kB/MB/GB/TB. Throws Error kUsage naming `what`. Returns bytes.
uint64_t ParseBytes(std::string_view text, const std::string& what);

// `word` as a shell takes it: quoted where it holds a blank or another character with a meaning.
// For printed commands: what a terminal would obey is spelled out ($'\x1b').
std::string ShellWord(const std::string& word);

}  // namespace headrace
