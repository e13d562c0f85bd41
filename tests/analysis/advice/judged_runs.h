// Runs that recommendations are made for, and what is recommended.
#pragma once
#include <gtest/gtest.h>

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "analysis/advice/recommendations.h"
#include "tests/analysis/synthetic_run.h"

namespace headrace::analysis {

// One operator a stage: name, threads, CPU and blocked time of an element.
struct StageOfOne {
  std::string name;
  int threads;
  double cpu_s, blocked_s, cv = 0.2;
};

inline SimulatedPipeline Pipeline(const std::vector<StageOfOne>& steps, double consumer_s,
                                  double cores = 4) {
  SimulatedPipeline pipeline;
  pipeline.cores = cores;
  pipeline.consumer_s = consumer_s;
  for (const StageOfOne& step : steps) {
    pipeline.stages.push_back(
        {step.name, step.threads, 4, {{step.name, step.cpu_s, step.blocked_s, 0, 0, step.cv, -1}}});
  }
  return pipeline;
}

inline RunView RecordedFor(double seconds, const SimulatedPipeline& pipeline) {
  RunView run = Record(pipeline, seconds, 5);
  run.run.pipeline_text = "[pipeline]\n";
  run.hosts.push_back({"process_rss_bytes", "bytes", "counter", 1e9, 1e9, 1.1e9, 1e9});
  return run;
}
inline RunView Recorded(const SimulatedPipeline& pipeline) { return RecordedFor(10, pipeline); }

inline OperatorRow& Operator(RunView* run, const std::string& name) {
  for (OperatorRow& op : run->operators) {
    if (op.name == name) return op;
  }
  ADD_FAILURE() << name;
  return run->operators[0];
}

// Another operator in the run, with counters of its own and none in the windows.
inline OperatorRow& AddOperator(RunView* run, const std::string& name, const std::string& kind,
                                const std::string& stage) {
  OperatorRow op;
  op.name = name;
  op.kind = kind;
  op.stage = stage;
  op.on_cpu_ns = 0;
  op.source = "thread_clock";
  for (const StageRow& row : run->stages) {
    if (row.name == stage) op.stage_index = row.stage_index;
  }
  for (WindowRow& window : run->windows) {
    window.operators.emplace_back().on_cpu_ns = 0;
  }
  run->operators.push_back(op);
  return run->operators.back();
}

struct Judged {
  std::shared_ptr<RunView> run;
  std::shared_ptr<Statements> statements;
  std::vector<Recommendation> all;

  const Recommendation& Of(const std::string& id) const {
    for (const Recommendation& one : all) {
      if (one.id == id) return one;
    }
    ADD_FAILURE() << "no " << id;
    return all.front();
  }
};

inline Judged Judge(RunView run) {
  Judged judged;
  judged.run = std::make_shared<RunView>(std::move(run));
  judged.statements = std::make_shared<Statements>(MakeStatements(*judged.run));
  EXPECT_EQ(judged.statements->withheld, "");
  judged.all = Recommend(*judged.run, *judged.statements);
  return judged;
}

// A table reader whose storage is slow: `requests` a stripe, of `mean` bytes.
inline RunView ReadingStripes(double io_s, double requests, double mean, double over_read,
                              const std::map<std::string, std::string>& settings) {
  RunView run = Recorded(Pipeline(
      {{"fetch", 1, 0.0001, io_s}, {"decode", 1, 0.001, 0}, {"batch", 1, 0.0005, 0}}, 0.002));
  OperatorRow& fetch = Operator(&run, "fetch");
  fetch.kind = "fetch";
  const double stripes = static_cast<double>(fetch.completions_count);
  const double read = stripes * requests * mean;
  fetch.bytes_in_bytes = static_cast<int64_t>(read);
  fetch.bytes_out_bytes = static_cast<int64_t>(read * (1 - over_read));
  // The storage's part has an account of its own, which holds all the time.
  OperatorRow& io = AddOperator(&run, "fetch.io", "io", "fetch");
  OperatorRow& outer = Operator(&run, "fetch");
  const auto move = [](OperatorCounters* from, OperatorCounters* to) {
    to->busy_ns = from->busy_ns;
    to->on_cpu_ns = from->on_cpu_ns;
    from->busy_ns = 0;
    from->on_cpu_ns = 0;
  };
  move(&outer, &io);
  io.completions_count = static_cast<int64_t>(stripes * requests);
  io.bytes_out_bytes = static_cast<int64_t>(read);
  for (WindowRow& window : run.windows) {
    OperatorCounters& inner = window.operators.back();
    move(&window.operators[0], &inner);
    inner.completions_count =
        static_cast<int64_t>(static_cast<double>(window.operators[0].completions_count) * requests);
  }
  run.run.settings = settings;
  return run;
}

// The settings of a pipeline that names none.
inline const std::map<std::string, std::string> kReads = {{"source.coalesce_gap", "131072"},
                                                          {"source.coalesce_max", "8388608"},
                                                          {"source.epochs", "1"},
                                                          {"source.table", "."}};
inline std::map<std::string, std::string> Endlessly(std::map<std::string, std::string> settings) {
  settings["source.epochs"] = "0";
  return settings;
}

inline const std::map<std::string, std::string> kDisk = {
    {"source.coalesce_gap", "0"},
    {"source.throttle.bandwidth", "150000000B/s"},
    {"source.throttle.seek", "8000000ns"}};

inline const std::map<std::string, std::string> kFreeRequests = {
    {"source.coalesce_gap", "131072"}, {"source.throttle.bandwidth", "20MB/s"}};

}  // namespace headrace::analysis
