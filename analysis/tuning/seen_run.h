// SeenRun: what a tuner knows of the run so far: which windows are of which settings, and the
// figures over them.
#pragma once
#include <cstdint>
#include <limits>
#include <optional>
#include <utility>
#include <vector>

#include "analysis/run/run_view.h"
#include "analysis/tuning/tuned_target.h"

namespace headrace::analysis {

class SeenRun {
 public:
  explicit SeenRun(const KnobValues& knobs) { segments_.push_back({knobs, 0, kForever}); }

  // `view`: the run so far, which must live as long as this is asked. `current`: the settings in
  // force.
  void Read(const RunView& view, const KnobValues& current);
  // Other settings are in force from `at_ns` on; what lay in the queues then has been taken at
  // `settled_ns`.
  void Changed(const KnobValues& knobs, int64_t at_ns, int64_t settled_ns);
  // Excludes windows that overlap this time.
  void Disturbed(int64_t from_ns, int64_t to_ns) { disturbed_.emplace_back(from_ns, to_ns); }

  // Bytes of the process beside queues and threads: nearly the highest of the recent readings, plus
  // `extra_bytes`.
  std::optional<double> Rest() const;
  // Windows at these settings, of all the run since the last drift.
  std::vector<size_t> WindowsAt(const KnobValues& knobs) const;
  // Windows of the segment in force, from then on.
  std::vector<size_t> WindowsSince(int64_t from_ns) const;
  double RateOver(const std::vector<size_t>& windows) const;
  std::vector<double> RatesOf(const std::vector<size_t>& windows) const;
  // Without the start and the filling of queues.
  std::vector<size_t> Steady(const std::vector<size_t>& windows) const;
  // Relative standard deviation of a window's rate.
  double Spread(const std::vector<size_t>& windows) const;
  // The part of the run at these settings, as if it were all of it.
  RunView PartAt(const KnobValues& knobs, const std::vector<size_t>& windows) const;

  const RunView* run = nullptr;
  int64_t now_ns = 0;  // up to which the run is recorded
  int64_t window_ns = 200'000'000;
  int64_t known_from_ns = 0;  // windows before a drift count no more
  double extra_bytes = 0;     // that the process was seen to take too much

 private:
  static constexpr int64_t kForever = std::numeric_limits<int64_t>::max();

  struct Segment {  // of the run, with the same settings
    KnobValues knobs;
    int64_t settled_ns = 0, to_ns = kForever;
  };

  bool Usable(const WindowRow& window) const;
  // What a batch cost at each of the settings seen, for the growth of costs with load.
  std::vector<LoadRow> Loads(const KnobValues& own) const;

  std::vector<Segment> segments_;
  std::vector<std::pair<int64_t, int64_t>> disturbed_;
  std::vector<double> rests_;  // of the process beside queues and threads, lately
};

}  // namespace headrace::analysis
