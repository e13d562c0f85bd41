// A request and its answer, free of sockets, so that what is answered is tested without them.
#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace headrace::dashboards {

struct HttpRequest {
  std::string method;                          // "GET"
  std::string target;                          // as sent: "/api/runs?q=a"
  std::map<std::string, std::string> headers;  // names in lower case; the last of equal names
  std::string body;

  // The header of that name in lower case; empty where there is none.
  std::string Header(const std::string& name) const;
};

struct HttpResponse {
  int status = 200;
  std::string type = "application/json";
  std::string body;
  std::vector<std::pair<std::string, std::string>> headers;
};

// The path and the query of a target, with %XX and '+' decoded. `valid` is false for a target that
// does not begin with '/', has a part ".." or ".", a broken %XX, or a zero byte.
struct Target {
  bool valid = false;
  std::string path;
  std::map<std::string, std::string> query;
};
Target ParseTarget(const std::string& target);

// {"error": {"what", "where", "fix"}}.
HttpResponse ErrorResponse(int status, const std::string& what, const std::string& where = "",
                           const std::string& fix = "");
// 405, with the methods that the address is asked by: "GET, HEAD".
HttpResponse NotAllowed(const std::string& allowed, const std::string& what,
                        const std::string& where);

}  // namespace headrace::dashboards
