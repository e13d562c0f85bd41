// LiveRun: the newest part of a run, read from its store again and again while a collector writes
// it. Only what was stored since the last look is read, so a look costs about a millisecond however
// long the run is.
#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "analysis/run/run_view.h"
#include "collectors/store/read_store.h"

namespace headrace::dashboards {

// The figures of the machine and the process that a live view draws over time.
enum class MachineFigure : uint8_t {
  kProcessCpu,
  kCpuPressure,
  kIoPressure,
  kDeviceRead,
  kAccelerator
};

// One stored value of such a figure. Counters: growth in the interval (ns or bytes); gauges: the
// mean (ratio of an accelerator's time).
struct FigurePoint {
  int64_t start_ns = 0, duration_ns = 0;  // since the run began
  double value = 0;
};

// The newest part of a run.
struct LiveFigures {
  // The run's row (id, name, state, program, pid, duration, level, cores), its stages, operators,
  // queues and steps, and its last windows. Everything else is empty.
  analysis::RunView run;
  std::map<MachineFigure, std::vector<FigurePoint>> courses;
  // Resident memory of the run's processes, the last value; nothing where it was not measured.
  std::optional<double> rss_bytes;

  bool recording() const { return run.run.state == "recording"; }
  const std::vector<FigurePoint>& Points(MachineFigure which) const;
};

// The run that a user means by `run`: an id, a name, or "latest"; "" is the run that is being
// recorded now (the newest, if there are several), and the latest run where none is.
struct ChosenRun {
  int64_t run_id = 0;
  std::string note;  // what the user should know of the choice, one sentence; empty: nothing
};
// Throws Error kBadData: `database` is no store, or has no such run, or none at all.
ChosenRun ChooseLiveRun(const std::string& database, const std::string& run);

class LiveRun {
 public:
  // How much of the run's end is kept.
  static constexpr int64_t kHistoryNs = 120'000'000'000;

  // Opens the store for reading. Throws Error kBadData: it is no store, or has no such run.
  LiveRun(std::string database, int64_t run_id);

  // Reads what is new; returns whether anything is. Where a recording has stored nothing for a
  // while the store is opened again: its writer may be gone, or its file replaced. Throws Error
  // kBadData where the store or the run is no longer there; the view is then as it was.
  bool Read();

  // Its windows are those of the run's last kHistoryNs.
  const LiveFigures& figures() const { return figures_; }

 private:
  void ReadRow();
  int64_t StoredNs();
  void ReadEntities();
  void ReadWindows(int64_t from_ns, int64_t to_ns);
  void ReadCourses(int64_t from_ns, int64_t to_ns);
  void Forget();
  int64_t HistoryBegin() const;  // just before it, since the run began

  std::string database_;
  int64_t run_id_;
  std::optional<collectors::ReadStore> store_;
  LiveFigures figures_;
  int64_t read_ns_ = 0;        // of the run: all before it was read
  int64_t changed_at_ns_ = 0;  // by the monotonic clock: when the run last grew
};

}  // namespace headrace::dashboards
