// A job of the preprocessing service, as `headrace report --fleet` says it, and the jobs there are.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <nlohmann/json.hpp>

#include "analysis/fleet/job_findings.h"
#include "analysis/run/read_job.h"
#include "base/units.h"
#include "dashboards/job_report.h"
#include "dashboards/serve/site.h"

namespace headrace::dashboards {
namespace {

using Json = nlohmann::ordered_json;

constexpr size_t kMostJobs = 200;

const char* SeverityKey(Severity severity) {
  switch (severity) {
    case Severity::kGood:
      return "good";
    case Severity::kModerate:
      return "moderate";
    case Severity::kHigh:
      return "high";
    case Severity::kNone:
      break;
  }
  return "none";
}

Json FirstPageJson(const FirstPage& first) {
  Json lines = Json::array();
  for (const PageLine& line : first.lines)
    lines.push_back({{"label", line.label}, {"text", line.text}, {"command", line.command}});
  return {{"badge", first.badge},
          {"severity", SeverityKey(first.severity)},
          {"verdict", first.verdict},
          {"conditions", first.conditions},
          {"lines", std::move(lines)}};
}

std::string WorkersAnswer(const analysis::JobFindings& f) {
  if (f.worker_figures.empty()) return "No worker has sent measurements.";
  if (!f.undecided.empty()) return fmt::format("Not judged: {}.", f.undecided);
  const analysis::JobShare& work = f.shares.back();
  // What lost workers would have made is no part of the others' time.
  const auto lost = std::find_if(f.shares.begin(), f.shares.end() - 1, [](const auto& one) {
    return one.limit != analysis::JobLimit::kFailures && one.share >= 0.02;
  });
  if (lost == f.shares.end() - 1)
    return fmt::format("{} of it is work.", FormatPercent(work.share));
  if (lost->limit == analysis::JobLimit::kDelivery && f.limit == analysis::JobLimit::kTrainers) {
    return fmt::format("{} of it is work; most of the rest waits until ranks take more.",
                       FormatPercent(work.share));
  }
  return fmt::format("{} of it is work; most of the rest goes to {}.", FormatPercent(work.share),
                     analysis::JobLimitName(lost->limit));
}

std::string RanksAnswer(const analysis::JobFindings& f) {
  if (!f.worst_stall) return "No rank has had a batch yet.";
  return fmt::format("Rank {} waits longest, {} of its time.", f.worst_rank,
                     FormatPercent(*f.worst_stall));
}

std::string EventsAnswer(const analysis::JobView& job) {
  if (job.intervals.empty() && job.events.empty())
    return "Unavailable: no dispatcher recorded the course of the job.";
  int64_t lost = 0, in_events = 0;
  for (const analysis::JobInterval& one : job.intervals) lost += one.lost;
  for (const analysis::JobEvent& one : job.events) in_events += one.kind == "worker_lost";
  lost = std::max(lost, in_events);  // an interval comes later, old events are left out
  return lost == 0
             ? std::string("No worker was lost with splits.")
             : fmt::format("{} worker{} lost with splits.", lost, lost == 1 ? " was" : "s were");
}

// How many workers there were, and what is left: over time.
Json CourseCard(const analysis::JobView& job, const analysis::JobFindings& f) {
  Json card = {{"question", "How did the job go on?"}};
  const auto known = [](const analysis::JobInterval& one) { return one.running_ns > 0; };
  if (std::none_of(job.intervals.begin(), job.intervals.end(), known)) {
    card["empty"] = "Unavailable: no dispatcher recorded the course of the job.";
    return card;
  }
  std::string text = fmt::format("On average {} workers served", FormatCount(f.workers));
  if (const auto wanted = job.intervals.back().wanted)
    text += fmt::format("; at the end, {} were wanted", *wanted);
  card["answer"] = text + ".";
  card["read"] = {"The number beside a name is the mean over the job.",
                  "Wanted are as many as let no rank wait, within the limits that were set."};
  return card;
}

Json CardsJson(const analysis::JobView& job, const analysis::JobFindings& f) {
  return {
      {"workers",
       {{"question", "Where does the workers' time go?"},
        {"answer", WorkersAnswer(f)},
        {"read",
         {"A bar is the time of one worker. No lease: it had nothing to work on. No room: a lane "
          "to a rank was full.",
          "Absent: it was stopped, or had no core."}}}},
      {"ranks",
       {{"question", "How long do ranks wait?"},
        {"answer", RanksAnswer(f)},
        {"read", {"A bar is the time of one rank from its first batch on."}}}},
      {"course", CourseCard(job, f)},
      {"events", {{"question", "What happened?"}, {"answer", EventsAnswer(job)}}}};
}

Json JobsJson(const std::vector<analysis::JobName>& jobs) {
  Json list = Json::array();
  for (const analysis::JobName& one : jobs) {
    if (list.size() == kMostJobs) break;
    list.push_back({{"job_id", one.job_id},
                    {"job", one.name},
                    {"state", one.state},
                    {"started_realtime_ns", one.started_realtime_ns},
                    {"members_count", one.members}});
  }
  return list;
}

HttpResponse FleetAnswer(Site& site, const HttpRequest&, const Target& target) {
  const std::string& database = site.cache().database();
  const std::vector<analysis::JobName> jobs = analysis::ListJobs(database);
  Json out = {{"schema", "headrace.fleet_page/1"},
              {"jobs", JobsJson(jobs)},
              {"job", nullptr},
              {"first", nullptr},
              {"cards", Json::object()}};
  int64_t id = jobs.empty() ? 0 : jobs.front().job_id;
  if (const std::string prefix = "/api/fleet/"; target.path.starts_with(prefix)) {
    const char* end = target.path.data() + target.path.size();
    const auto [rest, error] = std::from_chars(target.path.data() + prefix.size(), end, id);
    const bool is_there = std::any_of(
        jobs.begin(), jobs.end(), [&](const analysis::JobName& one) { return one.job_id == id; });
    if (error != std::errc() || rest != end || !is_there)
      return ErrorResponse(404, "there is no such job", "", "the newest one is at /fleet");
  }
  if (id == 0) {
    out["cards"]["none"] = {{"question", "What limits a job?"},
                            {"empty", "This file holds no job of the preprocessing service."},
                            {"command", "headrace serve --db headrace-fleet.db"}};
  } else {
    const analysis::JobView job = analysis::LoadJob(database, id);
    const analysis::JobFindings findings = analysis::JudgeJob(job);
    const JobPage page{job, findings, "headrace", " --db " + ShellWord(database)};
    out["job"] = Json::parse(JobJson(page));
    out["first"] = FirstPageJson(MakeJobReport(page).first);
    out["cards"] = CardsJson(job, findings);
  }
  HttpResponse response;
  response.body = out.dump(-1, ' ', false, Json::error_handler_t::replace);
  return response;
}

HR_ENDPOINT("/api/fleet", {.make = FleetAnswer, .below = true});

}  // namespace
}  // namespace headrace::dashboards
