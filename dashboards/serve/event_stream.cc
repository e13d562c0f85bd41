#include "dashboards/serve/event_stream.h"

#include <fmt/format.h>

#include <charconv>
#include <nlohmann/json.hpp>

#include "base/clock.h"
#include "dashboards/sql_values.h"

namespace headrace::dashboards {
namespace {

constexpr int64_t kReportEveryNs = RunCache::kReportAgeNs;
constexpr int64_t kMostWindows = 3000;
// For a new viewer: what was recorded between its own question for the course and this stream.
constexpr int64_t kFirstWindows = 64;

// JSON has no line breaks of its own, so an event is one line of data.
std::string Event(const char* name, const std::string& data, const std::string& id = "") {
  return fmt::format("event: {}\n{}data: {}\n\n", name, id.empty() ? "" : "id: " + id + "\n", data);
}

std::string StateJson(const std::string& state) {
  return nlohmann::json({{"state", state}})
      .dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

}  // namespace

EventStream::EventStream(RunCache& cache, int64_t run_id, const std::string& last_id)
    : cache_(cache), run_id_(run_id) {
  int64_t after = 0;
  const char* end = last_id.data() + last_id.size();
  const auto [rest, error] = std::from_chars(last_id.data(), end, after);
  if (error == std::errc() && rest == end && after >= 0) {
    after_ns_ = after;
    begun_ = true;
  }
}

std::string EventStream::Next() {
  if (ended_) return "";
  collectors::ReadStore store(cache_.database());
  const collectors::SqlResult run =
      store.Query("SELECT state, duration_ns FROM run_summary WHERE run_id = ?1", {run_id_});
  if (run.rows.empty()) {
    ended_ = true;
    return Event("state", StateJson("removed"));
  }
  const std::string state = TextOf(run.rows[0][0]);
  const std::string version = fmt::format("{}", IntegerOf(run.rows[0][1])) + Printable(state, 20);
  std::string text;
  if (version != version_) {
    version_ = version;
    const collectors::SqlResult next = store.Query(
        "SELECT MIN(start_ns), MAX(start_ns) FROM (SELECT start_ns FROM step_interval WHERE run_id "
        "= ?1 AND start_ns > ?2 ORDER BY start_ns DESC LIMIT ?3)",
        {run_id_, after_ns_, begun_ ? kMostWindows : kFirstWindows});
    if (!next.rows.empty() && NumberOf(next.rows[0][0])) {
      const int64_t first = IntegerOf(next.rows[0][0]);
      after_ns_ = IntegerOf(next.rows[0][1]);
      const PageRun page(store, run_id_, [] { return std::shared_ptr<const LoadedRun>(); });
      const PageQuery query{
          {{"from", fmt::format("{:.9f}", static_cast<double>(first) / 1e9)}, {"px", "1000000"}},
          ""};
      text += Event("course", Registry<PageAnswer>::Global().Find("course")->make(page, query),
                    std::to_string(after_ns_));
    }
    begun_ = true;
    const int64_t now_ns = MonotonicNs();
    if (now_ns - reported_ns_ > kReportEveryNs || state != "recording") {
      reported_ns_ = now_ns;
      text += Event("report", nlohmann::json({{"version", version}}).dump());
    }
  }
  if (state != "recording") {
    ended_ = true;
    text += Event("state", StateJson(state));
  }
  return text;
}

}  // namespace headrace::dashboards
