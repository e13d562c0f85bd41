#include "analysis/fleet/plan_check.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "analysis/fleet/job_windows.h"
#include "base/units.h"

namespace headrace::analysis {
namespace {

constexpr uint64_t kCheckSeed = 1;
constexpr size_t kCheckDraws = 400;

Interval RateInterval(const JobView& job, double rows_per_s) {
  const JobWindows windows = MakeWindows(job);
  const double seconds = windows.end_s - windows.begin_s;
  Random random(kCheckSeed);
  std::vector<double> rates;
  for (size_t draw = 0; draw < kCheckDraws; ++draw) {
    double rows = 0;
    for (const RankSums& rank :
         SumOf(windows, BlockResample(windows.windows.size(), 2, random)).ranks)
      rows += rank.rows;
    rates.push_back(rows / seconds);
  }
  return IntervalAround(rows_per_s, rates, 0.9);
}

Interval NodesInterval(const NodesFile& nodes, const FleetPlan& plan) {
  double all = 0;
  for (size_t t = 0; t < nodes.types.size(); ++t)
    if (nodes.types[t].have > 0) all += nodes.types[t].have * plan.fits[t].full_rows_per_s;
  std::vector<double> rates;
  for (size_t draw = 0;; ++draw) {
    double rate = 0;
    for (size_t t = 0; t < nodes.types.size(); ++t) {
      if (nodes.types[t].have == 0) continue;
      if (draw >= plan.fits[t].full_draws.size()) return IntervalAround(all, rates, 0.9);
      rate += nodes.types[t].have * plan.fits[t].full_draws[draw];
    }
    rates.push_back(rate);
  }
}

// Of all nodes together, with what they share: what a row costs there is not known exactly either.
Interval PresentInterval(const NodesFile& nodes, const FleetPlan& plan) {
  Interval interval = NodesInterval(nodes, plan);
  for (const FleetBound& bound : plan.bounds) {
    if (bound.resource == FleetResource::kNodes) continue;
    interval.low = std::min(interval.low, bound.interval.low);
    interval.high = std::min(interval.high, bound.interval.high);
  }
  return interval;
}

// The cores of the hosts that workers ran on, ascending; nothing where one is not known.
std::optional<std::vector<double>> HostCores(const JobView& job,
                                             std::optional<double> Member::*cores) {
  std::map<std::string, double> most;
  for (const Member& member : job.members) {
    if (member.role != "worker") continue;
    if (!(member.*cores)) return std::nullopt;
    double& of_host = most[member.host];
    of_host = std::max(of_host, *(member.*cores));
  }
  std::vector<double> sorted;
  for (const auto& [host, of_host] : most) sorted.push_back(of_host);
  std::sort(sorted.begin(), sorted.end());
  return sorted;
}

// Why the hosts are not the nodes, by their cores; a node may be what a control group leaves of a
// host, and is where that was the limit. Empty where they are, or it is not known.
std::string OtherCores(const JobView& job, JobLimit limit, const NodesFile& nodes) {
  constexpr double kSame = 0.25;  // quotas are fractions
  std::vector<double> have;
  for (const NodeType& type : nodes.types)
    have.insert(have.end(), static_cast<size_t>(type.have), type.cores);
  std::sort(have.begin(), have.end());
  const auto is_of = [&](const std::vector<double>& hosts) {
    return std::equal(hosts.begin(), hosts.end(), have.begin(), have.end(),
                      [](double a, double b) { return std::abs(a - b) <= kSame; });
  };
  const auto hosts = HostCores(job, &Member::host_cores), bound = HostCores(job, &Member::cores);
  if (bound && is_of(*bound)) return "";
  const bool has_quota = limit == JobLimit::kQuota && bound;
  if (!has_quota && (!hosts || is_of(*hosts))) return "";
  const auto words = [](const std::vector<double>& cores) {
    return cores.front() == cores.back()
               ? fmt::format("{:.6g}", cores.front())
               : fmt::format("{:.6g} to {:.6g}", cores.front(), cores.back());
  };
  if (has_quota)
    return fmt::format(
        "a CPU quota left the job's workers {} of their host's cores, and the nodes that run now "
        "have {} each in the nodes file",
        words(*bound), words(have));
  return fmt::format(
      "the nodes that run now have {} cores each in the nodes file, and the hosts of "
      "the job's workers {}",
      words(have), words(*hosts));
}

// Why this job does not show what its nodes carry.
void SayUnavailable(const JobView& job, const JobFindings& found, const NodesFile& nodes,
                    const FleetPlan& plan, PlanCheck* check) {
  const int have = std::accumulate(nodes.types.begin(), nodes.types.end(), 0,
                                   [](int sum, const NodeType& type) { return sum + type.have; });
  const auto say = [&](std::string why, std::string fix) {
    check->unavailable = std::move(why);
    check->fix = std::move(fix);
  };
  if (!found.undecided.empty()) return say(found.undecided, found.undecided_fix);
  if (have == 0 || !plan.present)
    return say(
        "the nodes file does not say which nodes the job ran on",
        fmt::format("write have = N at their [[node]]; the job's workers ran on {}", check->hosts));
  if (static_cast<size_t>(have) != check->hosts)
    return say(fmt::format("the nodes file has {} nodes that run now, and the "
                           "job's workers ran "
                           "on {}",
                           have, check->hosts),
               "correct have = N at its [[node]]s");
  if (!(found.rows_per_s > 0))
    return say("the job's ranks took no rows", "record a job that delivers some");
  for (size_t t = 0; t < nodes.types.size(); ++t)
    if (nodes.types[t].have > 0 && plan.fits[t].full_draws.empty())
      return say("the run is too short to say how sure its figures are", "record a longer one");
  if (found.limit == JobLimit::kTrainers || found.limit == JobLimit::kSlowRank)
    return say(fmt::format("{} limited the job to {}, so what the nodes carry did not show",
                           JobLimitName(found.limit), FormatRate(found.rows_per_s, "rows")),
               "let the ranks compute less, so that they wait for the workers");
  if (std::string why = OtherCores(job, found.limit, nodes); !why.empty())
    return say(std::move(why), "correct cores and have at its [[node]]s");
}

}  // namespace

PlanCheck CheckPlan(const JobView& job, const NodesFile& nodes, const FleetPlan& plan) {
  PlanCheck check;
  check.job = job.name;
  std::set<std::string> hosts;
  for (const Member& member : job.members)
    if (member.role == "worker") hosts.insert(member.host);
  check.hosts = hosts.size();
  const JobFindings found = JudgeJob(job);
  check.limit = found.limit;
  check.workers = found.workers;
  SayUnavailable(job, found, nodes, plan, &check);
  if (!check.unavailable.empty()) return check;
  for (size_t t = 0; t < nodes.types.size(); ++t)
    check.planned_workers += nodes.types[t].have * plan.fits[t].processes;
  check.measured = found.rows_per_s;
  check.measured_interval = RateInterval(job, check.measured);
  check.predicted = plan.present->rows_per_s;
  check.predicted_interval = PresentInterval(nodes, plan);
  check.lacks_storage = found.limit == JobLimit::kStorage && !nodes.storage.bytes_per_s &&
                        !nodes.storage.requests_per_s && nodes.storage.latency_s == 0;
  check.error_ratio = check.predicted / check.measured - 1;
  check.agrees = check.predicted_interval.low <= check.measured_interval.high &&
                 check.measured_interval.low <= check.predicted_interval.high;
  return check;
}

}  // namespace headrace::analysis
