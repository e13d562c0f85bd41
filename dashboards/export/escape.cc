#include "dashboards/export/escape.h"

#include <fmt/format.h>

#include <cctype>
#include <cstdint>

#include "base/terminal_text.h"

namespace headrace::dashboards {

std::string Utf8(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (size_t at = 0; at < text.size();) {
    const size_t length = CodePointAt(text, at).length;
    out += length == 0 ? "\xef\xbf\xbd" : text.substr(at, length);
    at += length == 0 ? 1 : length;
  }
  return out;
}

std::string JsonString(std::string_view text) {
  std::string out = "\"";
  for (const char c : Utf8(text)) {
    switch (c) {
      case '"':
        out += "\\\"";
        break;
      case '\\':
        out += "\\\\";
        break;
      case '\n':
        out += "\\n";
        break;
      case '\t':
        out += "\\t";
        break;
      default:
        if (static_cast<uint8_t>(c) < 0x20 || c == 0x7f) {
          out += fmt::format("\\u{:04x}", static_cast<uint8_t>(c));
        } else {
          out += c;
        }
    }
  }
  return out + '"';
}

std::string CsvField(std::string_view text) {
  if (!text.empty() && text.find_first_of(",\"\r\n") == std::string_view::npos) {
    return std::string(text);
  }
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"') out += '"';
    out += c;
  }
  return out + '"';
}

std::string FoldedFrame(std::string_view text) {
  std::string out = Printable(std::string(text), SIZE_MAX);
  for (char& c : out) {
    if (c == ';') c = ':';
  }
  return out;
}

std::string MetricText(std::string_view text) {
  std::string out;
  for (const char c : Printable(std::string(text), SIZE_MAX)) {
    if (c == '\\' || c == '"') out += '\\';
    out += c;
  }
  return out;
}

std::string MetricName(std::string_view text) {
  std::string out;
  for (const char c : text) {
    out += std::isalnum(static_cast<unsigned char>(c)) ? c : '_';
  }
  if (out.empty() || !std::isalpha(static_cast<unsigned char>(out[0]))) out.insert(0, "m_");
  return out;
}

}  // namespace headrace::dashboards
