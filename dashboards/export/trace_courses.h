// The counters of a trace: the rows of interval views, a column a counter.
//
// Rates are per second of the window. Nanoseconds of threads over the window's nanoseconds are
// threads: how many were in that state on average.
#pragma once
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "dashboards/export/export.h"
#include "dashboards/export/intervals.h"
#include "dashboards/export/trace_writer.h"

namespace headrace::dashboards {

struct CourseColumn {
  const char* column;  // of the view
  const char* name;    // of the counter
  const char* unit;
  double scale;  // of the column over the window's nanoseconds; 0: the column as it is
};

// An interval view, the columns that name an entity, and its counters.
struct TraceCourse {
  IntervalQuery query;
  std::span<const CourseColumn> columns;
  size_t num_keys = 1;
  bool idle_is_absent = false;  // an entity that did nothing in a window has no row there
};
TraceCourse StepTraceCourse();
TraceCourse StageTraceCourse();
TraceCourse OperatorTraceCourse();
TraceCourse QueueTraceCourse();
TraceCourse ResourceTraceCourse();
// start_ns, step_ns, below_ratio: how long steps took, in order within each window.
IntervalQuery StepTimeQuery();

// Measurements that a trace has, of the machine or by process; the others are in
// measurement_interval.
struct TracedMetric {
  const char* metric;
  const char* name;
  const char* unit;
  double scale;  // of a counter's growth over the window's nanoseconds; 0: a gauge
};
// Null: a trace does not have it.
const TracedMetric* FindTraced(const std::string& metric);
// start_ns, duration_ns, metric, process_id, subject, cause, value.
IntervalQuery MeasurementQuery();

// One counter. Values that equal the last one are not written: a counter holds its value.
class TraceCounter {
 public:
  TraceCounter() = default;  // the run does not have it
  explicit TraceCounter(uint64_t track) : track_(track) {}

  bool exists() const { return track_ != 0; }
  bool known() const { return last_.has_value(); }
  void Set(int64_t at_ns, double value, TraceWriter* writer);
  void Forget() { last_.reset(); }  // its next value is written, whatever it is

 private:
  uint64_t track_ = 0;
  std::optional<double> last_;
};

// The counters of one operator, stage, queue or resource.
struct CourseEntity {
  uint64_t group = 0;                  // the track that its counters are below
  std::vector<TraceCounter> counters;  // by column
  bool seen = false;
  size_t next_window = 0;                 // the first one without a row so far
  uint64_t unknown_track = 0;             // of slices over windows in which a counter is not known
  std::optional<int64_t> unknown_end_ns;  // of the slice that is open there
};
using CourseEntities = std::map<std::vector<std::string>, CourseEntity>;

class CourseReader {
 public:
  struct Window {
    int64_t start_ns = 0, end_ns = 0;
  };
  // Two windows belong together where no more than this lies between them.
  static constexpr int64_t kGapNs = 1'000'000;

  // `new_track` gives ids to tracks that turn out to be needed.
  CourseReader(const ExportRequest& request, TraceWriter* writer,
               std::function<uint64_t()> new_track);

  // The windows of the run that are exported, in order.
  const std::vector<Window>& windows() const { return windows_; }
  // Writes the values of all entities' counters. Rows of others are skipped.
  void Read(const TraceCourse& course, CourseEntities* entities);
  // Calls `visit` with each row of the query that has a window and is exported.
  void ForEachWindow(
      const IntervalQuery& query,
      const std::function<void(int64_t start_ns, int64_t end_ns,
                               const std::vector<collectors::SqlValue>& row)>& visit);

 private:
  void CatchUp(CourseEntity* entity, int64_t start_ns);
  void Idle(CourseEntity* entity, size_t from, size_t to);
  void MarkUnknown(CourseEntity* entity, bool unknown, int64_t start_ns, int64_t end_ns);

  const ExportRequest& request_;
  TraceWriter* const writer_;
  const std::function<uint64_t()> new_track_;
  std::vector<Window> windows_;
};

}  // namespace headrace::dashboards
