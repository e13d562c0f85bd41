// Requests by size and latency together.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "analysis/run/settings.h"
#include "base/terminal_text.h"
#include "base/units.h"
#include "dashboards/pages/card_json.h"
#include "dashboards/pages/page_run.h"
#include "dashboards/pages/short_number.h"
#include "dashboards/report/measured.h"
#include "dashboards/sql_values.h"

namespace headrace::dashboards {
namespace {

using Json = nlohmann::ordered_json;

struct JointCell {
  int64_t size_bytes, latency_ns, events;
};
// Of one direction of requests, or of what served calls.
using JointCells = std::map<std::string, std::vector<JointCell>>;

constexpr const char* kDeviceMetric = "block_size_latency_count";
constexpr const char* kCallMetric = "file_read_size_latency_count";

// Of operators where there are any, else of the recorded processes.
bool HasOperators(const PageRun& page) {
  return !page.store()
              .Query("SELECT 1 FROM operator_summary WHERE run_id = ?1 LIMIT 1", {page.id()})
              .rows.empty();
}

// `where`: of which rows of the view.
JointCells ReadJoint(const PageRun& page, const char* metric, const char* where) {
  JointCells cells;
  for (const auto& row :
       page.store()
           .Query(std::string("SELECT direction, size_bytes, latency_ns, SUM(events_count) FROM "
                              "io_size_latency WHERE run_id = ?1 AND metric = ?2 AND ") +
                      where + " GROUP BY 1, 2, 3 ORDER BY 1, 2, 3",
                  {page.id(), std::string(metric)})
           .rows) {
    if (IntegerOf(row[3]) <= 0) continue;
    cells[Printable(TextOf(row[0]), 40)].push_back(
        {IntegerOf(row[1]), IntegerOf(row[2]), IntegerOf(row[3])});
  }
  return cells;
}

std::string SizeWord(int64_t bytes) {
  return fmt::format("{} to {}", FormatBytes(static_cast<double>(bytes)),
                     FormatBytes(2 * static_cast<double>(bytes)));
}

// Half are within what; what the slowest take, and of which size most of these are.
std::string JointAnswer(const std::vector<JointCell>& cells, const std::string& what) {
  constexpr int64_t kEnoughForHundredth = 100;
  std::map<int64_t, int64_t> by_latency;
  int64_t all = 0;
  for (const JointCell& cell : cells) {
    by_latency[cell.latency_ns] += cell.events;
    all += cell.events;
  }
  int64_t below = 0, half_ns = 0, slow_ns = by_latency.rbegin()->first;
  for (const auto& [latency, events] : by_latency) {
    below += events;
    if (2 * below < all) continue;
    half_ns = latency;
    break;
  }
  const bool hundredth = all >= kEnoughForHundredth;
  int64_t above = 0;
  for (auto at = by_latency.rbegin(); hundredth && at != by_latency.rend(); ++at) {
    above += at->second;
    slow_ns = at->first;
    if (100 * above >= all) break;
  }
  std::map<int64_t, int64_t> slow_sizes;
  for (const JointCell& cell : cells)
    if (cell.latency_ns >= slow_ns) slow_sizes[cell.size_bytes] += cell.events;
  const auto most =
      std::max_element(slow_sizes.begin(), slow_sizes.end(),
                       [](const auto& a, const auto& b) { return a.second < b.second; });
  // What is known of a bucket is its edges: as many as are at or above this one take that or more.
  const std::string slow =
      hundredth
          ? FormatPercent(static_cast<double>(above) / static_cast<double>(all)) + " of them take"
          : "the slowest take";
  return fmt::format("{} {}: half take less than {}; {} {} or more, most often of {}.", all, what,
                     FormatDuration(2 * static_cast<double>(half_ns)), slow,
                     FormatDuration(static_cast<double>(slow_ns)), SizeWord(most->first));
}

int64_t CountOf(const JointCells& of_all) {
  int64_t requests = 0;
  for (const auto& [direction, cells] : of_all)
    for (const JointCell& cell : cells) requests += cell.events;
  return requests;
}

// Requests that were seen although none of them is an operator's.
std::string OthersWords(const PageRun& page) {
  const int64_t outside =
      CountOf(ReadJoint(page, kDeviceMetric, "operator IS NULL AND process_id IS NOT NULL"));
  const int64_t others =
      CountOf(ReadJoint(page, kDeviceMetric, "operator IS NULL AND process_id IS NULL"));
  std::string text;
  if (outside > 0)
    text += fmt::format(" Its processes made {} requests outside of operators.", outside);
  if (others > 0) text += fmt::format(" Other programs made {} requests.", others);
  return text;
}

// Without cells: what is known of them.
std::string NoRequestWords(const PageRun& page, const std::string& why, bool ran) {
  const std::string others = OthersWords(page);
  if (others.empty() && !HistogramOf(page.loaded().run, "block_size_count").empty())
    return "This run has sizes and latencies of requests, each alone: none was counted by both.";
  if (ran || !others.empty()) {
    return fmt::format(
        "No request of {} was seen at a block device: what was read came from memory or over a "
        "network.{}",
        HasOperators(page) ? "an operator" : "this program", others);
  }
  return "Single requests were not timed: " + why +
         ". The reader's own instrumentation has their sum only.";
}

Card JointCard(const PageRun& page, const JointCells& device, const JointCells& calls) {
  Card card;
  card.question = "Which requests are slow?";
  card.sql =
      "SELECT metric, direction, size_bytes, latency_ns, SUM(events_count) AS events_count FROM "
      "io_size_latency WHERE run_id = {run} GROUP BY metric, direction, size_bytes, latency_ns "
      "ORDER BY metric, direction, size_bytes, latency_ns";
  card.read = {
      "A field is the requests of one size that took one time, in steps that double. The darker it "
      "is, the more there are."};
  if (const auto reads = device.find("read"); reads != device.end()) {
    card.answer = JointAnswer(reads->second, "reads of devices");
    card.read.push_back("The time is from the start of a request until its device had answered.");
  } else if (!device.empty()) {
    card.answer = JointAnswer(device.begin()->second,
                              fmt::format("{} requests to devices", device.begin()->first));
    card.read.push_back("The time is from the start of a request until its device had answered.");
  } else if (!calls.empty()) {
    const bool from_device = calls.contains("device");
    const auto& [served, cells] = *(from_device ? calls.find("device") : calls.begin());
    card.answer = JointAnswer(cells, fmt::format("read calls answered by the {}", served));
    card.read.push_back("The time is that of the call.");
  } else {
    const analysis::RunView& run = page.loaded().run;
    const std::string why = WhyNot(run, {"block"});
    const bool ran = why.find("nothing of it was seen") != std::string::npos;
    card.empty = NoRequestWords(page, why, ran);
    if (ran && !run.run.pipeline_path.empty()) {
      card.command = fmt::format("{} run {} --cold{}", run.program, analysis::PipelineWord(run.run),
                                 run.database_option);
    } else if (!ran) {
      card.command = "headrace doctor";
    }
  }
  return card;
}

void AddJointJson(const char* metric, const JointCells& cells, Json* list) {
  for (const auto& [direction, of] : cells) {
    Json size = Json::array(), latency = Json::array(), events = Json::array();
    for (const JointCell& cell : of) {
      size.push_back(cell.size_bytes);
      latency.push_back(ShortNumber(static_cast<double>(cell.latency_ns) / 1e9));
      events.push_back(cell.events);
    }
    list->push_back({{"of", metric == kDeviceMetric ? "requests to devices" : "read calls"},
                     {"direction", direction},
                     {"size", std::move(size)},
                     {"latency", std::move(latency)},
                     {"count", std::move(events)}});
  }
}

std::string IoLatencyAnswer(const PageRun& page, const PageQuery&) {
  const char* own = HasOperators(page) ? "operator IS NOT NULL" : "process_id IS NOT NULL";
  const JointCells device = ReadJoint(page, kDeviceMetric, own),
                   calls = ReadJoint(page, kCallMetric, own);
  Json list = Json::array();
  AddJointJson(kDeviceMetric, device, &list);
  AddJointJson(kCallMetric, calls, &list);
  const Json root = {{"schema", "headrace.io_latency/1"},
                     {"card", CardJson(JointCard(page, device, calls), page.id())},
                     {"histograms", std::move(list)}};
  return root.dump(-1, ' ', false, Json::error_handler_t::replace);
}

HR_PAGE_ANSWER("io_latency", {.make = IoLatencyAnswer, .in_file = true, .of_report = true});

}  // namespace
}  // namespace headrace::dashboards
