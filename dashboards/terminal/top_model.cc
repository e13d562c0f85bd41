#include "dashboards/terminal/top_model.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>

#include "base/terminal_text.h"
#include "base/units.h"

namespace headrace::dashboards {
namespace {

using analysis::OperatorCounters;
using analysis::RunView;
using analysis::WindowRow;

constexpr double kNs = 1e-9;

double Real(int64_t value) { return static_cast<double>(value); }

// ---------------------------------------------------------------- sums over windows

// Part of `whole`, at most 1; nothing without a whole.
std::optional<double> ShareOf(std::optional<double> part, double whole) {
  if (!part || !(whole > 0)) return std::nullopt;
  return std::clamp(*part / whole, 0.0, 1.0);
}

std::optional<double> Sum(const std::optional<double>& a, const std::optional<double>& b) {
  if (!a || !b) return std::nullopt;
  return *a + *b;
}

std::optional<double> Known(const analysis::Count& count) {
  if (!count) return std::nullopt;
  return Real(*count);
}

struct TimeSums {
  double busy = 0, wait_in = 0, wait_out = 0;
  std::optional<double> on_cpu = 0.0, blocked = 0.0, runnable = 0.0;

  void Add(const OperatorCounters& op) {
    busy += Real(op.busy_ns);
    wait_in += Real(op.wait_in_ns);
    wait_out += Real(op.wait_out_ns);
    on_cpu = Sum(on_cpu, Known(op.on_cpu_ns));
    blocked = Sum(blocked, Known(op.blocked_ns));
    runnable = Sum(runnable, Known(op.runnable_ns));
  }
  TopShares Of(double lifetime) const {
    return {ShareOf(busy, lifetime),     ShareOf(on_cpu, lifetime),  ShareOf(blocked, lifetime),
            ShareOf(runnable, lifetime), ShareOf(wait_in, lifetime), ShareOf(wait_out, lifetime)};
  }
};

struct OperatorSums {
  TimeSums times;
  double completions = 0, rows = 0, bytes_in = 0, bytes_out = 0;
};

// Mean of ratios over the time in which they were observed.
struct RatioSum {
  double sum = 0, time = 0;
  void Add(const analysis::Real& ratio, double ns) {
    if (!ratio) return;
    sum += *ratio * ns;
    time += ns;
  }
  std::optional<double> Mean() const {
    return time > 0 ? std::optional<double>(std::clamp(sum / time, 0.0, 1.0)) : std::nullopt;
  }
};

// The windows that the figures are about.
class Figures {
 public:
  Figures(const RunView& run, std::vector<const WindowRow*> windows)
      : run_(run), windows_(std::move(windows)) {}

  bool empty() const { return windows_.empty(); }
  double duration_ns() const {
    double ns = 0;
    for (const WindowRow* window : windows_) ns += Real(window->duration_ns);
    return ns;
  }
  int64_t first_ns() const { return windows_.front()->start_ns; }
  int64_t last_ns() const { return windows_.back()->start_ns + windows_.back()->duration_ns; }

