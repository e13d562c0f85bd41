#include "base/units.h"

#include <fmt/format.h>

#include <cctype>
#include <charconv>
#include <cmath>

#include "base/error.h"

namespace headrace {
namespace {

// Three significant digits without an exponent for values below 1e6.
std::string ThreeDigits(double value) {
  const double magnitude = std::fabs(value);
  if (magnitude == 0) return "0";
  const int decimals = magnitude >= 99.95    ? 0
                       : magnitude >= 9.995  ? 1
                       : magnitude >= 0.9995 ? 2
                                             : 3;
  return fmt::format("{:.{}f}", value, decimals);
}

std::string Scaled(double value, double base, std::initializer_list<const char*> suffixes) {
  auto it = suffixes.begin();
  while (std::fabs(value) >= base * 0.9995 && it + 1 != suffixes.end()) {
    value /= base;
    ++it;
  }
  return ThreeDigits(value) + " " + *it;
}

struct Number {
  double value;
  std::string_view rest;
};

// A leading unsigned decimal number and what follows it; value is NaN when there is none.
Number LeadingNumber(std::string_view text) {
  double value = 0;
  if (text.empty() || !(std::isdigit(static_cast<unsigned char>(text[0])) || text[0] == '.'))
    return {NAN, text};
  const auto result =
      std::from_chars(text.data(), text.data() + text.size(), value, std::chars_format::fixed);
  if (result.ec != std::errc()) return {NAN, text};
  return {value, text.substr(result.ptr - text.data())};
}

std::string_view Unspace(std::string_view text) {
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  while (!text.empty() && text.back() == ' ') text.remove_suffix(1);
  return text;
}

// $'...', as bash, zsh, ksh and POSIX 2024 read it, with every byte spelled out that is not plain.
std::string EscapedWord(const std::string& word) {
  std::string out = "$'";
  for (const char c : word) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '\'' || c == '\\') out += '\\';
    out += byte >= 0x20 && byte < 0x7F ? std::string(1, c) : fmt::format("\\x{:02x}", byte);
  }
  return out + "'";
}

}  // namespace

std::string FormatDuration(double ns) {
  const double magnitude = std::fabs(ns);
  if (magnitude < 999.5) return ThreeDigits(ns) + " ns";
  if (magnitude < 999.5e3) return ThreeDigits(ns / 1e3) + " us";
  if (magnitude < 999.5e6) return ThreeDigits(ns / 1e6) + " ms";
  if (magnitude < 120e9) return ThreeDigits(ns / 1e9) + " s";
  if (magnitude < 7200e9) return ThreeDigits(ns / 60e9) + " min";
  return ThreeDigits(ns / 3600e9) + " h";
}

std::string FormatBytes(double bytes) {
  if (std::fabs(bytes) < 1024) return fmt::format("{:.0f} B", bytes);
  return Scaled(bytes / 1024, 1024, {"KiB", "MiB", "GiB", "TiB", "PiB"});
}

std::string FormatRate(double per_second, std::string_view what) {
  std::string text = FormatCount(per_second);
  return fmt::format("{} {}/s", text, what);
}

std::string FormatBytesRate(double bytes_per_second) {
  return Scaled(bytes_per_second, 1000, {"B/s", "kB/s", "MB/s", "GB/s", "TB/s"});
}

std::string FormatPercent(double ratio) {
  const double percent = ratio * 100;
  if (percent != 0 && std::fabs(percent) < 0.1) return percent > 0 ? "<0.1 %" : ">-0.1 %";
  return fmt::format("{:.{}f} %", percent, std::fabs(percent) >= 99.95 ? 0 : 1);
}

std::string FormatCount(double count) {
  if (std::fabs(count) < 10000)
    return std::fabs(count) >= 1000 ? fmt::format("{:.0f}", count) : ThreeDigits(count);
  std::string text = Scaled(count / 1000, 1000, {"k", "M", "G", "T"});
  return text;
}

