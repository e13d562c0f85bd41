// HostProblem: what is to be allocated within one host (host_program.h), a solution of it, and what
// a solution gives by the rows alone.
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
  int queue = 0;  // 0: the program chooses the queue's length separately
  // How many threads' work it does: fewer than `threads` where order makes them wait.
  double workers = 1;
  double bytes = 0;  // memory of elements in work, and of the queue where `queue` is given
};

// A stage in the tree whose root is the consumer.
struct HostStage {
  std::string name;
  double service_s = 0;          // c + b of one batch
  double cpu_s = 0;              // c of it
  std::optional<size_t> output;  // the stage that takes from it; none: the consumer
  std::optional<size_t> set;     // index of the mode set that its choices depend on
  std::vector<std::vector<StageChoice>> choices;  // by mode of the set; one list without a set
  int threads_now = 1;
  // Present and least length of the queue behind it, where its choices have no `queue`.
  int queue_now = 1, queue_least = 1;
  double element_bytes = 0;
};

struct Mode {
  int value = 1;
  double bytes = 0;  // memory that it takes in addition to the choices'
};
// A set of modes of which exactly one is chosen.
struct ModeSet {
  std::string name;  // "pipeline.reorder_window", "copies of decode"
  std::vector<Mode> modes;
  size_t now = 0;
};

// Something that all stages share: `servers` seconds of it can be used each second.
struct Capacity {
  std::string name;
  double servers = 1;
  double other_s = 0;           // use per batch that no cache saves
  std::vector<double> stage_s;  // use per batch by each stage
};

struct HostTier {
  std::string name;
  double budget_bytes = 0;
  bool memory = false;  // its content counts in the memory row
};

// A stage's output kept in a tier: all of it at w = 1.
struct CacheSite {
  size_t stage = 0, tier = 0;
  double bytes = 0;                          // of one epoch's elements
  double read_s = 0, write_s = 0;            // time of the stage's threads
  bool cpu = true;                           // true: these are CPU time; false: blocked time
  double tier_read_s = 0, tier_write_s = 0;  // time of the tier's device; 0: it has none
};

struct HostProblem {
  std::vector<HostStage> stages;
  std::vector<ModeSet> sets;
  std::vector<Capacity> capacities;
  double cores = 0;        // infinite: not known
  double other_cpu_s = 0;  // CPU time of the process outside the stages
  // A shorter time per batch is useless, because of the consumer or the target.
  double least_s = 0;
  std::vector<HostTier> tiers;
  std::vector<CacheSite> sites;
  bool one_cache = false;   // the pipeline can have only one cache
  double epochs = 0;        // 0: not known: the rate from the second epoch on counts
  double fixed_bytes = 0;   // memory that no choice changes
  double memory_bytes = 0;  // limit; infinite: none
  double headroom = 0;      // share of extra capacity that each stage should have if possible
  double yielded = 1e-7;    // share of the highest rate that later objectives may give up
  std::optional<double> price_per_core_hour, watts_per_core;
};

struct HostSolution {
  double batch_s = 0;               // T; with a cache, from the second epoch on
  double fill_s = 0;                // T of the first epoch; equal to batch_s without a cache
  double average_s = 0;             // mean over the epochs; batch_s where their number is not known
  std::vector<size_t> modes;        // of each set
  std::vector<StageChoice> stages;  // the choice of each stage, its queue filled in
  std::vector<double> kept;         // share that each cache site keeps
  // Busy cores in the busier phase; bought cores where they have a price.
  double cores = 0;
  std::optional<double> watts;  // mean over the epochs
};

// relative: smaller differences of memory and rates are rounding
inline constexpr double kRound = 1e-9;
inline constexpr double kSolver = 1e-6;  // relative: the solver takes values this close as equal

// Bytes above the limit that the solver's memory row (in MiB) may accept by that tolerance.
inline constexpr double kSolverBytes = kSolver * 1048576;

// kWarm: the epochs that read the cache back. kFill: the first epoch, which fills it.
enum CachePhase { kWarm, kFill };

// By stage: the cache sites at or behind it, on its way to the consumer.
std::vector<std::vector<size_t>> SitesBehind(const HostProblem& problem);

// The largest share of a site that its tier's budget holds.
double MostKept(const HostProblem& problem, size_t site);

// Whether the phase exists: without a cache there is one, with one epoch only the filling.
bool Counts(const HostProblem& problem, CachePhase phase);

// Weight of a phase's T in the sum that is minimised.
double WeightOf(const HostProblem& problem, CachePhase phase);

// The least and the most work that one phase may ask of a stage, in seconds of its threads. If
// `shares` gives the kept share of every site, both are the same.
struct Range {
  double least = 0, most = 0;
};
Range LoadRange(const HostProblem& problem, const std::vector<size_t>& behind, size_t s,
                CachePhase phase, const std::vector<double>* shares = nullptr);

// Whether the program chooses the length of the stage's queue separately from the stage's choice.
bool OwnQueue(const HostProblem& problem, const HostSolution& solution, size_t s);

double BytesOf(const HostProblem& problem, const HostSolution& solution);
// The same without the stages: fixed memory, chosen modes, and what caches keep in memory.
double BytesBesideStages(const HostProblem& problem, const HostSolution& solution);

// Computes what `solution` (modes, stages, kept) gives, by the rows alone: fills in batch_s,
// fill_s, average_s and cores. False when it exceeds the memory or a tier's budget, or has two
// caches on one path. Tests check the program against it.
bool Evaluate(const HostProblem& problem, HostSolution* solution);

}  // namespace headrace::analysis
