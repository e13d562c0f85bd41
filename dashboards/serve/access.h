// Who may ask the server: this machine's own pages alone, unless it was told otherwise.
//
// A page of another origin can make a browser send requests to localhost, under a name of its own
// that resolves to it ("DNS rebinding") or across origins. So the Host header must be a name of
// this server, the Origin, where a browser sends one, must be the same, and what changes something
// or runs a question must be JSON, which no form can send.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "dashboards/serve/http_message.h"

namespace headrace::dashboards {

struct AccessRules {
  std::vector<std::string> hosts = {"localhost", "127.0.0.1", "[::1]"};  // names without a port
  uint16_t port = 0;
  std::string token = "";  // empty: none is asked for

  // Whether a request needs the token before anything but pages is answered.
  bool NeedsToken() const { return !token.empty(); }
};

// The refusal of a request; nothing where it may be answered. Loopback names are taken with any
// port, as a tunnel may have another than the server: it is the name that stops rebinding. 403 for
// a foreign host or origin, 401 for a missing or wrong token (pages and their assets need none:
// they ask for it), 405 for methods that nothing has, 415 for a POST that is not JSON.
std::optional<HttpResponse> Refuse(const HttpRequest& request, const std::string& path,
                                   const AccessRules& rules);

// Exchanges a token for a cookie, so that an event stream, which has no headers of its own, may be
// opened: 204 with Set-Cookie, else 401. The body is {"token": "..."}.
HttpResponse OpenSession(const HttpRequest& request, const AccessRules& rules);

// Compares without telling by its time where the two differ.
bool SameSecret(const std::string& a, const std::string& b);

// 32 random bytes in hexadecimal. Throws Error kFailure where the kernel gives none.
std::string MakeToken();

// Headers of every answer: what a page may load (itself alone, no inline script or style), and that
// it is shown in no other page.
const std::vector<std::pair<std::string, std::string>>& SafetyHeaders();

}  // namespace headrace::dashboards
