// A run seen from outside: groups of threads with their roles, who ends whose waits, processes.
#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "base/units.h"
#include "dashboards/report/measured.h"
#include "dashboards/report/outside_words.h"
#include "dashboards/report/report.h"
#include "dashboards/report/wording.h"

namespace headrace::dashboards {
namespace {

using analysis::Outside;
using analysis::ThreadGroup;
using analysis::ThreadTimes;
using analysis::WaitCause;

std::string GroupName(const Outside& seen, size_t g) {
  const ThreadGroup& group = seen.groups[g];
  const analysis::ProcessKind& kind = seen.kinds[group.kind];
  if (group.thread.starts_with(kind.name)) return group.thread;
  return fmt::format("{}/{}", kind.name, group.thread);
}

std::string RoleOf(const Outside& seen, size_t g) {
  for (const analysis::OutsideUnit& unit : seen.units) {
    if (std::find(unit.groups.begin(), unit.groups.end(), g) == unit.groups.end()) continue;
    if (unit.role == analysis::UnitRole::kProducer && unit.key_group != g) return "helper";
    if (unit.role == analysis::UnitRole::kConsumer) return seen.ConsumerName();
    return analysis::UnitRoleName(unit.role);
  }
  return "";
}

Table Groups(const Outside& seen) {
  Table table{"threads",
              "",
              {{"group", "threads"},
               {"role", "role"},
               {"processes_count", "procs"},
               {"threads_count", "number"},
               {"on_cpu_ratio", "on CPU"},
               {"runnable_ratio", "ready"},
               {"storage_ratio", "storage"},
               {"network_ratio", "network"},
               {"lock_ratio", "lock"},
               {"sleep_ratio", "sleep"},
               {"pipe_ratio", "pipe"},
               {"poll_ratio", "poll"},
               {"other_ratio", "other"}},
              {}};
  table.text_rows = 8;
  std::vector<size_t> order(seen.groups.size());
  for (size_t g = 0; g < order.size(); ++g) order[g] = g;
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    return seen.groups[a].time.on_cpu_s > seen.groups[b].time.on_cpu_s;
  });
  const bool causes = seen.knowledge >= analysis::OutsideKnowledge::kCauses;
  for (const size_t g : order) {
    const ThreadGroup& group = seen.groups[g];
    const ThreadTimes& time = group.time;
    const double lifetime = time.total();
    if (lifetime < 1e-3) continue;  // a thread that only showed itself
    const auto share = [&](double seconds) {
      return lifetime > 0 ? std::optional<double>(seconds / lifetime) : std::nullopt;
    };
    const auto blocked = [&](WaitCause cause) {
      return Ratio(causes ? share(time.blocked_s[static_cast<size_t>(cause)]) : std::nullopt,
                   "causes of waits were not measured");
    };
    double other = 0;
    for (const WaitCause cause :
         {WaitCause::kChild, WaitCause::kFault, WaitCause::kOther, WaitCause::kStopped}) {
      other += time.blocked_s[static_cast<size_t>(cause)];
    }
    const std::string reason = causes ? "no time was seen" : "the threads' lifetime is not known";
    table.rows.push_back(
        {GroupName(seen, g), RoleOf(seen, g),
         Number(static_cast<double>(seen.kinds[group.kind].pids.size()), Unit::kCount, ""),
         Number(causes ? std::optional<double>(group.threads_count) : std::nullopt, Unit::kCount,
                reason),
         Ratio(causes ? share(time.on_cpu_s) : std::nullopt, reason),
         Ratio(causes ? share(time.runnable_s) : std::nullopt, reason),
         blocked(WaitCause::kStorage), blocked(WaitCause::kNetwork), blocked(WaitCause::kLock),
         blocked(WaitCause::kSleep), blocked(WaitCause::kPipe), blocked(WaitCause::kPoll),
         Ratio(causes ? share(other) : std::nullopt, reason)});
  }
  return table;
}

