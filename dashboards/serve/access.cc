#include "dashboards/serve/access.h"

#include <fmt/format.h>
#include <sys/random.h>

#include <algorithm>
#include <cerrno>
#include <nlohmann/json.hpp>

#include "base/ascii.h"
#include "base/error.h"

namespace headrace::dashboards {
namespace {

// "localhost:7070" -> "localhost"; "[::1]" stays.
std::string WithoutPort(const std::string& authority) {
  const size_t colon = authority.rfind(':');
  if (colon == std::string::npos || authority.find(']', colon) != std::string::npos) {
    return authority;
  }
  const std::string port = authority.substr(colon + 1);
  const bool digits = !port.empty() && port.size() <= 5 &&
                      port.find_first_not_of("0123456789") == std::string::npos;
  return digits ? authority.substr(0, colon) : authority;
}

// Whether `authority` ("localhost:7070") is one of the server's names.
bool IsOurs(const std::string& authority, const AccessRules& rules) {
  const std::string name = LowerCase(WithoutPort(authority));
  return std::any_of(rules.hosts.begin(), rules.hosts.end(),
                     [&](const std::string& host) { return name == LowerCase(host); });
}

// A browser sends the cookies of a host to all of its ports.
std::string CookieName(const AccessRules& rules) {
  return fmt::format("headrace_session_{}", rules.port);
}

std::string CookieOf(const std::string& header, const AccessRules& rules) {
  const std::string name = CookieName(rules) + "=";
  for (size_t begin = 0; begin < header.size();) {
    const size_t end = std::min(header.find(';', begin), header.size());
    std::string pair = header.substr(begin, end - begin);
    pair.erase(0, std::min(pair.find_first_not_of(' '), pair.size()));
    if (pair.starts_with(name)) return pair.substr(name.size());
    begin = end + 1;
  }
  return "";
}

bool HasToken(const HttpRequest& request, const AccessRules& rules) {
  const std::string bearer = "bearer ", header = request.Header("authorization");
  if (LowerCase(header.substr(0, bearer.size())) == bearer &&
      SameSecret(header.substr(bearer.size()), rules.token)) {
    return true;
  }
  return SameSecret(CookieOf(request.Header("cookie"), rules), rules.token);
}

}  // namespace

bool SameSecret(const std::string& a, const std::string& b) {
  // Volatile, so that the loop is not ended early.
  volatile unsigned char different = a.size() == b.size() ? 0 : 1;
  for (size_t i = 0; i < a.size(); ++i) {
    different = static_cast<unsigned char>(different | (a[i] ^ b[b.empty() ? 0 : i % b.size()]));
  }
  return different == 0 && !a.empty();
}

std::optional<HttpResponse> Refuse(const HttpRequest& request, const std::string& path,
                                   const AccessRules& rules) {
  if (!IsOurs(request.Header("host"), rules)) {
    return ErrorResponse(403, "this server does not answer to that name", "Host",
                         "open the address that 'headrace serve' printed");
  }
  const std::string origin = request.Header("origin");
  // A page of this server has its own host and port as its origin.
  if (!origin.empty() && LowerCase(origin) != "http://" + LowerCase(request.Header("host"))) {
    return ErrorResponse(403, "another site's page may not ask", "Origin",
                         "open the address that 'headrace serve' printed");
  }
  if (request.method != "GET" && request.method != "HEAD" && request.method != "POST") {
    return NotAllowed("GET, HEAD, POST", "only GET and POST are answered",
                      request.method.substr(0, 20));
  }
  if (request.method == "POST") {
    std::string type = LowerCase(request.Header("content-type"));
    type = type.substr(0, type.find(';'));
    if (type != "application/json") {
      return ErrorResponse(415, "a question must be JSON", "Content-Type",
                           "send Content-Type: application/json");
    }
  }
  const bool open = !path.starts_with("/api/") && path != "/metrics";
  if (rules.NeedsToken() && !open && path != "/api/session" && !HasToken(request, rules)) {
    return ErrorResponse(401, "this server wants a token", "Authorization",
                         "open the address that 'headrace serve' printed, with #token=");
  }
  return std::nullopt;
}

HttpResponse OpenSession(const HttpRequest& request, const AccessRules& rules) {
  const auto json = nlohmann::json::parse(request.body, nullptr, false);
  std::string token;
  if (json.is_object() && json.contains("token") && json["token"].is_string()) {
    token = json["token"].get<std::string>();
  }
  if (rules.NeedsToken() && !SameSecret(token, rules.token)) {
    return ErrorResponse(401, "that is not the token", "token",
                         "copy the address that 'headrace serve' printed");
  }
  HttpResponse response;
  response.status = 204;
  if (rules.NeedsToken()) {
    response.headers.push_back(
        {"Set-Cookie",
         fmt::format("{}={}; HttpOnly; SameSite=Strict; Path=/", CookieName(rules), rules.token)});
  }
  return response;
}

std::string MakeToken() {
  unsigned char bytes[32];
  if (getrandom(bytes, sizeof bytes, 0) != static_cast<ssize_t>(sizeof bytes)) {
    throw ErrnoError(errno, "read", "random bytes");
  }
  std::string token;
  for (const unsigned char byte : bytes) token += fmt::format("{:02x}", byte);
  return token;
}

const std::vector<std::pair<std::string, std::string>>& SafetyHeaders() {
  static const std::vector<std::pair<std::string, std::string>> headers = {
      {"Content-Security-Policy",
       "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src "
       "'self' "
       "data:; frame-ancestors 'none'; base-uri 'none'; form-action 'none'"},
      {"X-Content-Type-Options", "nosniff"},
      {"Referrer-Policy", "no-referrer"},
      {"Cross-Origin-Opener-Policy", "same-origin"},
      {"Cross-Origin-Resource-Policy", "same-origin"}};
  return headers;
}

}  // namespace headrace::dashboards
