#include "cli/run_list.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <ctime>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <variant>

#include "analysis/advice/statements.h"
#include "analysis/run/read_run.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/units.h"
#include "collectors/store/store.h"
#include "dashboards/report/make_report.h"
#include "dashboards/sql_values.h"
#include "dashboards/terminal/text_columns.h"
#include "experiments/stored_comparison.h"

namespace headrace::cli {
namespace {

using dashboards::IntegerOf;
using dashboards::NumberOf;
using dashboards::TextOf;

// Columns of the query, in its order.
enum RunColumn {
  kRunId,
  kName,
  kTags,
  kState,
  kProgram,
  kStarted,
  kDuration,
  kLevel,
  kSteps,
  kRows,
  kWall,
  kWait,
  kCompute,
  kComparison
};

collectors::SqlResult ListedRuns(collectors::ReadStore* store, const RunFilter& filter) {
  return store->Query(
      "SELECT r.run_id, r.name, r.tags, r.state, r.program, r.started_realtime_ns, r.duration_ns, "
      "r.accounting_level, s.steps_count, s.rows_count, s.wall_ns, s.wait_ns, s.compute_ns, "
      "(SELECT MAX(c.comparison_id) FROM comparison_run AS c WHERE c.run_id = r.run_id) "
      "FROM run_summary AS r LEFT JOIN step_summary AS s USING (run_id) WHERE (?1 = '' OR "
      "instr(lower(r.name || ' ' || r.tags || ' ' || r.program || ' ' || r.pipeline_path || ' ' || "
      "r.run_id), lower(?1)) > 0) AND r.started_realtime_ns >= ?2 AND r.started_realtime_ns < ?3 "
      "ORDER BY r.run_id",
      {filter.find, filter.since_ns, filter.until_ns});
}

std::string Started(int64_t realtime_ns) {
  const auto local = [](std::time_t seconds) {
    std::tm tm{};
    localtime_r(&seconds, &tm);
    return tm;
  };
  const std::tm then = local(realtime_ns / 1'000'000'000), now = local(std::time(nullptr));
  char text[32];
  std::strftime(text, sizeof text, then.tm_year == now.tm_year ? "%m-%d %H:%M" : "%Y-%m-%d", &then);
  return text;
}

// Rows per second over the whole run; nothing where no consumer recorded steps.
std::optional<double> RateOf(const std::vector<collectors::SqlValue>& row) {
  const auto rows = NumberOf(row[kRows]), wall = NumberOf(row[kWall]);
  if (!rows || !wall || *wall <= 0) return std::nullopt;
  return *rows * 1e9 / *wall;
}

// What the report of a run says, in a few words.
struct ShortVerdict {
  std::string waited = "-", limit = "-", rate = "-";
  bool whole_run = false;  // the rate is of all of it, as the report knows no steady part
};

ShortVerdict VerdictOf(const std::string& database, int64_t run_id) {
  ShortVerdict out;
  try {
    const analysis::RunView view = analysis::LoadRun(database, std::to_string(run_id));
    const dashboards::Report report = dashboards::MakeReport(view, analysis::MakeStatements(view));
    for (const dashboards::Section& section : report.sections) {
      for (const dashboards::Fact& fact : section.facts) {
        const auto* text = std::get_if<std::string>(&fact.value);
        const auto* quantity = std::get_if<Quantity>(&fact.value);
        if (section.key != "verdict") continue;
        if (fact.key == "limit.name" && text != nullptr) out.limit = Printable(*text);
        if (quantity == nullptr || !quantity->available()) continue;
        if (fact.key == "stall_ratio") out.waited = FormatPercent(quantity->value());
        if (fact.key == "observed.rows_per_second")
          out.rate = FormatRate(quantity->value(), "rows");
      }
    }
    if (out.limit == "-" && report.first.badge == "NO VERDICT") out.limit = "no verdict";
  } catch (const Error&) {
    out.limit = "unreadable";
  }
  return out;
}

constexpr int kStartedCells = 12, kLengthCells = 9;  // with the space behind

struct ListColumns {
  int name = 0;
  bool started = true, length = true;  // not where lines would wrap
  bool tags = false;

  explicit ListColumns(int width) {
    constexpr int kTags = 12, kLeastName = 12, kMostName = 32;
    int others = 68;
    if (width < others + kLeastName) {
      started = false;
      others -= kStartedCells;
    }
    if (width < others + kLeastName) {
      length = false;
      others -= kLengthCells;
    }
    name = std::clamp(width - others - 1, kLeastName, kMostName);
    tags = width - others - 1 - name >= kTags;
  }
};

void PrintLine(const ListColumns& columns, const std::string& run, const std::string& name,
               const std::string& started, const std::string& length, const ShortVerdict& verdict,
               const std::string& tags) {
  std::string line = fmt::format(
      "{:>5}  {}  {}{} {:>7}  {} {:>14}{}", run,
      dashboards::FitName(name, static_cast<size_t>(columns.name)),
      columns.started ? fmt::format("{:<{}}", started, kStartedCells) : "",
      columns.length ? fmt::format("{:>{}} ", length, kLengthCells - 1) : "", verdict.waited,
      dashboards::FitName(verdict.limit, 13), verdict.rate, verdict.whole_run ? "*" : "");
  if (columns.tags && !tags.empty()) line += "  " + tags;
  while (line.back() == ' ') line.pop_back();
  fmt::print("{}\n", line);
  std::fflush(stdout);
}

// A line of the list: one run, or the runs of one comparison.
struct ListedLine {
  const std::vector<collectors::SqlValue>* run = nullptr;  // of a comparison its last run
  int64_t comparison = 0;                                  // 0: a run
  size_t runs = 1;
};

std::vector<ListedLine> LinesOf(const collectors::SqlResult& runs, bool unfold) {
  std::vector<ListedLine> lines;
  std::map<int64_t, size_t> at;
  for (const auto& row : runs.rows) {
    const int64_t comparison = NumberOf(row[kComparison]) ? IntegerOf(row[kComparison]) : 0;
    if (unfold || comparison == 0) {
      lines.push_back({&row});
    } else if (const auto [known, is_new] = at.emplace(comparison, lines.size()); is_new) {
      lines.push_back({&row, comparison});
    } else {
      ListedLine& line = lines[known->second];
      line.run = &row;
      ++line.runs;
    }
  }
  return lines;
}

void PrintComparison(const ListColumns& columns, const ListedLine& line,
                     const std::vector<dashboards::ListedComparison>& comparisons, int width) {
  for (const dashboards::ListedComparison& one : comparisons) {
    if (one.id != line.comparison) continue;
    const std::string verdict = one.verdict.empty()            ? one.state
                                : one.verdict == "cannot_tell" ? "cannot tell"
                                                               : one.verdict;
    std::string gain;
    if (one.change) gain = fmt::format(", {:+.0f} %", 100 * *one.change);
    if (one.change && one.change_low && one.change_high)
      gain += fmt::format(" [{:.0f}, {:.0f}]", 100 * *one.change_low, 100 * *one.change_high);
    const std::string text =
        fmt::format("{:>5}  {}  {:<11}  {} of {} and {}: {}{}", fmt::format("[{}]", one.id),
                    dashboards::FitName(Printable(one.name), static_cast<size_t>(columns.name)),
                    Started(one.started_realtime_ns),
                    fmt::format("{} run{}", line.runs, line.runs == 1 ? "" : "s"),
                    Printable(one.a_label, 60), Printable(one.b_label, 60), verdict, gain);
    // The verdict is at the end and must not be what is cut.
    fmt::print("{}\n", dashboards::TextColumns(text) <= static_cast<size_t>(width)
                           ? text
                           : dashboards::FitName(text, static_cast<size_t>(width)));
  }
}

}  // namespace

void PrintRunList(const std::string& database, const RunFilter& filter, size_t most, bool unfold,
                  int width) {
  collectors::ReadStore store(database);
  const collectors::SqlResult runs = ListedRuns(&store, filter);
  const std::vector<ListedLine> lines = LinesOf(runs, unfold);
  if (lines.empty()) {
    fmt::print(stderr, "no such runs in {}\n", Printable(database));
    return;
  }
  const ListColumns columns(width);
  PrintLine(columns, "run", "name", "started", "length", {"waited", "limit", "rate"}, "tags");
  const size_t first = lines.size() > most ? lines.size() - most : 0;
  std::vector<dashboards::ListedComparison> comparisons;
  if (std::any_of(lines.begin(), lines.end(), [](const auto& line) { return line.comparison > 0; }))
    comparisons = experiments::ListComparisons(database);
  bool whole_runs = false;
  for (size_t i = first; i < lines.size(); ++i) {
    if (lines[i].comparison > 0) {
      PrintComparison(columns, lines[i], comparisons, width);
      continue;
    }
    const auto& row = *lines[i].run;
    const std::string state = TextOf(row[kState]);
    ShortVerdict verdict;
    verdict.limit = state;
    if (state != "recording") verdict = VerdictOf(database, IntegerOf(row[kRunId]));
    if (const auto rate = RateOf(row); rate && verdict.rate == "-") {
      verdict.rate = FormatRate(*rate, "rows");
      verdict.whole_run = whole_runs = true;
    }
    std::string tags = Printable(TextOf(row[kTags]));
    if (state != "complete" && state != "recording") tags = "(" + state + ") " + tags;
    PrintLine(columns, std::to_string(IntegerOf(row[kRunId])), Printable(TextOf(row[kName])),
              Started(IntegerOf(row[kStarted])),
              FormatDuration(static_cast<double>(IntegerOf(row[kDuration]))), verdict, tags);
  }
  std::fflush(stdout);
  if (whole_runs)
    fmt::print(stderr, "* of the whole run, with its start; rates without * leave it out\n");
  if (first > 0)
    fmt::print(stderr, "{} older line{} not shown: --all shows them\n", first,
               first == 1 ? "" : "s");
}

std::string RunListJson(const std::string& database, const RunFilter& filter) {
  using Json = nlohmann::ordered_json;
  collectors::ReadStore store(database);
  Json list = Json::array();
  for (const auto& row : ListedRuns(&store, filter).rows) {
    const auto integer = [&](RunColumn column) {
      return NumberOf(row[column]) ? Json(IntegerOf(row[column])) : Json();
    };
    const auto wait = NumberOf(row[kWait]), compute = NumberOf(row[kCompute]);
    Json rate, waited;  // null: no consumer recorded steps
    if (const auto known = RateOf(row)) rate = *known;
    if (wait && compute && *wait + *compute > 0) waited = *wait / (*wait + *compute);
    list.push_back({{"run_id", IntegerOf(row[kRunId])},
                    {"name", TextOf(row[kName])},
                    {"tags", TextOf(row[kTags])},
                    {"state", TextOf(row[kState])},
                    {"program", TextOf(row[kProgram])},
                    {"started_realtime_ns", IntegerOf(row[kStarted])},
                    {"duration_ns", IntegerOf(row[kDuration])},
                    {"accounting_level", IntegerOf(row[kLevel])},
                    {"steps_count", integer(kSteps)},
                    {"rows_per_second", std::move(rate)},
                    {"wait_ratio", std::move(waited)},
                    {"comparison_id", integer(kComparison)}});
  }
  const Json out = {{"schema", "headrace.runs/1"}, {"runs", std::move(list)}};
  return out.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

int64_t ParseWhen(const std::string& text, const std::string& option) {
  for (const char* format :
       {"%Y-%m-%d", "%Y-%m-%d %H:%M", "%Y-%m-%dT%H:%M", "%Y-%m-%d %H:%M:%S", "%Y-%m-%dT%H:%M:%S"}) {
    std::tm tm{};
    tm.tm_isdst = -1;
    const char* end = strptime(text.c_str(), format, &tm);
    if (end == nullptr || *end != '\0') continue;
    std::tm date = tm;
    timegm(&date);  // makes the 3rd of March of a 31st of February
    if (date.tm_mday != tm.tm_mday)
      throw Error(ExitCode::kUsage, "'" + Printable(text, 60) + "' is a day that its month lacks",
                  option, "try 7d, 12h, 2026-11-25");
    return static_cast<int64_t>(std::mktime(&tm)) * 1'000'000'000;
  }
  int64_t ago_ns = 0;
  try {
    ago_ns = ParseDuration(text, option);
  } catch (const Error&) {
    throw Error(ExitCode::kUsage, "'" + Printable(text, 60) + "' is neither a time ago nor a date",
                option, "try 7d, 12h, 2026-11-25, '2026-11-25 10:04'");
  }
  return RealtimeNs() - ago_ns;
}

}  // namespace headrace::cli
