// How the rate of each pipeline went from run to run, and whether the last run stands out.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>

#include "analysis/advice/next_step.h"
#include "analysis/run/settings.h"
#include "analysis/statistics/statistics.h"
#include "base/terminal_text.h"
#include "base/units.h"
#include "dashboards/pages/short_number.h"
#include "dashboards/serve/site.h"
#include "dashboards/sql_values.h"

namespace headrace::dashboards {
namespace {

using Json = nlohmann::ordered_json;

constexpr size_t kFewestRuns = 3, kMostRuns = 60, kMostTrends = 8;
constexpr size_t kRunsBefore = 10;  // that the last one is held against
// One of five runs is the least or the most by chance in two of five cases, hence also a distance.
constexpr size_t kFewestBefore = 4;
constexpr double kLeastChange = 0.05;  // smaller ones are noise on most machines
constexpr double kBeyondSpread = 0.5;  // of the spread before, so far beyond it stands out
constexpr double kLargestSpread = 2;   // most / least: what lies within tells nothing

struct TrendRun {
  int64_t id = 0;
  std::string name, tags, version;
  double started_s = 0, rate = 0;
};

struct TrendWords {
  std::string text;
  double change = 0;    // of the last run, where it stands out
  bool decided = true;  // whether it stands out can be told
};

std::string ChangeWords(double change, size_t before) {
  return fmt::format("{} {} than the median of the {} before it", FormatPercent(std::abs(change)),
                     change < 0 ? "less" : "more", before);
}

// Rates are compared as logarithms: half and twice are equally far.
TrendWords CompareRates(double last, const std::vector<double>& before) {
  const std::string rate = FormatRate(last, "rows");
  const auto [least, most] = std::minmax_element(before.begin(), before.end());
  const double median = analysis::Quantile(before, 0.5);
  if (last <= 0 || *least <= 0)
    return {fmt::format("{} in the last run. Cannot tell whether that is a change.", rate), 0,
            false};
  const double change = last / median - 1;
  const bool small = std::abs(std::log(last / median)) <= std::log1p(kLeastChange);
  if (before.size() < kFewestBefore) {
    return {fmt::format("{} in the last run, {}. Cannot tell whether that is a change: it takes {} "
                        "runs before it.",
                        rate, ChangeWords(change, before.size()), kFewestBefore),
            0, false};
  }
  const double spread = std::log(*most / *least);
  const double beyond = std::max(std::log(last / *most), std::log(*least / last));
  if (!small && beyond > 0 && beyond > kBeyondSpread * spread)
    return {fmt::format("{} in the last run: {}.", rate, ChangeWords(change, before.size())),
            change};
  if (spread > std::log(kLargestSpread) || (!small && beyond > 0)) {
    return {fmt::format("{} in the last run, {}. Cannot tell whether that is a change: they are {} "
                        "to {}.",
                        rate, ChangeWords(change, before.size()), FormatRate(*least, "rows"),
                        FormatRate(*most, "rows")),
            0, false};
  }
  return {fmt::format("{} in the last run, as in the {} before it.", rate, before.size()), 0};
}

TrendWords SayTrend(const std::vector<TrendRun>& runs) {
  const TrendRun& last = runs.back();
  std::vector<double> before;
  for (size_t i = runs.size() - 1 - std::min(kRunsBefore, runs.size() - 1); i + 1 < runs.size();
       ++i)
    before.push_back(runs[i].rate);
  TrendWords words = CompareRates(last.rate, before);
  const std::string& was = runs[runs.size() - 2].version;
  if (words.change != 0 && was != last.version)
    words.text += fmt::format(" It is the first of version {} after {}.", last.version, was);
  return words;
}

// Of several pipelines the one whose last run stands out most is said.
struct TrendAnswer {
  size_t trends = 0, changed = 0, undecided = 0;
  double most = 0;
  std::string text, only;

