// TopModel: everything that `headrace top` shows of a run at one moment, as numbers and words
// without place or colour. The layout (layout.h) draws it and `--json` prints it.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "analysis/run/run_view.h"
#include "dashboards/report/page.h"
#include "dashboards/terminal/live_run.h"
#include "dashboards/terminal/time_course.h"
#include "dashboards/terminal/top_verdict.h"

namespace headrace::dashboards {

// Where the time of threads goes, as shares of it; nothing: not measured, or not separated.
struct TopShares {
  std::optional<double> busy;     // = on_core + blocked + wants
  std::optional<double> on_core;  // c
  std::optional<double> blocked;  // b
  std::optional<double> wants;    // q: ready to run, no core free
  std::optional<double> wait_in, wait_out;
};

struct TopOperator {
  std::string name;
  TopShares shares;                  // of the time of its stage's threads
  std::optional<double> element_ns;  // busy time an element; nothing: it finished none
  // Nothing: there are no figures yet.
  std::optional<double> elements_per_s, rows_per_s, bytes_in_per_s, bytes_out_per_s;
};

struct TopQueue {
  std::string name;
  int64_t capacity_count = 0;  // 0: without a bound
  std::optional<double> fill, full, empty;
};

struct TopStage {
  std::string name;
  std::optional<double> threads_count;
  TopShares shares;                    // of the time of its threads
  std::vector<TopOperator> operators;  // the busiest first
  std::optional<TopQueue> queue;       // behind it
  std::optional<double> allows;        // batches per second, by the verdict
  bool limit = false;
  TimeCourse busy;
};

struct TopTrainer {
  std::optional<double> busy;    // share of its time in which it computes; nothing: no steps
  std::optional<double> allows;  // batches per second; nothing: it computes nothing, or unknown
  bool limit = false;
  TimeCourse busy_course;
};

// One line with a sparkline.
struct TopTrend {
  std::string title;  // "rows/s"
  TimeCourse course;
  double top = 0;    // value of a full cell; 0: the largest
  std::string last;  // the newest value in words: "65.4 krows/s"
};

struct TopModel {
  // The run. All names are safe to print.
  int64_t run_id = 0;
  std::string name, program, state;
  int64_t pid = 0;
  int64_t recorded_ns = 0;
  int64_t level = 0;
  bool recording = false;

  // What the figures are about: `window_ns` of the run that end `ago_ns` before its newest figure,
  // or its steady part. 0: there are no figures yet.
  int64_t window_ns = 0, ago_ns = 0, from_ns = 0, to_ns = 0;
  bool steady = false;
  int64_t history_ns = 0;  // what the courses are over

  std::optional<double> step_ns, wait_ratio, rows_per_s, wanted_rows_per_s;
  std::optional<double> cores_used, cores_count, rss_bytes;
  std::optional<double> cost_ratio, lost_count;

  std::vector<TopStage> stages;  // in the order of the pipeline
  std::optional<TopTrainer> trainer;
  std::vector<TopResource> resources;
  std::vector<TopUnit> units;
  std::vector<TopTrend> trends;

  std::string title;
  std::optional<FirstPage> page;  // nothing: there is no verdict yet
  bool decided = false;
  int64_t verdict_behind_ns = 0;  // how much more is recorded than the verdict is about
  std::string waiting;            // without a page: what it waits for
  std::vector<std::string>
      notes;  // one line each: the store is gone, where a command's output goes
};

// The model of a run as it was read last. `verdict`: may be null. Of a run that is being recorded
// the figures are those of its last `window_ns`; of another run those of its steady part once the
// verdict says which that is.
TopModel MakeTopModel(const LiveFigures& live, const TopVerdict* verdict, int64_t window_ns);

}  // namespace headrace::dashboards
