#include "dashboards/export/trace.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include "dashboards/export/trace_courses.h"
#include "dashboards/export/trace_slices.h"
#include "dashboards/sql_values.h"

namespace headrace::dashboards {
namespace {

using collectors::SqlResult;
using collectors::SqlValue;

// The order of tracks: the run, the trainer, stages with the queues between them, what they share.
constexpr uint64_t kRunRank = 0, kGapsRank = 1, kDecisionsRank = 2, kDetailRank = 3,
                   kStoreProbeRank = 4, kTrainerRank = 10, kFirstStageRank = 100, kStageRanks = 10,
                   kResourceRank = 2'000'000, kMachineRank = 2'000'001, kProcessRank = 2'000'002;

uint64_t RankOfStage(const SqlValue& index) {
  const int64_t at = std::clamp<int64_t>(WholeOf(index).value_or(0), 0, 100'000);
  return kFirstStageRank + kStageRanks * static_cast<uint64_t>(at);
}

class TraceReader {
 public:
  TraceReader(const ExportRequest& request, TraceWriter* writer)
      : request_(request),
        writer_(writer),
        fixed_(request.part != ExportPart::kCourses),
        with_courses_(request.part != ExportPart::kFixed),
        run_(ReadExportedRun(request.store, request.run_id)),
        courses_(request, writer, [this] { return ++last_id_; }) {}

  void Read() {
    root_ = Track(TraceTrack::Kind::kGroup, 0, 0,
                  fmt::format("headrace run {}: {}", run_.run_id, run_.name));
    if (fixed_) {
      Lanes(root_, kRunRank, "run", RunSlices(request_, run_));
      Lanes(root_, kGapsRank, "gaps", Gaps());
      Lanes(root_, kDecisionsRank, "decisions", DecisionSlices(request_));
      Lanes(root_, kDetailRank, "full detail kept", DetailSlices(request_));
      Lanes(root_, kStoreProbeRank, "more threads tried", StoreProbeSlices(request_));
    }
    ReadSteps();
    ReadStages();
    ReadOperators();
    ReadQueues();
    ReadResources();
    AddProcesses();
    ReadMeasurements();
  }

 private:
  SqlResult Query(const std::string& sql) { return request_.store.Query(sql, {request_.run_id}); }

  // ---- Tracks ----

  uint64_t Track(TraceTrack::Kind kind, uint64_t parent, uint64_t rank, const std::string& name,
                 const std::string& unit = "") {
    const uint64_t id = ++last_id_;
    writer_->Track({id, parent, rank, kind, name, unit});
    return id;
  }
  uint64_t Group(uint64_t rank, const std::string& name) {
    return Track(TraceTrack::Kind::kGroup, root_, rank, name);
  }
  uint64_t CounterTrack(uint64_t group, uint64_t rank, const std::string& name,
                        const std::string& unit) {
    return Track(TraceTrack::Kind::kCounter, group, rank, name, unit);
  }

  CourseEntity MakeEntity(uint64_t group, const TraceCourse& course,
                          const std::set<std::string>& absent = {}) {
    CourseEntity entity;
    entity.group = group;
    for (const CourseColumn& column : course.columns) {
      entity.counters.push_back(absent.contains(column.column)
                                    ? TraceCounter()
                                    : TraceCounter(CounterTrack(group, entity.counters.size() + 1,
                                                                column.name, column.unit)));
    }
    return entity;
  }

  void ReadCourse(const TraceCourse& course, CourseEntities* entities) {
    if (with_courses_) courses_.Read(course, entities);
  }

  // ---- Slices ----

  // Writes what is exported of the slices, in as many tracks as they need to nest.
  void Lanes(uint64_t parent, uint64_t rank, const std::string& name,
             std::vector<TraceSlice> slices) {
    const auto lanes = NestingLanes(
        CutSlices(std::move(slices), std::max<int64_t>(0, request_.since_ns), request_.until_ns));
    for (size_t i = 0; i < lanes.size(); ++i) {
      const uint64_t track = Track(TraceTrack::Kind::kSlices, parent, rank,
                                   i == 0 ? name : fmt::format("{} ({})", name, i + 1));
      std::vector<int64_t> open;
      for (const TraceSlice& slice : lanes[i]) {
        for (; !open.empty() && open.back() <= slice.begin_ns; open.pop_back()) {
          writer_->End(track, open.back());
        }
        writer_->Begin(track, slice.begin_ns, slice.name, slice.arguments);
        open.push_back(slice.end_ns);
      }
      for (; !open.empty(); open.pop_back()) writer_->End(track, open.back());
    }
  }

  std::vector<TraceSlice> Gaps() const {
    std::vector<TraceSlice> gaps;
    const auto& windows = courses_.windows();
    for (size_t i = 1; i < windows.size(); ++i) {
      if (windows[i].start_ns - windows[i - 1].end_ns <= CourseReader::kGapNs) continue;
      gaps.push_back({windows[i - 1].end_ns, windows[i].start_ns, "not recorded", {}});
    }
    return gaps;
  }

  // ---- The pipeline ----

  void ReadSteps() {
    if (Query("SELECT 1 FROM step_summary WHERE run_id = ?1").rows.empty()) return;
    const TraceCourse course = StepTraceCourse();
    CourseEntities entities;
    entities[std::vector<std::string>(1)] = MakeEntity(Group(kTrainerRank, "trainer"), course);
    ReadCourse(course, &entities);
    ReadStepTimes(entities.begin()->second.group);
  }

  // How long steps took, which earlier versions did not record by window.
  void ReadStepTimes(uint64_t trainer) {
    if (Query("SELECT 1 FROM step_time_interval WHERE run_id = ?1 LIMIT 1").rows.empty()) return;
    TraceCounter half(CounterTrack(trainer, 10, "half of the steps took at most", "s"));
    TraceCounter most(CounterTrack(trainer, 11, "99 % of the steps took at most", "s"));
    if (!with_courses_) return;
    int64_t half_at = -1, most_at = -1;  // windows whose values are written
    ForEachPortion(request_.store, StepTimeQuery(), request_.run_id,
                   std::max<int64_t>(0, request_.since_ns), request_.until_ns,
                   [&](const SqlResult& rows) {
                     for (const auto& row : rows.rows) {
                       const auto start = WholeOf(row[0]);
                       const auto step = NumberOf(row[1]), below = NumberOf(row[2]);
                       if (!start || !step || !below) continue;
                       if (*below >= 0.5 && half_at != *start) {
                         half.Set(half_at = *start, *step / 1e9, writer_);
                       }
                       if (*below >= 0.99 && most_at != *start) {
                         most.Set(most_at = *start, *step / 1e9, writer_);
                       }
                     }
                   });
  }

  uint64_t StageGroup(const std::string& stage, const SqlValue& index) {
    const auto [it, added] = stages_.try_emplace(stage);
    if (added) {
      it->second.rank = RankOfStage(index);
      it->second.group =
          Group(it->second.rank, stage.empty() ? "threads of no stage" : "stage " + stage);
    }
    return it->second.group;
  }

  void ReadStages() {
    const SqlResult stages = Query(
        "SELECT stage, stage_index, on_cpu_ns, runnable_ns FROM stage_summary WHERE run_id = ?1 "
        "ORDER BY stage_index");
    const TraceCourse course = StageTraceCourse();
    CourseEntities entities;
    for (const auto& row : stages.rows) {
      std::set<std::string> absent;  // where the scheduler's counters cannot be read
      if (!NumberOf(row[2])) absent.insert("on_cpu_ns");
      if (!NumberOf(row[3])) absent.insert("runnable_ns");
      const std::string stage = TextOf(row[0]);
      entities[{stage}] = MakeEntity(StageGroup(stage, row[1]), course, absent);
    }
    ReadCourse(course, &entities);
  }

  void ReadOperators() {
    const SqlResult operators = Query(
        "SELECT stage, operator, stage_index, source FROM operator_summary WHERE run_id = ?1 "
        "ORDER BY stage_index, position_index");
    const TraceCourse course = OperatorTraceCourse();
    CourseEntities entities;
    uint64_t rank = 100;  // behind the stage's own counters
    for (const auto& row : operators.rows) {
      const std::string stage = TextOf(row[0]), name = TextOf(row[1]);
      if (entities.contains({stage, name})) continue;
      const uint64_t group =
          Track(TraceTrack::Kind::kGroup, StageGroup(stage, row[2]), ++rank, "operator " + name);
      // One figure where nothing separates it: busy.
      std::set<std::string> absent;
      if (TextOf(row[3]) == "account") absent = {"on_cpu_ns", "blocked_ns", "runnable_ns"};
      entities[{stage, name}] = MakeEntity(group, course, absent);
    }
    ReadCourse(course, &entities);
  }

  void ReadQueues() {
    const SqlResult queues =
        Query("SELECT queue, producer_stage, capacity_count FROM queue_summary WHERE run_id = ?1");
    const TraceCourse course = QueueTraceCourse();
    CourseEntities entities;
    for (const auto& row : queues.rows) {
      const std::string queue = TextOf(row[0]);
      const auto producer = stages_.find(TextOf(row[1]));
      // Behind the stage that fills it and before the next.
      const uint64_t rank =
          producer == stages_.end() ? kFirstStageRank - 1 : producer->second.rank + 1;
      entities[{queue}] = MakeEntity(
          Group(rank, fmt::format("queue {} ({} elements)", queue, TextOf(row[2]))), course);
    }
    ReadCourse(course, &entities);
  }

  void ReadResources() {
    const SqlResult resources =
        Query("SELECT resource, kind FROM resource_summary WHERE run_id = ?1 ORDER BY resource");
    const TraceCourse course = ResourceTraceCourse();
    CourseEntities entities;
    for (const auto& row : resources.rows) {
      const std::string resource = TextOf(row[0]);
      entities[{resource}] =
          MakeEntity(Group(kResourceRank, TextOf(row[1]) + " " + resource), course);
    }
    ReadCourse(course, &entities);
  }

  // ---- The machine and the processes ----

  uint64_t ProcessGroup(const SqlValue& process_id, const SqlValue& process, const SqlValue& pid) {
    const auto [it, added] = processes_.try_emplace(TextOf(process_id), 0);
    if (added) {
      it->second =
          Group(kProcessRank, fmt::format("process {} ({})", TextOf(process), TextOf(pid)));
    }
    return it->second;
  }

  void AddProcesses() {
    const SqlResult processes = Query(
        "SELECT process_id, process, pid, parent_pid, command, role, started_ns, ended_ns, "
        "exit_text FROM process_summary WHERE run_id = ?1 ORDER BY started_ns");
    for (const auto& row : processes.rows) {
      const uint64_t group = ProcessGroup(row[0], row[1], row[2]);
      const auto started = WholeOf(row[6]), ended = WholeOf(row[7]);
      if (!fixed_ || !started) continue;
      TraceArguments arguments = {{"command", row[4]},
                                  {"role", row[5]},
                                  {"parent_pid", row[3]},
                                  {"started_seconds", static_cast<double>(*started) / 1e9}};
      if (ended) {
        arguments.emplace_back("ended_seconds", static_cast<double>(*ended) / 1e9);
        arguments.emplace_back("exit", row[8]);
      } else {
        arguments.emplace_back("ended", std::string("alive at the end of the recording"));
      }
      std::vector<TraceSlice> lifetime;
      lifetime.push_back(
          {*started, ended.value_or(run_.duration_ns), TextOf(row[1]), std::move(arguments)});
      Lanes(group, 1, "lifetime", std::move(lifetime));
    }
  }

  struct Measured {
    TraceCounter counter;
    double scale = 0;
    int64_t end_ns = INT64_MIN;
  };
  // Metric, process, subject, cause.
  using MeasuredKey = std::tuple<std::string, std::string, std::string, std::string>;

  void ReadMeasurements() {
    const SqlResult measured = Query(
        "SELECT DISTINCT metric, process_id, subject, cause, process, pid "
        "FROM measurement_summary WHERE run_id = ?1 AND " +
        MeasurementQuery().where + " ORDER BY metric, process_id, subject, cause");
    std::map<MeasuredKey, Measured> all;
    uint64_t machine = 0, rank = 1;
    for (const auto& row : measured.rows) {
      const TracedMetric* traced = FindTraced(TextOf(row[0]));
      if (traced == nullptr) continue;
      const bool of_process = !TextOf(row[1]).empty();
      if (!of_process && machine == 0) machine = Group(kMachineRank, "machine");
      std::string name = traced->name;
      for (const size_t label : {size_t{2}, size_t{3}}) {
        if (const std::string text = TextOf(row[label]); !text.empty()) name += " " + text;
      }
      Measured entry;
      entry.counter = TraceCounter(CounterTrack(
          of_process ? ProcessGroup(row[1], row[4], row[5]) : machine, ++rank, name, traced->unit));
      entry.scale = traced->scale;
      all[{TextOf(row[0]), TextOf(row[1]), TextOf(row[2]), TextOf(row[3])}] = entry;
    }
    if (with_courses_) ReadMeasured(&all);
  }

  void ReadMeasured(std::map<MeasuredKey, Measured>* all) {
    int64_t last_start_ns = INT64_MIN;
    courses_.ForEachWindow(MeasurementQuery(), [&](int64_t start_ns, int64_t end_ns,
                                                   const std::vector<SqlValue>& row) {
      const auto found =
          all->find({TextOf(row[2]), TextOf(row[3]), TextOf(row[4]), TextOf(row[5])});
      const auto value = NumberOf(row[6]);
      if (found == all->end() || !value) return;
      Measured& entry = found->second;
      last_start_ns = std::max(last_start_ns, start_ns);
      // A counter that did not grow has no row.
      if (entry.scale != 0 && entry.counter.known() &&
          start_ns - entry.end_ns > CourseReader::kGapNs) {
        entry.counter.Set(entry.end_ns, 0, writer_);
      }
      entry.counter.Set(
          start_ns,
          entry.scale == 0 ? *value : *value * entry.scale / static_cast<double>(end_ns - start_ns),
          writer_);
      entry.end_ns = end_ns;
    });
    for (auto& [key, entry] : *all) {
      if (entry.scale != 0 && entry.counter.known() && entry.end_ns <= last_start_ns) {
        entry.counter.Set(entry.end_ns, 0, writer_);
      }
    }
  }

  struct StageTracks {
    uint64_t group = 0, rank = 0;
  };

  const ExportRequest& request_;
  TraceWriter* const writer_;
  const bool fixed_, with_courses_;
  const ExportedRun run_;
  uint64_t last_id_ = 0, root_ = 0;
  CourseReader courses_;
  std::map<std::string, StageTracks> stages_;
  std::map<std::string, uint64_t> processes_;
};

}  // namespace

void WriteTrace(const ExportRequest& request, TraceWriter* writer) {
  TraceReader(request, writer).Read();
}

int64_t CountTraceRows(const ExportRequest& request) {
  int64_t rows = 0;
  for (const IntervalQuery& query :
       {StepTraceCourse().query, StageTraceCourse().query, OperatorTraceCourse().query,
        QueueTraceCourse().query, ResourceTraceCourse().query, StepTimeQuery(),
        MeasurementQuery()}) {
    rows += CountIntervals(request.store, query, request.run_id,
                           std::max<int64_t>(0, request.since_ns), request.until_ns);
  }
  return rows;
}

}  // namespace headrace::dashboards