  analysis::StepCounters Steps() const {
    analysis::StepCounters sum;
    for (const WindowRow* window : windows_) {
      sum.steps_count += window->steps.steps_count;
      sum.rows_count += window->steps.rows_count;
      sum.wait_ns += window->steps.wait_ns;
      sum.compute_ns += window->steps.compute_ns;
    }
    return sum;
  }
  OperatorSums Operator(size_t i) const {
    OperatorSums sums;
    for (const WindowRow* window : windows_) {
      const OperatorCounters& op = window->operators[i];
      sums.times.Add(op);
      sums.completions += Real(op.completions_count);
      sums.rows += Real(op.rows_count);
      sums.bytes_in += Real(op.bytes_in_bytes);
      sums.bytes_out += Real(op.bytes_out_bytes);
    }
    return sums;
  }
  // Time of the stage's threads, on a core and ready to run in it: whole threads.
  struct Threads {
    double lifetime = 0;
    std::optional<double> on_cpu = 0.0, runnable = 0.0;
  };
  Threads ThreadsOf(size_t stage) const {
    Threads sum;
    for (const WindowRow* window : windows_) {
      const analysis::StageCounters& counters = window->stages[stage];
      sum.lifetime += Real(counters.lifetime_ns);
      sum.on_cpu = Sum(sum.on_cpu, Known(counters.on_cpu_ns));
      sum.runnable = Sum(sum.runnable, Known(counters.runnable_ns));
    }
    return sum;
  }
  TopQueue Queue(size_t q) const {
    RatioSum fill, full, empty;
    for (const WindowRow* window : windows_) {
      const analysis::QueueCounters& queue = window->queues[q];
      const double ns = Real(window->duration_ns);
      fill.Add(queue.mean_occupancy_ratio, ns);
      full.Add(queue.full_ratio, ns);
      empty.Add(queue.empty_ratio, ns);
    }
    const analysis::QueueRow& row = run_.queues[q];
    return {Printable(row.name), row.capacity_count, fill.Mean(), full.Mean(), empty.Mean()};
  }

 private:
  const RunView& run_;
  std::vector<const WindowRow*> windows_;
};

// ---------------------------------------------------------------- stages

bool IsTrainerStage(const RunView& run, const std::string& stage) {
  return std::any_of(
      run.operators.begin(), run.operators.end(),
      [&](const analysis::OperatorRow& op) { return op.stage == stage && op.kind == "consumer"; });
}

std::vector<size_t> OperatorsOf(const RunView& run, const std::string& stage) {
  std::vector<size_t> operators;
  for (size_t i = 0; i < run.operators.size(); ++i) {
    if (run.operators[i].stage == stage) operators.push_back(i);
  }
  return operators;
}

// The shares of whole threads are those of its operators; what these do not separate comes from the
// scheduler, which knows threads only.
TopShares SharesOf(const TimeSums& times, const Figures::Threads& threads, double lifetime) {
  TopShares shares = times.Of(lifetime);
  if (shares.on_core) return shares;
  shares.on_core = ShareOf(threads.on_cpu, lifetime);
  shares.wants = ShareOf(threads.runnable, lifetime);
  return shares;
}

class StageMaker {
 public:
  StageMaker(const RunView& run, const Figures& figures, const TopVerdict* verdict)
      : run_(run), figures_(figures), verdict_(verdict) {}

  std::vector<TopStage> Make() const {
    std::vector<TopStage> stages;
    for (size_t s = 0; s < run_.stages.size(); ++s) {
      if (run_.stages[s].name.empty() || IsTrainerStage(run_, run_.stages[s].name)) continue;
      stages.push_back(MakeStage(s));
    }
    return stages;
  }

 private:
  TopStage MakeStage(size_t s) const {
    const analysis::StageRow& row = run_.stages[s];
    TopStage stage;
    stage.name = Printable(row.name);
    const double threads = row.last_parallelism_count > 0 ? Real(row.last_parallelism_count)
                                                          : std::round(row.parallelism_count);
    if (threads > 0) stage.threads_count = threads;
    TimeSums times;
    const std::vector<size_t> operators = OperatorsOf(run_, row.name);
    for (const size_t i : operators) AddTimes(figures_.Operator(i).times, &times);
    const Figures::Threads all = figures_.ThreadsOf(s);
    double lifetime = all.lifetime;
    if (verdict_ != nullptr && verdict_->on_trainer.contains(row.name)) {
      const analysis::StepCounters steps = figures_.Steps();
      lifetime = Real(steps.wait_ns + steps.compute_ns);
    }
    if (lifetime <= 0) lifetime = times.busy + times.wait_in + times.wait_out;
    if (!figures_.empty()) stage.shares = SharesOf(times, all, lifetime);
    for (const size_t i : operators) stage.operators.push_back(MakeOperator(i, lifetime));
    std::stable_sort(stage.operators.begin(), stage.operators.end(),
                     [](const TopOperator& a, const TopOperator& b) {
                       return a.shares.busy.value_or(0) > b.shares.busy.value_or(0);
                     });
    for (size_t q = 0; q < run_.queues.size(); ++q) {
      if (run_.queues[q].producer_stage == row.name) stage.queue = figures_.Queue(q);
    }
    if (verdict_ != nullptr) {
      stage.limit = verdict_->limits.contains(row.name);
      const auto bound = verdict_->allows.find(row.name);
      if (bound != verdict_->allows.end()) stage.allows = bound->second;
    }
    return stage;
  }

