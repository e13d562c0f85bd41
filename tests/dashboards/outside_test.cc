// Reports of runs seen from outside and of what probes measured: what people read, and that nothing
// unmeasured is a number.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <sstream>

#include "dashboards/render/render.h"
#include "dashboards/report/make_report.h"
#include "dashboards/report/measured.h"
#include "tests/analysis/outside_run.h"
#include "tests/analysis/synthetic_run.h"
#include "tests/dashboards/golden.h"

namespace headrace::dashboards {
namespace {

using analysis::MeasurementRow;
using analysis::RunView;
using testing::HasSubstr;
using testing::Not;

Report MakeOutside(const RunView& run) { return MakeReport(run, analysis::MakeStatements(run)); }
nlohmann::json Json(const RunView& run) {
  return nlohmann::json::parse(RenderJson(MakeOutside(run), run));
}

MeasurementRow& Add(RunView* run, const std::string& metric, double value,
                    const std::string& subject = "", const std::string& cause = "") {
  MeasurementRow row;
  row.metric = metric;
  row.kind = "counter";
  row.source = "ebpf";
  row.value = row.last_value = value;
  row.subject = subject;
  row.cause = cause;
  if (!run->Has(metric)) run->metrics.push_back(metric);
  run->measurements.push_back(row);
  return run->measurements.back();
}

// What the probes say of ten seconds of a loader that reads from vda.
void AddEverything(RunView* run, const std::string& op) {
  const auto of = [&](MeasurementRow& row) -> MeasurementRow& {
    row.operator_name = row.stage = op;
    row.process_id = 100;
    row.process = "python";
    return row;
  };
  of(Add(run, "block_requests_count", 20000, "vda", "read"));
  of(Add(run, "block_bytes", 20000 * 4096.0, "vda", "read"));
  of(Add(run, "block_latency_ns", 20000 * 95e3, "vda", "read"));
  of(Add(run, "block_sequential_count", 1000, "vda", "read"));
  for (const auto& [bucket, events] : {std::pair<int64_t, double>{65536, 19000}, {131072, 1000}}) {
    of(Add(run, "block_latency_count", events, "vda", "read")).bucket = bucket;
  }
  of(Add(run, "block_size_count", 20000, "vda", "read")).bucket = 4096;
  of(Add(run, "file_read_bytes", 60e6, "", "cache"));
  of(Add(run, "file_read_bytes", 20e6, "", "device"));
  of(Add(run, "file_reads_count", 9000));
  of(Add(run, "page_cache_added_bytes", 120e6));
  of(Add(run, "socket_received_bytes", 5e6, "10.0.0.1:443>10.0.0.2:5000"));
  of(Add(run, "page_faults_count", 5000, "", "minor"));
  of(Add(run, "cycles_count", 3e9)).running_ratio = 0.5;
  of(Add(run, "instructions_count", 4.5e9)).running_ratio = 0.5;
  of(Add(run, "llc_misses_count", 9e6)).running_ratio = 0.2;
  of(Add(run, "branch_misses_count", 9e9)).running_ratio = 0.01;
  of(Add(run, "topdown_backend_ratio", 0.7)).running_ratio = 0.2;
  Add(run, "pressure_ns", 2e9, "", "cpu some");
  Add(run, "steal_ns", 3e8);
  Add(run, "nic_received_bytes", 8e6, "eth0");
  Add(run, "energy_joules", 900, "package-0");
  run->stacks.push_back({"cpu", op, op, 100, "python", 100, "python",
                         "main;a;b;parse_record;inflate;read_[k];copy_[k]", 90, 900'000'000});
  run->losses = {{"block completions", 30, 1000}, {"step details", 0, 10}};
  run->probes.push_back({"energy", "unavailable", "no RAPL zone", "bare metal", "joules per row"});
}

RunView Workers() {
  RunView run = analysis::Loader(2, 0.15, 0.8, 0.95, 0, 0.03).view;
  run.probes = {{"off-CPU time", "active", "", "", ""},
                {"operator accounts", "unavailable", "the process keeps none",
                 "write them with headrace/account.h", "operators, queues, steps"}};
  return run;
}

TEST(OutsideReport, Goldens) {
  ExpectGolden("outside_workers.txt", RenderText(MakeOutside(Workers()), {120, true}));
  RunView storage = analysis::Loader(2, 0.15, 0.8, 0.15, 0.8, 0.03).view;
  AddEverything(&storage, "");
  ExpectGolden("outside_storage.txt", RenderText(MakeOutside(storage), {120, true}));
  ExpectGolden(
      "outside_trainer.txt",
      RenderText(MakeOutside(analysis::Loader(4, 0.93, 0.05, 0.1, 0, 0.88).view), {120, true}));
  ExpectGolden("outside_own_work.txt",
               RenderText(MakeOutside(analysis::WithStacks(
                              analysis::Loader(2, 0.93, 0.05, 0.1, 0, 0.88), 1, 8, 0.5)),
                          {120, true}));
  ExpectGolden(
      "outside_idle_worker.txt",
      RenderText(MakeOutside(analysis::Loader(1, 0.98, 0.01, 0.01, 0, 0.97).view), {120, true}));
  ExpectGolden(
      "outside_pauses.txt",
      RenderText(MakeOutside(analysis::Loader(1, 0.6, 0.38, 0.3, 0, 0.68).view), {120, true}));
}

// The counters of pressure begin with the probes, before the run.
TEST(OutsideReport, PressureIsAShareOfTheTimeItWasCounted) {
  RunView run = Workers();
  const double ns = static_cast<double>(run.run.duration_ns);
  Add(&run, "pressure_ns", 1.1 * ns, "", "cpu some");
  Add(&run, "pressure_window_ns", 1.25 * ns).last_value = 1.25 * ns;
  EXPECT_NEAR(Json(run)["machine"]["pressure_cpu_some_ratio"].get<double>(), 0.88, 1e-9);
  run.measurements.pop_back();  // a run recorded without it
  EXPECT_EQ(Json(run)["machine"]["pressure_cpu_some_ratio"], 1.0);
}

TEST(OutsideReport, FitsItsWidth) {
  RunView run = Workers();
  AddEverything(&run, "");
  for (const int width : {80, 120}) {
    std::istringstream text(RenderText(MakeOutside(run), {width, true}));
    for (std::string line; std::getline(text, line);) {
      EXPECT_LE(line.size(), static_cast<size_t>(width)) << line;
    }
  }
}

TEST(OutsideReport, JsonNamesLimitGroupAndBasis) {
  const nlohmann::json json = Json(Workers());
  EXPECT_EQ(json["verdict"]["limit"]["kind"], "producers");
  EXPECT_EQ(json["verdict"]["limit"]["name"], "the workers");
  EXPECT_EQ(json["verdict"]["limit"]["pids"], "200, 201");
  EXPECT_GT(json["verdict"]["limit"]["probability"], 0.9);
  EXPECT_EQ(json["verdict"]["basis"], "outside");
  EXPECT_NEAR(json["verdict"]["stall_ratio"], 0.84, 0.04);
  EXPECT_EQ(json["findings"][0]["kind"], "producers");
  EXPECT_GE(json["threads"].size(), 4u);
  EXPECT_GE(json["wakeups"].size(), 3u);
  EXPECT_EQ(json["processes"].size(), 3u);
}

// A thread that nothing feeds waits for something, but not for threads that feed it.
TEST(OutsideReport, AThreadAloneWaitsForACause) {
  for (const bool ebpf : {true, false}) {
    analysis::OutsideRun waiting;
    waiting.Process(1, 0, "cat").OnCpu(1, "cat (main)", 0.001);
    waiting.Blocked(1, "cat (main)", "pipe", 0.99);
    if (!ebpf) {  // causes only: waits are not known to be ended by anybody
      for (analysis::CourseRow& row : waiting.view.course) {
        row.metric = row.metric == "off_cpu_ns" ? "sampled_off_cpu_ns" : "sampled_on_cpu_ns";
      }
      waiting.view.metrics = {"sampled_on_cpu_ns", "sampled_off_cpu_ns"};
    }
    const std::string text = RenderText(MakeOutside(waiting.view), {200, true});
    EXPECT_THAT(text, HasSubstr("nothing feeds it"));
    EXPECT_THAT(text, HasSubstr("waiting on a pipe 99.9 %"));
    EXPECT_THAT(text, Not(HasSubstr("other threads")));
  }
}

TEST(OutsideReport, UnmeasuredPartsSayWhy) {
  RunView run = Workers();
  run.probes.push_back({"block requests", "unavailable", "no CAP_BPF", "run as root", "storage"});
  const nlohmann::json json = Json(run);
  EXPECT_THAT(json["block_io_summary"]["unavailable"].get<std::string>(), HasSubstr("no CAP_BPF"));
  for (const char* section : {"file_io", "network", "counters", "stack_samples"}) {
    EXPECT_THAT(json[section]["unavailable"].get<std::string>(), HasSubstr("not measured"))
        << section;
  }
  EXPECT_TRUE(json["machine"]["steal_cores"].is_null());
  EXPECT_TRUE(json["processes"][0]["cpu_seconds"].is_null());
  const std::string text = RenderText(MakeOutside(run), {120, true});
  for (const char* absent : {"Block requests", "Sockets", "Hardware counters", "Functions"}) {
    EXPECT_THAT(text, Not(HasSubstr(absent)));
  }
}

TEST(OutsideReport, EverythingMeasuredIsShown) {
  analysis::SimulatedPipeline pipeline;
  pipeline.cores = 2;
  pipeline.stages = {{"fetch", 2, 4, {{"fetch", 0.0002, 0.003, 0, 0, 0.2, -1}}}};
  RunView run = analysis::Record(pipeline, 4, 3);
  for (analysis::OperatorRow& op : run.operators) {
    op.source = "ebpf";
    op.residual_ns = 1'000'000;
  }
  AddEverything(&run, "fetch");
  MeasurementRow& blocked = Add(&run, "off_cpu_ns", 4e9, "", "storage");
  blocked.operator_name = blocked.stage = "fetch";
  const nlohmann::json json = Json(run);
  EXPECT_GT(json["time_split"][0]["storage_ratio"], 0.3);
  EXPECT_EQ(json["time_split"][0]["source"], "ebpf");
  EXPECT_EQ(json["block_io"][0]["mean_size_bytes"], 4096);
  EXPECT_NEAR(json["block_io"][0]["mean_latency_seconds"], 95e-6, 1e-9);
  EXPECT_NEAR(json["block_io"][0]["latency_p50_seconds"], 95e-6, 40e-6);
  EXPECT_NEAR(json["block_io"][0]["sequential_ratio"], 0.05, 1e-9);
  EXPECT_NEAR(json["file_io"]["device_bytes_per_byte_read"], 1.5, 1e-9);
  EXPECT_EQ(json["hardware_counters"][0]["ipc_ratio"], 1.5);
  EXPECT_EQ(json["hardware_counters"][0]["running_ratio"], 0.2);
  EXPECT_EQ(json["hardware_counters"][0]["llc_misses_per_kiloinstruction"], 2);
  EXPECT_GT(json["hardware_counters"][0]["llc_misses_per_row"], 0);
  // One hundredth of the time says nothing.
  EXPECT_TRUE(json["hardware_counters"][0]["branch_misses_per_kiloinstruction"].is_null());
  EXPECT_EQ(json["topdown"][0]["backend_ratio"], 0.7);
  EXPECT_TRUE(json["topdown"][0]["retiring_ratio"].is_null());
  EXPECT_EQ(json["stacks"][0]["frames"], "b;parse_record;inflate;[kernel]");
  EXPECT_EQ(json["losses"][0]["lost_count"], 30);
  const std::string text = RenderText(MakeOutside(run), {120, true});
  EXPECT_THAT(
      text,
      HasSubstr(
          "LOST     block IO: latencies of those requests missing (lost: 30 block completions "
          "of 1000 (3.0 %))"));
  EXPECT_THAT(text, HasSubstr("energy unavailable: no RAPL zone"));
  EXPECT_THAT(text, HasSubstr("without it: joules per row"));
}

TEST(OutsideReport, PercentilesOfPowersOfTwo) {
  EXPECT_FALSE(HistogramQuantile({}, 0.5));
  EXPECT_FALSE(HistogramQuantile({{8, 0}}, 0.5));
  EXPECT_NEAR(*HistogramQuantile({{8, 10}}, 0.5), 8 * std::sqrt(2.0), 1e-9);
  EXPECT_NEAR(*HistogramQuantile({{8, 90}, {1024, 10}}, 0.99), 1024 * std::exp2(0.9), 1e-6);
  EXPECT_LE(*HistogramQuantile({{0, 5}}, 0.5), 1.0);
}

}  // namespace
}  // namespace headrace::dashboards