  void Add(const std::string& pipeline, const TrendWords& words) {
    ++trends;
    only = words.text;
    if (!words.decided) ++undecided;
    if (words.change == 0) return;
    ++changed;
    if (std::abs(words.change) <= std::abs(most)) return;
    most = words.change;
    text = fmt::format("{}: {}", pipeline, words.text);
  }
  std::string Sentence() const {
    if (trends == 1) return only;
    if (trends > 0 && undecided == trends)
      return fmt::format("Cannot tell of any of {} pipelines whether its rate changed.", trends);
    if (changed == 0 && undecided > 0)
      return fmt::format("No last run of {} pipelines stands out; of {} it cannot be told.",
                         trends - undecided, undecided);
    if (changed == 0) return fmt::format("No last run of {} pipelines stands out.", trends);
    return text;
  }
};

// The last two parts of a path tell pipelines apart.
std::string PipelineName(const std::string& path) {
  const size_t last = path.rfind('/');
  if (last == std::string::npos || last == 0) return path;
  const size_t before = path.rfind('/', last - 1);
  return before == std::string::npos ? path : path.substr(before + 1);
}

Json TrendJson(const std::string& pipeline, const std::string& settings,
               const std::vector<TrendRun>& runs, const std::string& text) {
  Json list = Json::array();
  for (const TrendRun& run : runs) {
    list.push_back({{"id", run.id},
                    {"name", run.name},
                    {"tags", run.tags},
                    {"version", run.version},
                    {"started_seconds", run.started_s},
                    {"rows_per_second", ShortNumber(run.rate)}});
  }
  return {
      {"pipeline", pipeline}, {"settings", settings}, {"text", text}, {"runs", std::move(list)}};
}

std::string Plural(size_t count) { return fmt::format("{} run{}", count, count == 1 ? "" : "s"); }

// Why there is no trend, and the command that brings one nearer.
struct NoTrend {
  std::string text, command;
};

// `most`: of the kind that has the most runs; `again`: one of them.
NoTrend SayNoTrend(const std::string& program, size_t most, const analysis::RunRow* again) {
  NoTrend said;
  said.text = fmt::format("A trend takes {} finished runs of one pipeline with the same settings. ",
                          kFewestRuns);
  if (again == nullptr) {
    said.text += "There is no finished run with a rate yet. Runs of comparisons do not count.";
    said.command = program + " demo";
    return said;
  }
  const std::string name =
      again->pipeline_path.empty() ? again->program : PipelineName(again->pipeline_path);
  said.text += fmt::format("So far there {} {} of {}. Record it again, unchanged.",
                           most == 1 ? "is" : "are", Plural(most), Printable(name, 100));
  if (!again->pipeline_path.empty()) {
    said.command = fmt::format("{} run {}", program, analysis::PipelineArguments(*again));
  } else if (const std::string words = analysis::CommandWords(*again); !words.empty()) {
    said.command = fmt::format("{} profile -- {}", program, words);
  }
  return said;
}

// Runs of one pipeline with the same settings; not those of comparisons, which have their own page,
// nor of the trainer alone.
HttpResponse Trends(Site& site, const HttpRequest&, const Target&) {
  collectors::ReadStore store(site.cache().database());
  const collectors::SqlResult rows = store.Query(
      "SELECT r.run_id, r.name, r.tags, r.headrace_version, r.started_realtime_ns, s.rows_count * "
      "1e9 / s.wall_ns, CASE WHEN r.pipeline_path <> '' THEN r.pipeline_path ELSE r.program END, "
      "r.settings_text, r.pipeline_path, r.program, r.command FROM run_summary AS r JOIN "
      "step_summary AS s USING (run_id) WHERE r.state = "
      "'complete' AND s.rows_count > 0 AND s.wall_ns > 0 AND (r.kind IS NULL OR r.kind <> "
      "'ceiling') AND NOT EXISTS (SELECT 1 FROM comparison_run AS c WHERE c.run_id = r.run_id) "
      "ORDER BY r.run_id DESC LIMIT 1000");
  using Kind = std::pair<std::string, std::string>;
  std::map<Kind, std::vector<TrendRun>> kinds;
  std::vector<Kind> order;  // by the newest run
  std::map<Kind, analysis::RunRow> newest;
  for (const auto& row : rows.rows) {
    const Kind kind = {Printable(TextOf(row[6]), 300), TextOf(row[7])};
    const auto [at, fresh] = kinds.try_emplace(kind);
    if (fresh) {
      order.push_back(kind);
      analysis::RunRow& run = newest[kind];
      run.settings_text = TextOf(row[7]);
      run.pipeline_path = TextOf(row[8]);
      run.program = TextOf(row[9]);
      run.command = TextOf(row[10]);
    }
    if (at->second.size() >= kMostRuns) continue;
    at->second.push_back({IntegerOf(row[0]), Printable(TextOf(row[1]), 100),
                          Printable(TextOf(row[2]), 100), Printable(TextOf(row[3]), 40),
                          RealOf(row[4]) / 1e9, RealOf(row[5])});
  }
  Json list = Json::array();
  TrendAnswer answer;
  for (const Kind& kind : order) {
    std::vector<TrendRun>& runs = kinds.at(kind);
    if (runs.size() < kFewestRuns || list.size() >= kMostTrends) continue;
    std::reverse(runs.begin(), runs.end());
    const TrendWords words = SayTrend(runs);
    answer.Add(PipelineName(kind.first), words);
    list.push_back(TrendJson(kind.first, kind.second, runs, words.text));
  }
  NoTrend none{answer.Sentence(), ""};
  if (list.empty()) {
    const auto most = std::max_element(
        order.begin(), order.end(),
        [&](const Kind& a, const Kind& b) { return kinds.at(a).size() < kinds.at(b).size(); });
    none = most == order.end()
               ? SayNoTrend(site.cache().program(), 0, nullptr)
               : SayNoTrend(site.cache().program(), kinds.at(*most).size(), &newest.at(*most));
  }
  HttpResponse response;
  response.body = Json({{"schema", "headrace.trends/1"},
                        {"answer", none.text},
                        {"command", none.command},
                        {"trends", std::move(list)}})
                      .dump(-1, ' ', false, Json::error_handler_t::replace);
  response.headers.push_back({"Cache-Control", "no-store"});
  return response;
}

HR_ENDPOINT("/api/trends", {.make = Trends});

}  // namespace
}  // namespace headrace::dashboards