  static void AddTimes(const TimeSums& more, TimeSums* sum) {
    sum->busy += more.busy;
    sum->wait_in += more.wait_in;
    sum->wait_out += more.wait_out;
    sum->on_cpu = Sum(sum->on_cpu, more.on_cpu);
    sum->blocked = Sum(sum->blocked, more.blocked);
    sum->runnable = Sum(sum->runnable, more.runnable);
  }

  TopOperator MakeOperator(size_t i, double lifetime) const {
    TopOperator op;
    op.name = Printable(run_.operators[i].name);
    if (figures_.empty()) return op;
    const OperatorSums sums = figures_.Operator(i);
    op.shares = sums.times.Of(lifetime);
    const double seconds = figures_.duration_ns() * kNs;
    if (seconds <= 0) return op;
    if (sums.completions > 0) op.element_ns = sums.times.busy / sums.completions;
    op.elements_per_s = sums.completions / seconds;
    op.rows_per_s = sums.rows / seconds;
    op.bytes_in_per_s = sums.bytes_in / seconds;
    op.bytes_out_per_s = sums.bytes_out / seconds;
    return op;
  }

  const RunView& run_;
  const Figures& figures_;
  const TopVerdict* verdict_;
};

// ---------------------------------------------------------------- the model

// The windows that end last and are `window_ns` long together, or the steady ones.
Figures ChooseFigures(const RunView& run, const TopVerdict* steady, int64_t window_ns) {
  std::vector<const WindowRow*> windows;
  if (steady != nullptr) {
    for (const size_t i : steady->steady) windows.push_back(&run.windows[i]);
    return {run, std::move(windows)};
  }
  if (!run.windows.empty()) {
    const WindowRow& newest = run.windows.back();
    const int64_t from_ns = newest.start_ns + newest.duration_ns - window_ns;
    for (const WindowRow& window : run.windows) {
      if (window.start_ns >= from_ns || &window == &newest) windows.push_back(&window);
    }
  }
  return {run, std::move(windows)};
}

void AddRun(const LiveFigures& live, TopModel* model) {
  const analysis::RunRow& row = live.run.run;
  model->run_id = row.run_id;
  model->name = Printable(row.name);
  model->program = Printable(row.program);
  model->state = row.state;
  model->pid = row.pid;
  model->recorded_ns = row.duration_ns;
  model->level = row.accounting_level;
  model->recording = live.recording();
  model->cores_count = row.cores_count;
  model->rss_bytes = live.rss_bytes;
}

void AddHead(const RunView& run, const Figures& figures, TopModel* model) {
  model->window_ns = static_cast<int64_t>(figures.duration_ns());
  model->from_ns = figures.first_ns();
  model->to_ns = figures.last_ns();
  model->ago_ns = std::max<int64_t>(0, run.run.duration_ns - model->to_ns);
  const analysis::StepCounters steps = figures.Steps();
  const double step_time = Real(steps.wait_ns + steps.compute_ns);
  if (run.steps.steps_count == 0) return;
  if (steps.steps_count > 0) model->step_ns = step_time / Real(steps.steps_count);
  model->wait_ratio = ShareOf(Real(steps.wait_ns), step_time);
  if (model->window_ns > 0) {
    model->rows_per_s = Real(steps.rows_count) / (Real(model->window_ns) * kNs);
  }
}

void AddVerdict(const TopVerdict& verdict, TopModel* model) {
  model->title = verdict.title;
  model->page = verdict.page;
  model->decided = verdict.decided;
  model->verdict_behind_ns = std::max<int64_t>(0, model->recorded_ns - verdict.recorded_ns);
  model->resources = verdict.resources;
  model->units = verdict.units;
  model->cost_ratio = verdict.cost_ratio.optional_value();
  model->lost_count = verdict.lost_count.optional_value();
  if (verdict.trainer_allows && verdict.rows_per_batch) {
    model->wanted_rows_per_s = *verdict.trainer_allows * *verdict.rows_per_batch;
  }
}

void AddTrainer(const RunView& run, const TopVerdict* verdict, TopModel* model) {
  if (run.steps.steps_count == 0) return;
  TopTrainer trainer;
  if (model->wait_ratio) trainer.busy = 1 - *model->wait_ratio;
  if (verdict != nullptr) {
    trainer.allows = verdict->trainer_allows;
    trainer.limit = verdict->trainer_limits;
  }
  model->trainer = trainer;
}

// Sparklines over what is kept of the run.
class Trends {
 public:
  Trends(const LiveFigures& live, int64_t from_ns, int64_t to_ns)
      : live_(live), from_ns_(from_ns), to_ns_(to_ns) {}

