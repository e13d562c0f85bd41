// A store with one small run that has something of everything an export can have, for the tests of
// exports: two stages, three operators, a queue, a lock, steps, processes, measurements, stacks, a
// decision, losses. Names are what the test says, hostile ones too.
#pragma once
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "collectors/store/store.h"
#include "dashboards/export/export.h"

namespace headrace::dashboards {

// Everything a name may hold that ends a field, a line or a string somewhere.
inline const std::string kHostileName =
    std::string("a\"b'c\\d,e;f\ng\rh\ti") + "\x1b[2J{}<>&=\xc2\x9b\xe2\x80\xae\xff\xed\xa0\x80 z";

struct RecordedNames {
  std::string run = "nightly", stage = "decode", op = "decompress", queue = "ready",
              resource = "table", process = "reader", subject = "sda", frame = "ZSTD_decompress";
};

class ExportedStore : public testing::Test {
 protected:
  static constexpr int64_t kMs = 1'000'000, kWindow = 200 * kMs;

  void SetUp() override {
    char folder[] = "/tmp/headrace-export-XXXXXX";
    folder_ = mkdtemp(folder);
    path_ = folder_ + "/t.db";
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  // The second operator does nothing in windows 2 and 3, and its time on a core is not known in
  // window 5. The third, in a stage of its own, was never separated.
  static collectors::IntervalSample Window(int i, const RecordedNames& names) {
    collectors::IntervalSample t;
    t.start_ns = i * kWindow;
    t.duration_ns = kWindow;
    for (int s = 0; s < 2; ++s) {
      collectors::StageSample stage;
      stage.id = s;
      stage.name = s == 0 ? names.stage : "pack";
      stage.index = s;
      stage.parallelism = 2;
      stage.parallelism_ns = stage.lifetime_ns = 2 * kWindow;
      stage.observed_ns = kWindow;
      stage.on_cpu_ns = 150 * kMs;
      stage.runnable_ns = 10 * kMs;
      t.stages.push_back(stage);
    }
    for (int o = 0; o < 3; ++o) {
      if (o == 1 && (i == 2 || i == 3)) continue;
      collectors::OperatorSample op;
      op.id = o;
      op.name = o == 0 ? names.op : o == 1 ? "extract" : "batch";
      op.kind = "decode";
      op.stage_id = o == 2 ? 1 : 0;
      op.position = o;
      op.completions = 10;
      op.rows = 640 + i;
      op.in_bytes = 1000 * (o + 1);
      op.out_bytes = 2000 * (o + 1);
      op.busy_ns = (100 + i) * kMs;
      op.wait_in_ns = 30 * kMs;
      op.wait_out_ns = 20 * kMs;
      if (o < 2) {
        op.on_cpu_ns = 60 * kMs;
        op.runnable_ns = 5 * kMs;
        const bool known = o == 0 || i != 5;
        op.on_cpu_low_ns = known ? 60 * kMs : 10 * kMs;
        op.on_cpu_high_ns = known ? 60 * kMs : 90 * kMs;
        op.runnable_low_ns = op.runnable_high_ns = 5 * kMs;
        op.time_source = "thread_clock";
      }
      t.operators.push_back(op);
    }
    collectors::QueueSample queue;
    queue.name = names.queue;
    queue.producer_stage_id = 0;
    queue.consumer_stage_id = 1;
    queue.capacity = 4;
    queue.observed_ns = kWindow;
    queue.occupancy_ns = kWindow * (i % 4);
    queue.capacity_ns = 4 * kWindow;
    queue.puts = queue.gets = 10;
    t.queues.push_back(queue);
    collectors::ResourceSample lock;
    lock.name = names.resource;
    lock.kind = "lock";
    lock.servers = 1;
    lock.acquisitions = 3;
    lock.wait_ns = 5 * kMs;
    lock.hold_ns = 6 * kMs;
    t.resources.push_back(lock);
    t.steps = {2, 128, 60 * kMs, 40 * kMs, t.start_ns, t.start_ns + kWindow, {40 * kMs, 60 * kMs}};
    return t;
  }

  static collectors::MeasurementBatch Measured(const RecordedNames& names, int num_windows) {
    collectors::MeasurementBatch batch;
    batch.metrics = {{"host_cpu_ns", "ns", "counter", "counter", "none", "CPU time"},
                     {"process_rss_bytes", "bytes", "gauge", "counter", "none", "Memory"},
                     {"disk_bytes", "bytes", "counter", "counter", "none", "Bytes \"moved\"\\\n"}};
    collectors::ProcessRow root;
    root.id = 0;
    root.pid = 4242;
    root.name = names.process;
    root.command = names.process + " --run";
    root.role = "root";
    root.started_ns = -50 * kMs;
    collectors::ProcessRow child = root;
    child.id = 1;
    child.pid = 4243;
    child.role = "child";
    child.started_ns = 100 * kMs;
    child.ended_ns = 700 * kMs;
    child.exit_text = "exited 1";
    batch.processes = {root, child};
    const auto define = [&](int64_t id, const char* metric, const std::string& subject,
                            const char* cause, std::optional<int64_t> process) {
      collectors::MeasurementRow row;
      row.id = id;
      row.metric = metric;
      row.source = "counter";
      row.subject = subject;
      row.cause = cause;
      row.process_id = process;
      batch.definitions.push_back(row);
    };
    define(0, "host_cpu_ns", "", "user", {});
    define(1, "process_rss_bytes", "", "", 0);
    define(2, "disk_bytes", names.subject, "read", {});
    batch.totals = {{0, 0, 0, 0, 0, 9e8, {}},
                    {1, num_windows * kWindow, 1e6 * num_windows * kWindow, 9e5, 2e6, 1e6, {}},
                    {2, 0, 0, 0, 0, 5e6, {}}};
    // The disk moves nothing after the first window.
    batch.intervals.push_back({2, 0, kWindow, 5e6});
    for (int i = 0; i < num_windows; ++i) {
      batch.intervals.push_back({0, i * kWindow, kWindow, 1e8});
      batch.intervals.push_back({1, i * kWindow, kWindow, 1e6});
    }
    batch.stacks = {{0, "cpu", 0, 0, "decode", "main;Work;" + names.frame, 3, 60 * kMs},
                    {1, "cpu", 1, 0, "decode", "main;Work;Extract", 2, 40 * kMs},
                    {2, "cpu", {}, 0, "other", "main;Idle", 1, 20 * kMs},
                    {3, "off_cpu", 0, 0, "decode", "[storage];main;Work;pread", 2, 80 * kMs},
                    {4, "off_cpu", {}, 0, "other", "[sleep];main;Idle", 2, 90 * kMs},
                    {5, "python", {}, 0, "MainThread", "MainThread;main (t.py:4)", 7, 70 * kMs}};
    return batch;
  }

  // Records `num_windows` windows of 200 ms. Returns the run.
  int64_t Record(const RecordedNames& names = {}, int num_windows = 10, bool with_stacks = true) {
    collectors::RunStore store(path_);
    collectors::RunInfo info;
    info.name = names.run;
    info.program = names.process;
    info.command = names.process + " --run";
    info.pid = 4242;
    info.started_realtime_ns = 1'700'000'000'123'456'789;
    info.accounting_level = 2;
    info.hostname = "elsewhere";  // so that nobody takes the writer for dead
    const int64_t run = store.BeginRun(info);
    collectors::MeasurementBatch measured = Measured(names, num_windows);
    if (!with_stacks) measured.stacks.clear();
    std::vector<collectors::IntervalSample> windows;
    for (int i = 0; i < num_windows; ++i) {
      windows.push_back(Window(i, names));
      if (windows.size() < 500 && i + 1 < num_windows) continue;
      store.Append(run, windows, i + 1 == num_windows ? measured : collectors::MeasurementBatch{});
      windows.clear();
    }
    store.SetLoss(run, "step records", 3, 100);
    store.SetProbe(run, "accounts", "active", "", "");
    store.SetProbe(run, "hardware counters", "unavailable", names.subject, "bare metal");
    store.SetDetailRange(run, {300 * kMs, 600 * kMs, "stall " + names.subject});
    for (int64_t index = 0; index < 2; ++index) {
      collectors::DecisionRow decision;
      decision.index = index;
      decision.at_ns = (200 + 200 * index) * kMs;
      decision.applied_ns = decision.at_ns + 100 * kMs;
      decision.observed_ns = decision.at_ns + 400 * kMs;  // the second begins before the first ends
      decision.action = "apply";
      decision.verdict = "kept";
      decision.reason = names.subject;
      decision.now_rate = 100;
      decision.changes = {{names.stage + ".parallelism", "1", "2"}};
      store.SetDecision(run, decision);
    }
    store.FinishRun(run, collectors::RunState::kComplete);
    return run;
  }

  static std::string Written(const std::string& format, const ExportRequest& request) {
    std::string text;
    FindExport(format).write(request, [&](std::string_view bytes) { text += bytes; });
    return text;
  }

  // The whole run in a format; formats of one view have operator_interval.
  std::string Exported(const std::string& format, int64_t run = 1) {
    collectors::ReadStore store(path_);
    ExportRequest request{store, run};
    if (FindExport(format).by_view) request.view = "operator_interval";
    return Written(format, request);
  }

  std::string folder_, path_;
};

}  // namespace headrace::dashboards
