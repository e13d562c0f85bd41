// Fuzzes what the server makes of an address, of headers and of a token's body: any bytes are
// decoded or refused, what is decoded leaves no folder, and no foreign name is ever let in.
//
// fuzz run: share=1 length=4096
// fuzz layers: base
// fuzz libs: fmt::fmt nlohmann_json::nlohmann_json
// fuzz sources: dashboards/serve/http_message.cc dashboards/serve/access.cc
#include <cstdint>
#include <string>

#include "base/check.h"
#include "dashboards/serve/access.h"

using namespace headrace;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  // Lines: target, then header values in this order, then the body.
  std::string parts[6];
  std::string text(reinterpret_cast<const char*>(data), size);
  for (std::string& part : parts) {
    const size_t end = std::min(text.find('\n'), text.size());
    part = text.substr(0, end);
    text.erase(0, std::min(end + 1, text.size()));
  }
  const dashboards::Target target = dashboards::ParseTarget(parts[0]);
  if (target.valid) {
    HR_CHECK(target.path.starts_with("/"), "a path");
    HR_CHECK(target.path.find("/../") == std::string::npos, "it leaves no folder");
    HR_CHECK(target.path.find('\0') == std::string::npos, "it ends where it ends");
  }
  const dashboards::AccessRules rules{.port = 7070, .token = "a secret of some length"};
  dashboards::HttpRequest request{
      size % 2 == 0 ? "GET" : "POST",
      parts[0],
      {{"host", parts[1]}, {"origin", parts[2]}, {"cookie", parts[3]}, {"content-type", parts[4]}},
      text};
  const auto refused = dashboards::Refuse(request, target.path, rules);
  if (!refused) {
    std::string name = parts[1].substr(0, 9);
    for (char& c : name) c = static_cast<char>(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c);
    HR_CHECK(name == "localhost" || name == "127.0.0.1" || name.starts_with("[::1]"),
             "only our own name is answered");
    HR_CHECK(parts[2].empty() || parts[2].size() == 7 + parts[1].size(), "only our own pages ask");
    HR_CHECK(!target.path.starts_with("/api/") || target.path == "/api/session" ||
                 parts[3].find(rules.token) != std::string::npos,
             "data needs the token");
  }
  const int status = dashboards::OpenSession(request, rules).status;
  HR_CHECK(status == 401 || text.find("secret") != std::string::npos ||
               text.find("\\u") != std::string::npos,
           "a session needs the token");
  return 0;
}
