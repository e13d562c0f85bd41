#include "analysis/run/read_windows.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "analysis/run/counter_sums.h"
#include "analysis/run/view_columns.h"

namespace headrace::analysis {
namespace {

// At most so many windows, before, within and behind the times of which detail is wanted, and so
// many windows times operators; but not fewer than kFewest for the latter. 2048 windows of an hour
// are as long as those that its rollup leaves, and 256 are twice what the bootstrap draws from.
constexpr size_t kMostWindows = 2048, kMostCells = 400'000, kFewest = 256;

// The mean over time of two parts of a window.
double MeanOf(double mean, double ns, double value, double value_ns) {
  return ns + value_ns > 0 ? mean + (value - mean) * value_ns / (ns + value_ns) : mean;
}
void AddMean(Real* mean, double ns, const Real& value, double value_ns) {
  if (*mean && value) {
    **mean = MeanOf(**mean, ns, *value, value_ns);
  } else if (value) {
    *mean = value;
  }
}

void ClearIfKnown(const Count& known, Count* none) {
  if (known) *none = 0;
}
void ClearIfKnown(int64_t, int64_t*) {}

// The counters of an operator in an interval in which it did nothing. What was never measured of it
// stays unknown.
OperatorCounters NothingDone(const OperatorCounters& op) {
  OperatorCounters none;
#define HR_OPERATOR_COUNTER(type, member, column, help) ClearIfKnown(op.column, &none.column);
#include "collectors/store/columns.def"
  ClearIfKnown(op.blocked_ns, &none.blocked_ns);
  ClearIfKnown(op.blocked_low_ns, &none.blocked_low_ns);
  ClearIfKnown(op.blocked_high_ns, &none.blocked_high_ns);
  return none;
}

// The windows of a run, and which one each stored interval belongs to.
class Grid {
 public:
  Grid(RunDatabase& database, int64_t id, const RunTimes& detail, RunView* view) : view_(view) {
    ReadIntervals(database, id);
    const auto inside = [&detail](const Interval& each) {
      return each.start_ns < detail.end_ns &&
             Plus(each.start_ns, each.duration_ns) > detail.start_ns;
    };
    // Before, within and behind `detail`.
    for (size_t first = 0, end; first < intervals_.size(); first = end) {
      const bool is_inside = inside(intervals_[first]);
      for (end = first; end < intervals_.size() && inside(intervals_[end]) == is_inside;) ++end;
      AddWindows(first, end);
    }
  }

  struct Place {
    size_t window = 0;
    int64_t duration_ns = 0;  // of the interval
  };
  // Where the interval that begins there belongs; nothing where there is no such interval. Cheap
  // in the order of time.
  std::optional<Place> Find(int64_t start_ns) {
    if (at_ >= intervals_.size() || intervals_[at_].start_ns != start_ns) {
      if (at_ + 1 < intervals_.size() && intervals_[at_ + 1].start_ns == start_ns) {
        ++at_;
      } else {
        const auto found = std::lower_bound(
            intervals_.begin(), intervals_.end(), start_ns,
            [](const Interval& each, int64_t wanted_ns) { return each.start_ns < wanted_ns; });
        if (found == intervals_.end() || found->start_ns != start_ns) return std::nullopt;
        at_ = static_cast<size_t>(found - intervals_.begin());
      }
    }
    return Place{intervals_[at_].window, intervals_[at_].duration_ns};
  }

 private:
  struct Interval {
    int64_t start_ns = 0, duration_ns = 0;
    size_t window = 0;
  };

  // All intervals are those of steps in a store of ours; another program may leave out some.
  void ReadIntervals(RunDatabase& database, int64_t id) {
    std::string sql = "SELECT start_ns, duration_ns FROM step_interval WHERE run_id = ?1";
    if (!database.Has("operator_delta")) {
      for (const char* view :
           {"operator_interval", "stage_interval", "queue_interval", "resource_interval"}) {
        sql +=
            std::string(" UNION SELECT start_ns, duration_ns FROM ") + view + " WHERE run_id = ?1";
      }
    }
    database.Each(sql + " ORDER BY start_ns", id, [this](const ViewRow& row) {
      const Interval interval{row.NumberAt(0), row.NumberAt(1), 0};
      if (intervals_.empty() || intervals_.back().start_ns != interval.start_ns)
        intervals_.push_back(interval);
    });
  }