std::string Format(const Quantity& quantity) {
  if (!quantity.available()) return "unavailable (" + quantity.reason() + ")";
  auto print = [&](double v) -> std::string {
    switch (quantity.unit()) {
      case Unit::kRatio:
        return FormatPercent(v);
      case Unit::kNanoseconds:
        return FormatDuration(v);
      case Unit::kBytes:
        return FormatBytes(v);
      case Unit::kBytesPerSecond:
        return FormatBytesRate(v);
      case Unit::kRowsPerSecond:
        return FormatRate(v, "rows");
      case Unit::kPerSecond:
        return FormatCount(v) + "/s";
      case Unit::kCores:
        return ThreeDigits(v) + " cores";
      case Unit::kRows:
        return FormatCount(v) + " rows";
      case Unit::kCount:
      case Unit::kNone:
        return FormatCount(v);
    }
    return {};
  };
  std::string text = print(quantity.value());
  if (quantity.has_interval())
    text += fmt::format(" [{}, {}]", print(quantity.low()), print(quantity.high()));
  if (quantity.source() == Source::kEstimate) text += " (estimate)";
  return text;
}

int64_t ParseDuration(std::string_view text, const std::string& what) {
  const auto fail = [&]() -> Error {
    return Error(ExitCode::kUsage,
                 fmt::format("'{}' is not a duration", Printable(std::string(text), 40)), what,
                 "try 10s, 250ms, 2m, 1h30m or 7d");
  };
  std::string_view left = Unspace(text);
  if (left.empty()) throw fail();
  double total = 0;
  while (!left.empty()) {
    const Number number = LeadingNumber(left);
    if (std::isnan(number.value)) throw fail();
    left = number.rest;
    size_t letters = 0;
    while (letters < left.size() && std::isalpha(static_cast<unsigned char>(left[letters])))
      ++letters;
    const std::string_view unit = left.substr(0, letters);
    left.remove_prefix(letters);
    double scale;
    if (unit == "ns")
      scale = 1;
    else if (unit == "us")
      scale = 1e3;
    else if (unit == "ms")
      scale = 1e6;
    else if (unit == "s" || (unit.empty() && left.empty()))
      scale = 1e9;
    else if (unit == "m" || unit == "min")
      scale = 60e9;
    else if (unit == "h")
      scale = 3600e9;
    else if (unit == "d")
      scale = 86400e9;
    else
      throw fail();
    total += number.value * scale;
  }
  if (!(total < 9.2e18)) throw fail();
  return static_cast<int64_t>(std::llround(total));
}

uint64_t ParseBytes(std::string_view text, const std::string& what) {
  const auto fail = [&]() -> Error {
    return Error(ExitCode::kUsage,
                 fmt::format("'{}' is not a size in bytes", Printable(std::string(text), 40)), what,
                 "try 64MiB, 4G or 1048576");
  };
  const Number number = LeadingNumber(Unspace(text));
  if (std::isnan(number.value)) throw fail();
  const std::string_view unit = Unspace(number.rest);
  constexpr std::string_view kPrefixes = "KMGTP";
  double scale = 1;
  if (!unit.empty() && unit != "B") {
    const size_t power =
        kPrefixes.find(static_cast<char>(std::toupper(static_cast<unsigned char>(unit[0]))));
    if (power == std::string_view::npos) throw fail();
    const std::string_view tail = unit.substr(1);
    if (tail == "B")
      scale = std::pow(1000.0, power + 1.0);
    else if (tail.empty() || tail == "iB" || tail == "i")
      scale = std::pow(1024.0, power + 1.0);
    else
      throw fail();
  }
  const double bytes = number.value * scale;
  if (!(bytes < 9.2e18)) throw fail();
  return static_cast<uint64_t>(std::llround(bytes));
}

std::string ShellWord(const std::string& word) {
  constexpr std::string_view kPlain = "-_./=:,+@%^";
  bool plain = !word.empty();
  for (const char c : word) {
    const unsigned char byte = static_cast<unsigned char>(c);
    plain = plain && (std::isalnum(byte) || byte > 127 || kPlain.find(c) != kPlain.npos);
  }
  if (Printable(word, SIZE_MAX) != word) return EscapedWord(word);
  if (plain) return word;
  std::string out = "'";
  for (const char c : word) out += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return out + "'";
}

}  // namespace headrace
