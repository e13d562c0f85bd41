// HostProblem: what is to be allocated within one host (host_program.h), a way to do so, and what
// that gives by the rows alone.
//
// Seconds, bytes; costs are per batch.
#pragma once
#include <optional>
#include <string>
#include <vector>

namespace headrace::analysis {

// One way to run a stage.
struct StageChoice {
  int threads = 1;
  int queue = 0;       // 0: the queue's length is a column of its own
  double workers = 1;  // threads' worth of work it does: fewer than `threads` where order waits
  double bytes = 0;    // of elements in work, and in the queue where `queue` is given
};

// A stage of a tree towards the consumer.
struct HostStage {
  std::string name;
  double service_s = 0;          // c + b of one batch
  double cpu_s = 0;              // c of it
  std::optional<size_t> output;  // the stage that takes from it; none: the consumer
  std::optional<size_t> set;     // the mode set that its choices depend on
  std::vector<std::vector<StageChoice>> choices;  // by mode of the set; one list without a set
  int threads_now = 1;
  // Of the queue behind it, where no choice says.
  int queue_now = 1, queue_least = 1;
  double element_bytes = 0;
};

struct Mode {
  int value = 1;
  double bytes = 0;  // memory that it takes besides that of choices
};
// One of the modes holds.
struct ModeSet {
  std::string name;  // "pipeline.reorder_window", "copies of decode"
  std::vector<Mode> modes;
  size_t now = 0;
};

// What all stages share: `servers` seconds of it pass each second.
struct Capacity {
  std::string name;
  double servers = 1;
  double other_s = 0;           // per batch, whatever is cached
  std::vector<double> stage_s;  // per batch, of each stage
};

struct HostTier {
  std::string name;
  double budget_bytes = 0;
  bool memory = false;  // its content counts in the memory row
};

// A stage's output kept in a tier: all of it at w = 1.
struct CacheSite {
  size_t stage = 0, tier = 0;
  double bytes = 0;                          // of an epoch
  double read_s = 0, write_s = 0;            // of the stage's threads
  bool cpu = true;                           // they compute then
  double tier_read_s = 0, tier_write_s = 0;  // of the tier's one device; 0: it has none
};

struct HostProblem {
  std::vector<HostStage> stages;
  std::vector<ModeSet> sets;
  std::vector<Capacity> capacities;
  double cores = 0;        // infinite: not known
  double other_cpu_s = 0;  // of the process, of no stage
  double least_s = 0;      // seconds of a batch that are of no use to undercut: consumer, target
  std::vector<HostTier> tiers;
  std::vector<CacheSite> sites;
  bool one_cache = false;   // the pipeline has room for one in all
  double epochs = 0;        // 0: not known: the rate from the second epoch on counts
  double fixed_bytes = 0;   // memory whatever is chosen
  double memory_bytes = 0;  // limit; infinite: none
  double headroom = 0;      // extra capacity wanted of each stage, soft
  double yielded = 1e-7;    // share of the highest rate that the later objectives may give away
  std::optional<double> price_per_core_hour, watts_per_core;
};

struct HostSolution {
  double batch_s = 0;               // T; from the second epoch on where there is a cache
  double fill_s = 0;                // T of the first epoch; equal to batch_s without a cache
  double average_s = 0;             // over the epochs; batch_s where they are not known
  std::vector<size_t> modes;        // of each set
  std::vector<StageChoice> stages;  // the choice of each stage, its queue filled in
  std::vector<double> kept;         // share, of each site
  double cores = 0;                 // busy in the busier phase; bought, where there is a price
  std::optional<double> watts;      // mean over the epochs
};

inline constexpr double kRound = 1e-9;   // of memory and rates that are equal but for rounding
inline constexpr double kSolver = 1e-6;  // of what the solver takes as equal

// What its memory row, in MiB, lets pass of bytes too much.
inline constexpr double kSolverBytes = kSolver * 1048576;

// The epochs that read a cache back, and the first, which fills it.
enum CachePhase { kWarm, kFill };

// Which sites lie at or behind each stage, on its way to the consumer.
std::vector<std::vector<size_t>> SitesBehind(const HostProblem& problem);

// The largest share of a site that its tier's budget holds.
double MostKept(const HostProblem& problem, size_t site);

// Whether the phase exists: without a cache there is one, with one epoch only the filling.
bool Counts(const HostProblem& problem, CachePhase phase);

// Weight of a phase's T in what is least.
double WeightOf(const HostProblem& problem, CachePhase phase);

// The least and the most that one phase may ask of a stage, seconds of its threads. With `shares`
// of all sites given that is one value.
struct Range {
  double least = 0, most = 0;
};
Range LoadRange(const HostProblem& problem, const std::vector<size_t>& behind, size_t s,
                CachePhase phase, const std::vector<double>* shares = nullptr);

// Whether the queue's length is no part of the stage's choice.
bool OwnQueue(const HostProblem& problem, const HostSolution& solution, size_t s);

double BytesOf(const HostProblem& problem, const HostSolution& solution);
// The same without the stages: what is fixed, the modes that were chosen, what caches keep in
// memory.
double BytesBesideStages(const HostProblem& problem, const HostSolution& solution);

// What `solution` (modes, stages, kept) gives, by the rows alone: fills in batch_s, fill_s,
// average_s and cores. False when it is over the memory or a tier's budget, or keeps twice on a
// path. The witness of the program in tests.
bool Evaluate(const HostProblem& problem, HostSolution* solution);

}  // namespace headrace::analysis
