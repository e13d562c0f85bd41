#include <nlohmann/json.hpp>

#include "dashboards/job_report.h"
#include "dashboards/json_number.h"
#include "dashboards/report/wording.h"

namespace headrace::dashboards {
namespace {

using Json = nlohmann::ordered_json;

Json WholeOf(const std::optional<int64_t>& value) { return value ? Json(*value) : Json(); }

Json RanksJson(const JobPage& page) {
  Json ranks = Json::array();
  for (const analysis::RankFigures& one : page.findings.rank_figures) {
    const analysis::Member& member = page.job.members[one.member];
    ranks.push_back({{"rank", one.rank},
                     {"run_id", member.run_id},
                     {"host", member.host},
                     {"pid", member.pid},
                     {"stall_ratio", NumberOrNull(one.stall)},
                     {"rows_count", one.rows},
                     {"rows_per_second", one.rows_per_s},
                     {"wait_s", one.wait_s},
                     {"compute_s", one.compute_s},
                     {"absent_ratio", one.absent},
                     {"step_p99_ns", WholeOf(member.step_p99_ns)},
                     {"received_bytes", WholeOf(member.received_bytes)},
                     {"slow", one.is_slow}});
  }
  return ranks;
}

Json WorkersJson(const JobPage& page) {
  Json workers = Json::array();
  for (const analysis::WorkerFigures& one : page.findings.worker_figures) {
    const analysis::Member& member = page.job.members[one.member];
    workers.push_back({{"worker", member.number},
                       {"run_id", member.run_id},
                       {"host", member.host},
                       {"pid", member.pid},
                       {"state", member.state},
                       {"serving_s", one.serving_s},
                       {"rows_count", one.rows},
                       {"rows_per_second", one.rows_per_s},
                       {"working_ratio", one.working},
                       {"idle_ratio", one.idle},
                       {"no_room_ratio", one.no_room},
                       {"absent_ratio", one.absent},
                       {"busiest_stage", one.busiest_stage},
                       {"utilisation_ratio", one.utilisation},
                       {"blocked_ratio", NumberOrNull(one.blocked)},
                       {"throttled_ratio", NumberOrNull(one.throttled)},
                       {"runnable_ratio", NumberOrNull(one.runnable)},
                       {"cpu_cores", NumberOrNull(one.cpu_cores)},
                       {"straggler", one.is_straggler}});
  }
  return workers;
}

Json EventsJson(const JobPage& page) {
  Json events = Json::array();
  for (const analysis::JobEvent& one : page.job.events)
    events.push_back({{"at_ns", one.at_ns},
                      {"kind", one.kind},
                      {"role", one.role.empty() ? Json() : Json(one.role)},
                      {"number", one.role.empty() ? Json() : Json(one.number)},
                      {"splits_count", WholeOf(one.splits)},
                      {"text", one.text}});
  return events;
}

Json DecisionsJson(const JobPage& page) {
  Json decisions = Json::array();
  for (const analysis::DecisionRow& one : page.job.decisions) {
    Json row = {{"at_ns", one.at_ns}, {"action", one.action}, {"limited_by", one.limited_by},
                {"from", nullptr},    {"to", nullptr},        {"reason", one.reason}};
    for (const auto& change : one.changes) {
      row["from"] = change.from_text;
      row["to"] = change.to_text;
    }
    decisions.push_back(std::move(row));
  }
  return decisions;
}

// Of a long job several intervals together.
constexpr size_t kMostOfCourse = 1000;

std::vector<analysis::JobInterval> ShortCourse(const std::vector<analysis::JobInterval>& all) {
  const size_t together = (all.size() + kMostOfCourse - 1) / kMostOfCourse;
  std::vector<analysis::JobInterval> course;
  for (size_t i = 0; i < all.size(); ++i) {
    const analysis::JobInterval& one = all[i];
    if (i % together == 0) {
      course.push_back(one);
      continue;
    }
    analysis::JobInterval& to = course.back();
    to.duration_ns = one.start_ns + one.duration_ns - to.start_ns;
    for (int64_t analysis::JobInterval::*sum :
         {&analysis::JobInterval::running_ns, &analysis::JobInterval::leases,
          &analysis::JobInterval::lost, &analysis::JobInterval::serving_ns})
      to.*sum += one.*sum;
    if (one.wanted) to.wanted = one.wanted;
    if (one.left_rows) to.left_rows = one.left_rows;
  }
  return course;
}

Json CourseJson(const JobPage& page) {
  Json course = Json::array();
  for (const analysis::JobInterval& one : ShortCourse(page.job.intervals))
    course.push_back({{"start_ns", one.start_ns},
                      {"duration_ns", one.duration_ns},
                      {"workers", one.running_ns > 0 ? Json(static_cast<double>(one.serving_ns) /
                                                            static_cast<double>(one.running_ns))
                                                     : Json()},
                      {"wanted_count", WholeOf(one.wanted)},
                      {"leases_count", one.leases},
                      {"lost_count", one.lost},
                      {"left_rows_count", WholeOf(one.left_rows)}});
  return course;
}

Json VerdictJson(const JobPage& page) {
  const analysis::JobFindings& f = page.findings;
  if (!f.undecided.empty())
    return {{"decided", false}, {"reason", f.undecided}, {"fix", f.undecided_fix}};
  Json shares = Json::array();
  for (const analysis::JobShare& one : f.shares)
    shares.push_back({{"limit", analysis::JobLimitKey(one.limit)}, {"share_ratio", one.share}});
  return {{"decided", true},
          {"worst_rank", f.worst_rank},
          {"worst_stall_ratio", NumberOrNull(f.worst_stall)},
          {"worst_stall_interval", IntervalJson(f.stall_interval, 0.9)},
          {"mean_stall_ratio", NumberOrNull(f.mean_stall)},
          {"stall_grade", StallGradeKey(*f.worst_stall)},
          {"limit", analysis::JobLimitKey(f.limit)},
          {"member", f.member ? Json(MemberName(page.job.members[*f.member])) : Json()},
          {"probability", f.probability},
          {"share_ratio", f.share},
          {"fix", JobFix(page)},
          {"gain_ratio", NumberOrNull(f.gain)},
          {"then", f.next ? Json(analysis::JobLimitKey(*f.next)) : Json()},
          {"rows_per_second", f.rows_per_s},
          {"demand_rows_per_second", NumberOrNull(f.demand_rows_per_s)},
          {"workers_mean", f.workers},
          {"workers_needed", WholeOf(f.workers_needed)},
          {"lost_workers_count", NumberOrNull(f.lost_workers)},
          {"leased_again_rows_count", NumberOrNull(f.redone_rows)},
          {"worker_seconds_per_million_rows", f.worker_seconds_per_million_rows},
          {"cpu_seconds_per_million_rows", NumberOrNull(f.cpu_seconds_per_million_rows)},
          {"shares", std::move(shares)}};
}

}  // namespace

std::string JobJson(const JobPage& page) {
  const analysis::JobView& job = page.job;
  const Json out = {{"schema", "headrace.job/1"},
                    {"job", job.name},
                    {"job_id", job.job_id},
                    {"state", job.state},
                    {"mode", job.mode},
                    {"ranks_count", job.ranks},
                    {"rows_count", job.rows},
                    {"left_rows_count", WholeOf(job.left_rows)},
                    {"started_realtime_ns", job.started_realtime_ns},
                    {"duration_ns", job.duration_ns},
                    {"verdict", VerdictJson(page)},
                    {"ranks", RanksJson(page)},
                    {"workers", WorkersJson(page)},
                    {"course", CourseJson(page)},
                    {"decisions", DecisionsJson(page)},
                    {"decisions_left_out_count", page.job.decisions_left_out},
                    {"events", EventsJson(page)},
                    {"events_left_out_count", page.job.events_left_out}};
  return out.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace headrace::dashboards
