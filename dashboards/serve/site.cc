#include "dashboards/serve/site.h"

#include <fmt/format.h>

#include <charconv>
#include <map>
#include <mutex>

#include "base/error.h"
#include "base/terminal_text.h"
#include "dashboards/pages/assets.h"

namespace headrace::dashboards {
namespace {

constexpr const char* kByGet = "GET, HEAD";
constexpr size_t kLeastCompressedBytes = 1400;  // one packet

int StatusOf(ExitCode code) {
  switch (code) {
    case ExitCode::kUsage:
      return 400;
    case ExitCode::kBadData:  // the database, or the run as it is stored
      return 503;
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

// The page itself stands at every address that is a view of it.
bool IsView(const std::string& path) {
  return path == "/" || path == "/sql" || path == "/compare" || path.starts_with("/run/") ||
         path == "/fleet" || path.starts_with("/compare/") || path.starts_with("/fleet/");
}

bool TakesGzip(const HttpRequest& request) {
  return request.Header("accept-encoding").find("gzip") != std::string::npos;
}

// Sent in full, or not at all to whoever has it already.
HttpResponse Tagged(const HttpRequest& request, const CachedAnswer& answer,
                    const std::string& tag) {
  HttpResponse response;
  response.headers.push_back({"ETag", tag});
  response.headers.push_back({"Cache-Control", "no-cache"});
  response.headers.push_back({"Vary", "Accept-Encoding"});
  if (request.Header("if-none-match") == tag) {
    response.status = 304;
    return response;
  }
  if (TakesGzip(request) && answer.body.size() > kLeastCompressedBytes) {
    response.body = answer.Gzip();
    response.headers.push_back({"Content-Encoding", "gzip"});
  } else {
    response.body = answer.body;
  }
  return response;
}

HttpResponse Asset(const HttpRequest& request, std::string_view text, const char* type) {
  struct Kept {
    CachedAnswer answer;
    std::string tag;
  };
  static std::mutex mutex;
  static std::map<const char*, Kept> kept;  // by the asset's place in the executable
  Kept* found = nullptr;
  {
    const std::lock_guard lock(mutex);
    found = &kept[text.data()];
    if (found->tag.empty()) {
      found->answer.body.assign(text);
      found->tag = fmt::format("\"{:016x}\"", std::hash<std::string_view>()(text));
    }
  }
  HttpResponse response = Tagged(request, found->answer, found->tag);
  response.type = type;
  return response;
}

// The run that an answer compares with, whose state changes the answer too.
std::optional<int64_t> OtherRunOf(const PageQuery& query) {
  const std::string text = query.Text("with", "");
  int64_t id = 0;
  const auto [rest, error] = std::from_chars(text.data(), text.data() + text.size(), id);
  if (text.empty() || error != std::errc() || rest != text.data() + text.size() || id < 0)
    return std::nullopt;
  return id;
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

Site::Pace Site::PaceOf(const std::string& path) {
  if (!path.starts_with("/api/") && path != "/metrics") return Pace::kAtOnce;
  if (path == "/api/sql") return Pace::kQuestion;
  const std::optional<RunPath> run = ParseRunPath(path);
  const PageAnswer* answer = run ? Registry<PageAnswer>::Global().Find(run->name) : nullptr;
  return answer != nullptr && answer->of_report ? Pace::kReport : Pace::kShort;
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
    if (const auto version = RunCache::VersionOf(store, id)) cache_.Load(id, *version);
  } catch (const std::exception&) {
    // Whoever asks for it is told.
  }
}

HttpResponse Site::Find(const HttpRequest& request, const Target& target) {
  const std::string& path = target.path;
  if (PaceOf(path) == Pace::kAtOnce && request.method == "POST") {
    return NotAllowed(kByGet, "pages are asked by GET", path);
  }
  if (path == "/app.js") return Asset(request, AppScript(), "text/javascript; charset=utf-8");
  if (path == "/style.css") return Asset(request, AppStyle(), "text/css; charset=utf-8");
  if (path == "/healthz") return Asset(request, "ok\n", "text/plain; charset=utf-8");
  if (IsView(path)) return Asset(request, AppPage(), "text/html; charset=utf-8");
  for (const auto& [name, endpoint] : Registry<Endpoint>::Global().entries()) {
    if (path != name && !(endpoint.below && path.starts_with(name + "/"))) continue;
    const std::string method = request.method == "HEAD" ? "GET" : request.method;
    if (method != endpoint.method) {
      return NotAllowed(std::string_view(endpoint.method) == "GET" ? kByGet : endpoint.method,
                        fmt::format("{} is asked by {}", name, endpoint.method), path);
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
    return NotAllowed(
        answer->takes_body ? "POST" : kByGet,
        fmt::format("{} is asked by {}", asked->name, answer->takes_body ? "POST" : "GET"),
        target.path);
  }
  collectors::ReadStore store(cache_.database());
  const std::optional<RunVersion> version = RunCache::VersionOf(store, asked->run_id);
  if (!version) {
    return ErrorResponse(404, fmt::format("there is no run {}", asked->run_id), target.path,
                         "the list of runs is at /");
  }
  const PageRun page(store, asked->run_id, [&] { return cache_.Load(asked->run_id, *version); });
  const PageQuery query{target.query, request.body};
  if (answer->takes_body) {
    HttpResponse response;
    response.body = answer->make(page, query);
    return response;
  }
  std::string state = version->text;
  if (const auto with = OtherRunOf(query)) {
    if (const auto other = RunCache::VersionOf(store, *with)) state += "-" + other->text;
  }
  // What an answer may be asked with; other words change nothing.
  std::string key = fmt::format("{} {} {}", state, asked->run_id, asked->name);
  for (const char* word : {"from", "to", "px", "kind", "stripe", "with", "file", "brief"})
    key += " " + query.Text(word, "");
  auto cached = cache_.Find(key);
  if (!cached) cached = cache_.Keep(key, answer->make(page, query));
  return Tagged(request, *cached, fmt::format("\"{}-{}\"", state, HEADRACE_VERSION));
}

}  // namespace headrace::dashboards
