#include "dashboards/serve/http_message.h"

#include <nlohmann/json.hpp>

namespace headrace::dashboards {
namespace {

int HexDigit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

bool Decode(std::string_view text, bool plus_is_blank, std::string* out) {
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '%') {
      if (i + 2 >= text.size()) return false;
      const int high = HexDigit(text[i + 1]), low = HexDigit(text[i + 2]);
      if (high < 0 || low < 0) return false;
      *out += static_cast<char>(16 * high + low);
      i += 2;
    } else {
      *out += plus_is_blank && text[i] == '+' ? ' ' : text[i];
    }
  }
  return out->find('\0') == std::string::npos;
}

bool LeavesItsFolder(const std::string& path) {
  for (size_t begin = 0; begin <= path.size();) {
    const size_t end = std::min(path.find('/', begin), path.size());
    const std::string part = path.substr(begin, end - begin);
    if (part == "." || part == "..") return true;
    begin = end + 1;
  }
  return false;
}

}  // namespace

std::string HttpRequest::Header(const std::string& name) const {
  const auto found = headers.find(name);
  return found == headers.end() ? std::string() : found->second;
}

Target ParseTarget(const std::string& target) {
  Target parsed;
  if (target.empty() || target[0] != '/') return parsed;
  const size_t mark = target.find('?');
  if (!Decode(std::string_view(target).substr(0, mark), false, &parsed.path)) return parsed;
  if (parsed.path.find('\\') != std::string::npos || LeavesItsFolder(parsed.path)) return parsed;
  if (mark != std::string::npos) {
    std::string_view rest = std::string_view(target).substr(mark + 1);
    while (!rest.empty()) {
      const size_t end = std::min(rest.find('&'), rest.size());
      const std::string_view pair = rest.substr(0, end);
      rest.remove_prefix(std::min(end + 1, rest.size()));
      const size_t equals = std::min(pair.find('='), pair.size());
      std::string key, value;
      if (!Decode(pair.substr(0, equals), true, &key)) return parsed;
      if (!Decode(pair.substr(std::min(equals + 1, pair.size())), true, &value)) return parsed;
      if (!key.empty()) parsed.query[key] = value;
    }
  }
  parsed.valid = true;
  return parsed;
}

HttpResponse ErrorResponse(int status, const std::string& what, const std::string& where,
                           const std::string& fix) {
  const nlohmann::ordered_json json = {{"error", {{"what", what}, {"where", where}, {"fix", fix}}}};
  HttpResponse response;
  response.status = status;
  response.body = json.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
  return response;
}

HttpResponse NotAllowed(const std::string& allowed, const std::string& what,
                        const std::string& where) {
  HttpResponse response = ErrorResponse(405, what, where);
  response.headers.push_back({"Allow", allowed});
  return response;
}

}  // namespace headrace::dashboards