  // Makes windows of the intervals [first, end).
  void AddWindows(size_t first, size_t end) {
    const size_t operators = std::max<size_t>(1, view_->operators.size());
    const size_t most = std::clamp(kMostCells / operators, kFewest, kMostWindows);
    const double from_ns = static_cast<double>(intervals_[first].start_ns);
    const double span_ns = static_cast<double>(intervals_[end - 1].start_ns) - from_ns;
    size_t last_bucket = most;
    for (size_t i = first; i < end; ++i) {
      Interval& each = intervals_[i];
      const double into = static_cast<double>(each.start_ns) - from_ns;
      const size_t bucket =
          end - first <= most ? i
                              : static_cast<size_t>(into / span_ns * static_cast<double>(most - 1));
      if (i == first || bucket != last_bucket) {
        AddWindow(each);
      } else {
        int64_t* duration_ns = &view_->windows.back().duration_ns;
        *duration_ns = Plus(*duration_ns, each.duration_ns);
      }
      last_bucket = bucket;
      each.window = view_->windows.size() - 1;
    }
  }

  void AddWindow(const Interval& interval) {
    WindowRow& window = view_->windows.emplace_back();
    window.start_ns = interval.start_ns;
    window.duration_ns = interval.duration_ns;
    // No row in an interval means that nothing was done, not that nothing was measured.
    window.operators.reserve(view_->operators.size());
    for (const OperatorRow& op : view_->operators) window.operators.push_back(NothingDone(op));
    for (const StageRow& stage : view_->stages) {
      window.stages.emplace_back();
      ClearIfKnown(stage.on_cpu_ns, &window.stages.back().on_cpu_ns);
      ClearIfKnown(stage.runnable_ns, &window.stages.back().runnable_ns);
    }
    window.queues.resize(view_->queues.size());
    window.resources.resize(view_->resources.size());
  }

  RunView* view_;
  std::vector<Interval> intervals_;
  size_t at_ = 0;  // rows of an interval come one after another
};

// When c and q of an operator count as told apart (view split_rule), and what an interval view
// shows of its counters then.
struct SplitRule {
  double known_ratio = 0, small_ratio = 0;

  // Whether bounds that far apart leave it open.
  bool IsOpen(int64_t apart_ns, int64_t busy_ns, int64_t duration_ns) const {
    const auto apart = static_cast<double>(apart_ns);
    return apart > known_ratio * static_cast<double>(busy_ns) &&
           apart > small_ratio * static_cast<double>(duration_ns);
  }
};

// b where c and q are those; 0 where the clocks of both say more than passed.
Count Rest(int64_t busy_ns, const Count& on_cpu_ns, const Count& runnable_ns) {
  if (!on_cpu_ns || !runnable_ns) return std::nullopt;
  const int64_t used_ns = Plus(*on_cpu_ns, *runnable_ns);
  if (busy_ns < used_ns) return 0;
  return Plus(busy_ns, -std::max(used_ns, -std::numeric_limits<int64_t>::max()));
}

// What an operator did in a window, as operator_delta counts it.
struct OperatorDelta : OperatorCounters {
  Count runnable_low_ns, runnable_high_ns;

  // As operator_interval shows it, by the same rule.
  OperatorCounters Split(const SplitRule& rule, int64_t duration_ns) const {
    OperatorCounters op = *this;
    op.blocked_low_ns = Rest(busy_ns, on_cpu_high_ns, runnable_high_ns);
    op.blocked_high_ns = Rest(busy_ns, on_cpu_low_ns, runnable_low_ns);
    if (on_cpu_low_ns && on_cpu_high_ns) {
      const int64_t apart_ns = Plus(*on_cpu_high_ns, -*on_cpu_low_ns);
      if (rule.IsOpen(apart_ns, busy_ns, duration_ns)) {
        op.on_cpu_ns.reset();
      } else if (on_cpu_ns) {
        op.on_cpu_ns = std::min(std::max(*on_cpu_ns, *on_cpu_low_ns), *on_cpu_high_ns);
      }
      if (runnable_low_ns && runnable_high_ns &&
          rule.IsOpen(Plus(apart_ns, Plus(*runnable_high_ns, -*runnable_low_ns)), busy_ns,
                      duration_ns))
        op.runnable_ns.reset();
    }
    op.blocked_ns = Rest(busy_ns, op.on_cpu_ns, op.runnable_ns);
    return op;
  }
};

// The operators of a store of ours, by their numbers.
class OperatorCourse {
 public:
  OperatorCourse(RunDatabase& database, int64_t id, Grid* grid, RunView* view)
      : grid_(grid), view_(view), sums_(view->operators.size()), seen_(view->operators.size()) {
    size_t index = 0;
    database.EachOf("operator_summary", id, "stage_index, position_index", [&](const ViewRow& row) {
      numbers_.emplace_back(row.Number("operator_id"), index++);
    });
    std::sort(numbers_.begin(), numbers_.end());
    database.Each(
        "SELECT known_ratio, small_ratio FROM split_rule", id, [this](const ViewRow& row) {
          rule_ = {row.Real("known_ratio").value_or(0), row.Real("small_ratio").value_or(0)};
        });
  }

