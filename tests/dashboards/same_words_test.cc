// The first page says the same, byte for byte, in the report, on the web page, in the file and in
// the terminal's live view, whatever the verdict is.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>

#include "analysis/model/bottleneck.h"
#include "dashboards/pages/page_run.h"
#include "dashboards/pages/report_file.h"
#include "dashboards/render/render.h"
#include "dashboards/report/report_state.h"
#include "dashboards/terminal/top_verdict.h"
#include "tests/analysis/made_runs.h"
#include "tests/analysis/outside_run.h"
#include "tests/dashboards/stored_run.h"

namespace headrace::dashboards {
namespace {

using analysis::SimulatedPipeline;
using nlohmann::json;

SimulatedPipeline WithCosts(double fetch_blocked, double decode_cpu, double trainer, double cores) {
  SimulatedPipeline pipeline;
  pipeline.cores = cores;
  pipeline.stages = {{"fetch", 1, 4, {{"fetch", 0.0002, fetch_blocked, 0, 0, 0.2, -1}}},
                     {"decode", 2, 4, {{"decode", decode_cpu, 0, 0, 0, 0.1, -1}}},
                     {"batch", 1, 8, {{"batch", 0.0005, 0, 0, 0, 0.1, -1}}}};
  pipeline.consumer_s = trainer;
  return pipeline;
}

SimulatedPipeline WithLock(double held_s) {
  SimulatedPipeline pipeline = WithCosts(0.001, 0.0005, 0.002, 4);
  pipeline.resources = {{"table", 1}};
  pipeline.stages[1].parallelism = 4;
  pipeline.stages[1].operators[0].resource = 0;
  pipeline.stages[1].operators[0].held_blocked_s = held_s;
  return pipeline;
}

struct StoredCase {
  const char* name;
  SimulatedPipeline pipeline;
  double seconds = 8;
  bool finished = true;
};

std::vector<StoredCase> StoredCases() {
  return {{"fetch limits", WithCosts(0.008, 0.001, 0.004, 2)},
          {"fetch limits little", WithCosts(0.005, 0.001, 0.0048, 2)},
          {"fetch limits much", WithCosts(0.05, 0.001, 0.004, 2)},
          {"decode limits", WithCosts(0.001, 0.02, 0.004, 4)},
          {"decode limits on one core", WithCosts(0.001, 0.02, 0.004, 1)},
          {"the cores limit", WithCosts(0.001, 0.008, 0.004, 1)},
          {"the cores limit, of two", WithCosts(0.001, 0.012, 0.0055, 2)},
          {"the trainer limits", WithCosts(0.001, 0.001, 0.02, 2)},
          {"the trainer limits just so", WithCosts(0.0045, 0.001, 0.005, 2)},
          {"two limit alike", WithCosts(0.0058, 0.0116, 0.002, 4)},
          {"fetch and the trainer alike", WithCosts(0.0048, 0.001, 0.005, 2)},
          {"no trainer, fetch", WithCosts(0.008, 0.001, 0, 2)},
          {"no trainer, decode", WithCosts(0.001, 0.02, 0, 4)},
          {"a lock", WithLock(0.009)},
          {"a lock held shortly", WithLock(0.003)},
          {"too short", WithCosts(0.05, 0.001, 0.004, 2), 0.5},
          {"three seconds", WithCosts(0.008, 0.001, 0.004, 2), 3},
          {"still recorded", WithCosts(0.008, 0.001, 0.004, 2), 6, false},
          {"all are idle", WithCosts(0.0001, 0.0001, 0.05, 2)},
          {"slow and rare", WithCosts(0.3, 0.001, 0.01, 2)}};
}

// Words alone: how a text is broken into lines is its medium's business.
std::string Words(const std::string& text) {
  std::string words;
  for (const char c : text) {
    const bool blank = c == ' ' || c == '\n';
    if (!blank || (!words.empty() && words.back() != ' ')) words += blank ? ' ' : c;
  }
  return words;
}

json PageOf(const FirstPage& page) {
  Report report;
  report.first = page;
  return json::parse(RenderJson(report, analysis::RunView()))["page"];
}

// Most of what operators waited inside is in no account, so their costs do not explain the rate.
analysis::RunView Unexplained() {
  analysis::RunView run = analysis::Record(WithCosts(0.008, 0.001, 0.001, 2), 8, 3);
  const auto forget = [](analysis::OperatorCounters* op) {
    const int64_t lost = op->blocked_ns.value_or(0) / 4 * 3;
    op->busy_ns -= lost;
    if (op->blocked_ns) *op->blocked_ns -= lost;
  };
  for (analysis::OperatorRow& op : run.operators) forget(&op);
  for (analysis::WindowRow& window : run.windows) {
    for (analysis::OperatorCounters& op : window.operators) forget(&op);
  }
  return run;
}

// One thread decodes, and has a share of cores that others want as well.
SimulatedPipeline OneDecodes() {
  SimulatedPipeline pipeline = WithCosts(0.001, 0.012, 0.002, 2);
  pipeline.stages[1].parallelism = 1;
  return pipeline;
}

// All runs, in one database; a run's id is its place, from 1.
void StoreCases(const std::string& path) {
  collectors::RunStore store(path);
  for (const StoredCase& each : StoredCases()) {
    StoreRun(store, analysis::Record(each.pipeline, each.seconds, 3), each.name, each.finished);
  }
  StoreRun(store, analysis::RecordBeside(OneDecodes(), 6, 20, 1), "beside other programs");
  StoreRun(store, Unexplained(), "unexplained");
  for (const auto& [name, run] :
       {std::pair("outside, loaders compute", analysis::Loader(2, 0.5, 0.45, 0.95, 0, 0.03)),
        std::pair("outside, storage", analysis::Loader(2, 0.5, 0.45, 0.05, 0.9, 0.03)),
        std::pair("outside, the trainer", analysis::Loader(2, 0.95, 0.03, 0.2, 0, 0.75)),
        std::pair("outside, either", analysis::Loader(2, 0.4, 0.55, 0.6, 0, 0.38))}) {
    StoreOutsideRun(store, run.view, name);
  }
}

// The report's state, and what else shapes its sentences.
std::set<std::string> StatesOf(const json& verdict) {
  std::set<std::string> states{verdict["state"].get<std::string>()};
  if (verdict.contains("basis")) states.insert("outside, " + verdict["state"].get<std::string>());
  if (verdict.contains("conditional_on_load")) states.insert("conditional");
  if (verdict.contains("earlier")) states.insert("earlier");
  return states;
}

// Every key of `object` is in `schema`, at every level that the schema describes. KEY_low, KEY_high
// and KEY_unavailable go with KEY.
void ExpectDescribed(const json& object, const json& schema, const std::string& at) {
  for (const auto& [name, value] : object.items()) {
    std::string key = name;
    for (const char* ending : {"_low", "_high", "_unavailable"}) {
      if (key.ends_with(ending)) key.resize(key.size() - std::string(ending).size());
    }
    ASSERT_TRUE(schema.contains(key)) << at << "." << name << " is not in the schema";
    if (value.is_object() && schema[key].contains("properties")) {
      ExpectDescribed(value, schema[key]["properties"], at + "." + name);
    }
  }
}

json VerdictSchema() {
  std::ifstream file(std::filesystem::path(HEADRACE_SOURCE_DIR) / "docs/schema/report.schema.json");
  return json::parse(file)["properties"]["verdict"]["properties"];
}

// As `headrace report` prints it.
void ExpectInText(const LoadedRun& loaded, const json& page) {
  TextOptions options;
  options.width = 80;
  const std::string text = Words(RenderText(loaded.report, options));
  EXPECT_THAT(text, testing::HasSubstr(Words(page["badge"].get<std::string>())));
  EXPECT_THAT(text, testing::HasSubstr(Words(page["verdict"].get<std::string>())));
  for (const json& line : page["lines"]) {
    if (line["label"] == "more") continue;  // the rest follows there
    EXPECT_THAT(text, testing::HasSubstr(Words(line["text"].get<std::string>()))) << line;
  }
}

TEST(SameWords, EverywhereForEveryVerdict) {
  TemporaryStore files;
  const std::string path = files.path();
  StoreCases(path);
  collectors::ReadStore store(path);
  std::set<std::string> states;
  const json schema = VerdictSchema();
  const int64_t runs = store.FindRun("latest");
  for (int64_t id = 1; id <= runs; ++id) {
    const auto loaded = LoadForPages(path, std::to_string(id), {});
    SCOPED_TRACE(loaded->run.run.name);
    ASSERT_FALSE(loaded->report.first.badge.empty());
    const json whole = json::parse(RenderJson(loaded->report, loaded->run));
    states.merge(StatesOf(whole["verdict"]));
    ExpectDescribed(whole["verdict"], schema, "verdict");
    const json& report = whole["page"];

    const PageRun page(store, id, [&] { return LoadForPages(path, std::to_string(id), {}); });
    EXPECT_EQ(json::parse(Registry<PageAnswer>::Global().Find("report")->make(page, {}))["page"],
              report)
        << "the web page";

    const std::string file = ReportFile(path, loaded);
    const size_t begin = file.find("id=\"data\">") + 10, end = file.find("</script>", begin);
    EXPECT_EQ(json::parse(
                  file.substr(begin, end - begin))[fmt::format("/api/runs/{}/report", id)]["page"],
              report)
        << "the file";

    const TopVerdict top = MakeTopVerdict(path, id, "headrace", "");
    EXPECT_EQ(PageOf(top.page), report) << "the terminal's live view";
    ExpectInText(*loaded, report);
  }
  for (const ReportState state : kReportStates) {
    EXPECT_THAT(states, testing::Contains(ReportStateName(state)));
  }
  EXPECT_THAT(states, testing::Contains("conditional"));
}

}  // namespace
}  // namespace headrace::dashboards