  void AddTo(TopModel* model) const {
    const RunView& view = live_.run;
    model->history_ns = to_ns_ - from_ns_;
    for (TopStage& stage : model->stages) stage.busy = BusyOf(stage.name);
    if (model->trainer) {
      model->trainer->busy_course = OfWindows([](const WindowRow& window) {
        return std::pair(Real(window.steps.compute_ns),
                         Real(window.steps.wait_ns + window.steps.compute_ns));
      });
    }
    if (view.steps.steps_count > 0) {
      const TimeCourse rate = OfWindows([](const WindowRow& window) {
        return std::pair(Real(window.steps.rows_count), Real(window.duration_ns) * kNs);
      });
      Add(
          "rows/s", rate, 0, [](double value) { return FormatRate(value, "rows"); }, model);
    }
    const auto cores = [](double value) { return fmt::format("{:.2f} cores", value); };
    AddPoints("cores used", MachineFigure::kProcessCpu, 1, model->cores_count.value_or(0), cores,
              model);
    AddPoints("some task waits for a core", MachineFigure::kCpuPressure, 1, 1, FormatPercent,
              model);
    AddPoints("some task waits for IO", MachineFigure::kIoPressure, 1, 1, FormatPercent, model);
    AddPoints("read from devices", MachineFigure::kDeviceRead, 1e9, 0, FormatBytesRate, model);
    AddGauge("accelerator computes", MachineFigure::kAccelerator, model);
  }

 private:
  using Words = std::function<std::string(double)>;

  static void Add(const char* title, TimeCourse course, double top, const Words& words,
                  TopModel* model) {
    const std::optional<double> last = LastOf(course);
    if (!last) return;
    model->trends.push_back({title, std::move(course), top, words(*last)});
  }

  template <typename Part>
  TimeCourse OfWindows(const Part& part) const {
    CourseMaker course(from_ns_, to_ns_);
    for (const WindowRow& window : live_.run.windows) {
      const auto [some, all] = part(window);
      course.Add(window.start_ns, window.duration_ns, some, all);
    }
    return course.Finish();
  }