  void Read(RunDatabase& database, int64_t id) {
    std::vector<std::string> columns = {"start_ns", "operator_id", "runnable_low_ns",
                                        "runnable_high_ns"};
#define HR_OPERATOR_COUNTER(type, member, column, help) columns.emplace_back(#column);
#include "collectors/store/columns.def"
    database.Sweep(
        "operator_delta", columns, id, [this](const SweptRow& row) { Take(row); },
        // Every window that was filled in is filled in again.
        [this] { Finish(); });
    Finish();
  }

 private:
  // Into the window that its interval belongs to; one is open at a time.
  void Take(const SweptRow& row) {
    const auto place = grid_->Find(row.NumberAt(0));
    const auto index = IndexOf(row.NumberAt(1));
    if (!place || !index) return;
    if (place->window != window_) Finish();
    window_ = place->window;
    OperatorDelta& sum = sums_[*index];
    const bool first = seen_[*index] == 0;
    if (first) touched_.push_back(*index);
    seen_[*index] = 1;
    first ? AddColumns<true>(row, &sum) : AddColumns<false>(row, &sum);
  }

  template <bool kFirst>
  static void AddColumns(const SweptRow& row, OperatorDelta* sum) {
    Add(&sum->runnable_low_ns, row.IntegerAt(2), kFirst);
    Add(&sum->runnable_high_ns, row.IntegerAt(3), kFirst);
    int column = 4;
#define HR_OPERATOR_COUNTER(type, member, name, help) AddColumn<kFirst>(row, column++, &sum->name);
#include "collectors/store/columns.def"
  }

  template <bool kFirst>
  static void AddColumn(const SweptRow& row, int column, int64_t* sum) {
    Add(sum, row.NumberAt(column), kFirst);
  }
  template <bool kFirst>
  static void AddColumn(const SweptRow& row, int column, Count* sum) {
    Add(sum, row.IntegerAt(column), kFirst);
  }

  void Finish() {
    for (const size_t i : touched_) {
      WindowRow& window = view_->windows[window_];
      window.operators[i] = sums_[i].Split(rule_, window.duration_ns);
      seen_[i] = 0;
    }
    touched_.clear();
  }

  // They come in ascending order within an interval.
  std::optional<size_t> IndexOf(int64_t number) {
    if (next_ >= numbers_.size() || numbers_[next_].first != number) {
      const auto found =
          std::lower_bound(numbers_.begin(), numbers_.end(), std::pair<int64_t, size_t>(number, 0));
      if (found == numbers_.end() || found->first != number) return std::nullopt;
      next_ = static_cast<size_t>(found - numbers_.begin());
    }
    return numbers_[next_++].second;
  }

  Grid* grid_;
  RunView* view_;
  SplitRule rule_;
  std::vector<std::pair<int64_t, size_t>> numbers_;  // and the index in view->operators
  size_t next_ = 0;
  size_t window_ = 0;
  std::vector<OperatorDelta> sums_;  // of the open window
  std::vector<char> seen_;
  std::vector<size_t> touched_;
};

// Rows of one kind of entity, in the order of time: which window and entity each is added to, and
// for how long there was a row of it in that window before.
class EntityCourse {
 public:
  EntityCourse(Grid* grid, size_t entities)
      : grid_(grid), last_window_(entities, SIZE_MAX), before_ns_(entities) {}

  struct Visit {
    size_t window;
    bool first;  // no row of the entity was in that window before
    double before_ns, duration_ns;
  };
  std::optional<Visit> At(const ViewRow& row, size_t entity) {
    const auto place = grid_->Find(row.Number("start_ns"));
    if (!place) return std::nullopt;
    const bool first = last_window_[entity] != place->window;
    if (first) before_ns_[entity] = 0;
    last_window_[entity] = place->window;
    const auto duration_ns = static_cast<double>(place->duration_ns);
    const Visit visit{place->window, first, before_ns_[entity], duration_ns};
    before_ns_[entity] += duration_ns;
    return visit;
  }

