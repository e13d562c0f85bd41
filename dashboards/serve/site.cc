#include "dashboards/serve/site.h"

#include <fmt/format.h>

#include <charconv>

#include "base/error.h"
#include "base/terminal_text.h"
#include "dashboards/serve/assets.h"

namespace headrace::dashboards {
namespace {

constexpr size_t kLeastCompressedBytes = 1400;  // one packet

int StatusOf(ExitCode code) {
  switch (code) {
    case ExitCode::kUsage:
      return 400;
    case ExitCode::kBadData:
      return 404;
    case ExitCode::kInconclusive:
      return 422;
    case ExitCode::kResources:
      return 507;
    case ExitCode::kFailure:
      return 503;
    default:
      return 500;
  }
}

HttpResponse Asset(std::string_view text, const char* type) {
  HttpResponse response;
  response.type = type;
  response.body.assign(text);
  response.headers.push_back({"Cache-Control", "no-cache"});
  return response;
}

// The page itself stands at every address that is a view of it.
bool IsView(const std::string& path) {
  return path == "/" || path == "/sql" || path == "/compare" || path.starts_with("/run/") ||
         path.starts_with("/compare/");
}

bool TakesGzip(const HttpRequest& request) {
  return request.Header("accept-encoding").find("gzip") != std::string::npos;
}

HttpResponse FromCache(const HttpRequest& request, const CachedAnswer& answer,
                       const std::string& tag) {
  HttpResponse response;
  response.headers.push_back({"ETag", tag});
  response.headers.push_back({"Cache-Control", "no-cache"});
  response.headers.push_back({"Vary", "Accept-Encoding"});
  if (TakesGzip(request) && answer.body.size() > kLeastCompressedBytes) {
    response.body = answer.Gzip();
    response.headers.push_back({"Content-Encoding", "gzip"});
  } else {
    response.body = answer.body;
  }
  return response;
}

}  // namespace

std::optional<RunPath> ParseRunPath(const std::string& path) {
  const std::string prefix = "/api/runs/";
  if (!path.starts_with(prefix)) return std::nullopt;
  const size_t end = path.find('/', prefix.size());
  if (end == std::string::npos) return std::nullopt;
  RunPath parsed;
  const char* last = path.data() + end;
  const auto [rest, error] = std::from_chars(path.data() + prefix.size(), last, parsed.run_id);
  if (error != std::errc() || rest != last || parsed.run_id < 0) return std::nullopt;
  parsed.name = path.substr(end + 1);
  return parsed;
}

Site::Site(std::string database, std::string program, std::string database_option,
           AccessRules rules)
    : cache_(std::move(database), std::move(program), std::move(database_option)),
      rules_(std::move(rules)) {}

bool Site::IsQuick(const std::string& path) {
  return !path.starts_with("/api/") && path != "/metrics";
}

HttpResponse Site::Answer(const HttpRequest& request) {
  const Target target = ParseTarget(request.target);
  if (!target.valid)
    return ErrorResponse(400, "the address is not one of this server", "the address");
  if (const auto refused = Refuse(request, target.path)) return *refused;
  try {
    return Find(request, target);
  } catch (const Error& error) {
    return ErrorResponse(StatusOf(error.code()), error.fact(), error.where(), error.fix());
  } catch (const std::bad_alloc&) {
    return ErrorResponse(507, "out of memory", target.path, "ask for less");
  } catch (const std::exception& error) {
    return ErrorResponse(500, std::string("internal error: ") + error.what(), target.path,
                         "please report it");
  }
}

void Site::Prepare(int64_t run_id) {
  try {
    collectors::ReadStore store(cache_.database());
    const int64_t id = run_id != 0 ? run_id : store.FindRun("latest");
    cache_.Load(id, RunCache::VersionOf(store, id));
  } catch (const std::exception&) {
    // Whoever asks for it is told.
  }
}

HttpResponse Site::Find(const HttpRequest& request, const Target& target) {
  const std::string& path = target.path;
  if (path == "/app.js") return Asset(AppScript(), "text/javascript; charset=utf-8");
  if (path == "/style.css") return Asset(AppStyle(), "text/css; charset=utf-8");
  if (path == "/healthz") return Asset("ok\n", "text/plain; charset=utf-8");
  if (IsView(path)) return Asset(AppPage(), "text/html; charset=utf-8");
  for (const auto& [name, endpoint] : Registry<Endpoint>::Global().entries()) {
    if (path != name && !(endpoint.below && path.starts_with(name + "/"))) continue;
    const std::string method = request.method == "HEAD" ? "GET" : request.method;
    if (method != endpoint.method) {
      return ErrorResponse(405, fmt::format("{} is asked by {}", name, endpoint.method), path);
    }
    return endpoint.make(*this, request, target);
  }
  return AnswerOfRun(request, target);
}

HttpResponse Site::AnswerOfRun(const HttpRequest& request, const Target& target) {
  const auto nothing = [&] {
    return ErrorResponse(404, "there is nothing at this address", Printable(target.path, 100),
                         "begin at /");
  };
  const std::optional<RunPath> asked = ParseRunPath(target.path);
  if (!asked) return nothing();
  const PageAnswer* answer = Registry<PageAnswer>::Global().Find(asked->name);
  if (answer == nullptr) return nothing();
  if (answer->takes_body != (request.method == "POST")) {
    return ErrorResponse(
        405, fmt::format("{} is asked by {}", asked->name, answer->takes_body ? "POST" : "GET"),
        target.path);
  }
  collectors::ReadStore store(cache_.database());
  const std::string version = RunCache::VersionOf(store, asked->run_id);
  if (version.empty()) {
    return ErrorResponse(404, fmt::format("there is no run {}", asked->run_id), target.path,
                         "the list of runs is at /");
  }
  const PageRun page(store, asked->run_id, [&] { return cache_.Load(asked->run_id, version); });
  if (answer->takes_body) {
    HttpResponse response;
    response.body = answer->make(page, {target.query, request.body});
    return response;
  }
  const std::string tag = fmt::format("\"{}-{}\"", version, HEADRACE_VERSION);
  if (request.Header("if-none-match") == tag) {
    HttpResponse same;
    same.status = 304;
    same.headers.push_back({"ETag", tag});
    return same;
  }
  const std::string key = version + " " + request.target;
  auto cached = cache_.Find(key);
  if (!cached) cached = cache_.Keep(key, answer->make(page, {target.query, ""}));
  return FromCache(request, *cached, tag);
}

}  // namespace headrace::dashboards
