#include "base/terminal_text.h"

#include <fmt/format.h>

#include <cctype>
#include <optional>
#include <utility>

namespace headrace {
namespace {

unsigned char ByteAt(std::string_view text, size_t at) {
  return static_cast<unsigned char>(text[at]);
}

// The length in bytes of the control sequence at text[at], an ESC, if it is a colour or the erasure
// of a line; 0 if it is neither; nothing where the text ends too early to tell.
std::optional<size_t> ControlLength(std::string_view text, size_t at) {
  constexpr size_t kMaxBytes = 32;
  if (at + 1 == text.size()) return std::nullopt;
  if (text[at + 1] != '[') return 0;
  for (size_t i = at + 2; i < text.size() && i < at + kMaxBytes; ++i) {
    if (text[i] == 'm' || text[i] == 'K') return i + 1 - at;
    if (std::isdigit(ByteAt(text, i)) == 0 && text[i] != ';') return 0;
  }
  if (text.size() < at + kMaxBytes) return std::nullopt;
  return 0;
}

// Whether text[at] begins a character whose end is not there yet.
bool IsUnfinished(std::string_view text, size_t at) {
  const unsigned char lead = ByteAt(text, at);
  const size_t length = lead < 0xC2 ? 1 : lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : lead < 0xF5 ? 4 : 1;
  if (at + length <= text.size()) return false;
  for (size_t i = at + 1; i < text.size(); ++i) {
    if ((ByteAt(text, i) & 0xC0) != 0x80) return false;
  }
  return true;
}

}  // namespace

CodePoint CodePointAt(std::string_view text, size_t at) {
  const unsigned char lead = ByteAt(text, at);
  if (lead < 0x80) return {lead, 1};
  const size_t length = lead < 0xC2 ? 0 : lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : lead < 0xF5 ? 4 : 0;
  if (length == 0 || length > text.size() - at) return {};
  uint32_t value = lead & (0xFFU >> (length + 1));
  for (size_t i = 1; i < length; ++i) {
    const unsigned char byte = ByteAt(text, at + i);
    if ((byte & 0xC0) != 0x80) return {};
    value = value << 6 | (byte & 0x3FU);
  }
  // Longer than need be, halves of surrogate pairs, and past U+10FFFF.
  if ((length == 3 && value < 0x800) || (value >= 0xD800 && value < 0xE000) ||
      (length == 4 && value < 0x10000) || value > 0x10FFFF)
    return {};
  return {value, length};
}

bool IsObeyed(uint32_t c) {
  return c < 0x20 || (c >= 0x7F && c <= 0x9F) || c == 0x061C || (c >= 0x200B && c <= 0x200F) ||
         (c >= 0x2028 && c <= 0x202E) || (c >= 0x2060 && c <= 0x2069) || c == 0xFEFF;
}

std::string Printable(const std::string& text, size_t max_bytes) {
  std::string out;
  for (size_t i = 0; i < text.size();) {
    if (out.size() >= max_bytes) return out + "...";
    const CodePoint c = CodePointAt(text, i);
    if (c.length == 0 || (c.length == 1 && IsObeyed(c.value))) {
      out += fmt::format("\\x{:02x}", ByteAt(text, i));
      i += 1;
      continue;
    }
    if (IsObeyed(c.value)) {
      out += fmt::format("\\u{:04x}", c.value);
    } else {
      out.append(text, i, c.length);
    }
    i += c.length;
  }
  return out;
}

std::string TerminalFilter::Pass(std::string_view added) {
  const std::string text = std::exchange(held_, {}) + std::string(added);
  std::string out;
  out.reserve(text.size());
  for (size_t i = 0; i < text.size();) {
    const unsigned char byte = ByteAt(text, i);
    if ((byte >= 0x20 && byte < 0x7F) || byte == '\n') {
      out += text[i++];
      continue;
    }
    if (byte == 0x1B || byte == '\r') {
      // A carriage return is ours only before an erasure.
      const size_t escape = byte == '\r' ? i + 1 : i;
      std::optional<size_t> length;
      if (escape < text.size())
        length = text[escape] == 0x1B ? ControlLength(text, escape) : std::optional<size_t>(0);
      if (!length) {
        held_ = text.substr(i);
        return out;
      }
      if (*length > 0) {
        out.append(text, i, escape + *length - i);
        i = escape + *length;
        continue;
      }
    }
    if (IsUnfinished(text, i)) {
      held_ = text.substr(i);
      return out;
    }
    const CodePoint c = CodePointAt(text, i);
    if (c.length == 0) {
      out += fmt::format("\\x{:02x}", byte);
    } else if (IsObeyed(c.value)) {
      out += fmt::format("\\u{:04x}", c.value);
    } else {
      out.append(text, i, c.length);
    }
    i += c.length == 0 ? 1 : c.length;
  }
  return out;
}

std::string TerminalFilter::Finish() { return Printable(std::exchange(held_, {}), SIZE_MAX); }

}  // namespace headrace