 private:
  Grid* grid_;
  std::vector<size_t> last_window_;
  std::vector<double> before_ns_;
};

// The operators of another program's database, by their names. Two stages may each have one of a
// name.
void ReadNamedOperators(RunDatabase& database, int64_t id, Grid* grid, RunView* view) {
  EntityCourse course(grid, view->operators.size());
  database.EachOf("operator_interval", id, "start_ns", [&](const ViewRow& row) {
    const std::string name = row.Text("operator"), stage = row.Text("stage");
    for (size_t i = 0; i < view->operators.size(); ++i) {
      const OperatorRow& op = view->operators[i];
      if (op.name != name || (!stage.empty() && op.stage != stage)) continue;
      const auto visit = course.At(row, i);
      if (!visit) return;
      Add(&view->windows[visit->window].operators[i], ReadOperatorCounters(row), visit->first);
      return;
    }
  });
}

// The index of the entity of that name, or nothing.
template <typename T>
std::optional<size_t> IndexOfName(const std::vector<T>& rows, std::string_view name) {
  for (size_t i = 0; i < rows.size(); ++i) {
    if (rows[i].name == name) return i;
  }
  return std::nullopt;
}

// Calls `add(row, visit, index)` for each row of `view` whose entity is one of `entities`. The rows
// have those columns.
template <typename T, typename Use>
void EachVisit(RunDatabase& database, int64_t id, const char* view, const char* name,
               std::vector<std::string> columns, Grid* grid, const std::vector<T>& entities,
               const Use& add) {
  EntityCourse course(grid, entities.size());
  columns.insert(columns.end(), {"start_ns", name});
  database.EachOf(view, columns, id, "start_ns", [&](const ViewRow& row) {
    const auto index = IndexOfName(entities, row.View(name));
    if (!index) return;
    if (const auto visit = course.At(row, *index)) add(row, *visit, *index);
  });
}

void ReadStageCourse(RunDatabase& database, int64_t id, Grid* grid, RunView* view) {
  EachVisit(database, id, "stage_interval", "stage",
            {"parallelism_count", "lifetime_ns", "on_cpu_ns", "runnable_ns", "unattributed_ns"},
            grid, view->stages,
            [view](const ViewRow& row, const EntityCourse::Visit& at, size_t i) {
              const StageCounters read = ReadStageCounters(row);
              StageCounters& sum = view->windows[at.window].stages[i];
              sum.parallelism_count = at.first ? read.parallelism_count
                                               : MeanOf(sum.parallelism_count, at.before_ns,
                                                        read.parallelism_count, at.duration_ns);
              Add(&sum.lifetime_ns, read.lifetime_ns, at.first);
              Add(&sum.on_cpu_ns, read.on_cpu_ns, at.first);
              Add(&sum.runnable_ns, read.runnable_ns, at.first);
              Add(&sum.unattributed_ns, read.unattributed_ns, at.first);
            });
}

void ReadQueueCourse(RunDatabase& database, int64_t id, Grid* grid, RunView* view) {
  EachVisit(database, id, "queue_interval", "queue",
            {"mean_occupancy_ratio", "full_ratio", "empty_ratio", "puts_count", "gets_count"}, grid,
            view->queues, [view](const ViewRow& row, const EntityCourse::Visit& at, size_t i) {
              const QueueCounters read = ReadQueueCounters(row);
              QueueCounters& sum = view->windows[at.window].queues[i];
              AddMean(&sum.mean_occupancy_ratio, at.before_ns, read.mean_occupancy_ratio,
                      at.duration_ns);
              AddMean(&sum.full_ratio, at.before_ns, read.full_ratio, at.duration_ns);
              AddMean(&sum.empty_ratio, at.before_ns, read.empty_ratio, at.duration_ns);
              Add(&sum.puts_count, read.puts_count, at.first);
              Add(&sum.gets_count, read.gets_count, at.first);
            });
}

void ReadResourceCourse(RunDatabase& database, int64_t id, Grid* grid, RunView* view) {
  std::vector<std::string> columns;
#define HR_RESOURCE_COUNTER(type, member, column, help) columns.emplace_back(#column);
#include "collectors/store/columns.def"
  EachVisit(database, id, "resource_interval", "resource", columns, grid, view->resources,
            [view](const ViewRow& row, const EntityCourse::Visit& at, size_t i) {
              const ResourceCounters read = ReadResourceCounters(row);
              ResourceCounters& sum = view->windows[at.window].resources[i];
#define HR_RESOURCE_COUNTER(type, member, column, help) Add(&sum.column, read.column, at.first);
#include "collectors/store/columns.def"
            });
}

}  // namespace

void ReadWindows(RunDatabase& database, int64_t id, const RunTimes& detail, RunView* view) {
  Grid grid(database, id, detail, view);
  database.EachOf("step_interval", id, "start_ns", [&](const ViewRow& row) {
    const auto place = grid.Find(row.Number("start_ns"));
    if (!place) return;
    StepCounters& sum = view->windows[place->window].steps;
    const StepCounters read = ReadStepCounters(row);
    sum.steps_count = Plus(sum.steps_count, read.steps_count);
    sum.rows_count = Plus(sum.rows_count, read.rows_count);
    sum.wait_ns = Plus(sum.wait_ns, read.wait_ns);
    sum.compute_ns = Plus(sum.compute_ns, read.compute_ns);
  });
  if (database.Has("operator_delta")) {
    OperatorCourse(database, id, &grid, view).Read(database, id);
  } else {
    ReadNamedOperators(database, id, &grid, view);
  }
  ReadStageCourse(database, id, &grid, view);
  ReadQueueCourse(database, id, &grid, view);
  ReadResourceCourse(database, id, &grid, view);
}

}  // namespace headrace::analysis
