// The course of a run over time, in as many windows as a chart has room for.
#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "collectors/store/read_store.h"

namespace headrace::dashboards {

// Part of a run's time and how finely it is divided. Seconds since the run began.
struct CourseRange {
  double from_s = 0, to_s = 0;
  double width_s = 0;  // windows of this length; 0: as they are stored
};

// Stored intervals that fall into one window of a chart: from the first one's start to the last
// one's end.
struct CourseWindow {
  int64_t start_ns = 0, duration_ns = 0;
  int64_t steps = 0, rows = 0, wait_ns = 0, compute_ns = 0;
  std::map<int64_t, int64_t> step_times;  // middle of a bucket in ns -> steps
};

// Of a stage in one window. What was not told apart is empty.
struct StageCourse {
  double lifetime_ns = 0, busy_ns = 0, wait_in_ns = 0, wait_out_ns = 0, parallelism = 0;
  std::optional<double> on_cpu_ns, blocked_ns, runnable_ns;
};
struct QueueCourse {
  double weight_ns = 0;  // time that the ratios are weighted with
  double fill = 0, full = 0, empty = 0;
};

struct CourseLane {
  std::string name;
  std::string producer, consumer;  // of a queue
  int64_t capacity = 0;            // of a queue
};

// Lanes in the order of the pipeline; values run parallel to the windows, which are in order of
// time. A window of no stored interval is absent.
struct RunCourse {
  double full_s = 0;  // how long the run is
  std::vector<CourseWindow> windows;
  std::vector<CourseLane> stages, queues;
  std::vector<std::vector<StageCourse>> stage_values;
  std::vector<std::vector<QueueCourse>> queue_values;
};

// The range that `from`, `to` (0: the end) and `px` windows ask for of a run of `full_s` seconds.
// Windows are 1, 2 or 5 times a power of ten of seconds long, and begin at multiples of that, so
// that a moved range has the same ones. Throws Error kUsage for a range that ends before it begins.
CourseRange RangeOf(double from_s, double to_s, double px, double full_s);

// Reads it from the views. Throws as ReadStore::Query.
RunCourse ReadCourse(collectors::ReadStore& store, int64_t run_id, const CourseRange& range);

// Nanoseconds of so many seconds, at most what a stored time can be.
int64_t NsOf(double seconds);

// Seconds of the run that are recorded by now.
double RecordedSeconds(collectors::ReadStore& store, int64_t run_id);

// The q-quantile of step times, in seconds; empty where there are none.
std::optional<double> StepQuantile(const std::map<int64_t, int64_t>& step_times, double q);

}  // namespace headrace::dashboards
