// The report of fixed runs, as people read it, and its invariants in every format.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <regex>
#include <sstream>

#include "analysis/advice/statements.h"
#include "base/terminal_text.h"
#include "collectors/store/store.h"
#include "dashboards/render/render.h"
#include "dashboards/report/make_report.h"
#include "dashboards/report/report_state.h"
#include "tests/analysis/outside_run.h"
#include "tests/analysis/synthetic_run.h"
#include "tests/dashboards/example_pipeline.h"
#include "tests/dashboards/golden.h"

namespace headrace::dashboards {
namespace {

std::string SourceText(const std::string& path) {
  std::ifstream file(std::filesystem::path(HEADRACE_SOURCE_DIR) / path);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

TEST(ReportState, TheSchemaAndTheDocumentListEveryStateAndNoOther) {
  std::vector<std::string> names, documented;
  for (const ReportState state : kReportStates) names.emplace_back(ReportStateName(state));
  const auto schema = nlohmann::json::parse(SourceText("docs/schema/report.schema.json"));
  EXPECT_EQ(schema["properties"]["verdict"]["properties"]["state"]["enum"], nlohmann::json(names));
  std::istringstream lines(SourceText("docs/report.md"));
  std::smatch cell;
  bool inside = false;
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("| `verdict.state` |")) {
      inside = true;
    } else if (inside && std::regex_search(line, cell, std::regex("^\\| `([^`]+)` \\|"))) {
      documented.push_back(cell[1]);
    } else if (inside && !line.starts_with("|")) {
      break;
    }
  }
  EXPECT_EQ(documented, names);
  std::vector<std::string> runs;
  for (const auto state : {collectors::RunState::kRecording, collectors::RunState::kComplete,
                           collectors::RunState::kInterrupted, collectors::RunState::kTruncated}) {
    runs.emplace_back(collectors::RunStateName(state));
  }
  EXPECT_EQ(schema["properties"]["run"]["properties"]["state"]["enum"], nlohmann::json(runs));
}

TEST(ReportState, AVerdictKeepsItsName) {
  using analysis::Verdict;
  for (const Verdict verdict :
       {Verdict::kLimited, Verdict::kConsumer, Verdict::kBalanced, Verdict::kUndecided}) {
    EXPECT_STREQ(ReportStateName(StateOf(verdict)), analysis::VerdictName(verdict));
  }
}

using analysis::RunView;
using analysis::SimulatedPipeline;

SimulatedPipeline Consuming() {
  SimulatedPipeline pipeline = DecodeLimits();
  pipeline.consumer_s = 0.02;
  return pipeline;
}

SimulatedPipeline Locked() {
  SimulatedPipeline pipeline = DecodeLimits();
  pipeline.resources = {{"table", 1}};
  pipeline.stages[1].parallelism = 4;
  pipeline.stages[1].operators[1].resource = 0;
  pipeline.stages[1].operators[1].held_blocked_s = 0.009;
  return pipeline;
}

RunView Recorded(const SimulatedPipeline& pipeline) {
  RunView run = analysis::Record(pipeline, 8, 3);
  run.run.settings_text = "";
  run.hosts = {{"collector_cpu_ns", "ns", "counter", {}, {}, {}, 48e6},
               {"collector_rss_bytes", "bytes", "counter", 9e6, 9e6, 9437184, 9e6},
               {"host_busy_cores", "cores", "counter", 1.1, 0.9, 1.4, 1.1}};
  run.losses = {{"step records", 0, 1600}};
  run.probes = {{"accounts", "active", "", ""},
                {"hardware counters", "unavailable", "this machine exposes no PMU",
                 "bare metal, or a vPMU on the hypervisor"}};
  return run;
}

Report Make(const RunView& run) { return MakeReport(run, analysis::MakeStatements(run)); }

const Section& CostSection(const Report& report) {
  return *std::find_if(report.sections.begin(), report.sections.end(),
                       [](const Section& section) { return section.key == "cost"; });
}

// Not the recorder's own time alone: accounts of a fast loader take more than it.
TEST(Report, RecordingCostsWhatAccountsTakeInTheProgramToo) {
  RunView run = Recorded(DecodeLimits());
  run.hosts.push_back({"host_cores", "cores", "gauge", 2, 2, 2, 2});
  const double run_ns = static_cast<double>(run.run.duration_ns);
  const auto share_ns = [&](const std::string& key) -> std::optional<double> {
    const Report report = Make(run);
    for (const Fact& fact : CostSection(report).facts) {
      const auto* ratio = std::get_if<Quantity>(&fact.value);
      if (fact.key != key || ratio == nullptr) continue;
      return ratio->available() ? std::optional(ratio->value() * run_ns) : std::nullopt;
    }
    ADD_FAILURE() << key;
    return std::nullopt;
  };
  const double without = share_ns("machine_ratio").value();
  EXPECT_EQ(share_ns("accounts_cpu_ratio"), std::nullopt) << "older runs did not count visits";

  for (analysis::OperatorRow& op : run.operators) op.enters_count = 0;
  run.operators[0].enters_count = 1'000'000;
  run.run.pipeline_text = "";
  EXPECT_EQ(share_ns("accounts_cpu_ratio"), std::nullopt) << "not the reader";
  EXPECT_EQ(share_ns("machine_ratio"), without);
  run.run.pipeline_text = "pipeline = {}";
  EXPECT_NEAR(share_ns("accounts_cpu_ratio").value(), 22e6, 1e4);
  run.operators[0].kind = "receive";  // as the reader calls it
  run.operators[0].completions_count = 10'000;
  EXPECT_NEAR(share_ns("accounts_cpu_ratio").value(), 22e6, 1e4);

  run.operators[0].stage = "receiver";  // and as the import hook does
  EXPECT_NEAR(share_ns("accounts_cpu_ratio").value(), 150e6, 1e4);
  EXPECT_NEAR(share_ns("machine_ratio").value() - without, 75e6, 1e4) << "of two cores";
  EXPECT_THAT(RenderText(Make(run), {120, true}),
              testing::HasSubstr("instrumentation in the program some"));

  run.operators[0].completions_count = 10'000'000;  // more than all cores have
  EXPECT_EQ(share_ns("accounts_cpu_ratio"), std::nullopt);
  EXPECT_EQ(share_ns("machine_ratio"), without);
}

TEST(Report, TextOfEachKindOfVerdict) {
  const struct {
    const char* name;
    SimulatedPipeline pipeline;
  } cases[] = {{"report_decode.txt", DecodeLimits()},
               {"report_consumer.txt", Consuming()},
               {"report_lock.txt", Locked()}};
  for (const auto& c : cases) {
    SCOPED_TRACE(c.name);
    ExpectGolden(c.name, RenderText(Make(Recorded(c.pipeline)), {120, true}));
  }
}

// A run of a table, beside runs of the same pipeline without input and from the device.
TEST(Report, TheThirdOpinionAndTheRunsThatItLacks) {
  RunView run = Recorded(DecodeLimits());
  run.run.settings_text = "";
  run.run.kind = "pipeline";
  run.run.table_text = "1 files, 1000 bytes, 0";
  run.operators[0].kind = "io";
  run.fetched_bytes = 1'000'000;
  run.device_bytes = 10'000;
  const auto sibling = [](int64_t id, const char* kind, int64_t rate, int64_t device_bytes) {
    analysis::SiblingRow row;
    row.run_id = id;
    row.kind = kind;
    row.fetched_bytes = 1'000'000;
    row.device_bytes = device_bytes;
    row.windows.assign(12, {1'000'000'000, rate});
    return row;
  };
  run.siblings = {sibling(3, "ceiling", 198, 0)};
  ExpectGolden("report_ceiling.txt", RenderText(Make(run), {120, true}));
  run.siblings.push_back(sibling(2, "pipeline", 90, 990'000));
  const std::string text = RenderText(Make(run), {120, true});
  EXPECT_THAT(text, testing::Not(testing::HasSubstr("missing ")));
  EXPECT_THAT(text, testing::HasSubstr("fetch stall"));
  run.siblings = {sibling(3, "ceiling", 115, 0)};
  EXPECT_THAT(RenderText(Make(run), {120, true}),
              testing::HasSubstr(" but    runs with and without input point at the trainer"));
  run.run.kind = "ceiling";
  run.siblings = {sibling(2, "pipeline", 90, 0)};
  EXPECT_THAT(RenderText(Make(run), {120, true}), testing::HasSubstr("headrace report 2"));
}

// Names are other people's: nothing in them may move the cursor, hide text or turn its direction.
TEST(Report, NamesAreShownAndNotObeyed) {
  const struct {
    const char* name;
    const char* shown;
  } cases[] = {{"a\x1b[2Jb", "a\\x1b[2Jb"},
               {"line\nbreak", "line\\x0abreak"},
               {"abc\u202egnp.exe", "abc\\u202egnp.exe"},
               {"x\u2066y\u2069\u200f\u061c", "x\\u2066y\\u2069\\u200f\\u061c"},
               {"in\u200bvisible\ufeff", "in\\u200bvisible\\ufeff"},
               {"c1 \u0085\u009b", "c1 \\u0085\\u009b"},
               {"\u2028", "\\u2028"},
               {"bad \xff", "bad \\xff"},
               {"d\u00e9codage \u5317 \U0001F600", "d\u00e9codage \u5317 \U0001F600"}};
  for (const auto& c : cases) {
    SCOPED_TRACE(c.shown);
    EXPECT_EQ(Printable(c.name), c.shown);
    Report report;
    report.title = c.name;
    Section section{"s", c.name, {{c.name, c.name}, {"", c.name, true}}, {}, {}};
    section.tables.push_back({"t", c.name, {{"a", "a"}, {"b", "b"}}, {}});
    section.tables[0].rows = {{std::string(c.name), Quantity::Unavailable(c.name, Unit::kCount)}};
    report.sections = {section};
    for (const std::string& text : {RenderText(report, {120, false}), RenderMarkdown(report)}) {
      for (const char* raw : {"\x1b", "\u202e", "\u2066", "\u200b", "\u0085", "\u2028", "\xff"}) {
        EXPECT_EQ(text.find(raw), std::string::npos) << text;
      }
      EXPECT_EQ(text.find("line\nbreak"), std::string::npos);
    }
  }
}

TEST(Report, NarrowTextKeepsItsWidth) {
  std::istringstream text(RenderText(Make(Recorded(DecodeLimits())), {80, true}));
  for (std::string line; std::getline(text, line);) {
    if (line.find("headrace ") != std::string::npos) continue;  // commands stay pasteable
    EXPECT_LE(line.size(), 80u) << line;
  }
}

TEST(Report, MarkdownGolden) {
  ExpectGolden("report_decode.md", RenderMarkdown(Make(Recorded(DecodeLimits()))));
}

TEST(Report, JsonHasFindingsOperatorsQueuesAndSteps) {
  const RunView run = Recorded(DecodeLimits());
  const nlohmann::json json = nlohmann::json::parse(RenderJson(Make(run), run));
  EXPECT_EQ(json["schema"], "headrace.report/1");
  EXPECT_EQ(json["verdict"]["limit"]["name"], "decode");
  EXPECT_EQ(json["verdict"]["limit"]["operator"], "decompress");
  EXPECT_EQ(json["findings"][0]["name"], "decode");
  EXPECT_GT(json["findings"][0]["probability"], 0.9);
  EXPECT_EQ(json["operators"].size(), 4u);
  EXPECT_EQ(json["queues"].size(), 3u);
  EXPECT_EQ(json["steps"][0]["steps_count"], run.steps.steps_count);
  EXPECT_NEAR(json["steps"][0]["compute_seconds"], 0.005, 1e-4);
}

// What the verdict says of more cores and what R21 says is one prediction.
TEST(Report, OnePredictionOfMoreCores) {
  SimulatedPipeline pipeline = DecodeLimits();
  pipeline.cores = 1;
  pipeline.stages = {{"a", 4, 4, {{"a", 0.004, 0, 0, 0, 0.2, -1}}}};
  pipeline.consumer_s = 0.0005;
  const Report report = Make(Recorded(pipeline));
  std::string next, hardware;
  for (const PageLine& line : report.first.lines) {
    if (line.label == "fix") next = line.text;
  }
  for (const Section& section : report.sections) {
    for (const Sentence& sentence : section.sentences) {
      if (sentence.label == "R21") hardware = sentence.text;
    }
  }
  const std::string head = "other hardware: ";
  ASSERT_TRUE(hardware.starts_with(head)) << hardware;
  EXPECT_THAT(next, testing::HasSubstr("1 more core gives " + hardware.substr(head.size())));
}

TEST(Report, UnmeasuredIsNeverZero) {
  RunView run = Recorded(DecodeLimits());
  run.hosts.clear();
  for (analysis::OperatorRow& op : run.operators) op.on_cpu_ns.reset();
  for (analysis::WindowRow& window : run.windows) {
    for (analysis::OperatorCounters& op : window.operators) op.on_cpu_ns.reset();
    for (analysis::StageCounters& stage : window.stages) stage.on_cpu_ns.reset();
  }
  for (analysis::StageRow& stage : run.stages) stage.on_cpu_ns.reset();
  const nlohmann::json json = nlohmann::json::parse(RenderJson(Make(run), run));
  EXPECT_TRUE(json["operators"][0]["on_cpu_ratio"].is_null());
  EXPECT_FALSE(json["operators"][0]["on_cpu_ratio_unavailable"].get<std::string>().empty());
  EXPECT_TRUE(json["resources"]["cores_used"].is_null());
  EXPECT_TRUE(json["cost"]["collector_cpu_ratio"].is_null());
}

// decompress and decode visit their thread in turn, too shortly for the CPU clock.
TEST(Report, OperatorsThatAreNotToldApartHaveOneFigure) {
  RunView run = Recorded(DecodeLimits());
  const auto hide = [](analysis::OperatorCounters* op) {
    op->on_cpu_low_ns = 0;
    op->on_cpu_high_ns = op->busy_ns * 3 / 4;
    op->blocked_low_ns = op->busy_ns / 4;
    op->blocked_high_ns = op->busy_ns;
    op->on_cpu_ns.reset();
    op->blocked_ns.reset();
    op->runnable_ns.reset();
  };
  for (const size_t i : {1, 2}) {
    hide(&run.operators[i]);
    for (analysis::WindowRow& window : run.windows) hide(&window.operators[i]);
  }
  const Report report = Make(run);
  const nlohmann::json json = nlohmann::json::parse(RenderJson(report, run));
  const auto& rows = json.at("operators");
  ASSERT_EQ(rows.size(), 4u);
  EXPECT_FALSE(rows[0].at("on_cpu_ratio").is_null());
  for (const size_t i : {1, 2}) {
    EXPECT_TRUE(rows[i].at("on_cpu_ratio").is_null());
    EXPECT_TRUE(rows[i].at("off_cpu_ratio").is_null());
    EXPECT_GT(rows[i].at("busy_ratio").get<double>(), 0.3);
  }
  const std::string text = RenderText(report, {120, true});
  EXPECT_THAT(text, testing::HasSubstr("decompress: c + b + q 50.")) << text;
  EXPECT_THAT(text, testing::HasSubstr("in one figure; c is between 0.0 % and 3"));
  EXPECT_THAT(text, testing::HasSubstr("unknown: visits of 4."));
}

TEST(Report, FiguresThatCannotBeTrueAreWithheld) {
  RunView run = Recorded(Locked());
  run.operators[0].busy_ns = int64_t{1} << 53;
  run.queues[0].full_ratio = 7;
  run.resources[0].hold_ns = int64_t{1} << 53;
  run.steps.compute_ns = int64_t{1} << 53;
  run.losses.push_back({"threads over the limit", int64_t{1} << 53, std::nullopt});
  const Report report = Make(run);
  EXPECT_FALSE(report.decided);
  const nlohmann::json json = nlohmann::json::parse(RenderJson(report, run));
  EXPECT_EQ(json["verdict"]["state"], "withheld");
  EXPECT_TRUE(json["operators"][0]["busy_ratio"].is_null());
  EXPECT_THAT(json["operators"][0]["busy_ratio_unavailable"].get<std::string>(),
              testing::HasSubstr("stage fetch claim 2502 h of work"));
  EXPECT_FALSE(json["operators"][1]["busy_ratio"].is_null());
  EXPECT_TRUE(json["queues"][0]["full_ratio"].is_null());
  EXPECT_FALSE(json["queues"][1]["full_ratio"].is_null());
  EXPECT_TRUE(json["locks_and_devices"][0]["held_ratio"].is_null());
  EXPECT_TRUE(json["steps"][0]["compute_seconds"].is_null());
  EXPECT_EQ(json["cost"]["events_lost_count"], 0);
  const std::string text = RenderText(report, {120, true});
  EXPECT_THAT(text, testing::HasSubstr("not believed"));
  EXPECT_THAT(text, testing::Not(testing::HasSubstr("9007199254740992")));
}

TEST(Report, ConnectionsAreCountedByWhoOpensThem) {
  RunView run = Recorded(DecodeLimits());
  const auto add = [&](const char* metric, const char* owner, const char* cause, double value) {
    analysis::MeasurementRow row;
    row.metric = metric;
    row.operator_name = owner;
    row.cause = cause;
    row.value = value;
    run.measurements.push_back(row);
  };
  add("socket_received_bytes", "fetch", "", 1e6);
  add("tcp_connects_count", "fetch", "established", 40);
  add("tcp_connect_ns", "fetch", "established", 40 * 2.5e6);
  add("tcp_connects_count", "fetch", "failed", 3);
  add("tcp_connect_ns", "fetch", "failed", 3e9);  // giving up takes long; it is no part of the mean
  add("tcp_connects_count", "lookup", "failed", 7);
  const Report report = MakeReport(run, analysis::MakeStatements(run));
  const std::string text = RenderText(report, {});
  const size_t table = text.find("connections opened");
  ASSERT_NE(table, std::string::npos) << text;
  const std::string rows = text.substr(table, 600);
  EXPECT_TRUE(std::regex_search(rows, std::regex("fetch +40 +2.50 ms +3\\b"))) << rows;
  EXPECT_TRUE(std::regex_search(rows, std::regex("lookup +0 +- +7\\b"))) << rows;
}

TEST(Report, ShortRunsAndRunsWithoutAccountsAreWithheld) {
  RunView run = analysis::Record(DecodeLimits(), 0.1, 3);
  Report report = Make(run);
  EXPECT_FALSE(report.decided);
  EXPECT_THAT(RenderText(report, {100, true}), testing::HasSubstr("too short for a verdict"));
  run = RunView{};
  run.run.name = "outside";
  run.run.duration_ns = 10'000'000'000;
  report = Make(run);
  EXPECT_FALSE(report.decided);
  EXPECT_THAT(RenderText(report, {100, true}), testing::HasSubstr("no thread was seen"));
}

// That it is seen from outside says the page's first line.
TEST(Report, AShortRunSeenFromOutsideSaysOnceWhatItIs) {
  analysis::OutsideRun run(0.5, 1);
  run.Process(1, 0, "python").OnCpu(1, "python (main)", 0.4);
  const std::string text = RenderText(Make(run.view), {100, true});
  EXPECT_THAT(text, testing::HasSubstr("NO VERDICT  too short for a verdict"));
  EXPECT_THAT(text, testing::Not(testing::HasSubstr("this run has no instrumentation")));
}

// Work that a killed process had begun is in no figure, which its page says; not of those that end
// as they are asked to, keep no accounts, or are killed as the program ends.
TEST(Report, ProcessesThatWereKilledAreNamed) {
  RunView run = Recorded(DecodeLimits());
  const int64_t end_ns = run.run.duration_ns;
  const auto add = [&](int64_t pid, const char* exit_text, int64_t ended_ns, bool has_accounts) {
    analysis::ProcessRow process;
    process.process_id = process.pid = pid;
    process.has_accounts = has_accounts;
    process.ended_ns = ended_ns;
    process.exit_text = exit_text;
    run.processes.push_back(process);
  };
  const auto page = [&] { return testing::PrintToString(Make(run).first.conditions); };
  add(11, "exited 1", 2'000'000'000, true);
  add(12, "killed by signal 15", 2'000'000'000, true);
  add(13, "killed by signal 9", 2'000'000'000, false);
  add(14, "killed by signal 9", end_ns - 100'000'000, true);
  EXPECT_THAT(page(), testing::Not(testing::HasSubstr("killed by")));
  add(15, "killed by signal 9", 3'000'000'000, true);
  EXPECT_THAT(page(), testing::HasSubstr(
                          "Process 15 was killed by signal 9 after 3.00 s. Work it had begun "
                          "is not counted."));
  add(16, "killed by signal 11", 2'500'000'000, true);
  EXPECT_THAT(page(), testing::HasSubstr(
                          "2 processes were killed, the first (16) by signal 11 after 2.50 s."));
}

TEST(Report, InterruptedRunsAreMarked) {
  RunView run = Recorded(DecodeLimits());
  run.run.state = "interrupted";
  EXPECT_THAT(RenderText(Make(run), {100, true}), testing::HasSubstr("This run is interrupted"));
}

TEST(Report, EverySectionBearsAnEmptyRun) {
  const RunView empty;
  const analysis::Statements none = analysis::MakeStatements(empty);
  for (const auto& [name, entry] : Registry<SectionEntry>::Global().entries()) {
    SCOPED_TRACE(name);
    entry.make(empty, none);
  }
}

}  // namespace
}  // namespace headrace::dashboards
