// The judged trials of bench B1. Each trial takes one seed, records a run of a generated World,
// asks analysis about it as for any recorded run, and plays the World again to see what is true.
// Trials are written as lines of tab-separated fields, so that parts can be run apart and put
// together (gates.h).
//
// Seeds below kFirstReportSeed are for fitting: constants of analysis may be chosen by them. Those
// from there on are for the report alone.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

namespace headrace::validation {

inline constexpr uint64_t kFirstReportSeed = 10000;

// G1 and G3: the rate at settings of which at least one knob changed twofold.
struct PredictTrial {
  uint64_t seed = 0;
  std::string kind, change;  // what was planted; "s1 x4 cores x2"
  int level = 3;
  double now = 0, predicted = 0, low = 0, high = 0, observed = 0;
  std::string limited_by;  // predicted for these settings: "stage", "cores", ...
};
// G1 where work gets dearer with the busy cores, `kind` telling what was recorded before: "one
// run", or "three runs" with all threads halved and doubled. `change` and the rest as above. G4:
// the row named first, against interventions.
struct NameTrial {
  uint64_t seed = 0;
  std::string kind, verdict, first, second;
  int level = 3;
  double probability = 0;  // of the first
  std::string truth;       // row with the largest gain
  double gap = 0;          // that gain
  bool first_right = false, second_right = false;
};
// G11: what relieving each row alone is said to gain, against doing it.
struct WorthTrial {
  uint64_t seed = 0;
  std::string kind;
  int pairs = 0;    // of the three rows that truly gain most, those that truly differ
  double tau = 0;   // Kendall's, over these pairs
  int nothing = 0;  // rows said to gain nothing
  int wrong = 0;    // of them, those that do
  double predicted = 0, observed = 0;  // gain of the row that truly gains most
  double low = 0, high = 0;            // 90 % interval of the predicted one
  bool first_right = false;            // the row said to gain most gains at least half of that
};
// G5, G8, G13: the settings a strategy chose, against all configurations of a grid.
struct ChooseTrial {
  uint64_t seed = 0;
  std::string kind, strategy;
  double before = 0, rate = 0, best = 0;  // rate 0: over memory
  bool over_memory = false;
  int measured = 0;                // trial runs that the strategy asked for
  std::string chosen, best_known;  // "2,3,1/4,4,16": threads and queues; the best of the grid
};

// G6: whether to keep a stage's output between epochs, and where, against all ways to do so.
struct CacheTrial {
  uint64_t seed = 0;
  std::string kind;
  int epochs = 0;
  std::string chosen, best;                     // "none", "s2 memory"
  double none_s = 0, chosen_s = 0, best_s = 0;  // true total times
  double size_error = 0;  // of what is kept, against what it truly takes; 0: none is
};
// Attribution: a pipeline recorded as it was and with one to three things changed; a line for each
// of them. ln of rates throughout.
struct AttributeTrial {
  uint64_t seed = 0;
  std::string kind, change;  // "s1a x0.62"
  int changes = 1;           // planted at once
  double truth = 0;          // what this one carries: Shapley value over plays of all sets of them
  double measured = 0;       // the whole change, by the recordings
  double found = 0, low = 0, high = 0;  // what is said that this one carries; 95 %
  double off = 0;                       // of the sum of all parts from what was measured
  double cost = -1;     // part of the change in cost that is said to be its; -1: no change in cost
  double stranger = 0;  // largest part, by its size, of a row that was not changed, where told
};
// B4 (tests/validation/controls.py): a pipeline with nothing to gain or little to see.
struct ControlTrial {
  std::string name, must_be, found;
  bool held = false;
};
// A pipeline or program whose advice was applied (tests/truth/undeclared.py, tests/abroad).
struct AppliedTrial {
  std::string group, name, limit, fix;
  bool right = false;
  std::string brought;  // "+12 %"; empty: there was nothing to apply
  std::string promise;  // "holds", "misses", "NOTHING" for a sure gain, "SLOWER"; empty: no promise
};
// B0 (tests/validation/accounting.py): what an operator was made to cost, and what the accounts
// say.
struct AccountTrial {
  std::string what;
  int load = 1;  // computing threads a core
  double expected = 0, recovered = 0;
  double limit = 0;  // of the relative error
};
// G7 and the speed of the solvers.
struct SolveTrial {
  std::string what;
  size_t instances = 0, equal = 0;  // to the truth, within 1e-6
  double slowest_ms = 0;
};

std::vector<PredictTrial> TryPredictions(uint64_t seed);
std::vector<PredictTrial> TryContention(uint64_t seed);
NameTrial TryNaming(uint64_t seed);
WorthTrial TryWorths(uint64_t seed);
std::vector<ChooseTrial> TryChoosing(uint64_t seed);
std::vector<CacheTrial> TryCaching(uint64_t seed);
std::vector<SolveTrial> TrySolving(uint64_t seed);
std::vector<AttributeTrial> TryAttributing(uint64_t seed);

// A generated World beside what analysis makes of its recording, for people.
std::string Show(uint64_t seed, bool small);

std::string Line(const PredictTrial& trial);
std::string Line(const NameTrial& trial);
std::string Line(const WorthTrial& trial);
std::string Line(const ChooseTrial& trial);
std::string Line(const SolveTrial& trial);
std::string Line(const CacheTrial& trial);
std::string Line(const AttributeTrial& trial);

struct Trials {
  std::vector<PredictTrial> predictions;
  std::vector<PredictTrial> contended;
  std::vector<NameTrial> names;
  std::vector<WorthTrial> worths;
  std::vector<ChooseTrial> choices;
  std::vector<CacheTrial> caches;
  std::vector<SolveTrial> solutions;
  std::vector<AttributeTrial> attributions;
  // Trials of bench B2: pipelines that really ran (tests/validation/real.py).
  std::vector<PredictTrial> real_predictions;
  std::vector<NameTrial> real_names;
  std::vector<PredictTrial> beside_predictions;  // the same beside a neighbour (--beside)
  std::vector<NameTrial> beside_names;
  std::vector<AttributeTrial> real_attributions;  // tests/validation/attribution.py
  std::vector<ControlTrial> controls;
  std::vector<AppliedTrial> applied;
  std::vector<AccountTrial> accounts;
  int real_busy = 0, real_full = 0;  // real trials that were left out, and names that were
};
// Adds the trial of a line; false when it is none.
bool Parse(const std::string& line, Trials* trials);

}  // namespace headrace::validation
