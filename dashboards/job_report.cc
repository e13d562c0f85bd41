#include "dashboards/job_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "analysis/thresholds.h"
#include "base/terminal_text.h"
#include "base/units.h"
#include "dashboards/report/wording.h"

namespace headrace::dashboards {
namespace {

using analysis::JobFindings;
using analysis::JobLimit;
using analysis::JobShare;
using analysis::JobView;
using analysis::Member;
using analysis::RankFigures;
using analysis::WorkerFigures;

constexpr size_t kEventsShown = 12;
constexpr size_t kJobPageLines = 12;  // the title and eleven
constexpr const char* kNoCourse = "no dispatcher has kept the job's course";

std::string RowRate(double per_second) { return FormatRate(per_second, "rows"); }

std::string Plural(double count, const char* what) {
  return fmt::format("{} {}{}", count < 1000 ? fmt::format("{:.0f}", count) : FormatCount(count),
                     what, count == 1 ? "" : "s");
}

// The limit with its name: "rank 2", "storage".
std::string LimitText(const JobPage& page) {
  const JobFindings& f = page.findings;
  if (!f.member) return analysis::JobLimitName(f.limit);
  const std::string who = MemberName(page.job.members[*f.member]);
  return f.limit == JobLimit::kSlowRank ? who + ", which is slower than the others"
                                        : who + ", which is stopped or lags";
}

const WorkerFigures* Typical(const JobFindings& f) {
  if (f.worker_figures.empty()) return nullptr;
  std::vector<const WorkerFigures*> workers;
  for (const WorkerFigures& one : f.worker_figures) workers.push_back(&one);
  const auto middle = workers.begin() + static_cast<std::ptrdiff_t>(workers.size() / 2);
  std::nth_element(
      workers.begin(), middle, workers.end(),
      [](const WorkerFigures* a, const WorkerFigures* b) { return a->rows_per_s < b->rows_per_s; });
  return *middle;
}

std::string StragglerEvidence(const JobFindings& f) {
  double absent = 0;
  size_t count = 0;
  for (const WorkerFigures& one : f.worker_figures) {
    absent = std::max(absent, one.absent);
    count += one.is_straggler;
  }
  return fmt::format(
      "{} of {} workers were stopped or lagged; the worst did nothing for {} of its "
      "time",
      count, f.worker_figures.size(), FormatPercent(absent));
}

// Why it is the limit: what was seen.
std::string EvidenceOf(const JobPage& page) {
  const JobFindings& f = page.findings;
  const WorkerFigures* typical = Typical(f);
  const auto at_work = [&] {
    return typical == nullptr
               ? std::string("no worker was measured")
               : fmt::format("a typical worker is at work {} of its time, '{}' {}",
                             FormatPercent(typical->working), Printable(typical->busiest_stage),
                             FormatPercent(typical->utilisation));
  };
  switch (f.limit) {
    case JobLimit::kTrainers:
      return "no rank waits longer than 5 % of its time";
    case JobLimit::kSlowRank:
      for (const RankFigures& one : f.rank_figures) {
        if (one.member != *f.member || one.rows <= 0) continue;
        return fmt::format(
            "it takes {} for a row and waits {} of its time; workers have no room in "
            "a lane for {} of theirs",
            FormatDuration(one.compute_s / one.rows * 1e9), FormatPercent(one.stall.value_or(0)),
            FormatPercent(f.share));
      }
      return "it was seen too shortly";
    case JobLimit::kDelivery:
      return fmt::format("workers have units and no room for {} of their time, while ranks wait",
                         FormatPercent(f.share));
    case JobLimit::kDispatcher:
      return fmt::format("workers have no lease for {} of their time, though splits are left{}",
                         FormatPercent(f.share),
                         f.dispatcher_late
                             ? fmt::format("; the dispatcher was stopped for {} of the time",
                                           FormatPercent(*f.dispatcher_late))
                             : "");
    case JobLimit::kSplits:
      return fmt::format("no split is left to lease for {} of the workers' time, and ranks wait",
                         FormatPercent(f.share));
    case JobLimit::kFailures:
      return fmt::format("{} lost with splits; {} rows were leased again",
                         Plural(f.lost_workers.value_or(0), "worker"),
                         FormatCount(f.redone_rows.value_or(0)));
    case JobLimit::kStraggler:
      return StragglerEvidence(f);
    case JobLimit::kStorage:
      return typical == nullptr ? at_work()
                                : fmt::format("{}, and {} of that it waits for reads", at_work(),
                                              FormatPercent(typical->blocked.value_or(0)));
    case JobLimit::kQuota:
      return typical == nullptr
                 ? at_work()
                 : fmt::format("{}; its control group is throttled {} of the time", at_work(),
                               FormatPercent(typical->throttled.value_or(0)));
    case JobLimit::kMachine:
      return typical != nullptr && typical->runnable
                 ? fmt::format("{}, and {} of the CPU time it needs it waits for a core", at_work(),
                               FormatPercent(*typical->runnable))
                 : at_work();
    case JobLimit::kWorkers:
      return at_work();
  }
  return "";
}

std::string More(const JobPage& page) {
  const JobFindings& f = page.findings;
  const auto now = static_cast<int64_t>(std::llround(f.workers));
  if (!f.workers_needed)
    return "Start more workers, while each adds to the rate: the trainers take what comes.";
  if (*f.workers_needed > now)
    return fmt::format("Run {} workers instead of {}: the ranks would take {}.", *f.workers_needed,
                       now, RowRate(f.demand_rows_per_s.value_or(0)));
  return "Give each worker more threads in its busiest stage.";
}

void SayGain(const JobPage& page, std::vector<PageLine>* lines) {
  const JobFindings& f = page.findings;
  if (f.limit == JobLimit::kTrainers) {
    lines->push_back({"gain", "None is left: faster trainers alone would take more rows."});
  } else if (!f.gain) {
    lines->push_back({"gain",
                      "unavailable (the trainers compute next to nothing, so nobody knows what "
                      "they could take)"});
  } else if (*f.gain < 1 + analysis::kWorthwhileGain) {
    lines->push_back({"gain", "Less than 3 %."});
  } else {
    lines->push_back(
        {"gain", fmt::format("Up to {} instead of {} ({:.2f} times; estimate).",
                             RowRate(f.rows_per_s * *f.gain), RowRate(f.rows_per_s), *f.gain)});
  }
}

std::string LostText(const JobPage& page) {
  const JobFindings& f = page.findings;
  if (!f.lost_workers || !f.redone_rows) return fmt::format("unavailable ({})", kNoCourse);
  if (*f.lost_workers == 0 && *f.redone_rows == 0)
    return "no worker was lost; no row was made twice";
  const auto rows = static_cast<double>(page.job.rows);
  return fmt::format("{} lost, {} rows leased again ({} of all)", Plural(*f.lost_workers, "worker"),
                     FormatCount(*f.redone_rows),
                     FormatPercent(rows > 0 ? *f.redone_rows / rows : 0));
}

void SayOthers(const JobPage& page, std::vector<PageLine>* lines) {
  const JobFindings& f = page.findings;
  std::vector<std::string> lagging;
  for (const WorkerFigures& one : f.worker_figures)
    if (one.is_straggler) lagging.push_back(MemberName(page.job.members[one.member]));
  for (const RankFigures& one : f.rank_figures)
    if (one.is_slow) lagging.push_back(fmt::format("rank {}", one.rank));
  if (lagging.size() > 3) {
    const size_t more = lagging.size() - 3;
    lagging.resize(3);
    lagging.push_back(fmt::format("{} more", more));
  }
  lines->push_back(
      {"lag", fmt::format("{}; ranks wait {} of their time on average",
                          lagging.empty() ? std::string("no worker, no rank")
                                          : fmt::format("{}", fmt::join(lagging, ", ")),
                          FormatPercent(f.mean_stall.value_or(0)))});
  lines->push_back({"lost", LostText(page)});
  std::string cost = fmt::format("{} worker-seconds for a million rows",
                                 FormatCount(f.worker_seconds_per_million_rows));
  if (f.cpu_seconds_per_million_rows)
    cost += fmt::format(", {} of them on a CPU", FormatCount(*f.cpu_seconds_per_million_rows));
  lines->push_back({"cost", cost});
}

FirstPage FirstPageOf(const JobPage& page) {
  const JobFindings& f = page.findings;
  const JobView& job = page.job;
  FirstPage first;
  first.most_lines = kJobPageLines;
  const std::string done =
      job.left_rows
          ? fmt::format(
                "{} of {} rows",
                FormatCount(static_cast<double>(std::max<int64_t>(0, job.rows - *job.left_rows))),
                FormatCount(static_cast<double>(job.rows)))
          : "an unknown part of its rows";
  const auto add = [&](const char* label, std::string text, bool command = false) {
    first.lines.push_back({label, std::move(text), command});
  };
  const std::string more = fmt::format("{} report --fleet {}{} --full", page.program,
                                       ShellWord(job.name), page.database_option);
  if (!f.undecided.empty()) {
    first.badge = "NO VERDICT";
    first.verdict = fmt::format("Job '{}' cannot be judged: {}.", Printable(job.name), f.undecided);
    if (!f.undecided_fix.empty()) add("fix", f.undecided_fix);
    add("more", more, true);
    return first;
  }
  first.badge = StallGrade(*f.worst_stall);
  first.severity = *f.worst_stall < analysis::kSmallStall  ? Severity::kGood
                   : *f.worst_stall < analysis::kHighStall ? Severity::kModerate
                                                           : Severity::kHigh;
  first.verdict = fmt::format("Rank {} waited {} of its time {}.", f.worst_rank,
                              FormatPercent(*f.worst_stall), PercentInterval(f.stall_interval));
  add("job", fmt::format("'{}' is {}: {} at {}, {} and {}", Printable(job.name), job.state, done,
                         RowRate(f.rows_per_s), Plural(std::round(f.workers), "worker"),
                         Plural(static_cast<double>(job.ranks), "rank")));
  add("limit", fmt::format("{}, with probability {}", LimitText(page),
                           f.probability > 0.99 ? ">0.99" : fmt::format("{:.2f}", f.probability)));
  add("why", EvidenceOf(page) + ".");
  const std::string fix = JobFix(page);
  add("fix", fix.empty() ? "Nothing has to be changed." : fix);
  SayGain(page, &first.lines);
  add("then", f.next ? fmt::format("{} will limit it next.", analysis::JobLimitName(*f.next))
                     : "unavailable (nothing shows what the trainers could take)");
  SayOthers(page, &first.lines);
  add("more", more, true);
  return first;
}

Value Share(double ratio) { return Quantity::Of(ratio, Unit::kRatio, Source::kAccount); }
Value Figure(std::optional<double> value, Unit unit, const char* reason) {
  return value ? Quantity::Of(*value, unit, Source::kAccount) : Quantity::Unavailable(reason, unit);
}
std::optional<double> Wide(const std::optional<int64_t>& value) {
  return value ? std::optional(static_cast<double>(*value)) : std::nullopt;
}

Section TimeSection(const JobPage& page) {
  Section section{"time", "Where the workers' time goes", {}, {}, {}};
  Table table{"shares", "", {{"limit", "part"}, {"share_ratio", "of their time"}}, {}};
  for (const JobShare& one : page.findings.shares) {
    const bool is_work = &one == &page.findings.shares.back();
    std::string name = analysis::JobLimitName(one.limit);
    if (is_work) name = fmt::format("at work (limited by {})", name);
    if (one.limit == JobLimit::kFailures) name += " (time that is missing, and work done again)";
    table.rows.push_back({name, Share(one.share)});
  }
  section.tables.push_back(std::move(table));
  return section;
}

Section RankSection(const JobPage& page) {
  Section section{"ranks", "Ranks", {}, {}, {}};
  Table table{"ranks",
              "",
              {{"rank", "rank"},
               {"stall_ratio", "waits"},
               {"rows_per_s", "rows/s"},
               {"row_ns", "for a row"},
               {"step_p99_ns", "step 99 %"},
               {"received_bytes", "received"},
               {"host", "host"},
               {"note", "note"}},
              {}};
  for (const RankFigures& one : page.findings.rank_figures) {
    const Member& member = page.job.members[one.member];
    table.rows.push_back(
        {std::to_string(one.rank), Figure(one.stall, Unit::kRatio, "no step yet"),
         Figure(one.rows_per_s, Unit::kRowsPerSecond, ""),
         Figure(one.rows > 0 ? std::optional(one.compute_s / one.rows * 1e9) : std::nullopt,
                Unit::kNanoseconds, "no row yet"),
         Figure(Wide(member.step_p99_ns), Unit::kNanoseconds, "no step yet"),
         Figure(Wide(member.received_bytes), Unit::kBytes, "not counted"), Printable(member.host),
         std::string(one.is_slow ? "slow" : "")});
  }
  section.tables.push_back(std::move(table));
  return section;
}

Section WorkerSection(const JobPage& page) {
  Section section{"workers", "Workers", {}, {}, {}};
  Table table{"workers",
              "",
              {{"worker", "worker"},
               {"rows_per_s", "rows/s"},
               {"working_ratio", "at work"},
               {"idle_ratio", "no lease"},
               {"no_room_ratio", "no room"},
               {"absent_ratio", "absent"},
               {"busiest_stage", "busiest stage"},
               {"utilisation_ratio", "its use"},
               {"blocked_ratio", "blocked"},
               {"cpu_cores", "cores used"},
               {"note", "note"}},
              {}};
  for (const WorkerFigures& one : page.findings.worker_figures) {
    const Member& member = page.job.members[one.member];
    std::string note = one.is_straggler ? "lags" : "";
    if (member.state == "interrupted") note += note.empty() ? "lost" : ", lost";
    table.rows.push_back({std::to_string(member.number),
                          Figure(one.rows_per_s, Unit::kRowsPerSecond, ""), Share(one.working),
                          Share(one.idle), Share(one.no_room), Share(one.absent),
                          Printable(one.busiest_stage), Share(one.utilisation),
                          Figure(one.blocked, Unit::kRatio, "not read"),
                          Figure(one.cpu_cores, Unit::kCores, "not read"), note});
  }
  section.tables.push_back(std::move(table));
  return section;
}

// Storage and network: what went through them in all.
Section BytesSection(const JobPage& page) {
  const JobFindings& f = page.findings;
  Section section{"bytes", "Storage and network", {}, {}, {}};
  std::optional<double> read, requests, received;
  for (const Member& member : page.job.members) {
    if (member.read_bytes) read = read.value_or(0) + static_cast<double>(*member.read_bytes);
    if (member.read_requests)
      requests = requests.value_or(0) + static_cast<double>(*member.read_requests);
    if (member.received_bytes)
      received = received.value_or(0) + static_cast<double>(*member.received_bytes);
  }
  const auto say = [&](const char* label, const std::optional<double>& bytes, const char* what) {
    section.sentences.push_back(
        {label, bytes && f.seconds > 0
                    ? fmt::format("{} {}, {} on average", what, FormatBytes(*bytes),
                                  FormatBytesRate(*bytes / f.seconds))
                    : fmt::format("unavailable (not counted)")});
  };
  say("READ", read, "workers read");
  if (requests && f.seconds > 0)
    section.sentences.push_back(
        {"REQUESTS", fmt::format("{} reads, {} a second", FormatCount(*requests),
                                 FormatCount(*requests / f.seconds))});
  say("SENT", received, "ranks received");
  section.facts = {{"read_bytes", Figure(read, Unit::kBytes, "not counted")},
                   {"received_bytes", Figure(received, Unit::kBytes, "not counted")}};
  return section;
}

Section DispatcherSection(const JobPage& page) {
  int64_t leases = 0, again = 0, late = 0, running = 0;
  for (const analysis::JobInterval& one : page.job.intervals) {
    leases += one.leases;
    again += one.again;
    late += one.late_ns;
    running += one.running_ns;
  }
  Section section{"dispatcher", "Dispatcher", {}, {}, {}};
  if (page.job.intervals.empty()) {
    for (const char* label : {"LEASES", "LATE"})
      section.sentences.push_back({label, fmt::format("unavailable ({})", kNoCourse)});
    return section;
  }
  const double seconds = static_cast<double>(running) / 1e9;
  section.sentences.push_back(
      {"LEASES", fmt::format("{} leases, {} a second; {} of them again",
                             FormatCount(static_cast<double>(leases)),
                             seconds > 0 ? FormatCount(static_cast<double>(leases) / seconds) : "-",
                             FormatCount(static_cast<double>(again)))});
  section.sentences.push_back(
      {"LATE", late == 0 ? "it was never late by more than half a second"
                         : fmt::format("it was stopped for {} in all",
                                       FormatDuration(static_cast<double>(late)))});
  return section;
}

Section DecisionSection(const JobPage& page) {
  Section section{"decisions", "Decisions about the number of workers", {}, {}, {}};
  if (page.job.decisions_left_out > 0)
    section.sentences.push_back(
        {"", fmt::format("{} older ones are left out.", page.job.decisions_left_out)});
  for (const analysis::DecisionRow& one : page.job.decisions) {
    std::string change = "as before";
    for (const auto& c : one.changes)
      change =
          fmt::format("{} workers instead of {}", Printable(c.to_text), Printable(c.from_text));
    section.sentences.push_back({FormatDuration(static_cast<double>(one.at_ns)),
                                 fmt::format("{}: {}", change, Printable(one.reason))});
  }
  if (section.sentences.empty())
    section.sentences.push_back({"", "The number of workers was given; nobody decided about it."});
  return section;
}

Section EventSection(const JobPage& page) {
  Section section{"events", "What happened", {}, {}, {}};
  if (page.job.events_left_out > 0)
    section.sentences.push_back(
        {"", fmt::format("{} older events are left out.", page.job.events_left_out)});
  Table table{
      "events",
      "",
      {{"at_ns", "at"}, {"kind", "event"}, {"splits_count", "splits again"}, {"text", "what"}},
      {}};
  for (const analysis::JobEvent& one : page.job.events)
    table.rows.push_back({FormatDuration(static_cast<double>(one.at_ns)), Printable(one.kind),
                          one.splits ? Value(std::to_string(*one.splits)) : Value(std::string("-")),
                          Printable(one.text)});
  table.text_rows = kEventsShown;
  section.tables.push_back(std::move(table));
  return section;
}

}  // namespace

std::string MemberName(const Member& member) {
  if (member.role == "rank") return fmt::format("rank {}", member.number);
  return fmt::format("{} {} (process {} on {})", member.role, member.number, member.pid,
                     Printable(member.host));
}

std::string JobFix(const JobPage& page) {
  const JobFindings& f = page.findings;
  const WorkerFigures* typical = Typical(f);
  switch (f.limit) {
    case JobLimit::kTrainers:
      return "";
    case JobLimit::kSlowRank:
      return fmt::format("Find out why {} computes longer than the others; its data is there.",
                         f.member ? MemberName(page.job.members[*f.member]) : "that rank");
    case JobLimit::kDelivery:
      return "Let ranks keep more units (consume --queue 8), and send larger ones "
             "(pipeline.worker_rows).";
    case JobLimit::kDispatcher:
      return "Give the dispatcher a core of its own, and look whether something stops it.";
    case JobLimit::kSplits:
      return f.largest_split_ratio > 2
                 ? fmt::format(
                       "Write the table with equal stripes: the largest has {:.1f} times the "
                       "rows of the mean.",
                       f.largest_split_ratio)
                 : "Write the table with smaller stripes, or run fewer workers.";
    case JobLimit::kFailures:
      return "Find out why workers end: 'What happened' in the full report names them.";
    case JobLimit::kStraggler:
      return f.member ? fmt::format("Look what stops {}, or drain it.",
                                    MemberName(page.job.members[*f.member]))
                      : "Look what stops the workers that lag, or drain them.";
    case JobLimit::kStorage:
      return typical == nullptr
                 ? ""
                 : fmt::format("Read more at a time ({}.parallelism), or from faster storage.",
                               Printable(typical->busiest_stage));
    case JobLimit::kQuota:
      return "Raise the CPU quota of the workers' control groups, or run workers elsewhere.";
    case JobLimit::kMachine:
      return "Run more workers on other machines: the cores of theirs are all busy.";
    case JobLimit::kWorkers:
      return More(page);
  }
  return "";
}

Report MakeJobReport(const JobPage& page) {
  Report report;
  report.title = fmt::format("job '{}'", Printable(page.job.name));
  report.first = FirstPageOf(page);
  report.decided = page.findings.undecided.empty();
  // Without a verdict there is what was measured nevertheless.
  const JobFindings& f = page.findings;
  if (report.decided) report.sections.push_back(TimeSection(page));
  if (!f.rank_figures.empty()) report.sections.push_back(RankSection(page));
  if (!f.worker_figures.empty()) report.sections.push_back(WorkerSection(page));
  if (f.seconds > 0) report.sections.push_back(BytesSection(page));
  report.sections.push_back(DispatcherSection(page));
  report.sections.push_back(DecisionSection(page));
  report.sections.push_back(EventSection(page));
  for (Section& section : report.sections) section.name = section.key;
  return report;
}

}  // namespace headrace::dashboards