Table Exchange(const analysis::RunView& run, const Outside& seen) {
  Table table{"wakeups",
              "Who ends whose waits",
              {{"waker", "from"},
               {"wakee", "to"},
               {"cause", "waited in"},
               {"wakeups_per_second", "wake-ups/s"},
               {"wait_ratio", "of its time"}},
              {}};
  table.text_rows = 8;
  const double seconds = static_cast<double>(run.run.duration_ns) * 1e-9;
  std::vector<const analysis::WakeEdge*> edges;
  for (const analysis::WakeEdge& edge : seen.edges) edges.push_back(&edge);
  std::stable_sort(edges.begin(), edges.end(),
                   [](const auto* a, const auto* b) { return a->wait_s > b->wait_s; });
  for (const analysis::WakeEdge* edge : edges) {
    const double lifetime = seen.groups[edge->wakee].time.total();
    table.rows.push_back(
        {edge->waker ? GroupName(seen, *edge->waker) : "outside the tree",
         GroupName(seen, edge->wakee), analysis::WaitCauseName(edge->cause),
         Number(seconds > 0
                    ? std::optional<double>(static_cast<double>(edge->wakeups_count) / seconds)
                    : std::nullopt,
                Unit::kCount, "no duration recorded"),
         Ratio(lifetime > 0 ? std::optional<double>(edge->wait_s / lifetime) : std::nullopt,
               "no time was seen")});
  }
  return table;
}

std::optional<Section> Threads(const analysis::RunView& run, const analysis::Statements& all) {
  if (!all.outside || all.outside->groups.empty()) return std::nullopt;
  Section section{"outside", "Threads (shares of their time, by what they waited in)", {}, {}, {}};
  section.facts.push_back(
      {"cores_used", Number(all.outside->cores_used, Unit::kCores, "no thread times")});
  section.tables.push_back(Groups(*all.outside));
  Table exchange = Exchange(run, *all.outside);
  if (!exchange.rows.empty()) section.tables.push_back(std::move(exchange));
  return section;
}

std::optional<Section> Processes(const analysis::RunView& run, const analysis::Statements&) {
  if (run.processes.empty()) return std::nullopt;
  // One process alone is the run itself: for machines only.
  const bool one = run.processes.size() == 1;
  Section section{"process_list", one ? "" : "Processes", {}, {}, {}};
  Table table{"processes",
              "",
              {{"pid", "pid"},
               {"process", "name"},
               {"parent_pid", "parent"},
               {"has_accounts", "accounts"},
               {"cpu_seconds", "CPU"},
               {"maximum_rss_bytes", "most memory"},
               {"pss_bytes", "own share"},
               {"read_bytes", "read"},
               {"threads_count", "threads"},
               {"exit_text", "end"},
               {"command", "command"}},
              {},
              one};
  table.text_rows = 8;
  std::vector<const analysis::ProcessRow*> order;
  for (const analysis::ProcessRow& process : run.processes) order.push_back(&process);
  std::stable_sort(order.begin(), order.end(), [](const auto* a, const auto* b) {
    return a->cpu_ns.value_or(0) > b->cpu_ns.value_or(0);
  });
  const auto real = [](const analysis::Count& count) {
    return count ? std::optional<double>(static_cast<double>(*count)) : std::nullopt;
  };
  const std::string reason = WhyNot(run, {"process"});
  const std::string unseen = "it lived between two readings";
  // For a process that ended, /proc was last read before its end; eBPF counts to the last instant.
  std::set<int64_t> counted;
  for (const analysis::MeasurementRow& row : run.measurements) {
    if (row.metric == "on_cpu_ns" && row.process_id) counted.insert(*row.process_id);
  }
  size_t least = 0;
  for (const analysis::ProcessRow* process : order) {
    const auto own = SumOf(run, "process_pss_bytes", [&](const analysis::MeasurementRow& row) {
      return row.process_id == process->process_id;
    });
    table.rows.push_back(
        {std::to_string(process->pid), process->process, std::to_string(process->parent_pid),
         process->has_accounts ? "yes" : "no",
         Number(real(process->cpu_ns), Unit::kNanoseconds, process->ended_ns ? unseen : reason),
         Bytes(process->maximum_rss_bytes, reason), Bytes(own, reason),
         Bytes(real(process->read_bytes), reason),
         Number(real(process->threads_count), Unit::kCount, reason), process->exit_text,
         process->command});
    least += process->cpu_ns && process->ended_ns && !counted.count(process->process_id);
  }
  if (least > 0 && !one) {
    section.sentences.push_back(
        {"-", fmt::format("CPU is at least this much for {} of them: they ended after it was last "
                          "read; eBPF (level 3) has all of it",
                          least)});
  }
  section.tables.push_back(std::move(table));
  return section;
}

HR_SECTION("threads", 8, Threads);
HR_SECTION("processes", 9, Processes);

}  // namespace
}  // namespace headrace::dashboards
