// A store in a folder of its own, and intervals to put into it.
#pragma once
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <string>

#include "base/error.h"
#include "collectors/store/store.h"
#include "tests/collectors/times.h"

namespace headrace::collectors {

// A folder for a store, which goes with the test.
class StoreFolder : public testing::Test {
 protected:
  void SetUp() override {
    char folder[] = "/tmp/headrace-store-XXXXXX";
    folder_ = mkdtemp(folder);
    path_ = folder_ + "/t.db";
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  static RunInfo Info(const std::string& name) {
    RunInfo info;
    info.name = name;
    info.pid = 4242;
    info.program = "p";
    info.started_realtime_ns = 1;
    char host[256] = "";
    gethostname(host, sizeof host - 1);
    info.hostname = host;
    return info;
  }

  std::string folder_, path_;
};

class Store : public StoreFolder {
 protected:
  // An interval of one stage with `num_operators` operators, a queue, a lock and two steps.
  static IntervalSample Interval(int64_t start_ns, int64_t duration_ns, int num_operators = 1) {
    IntervalSample t;
    t.start_ns = start_ns;
    t.duration_ns = duration_ns;
    t.stages.push_back({0, "decode", 0, 2, 0, 2 * duration_ns, 2 * duration_ns, 5 * kMs, 100 * kMs,
                        7 * kMs, duration_ns});
    for (int i = 0; i < num_operators; i++) {
      OperatorSample o;
      o.id = i;
      o.name = "op" + std::to_string(i);
      o.kind = "decode";
      o.position = i;
      o.completions = 10;
      o.rows = 640;
      o.in_bytes = 123456;
      o.out_bytes = 654321;
      o.busy_ns = 150 * kMs + start_ns % 1000;
      o.on_cpu_ns = 100 * kMs;
      o.runnable_ns = 7 * kMs;
      o.wait_in_ns = 30 * kMs;
      o.wait_out_ns = 20 * kMs;
      t.operators.push_back(o);
    }
    t.queues.push_back({0, "ready", 0, std::nullopt, 4, duration_ns, 2 * duration_ns,
                        4 * duration_ns, duration_ns / 4, duration_ns / 2, 10, 9});
    t.resources.push_back({0, "table", "lock", 1, 3, 5 * kMs, 6 * kMs, 0});
    t.steps = {2, 128, 60 * kMs, 40 * kMs, start_ns, start_ns + duration_ns, {40 * kMs, 60 * kMs}};
    return t;
  }

  std::string Row(const std::string& sql) {
    ReadStore store(path_);
    const SqlResult result = store.Query(sql);
    std::string text;
    for (const auto& row : result.rows) {
      if (!text.empty()) text += "\n";
      for (size_t c = 0; c < row.size(); c++) {
        if (c) text += "|";
        if (auto* i = std::get_if<int64_t>(&row[c])) text += fmt::format("{}", *i);
        if (auto* d = std::get_if<double>(&row[c])) text += fmt::format("{:.4g}", *d);
        if (auto* s = std::get_if<std::string>(&row[c])) text += *s;
      }
    }
    return text;
  }

  template <typename F>
  Error Caught(F&& f) {
    try {
      f();
    } catch (const Error& error) {
      return error;
    }
    ADD_FAILURE() << "no Error was thrown";
    return Error(ExitCode::kOk, "");
  }
};

}  // namespace headrace::collectors
