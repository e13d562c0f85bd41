// The tuner in simulation: a World that runs window by window while its settings are turned, and
// others' ways to tune on the same Worlds. Judged by playing the World at the settings that each
// ends with, against the best of a grid (exhaustive.h).
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "tests/validation/gates.h"

namespace headrace::validation {

// G12 and G13: tuned from the settings the World was drawn with until the strategy stops.
struct TuneTrial {
  uint64_t seed = 0;
  std::string kind, strategy;
  double before = 0, rate = 0, best = 0;  // batches per second, played at length
  int decisions = 0;                      // settings that were tried, ways back included
  int windows = 0;                        // until it stopped
  bool over_memory = false;               // any settings that were tried
  std::string chosen;
};
// G12: after it has converged, a while of quiet, then a lasting change.
struct DriftTrial {
  uint64_t seed = 0;
  std::string kind, change;  // "rows twice the size"
  int quiet_turns = 0;       // knobs turned while nothing changed
  double kept = 0;           // rate that the settings from before the change would give
  double rate = 0;           // at the settings 20 windows after it
  double last = 0;           // at those that tuning ends with, 200 windows after it
  double best = 0;
  int reversals = 0;  // of a knob, the most, after it had converged again
  bool over_memory = false;
};

std::vector<TuneTrial> TryTuning(uint64_t seed);
// Nothing where it did not converge within the time.
std::vector<DriftTrial> TryDrift(uint64_t seed);

std::string Line(const TuneTrial& trial);
std::string Line(const DriftTrial& trial);

struct Tunings {
  std::vector<TuneTrial> tunes;
  std::vector<DriftTrial> drifts;
};
// Adds the trial of a line; false when it is none.
bool Parse(const std::string& line, Tunings* tunings);

std::vector<Gate> Judge(const Tunings& tunings);
// The section of the page, with a table of the strategies; "" without trials.
std::string RenderTuning(const Tunings& tunings);

// What Show is for other benches: every decision of one seed, for people.
std::string ShowTuning(uint64_t seed);
std::string ShowDrift(uint64_t seed);

}  // namespace headrace::validation