  TimeCourse BusyOf(const std::string& printable) const {
    const RunView& view = live_.run;
    for (size_t s = 0; s < view.stages.size(); ++s) {
      if (Printable(view.stages[s].name) != printable) continue;
      const std::vector<size_t> operators = OperatorsOf(view, view.stages[s].name);
      return OfWindows([&](const WindowRow& window) {
        double busy = 0, waits = 0;
        for (const size_t i : operators) {
          busy += Real(window.operators[i].busy_ns);
          waits += Real(window.operators[i].wait_in_ns + window.operators[i].wait_out_ns);
        }
        const double lifetime = Real(window.stages[s].lifetime_ns);
        return std::pair(std::min(busy, lifetime > 0 ? lifetime : busy),
                         lifetime > 0 ? lifetime : busy + waits);
      });
    }
    return {};
  }

  // A counter as growth over time, times `scale` (1e9: a counter that is not of nanoseconds). A
  // counter that did not grow has no point: where it has any, the rest is 0.
  void AddPoints(const char* title, MachineFigure which, double scale, double top,
                 const Words& words, TopModel* model) const {
    const std::vector<FigurePoint>& points = live_.Points(which);
    if (points.empty()) return;
    CourseMaker course(from_ns_, to_ns_);
    for (const WindowRow& window : live_.run.windows) {
      course.Add(window.start_ns, window.duration_ns, 0, Real(window.duration_ns));
    }
    for (const FigurePoint& point : points) {
      course.AddPart(point.start_ns, point.duration_ns, point.value * scale);
    }
    Add(title, course.Finish(), top, words, model);
  }

  void AddGauge(const char* title, MachineFigure which, TopModel* model) const {
    CourseMaker course(from_ns_, to_ns_);
    for (const FigurePoint& point : live_.Points(which)) {
      course.Add(point.start_ns, point.duration_ns, point.value * Real(point.duration_ns),
                 Real(point.duration_ns));
    }
    Add(title, course.Finish(), 1, FormatPercent, model);
  }

  const LiveFigures& live_;
  int64_t from_ns_, to_ns_;
};

// Cores that the run's processes used in the time of the figures, as far as what is kept reaches
// back. Where points are missing nothing was used; without any nothing is known.
std::optional<double> CoresUsed(const LiveFigures& live, int64_t from_ns, int64_t to_ns) {
  const std::vector<FigurePoint>& points = live.Points(MachineFigure::kProcessCpu);
  if (points.empty()) return std::nullopt;
  from_ns = std::max(from_ns, points.front().start_ns);
  if (to_ns <= from_ns) return std::nullopt;
  double cpu_ns = 0;
  for (const FigurePoint& point : points) {
    const int64_t begin = std::max(from_ns, point.start_ns);
    const int64_t end = std::min(to_ns, point.start_ns + point.duration_ns);
    if (end > begin) cpu_ns += point.value * Real(end - begin) / Real(point.duration_ns);
  }
  return cpu_ns / Real(to_ns - from_ns);
}

}  // namespace

TopModel MakeTopModel(const LiveFigures& live, const TopVerdict* verdict, int64_t window_ns) {
  TopModel model;
  AddRun(live, &model);
  const TopVerdict* steady =
      !live.recording() && verdict != nullptr && !verdict->steady.empty() ? verdict : nullptr;
  const RunView& view = steady != nullptr ? steady->run : live.run;
  const Figures figures = ChooseFigures(view, steady, window_ns);
  model.steady = steady != nullptr;
  if (verdict != nullptr) AddVerdict(*verdict, &model);
  if (!figures.empty()) {
    AddHead(view, figures, &model);
    model.cores_used = CoresUsed(live, model.from_ns, model.to_ns);
  }
  model.stages = StageMaker(view, figures, verdict).Make();
  AddTrainer(view, verdict, &model);
  const std::vector<WindowRow>& windows = live.run.windows;
  if (!windows.empty()) {
    const int64_t to_ns = windows.back().start_ns + windows.back().duration_ns;
    Trends(live,
           std::max<int64_t>(0, std::max(windows.front().start_ns, to_ns - LiveRun::kHistoryNs)),
           to_ns)
        .AddTo(&model);
  }
  return model;
}

}  // namespace headrace::dashboards
