// Site: the answer to a request, from assets, from what is said of runs (dashboards/pages), and
// from the endpoints of this folder. It knows no socket; any thread may ask.
#pragma once
#include <cstdint>
#include <string>

#include "base/registry.h"
#include "dashboards/pages/page_run.h"
#include "dashboards/serve/access.h"
#include "dashboards/serve/http_message.h"
#include "dashboards/serve/run_cache.h"

namespace headrace::dashboards {

class Site {
 public:
  Site(std::string database, std::string program, std::string database_option, AccessRules rules);

  // Never throws: what goes wrong is an answer with the status of its kind.
  HttpResponse Answer(const HttpRequest& request);
  // Makes the report of a run before somebody asks for it; 0: of the latest one. Never throws.
  void Prepare(int64_t run_id = 0);
  // How long an answer may take, and so which threads make it.
  enum class Pace {
    kAtOnce,   // needs no database
    kShort,    // reads views
    kReport,   // makes a run's report, if nobody did before
    kQuestion  // SQL that a person wrote
  };
  static Pace PaceOf(const std::string& path);
  // The refusal of a request that may not be answered.
  std::optional<HttpResponse> Refuse(const HttpRequest& request, const std::string& path) const {
    return dashboards::Refuse(request, path, rules_);
  }

  RunCache& cache() { return cache_; }
  const AccessRules& rules() const { return rules_; }
  void set_port(uint16_t port) { rules_.port = port; }

 private:
  HttpResponse Find(const HttpRequest& request, const Target& target);
  HttpResponse AnswerOfRun(const HttpRequest& request, const Target& target);

  RunCache cache_;
  AccessRules rules_;
};

// An endpoint that is not about one run. Throws Error as PageAnswer.
struct Endpoint {
  HttpResponse (*make)(Site& site, const HttpRequest& request, const Target& target) = nullptr;
  const char* method = "GET";
  bool below = false;  // also for paths below its own: /api/comparisons/3
};

#define HR_ENDPOINT(path, ...)                      \
  [[maybe_unused]] static const bool HR_REGISTRAR = \
      ::headrace::Registry<::headrace::dashboards::Endpoint>::Global().Add(path, __VA_ARGS__)

// "/api/runs/7/operators/course" -> 7 and "operators/course".
struct RunPath {
  int64_t run_id = 0;
  std::string name;
};
std::optional<RunPath> ParseRunPath(const std::string& path);

}  // namespace headrace::dashboards
