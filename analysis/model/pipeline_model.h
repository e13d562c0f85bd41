// PipelineModel: a run as stages in order, with visit ratios, demands per batch, capacities and
// variances: enough to bound the throughput of the pipeline at its own and at other settings.
//
// A demand is what one batch costs: c (CPU) and b (blocked) of each operator, without the time it
// waited for a lock, which is the lock's row; q (runnable but not running) is never a demand.
// Threads limit c + b of their stage; cores limit the sum of c. See docs/measurements.md.
//
// A stage without threads of its own (a loader without workers) runs on the consumer's thread: it
// has 0 threads in Settings, and that one thread loads and computes in turn. Where other programs
// use the cores as well, more threads get a larger share of them (SharedCores).
//
// Times of the model are seconds; one batch is one step of the consumer.
#pragma once
#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "analysis/model/device_curve.h"
#include "analysis/model/resource_model.h"
#include "analysis/model/simulate.h"
#include "analysis/run/cpu_quota.h"
#include "analysis/run/pauses.h"
#include "analysis/run/phases.h"
#include "analysis/run/run_view.h"
#include "analysis/run/uneven_workers.h"

namespace headrace::analysis {

// The stage of operators that belong to no stage of the model: the consumer's own. (The consumer is
// a row of its own, without threads to set.)
inline constexpr size_t kNoStage = static_cast<size_t>(-1);
// The kind of an operator whose waits for input are those for the batch that is due, while others
// are there.
inline constexpr const char* kOrderKind = "order";
// That of operators which start and end workers.
inline constexpr const char* kStartKind = "start";
// That of an operator which finds the rows of the next batch: whatever it waits for, nobody makes
// batches meanwhile that it could take.
inline constexpr const char* kSampleKind = "sample";
// That of an operator in which the trainer waits for the first batch of an epoch, where each epoch
// has threads and buffers of its own.
inline constexpr const char* kFirstBatchKind = "first";
// That of an operator which makes a batch of the bytes that came.
inline constexpr const char* kUnpickleKind = "deserialize";

struct OperatorModel {
  std::string name, kind;
  size_t stage = kNoStage;
  double visit_ratio = 1;  // completions per batch
};

struct StageModel {
  std::string name;
  size_t row = kNoStage;  // index into RunView::stages
  std::vector<size_t> operators;
  int parallelism = 1;      // at the end of the run
  int max_parallelism = 0;  // 0: no limit
  // The stage has no threads of its own: its operators run on the consumer's thread. Settings then
  // give it 0 threads.
  bool on_consumer = false;
  // And never can have: it takes batches from those that made them. No setting gives it threads.
  bool stays_on_consumer = false;
  size_t last = 0;              // the last operator that elements pass through
  double visit_ratio = 1;       // completions of `last` per batch
  double firings = 1;           // per batch: completions of the first one
  double cv = 0.3;              // of one firing's cost, estimated from the spread between windows
  std::optional<size_t> queue;  // the queue after it
  double elements = 1;          // elements put into that queue per batch
  // Share of what it makes that is taken meanwhile. Below 1 results pile up in a queue without a
  // bound: what the stage does for those is no demand of the batches that are taken.
  double taken_ratio = 1;
  std::vector<size_t> inputs;           // stages whose queues it takes from; empty: a source
  std::optional<size_t> output;         // the stage that takes from its queue; none: the consumer
  std::optional<double> element_bytes;  // size of one element of that queue
  // Shares of the threads' lifetime in the steady phase.
  double busy_ratio = 0, wait_in_ratio = 0, wait_out_ratio = 0;
  std::optional<double> runnable_ratio;
};

// What one batch costs, over a chosen set of windows.
struct Demands {
  struct Operator {
    double cpu_s = 0, blocked_s = 0;       // c and b, b without lock waits
    double cpu_low_s = 0, cpu_high_s = 0;  // bounds of c
    double lock_wait_s = 0, busy_s = 0;
    double rows = 0, bytes_in = 0, bytes_out = 0;
  };
  struct Resource {
    double hold_s = 0;     // server time
    double limiter_s = 0;  // time per batch in a rate limiter, which books it as waiting
    double wait_s = 0, bytes = 0;
  };
  std::vector<Operator> operators;
  std::vector<double> stage_s;      // c + b of each stage's operators
  std::vector<double> stage_cpu_s;  // c of each stage's operators
  std::vector<Resource> resources;
  std::vector<double> cache_disk_s;  // by tier of a hypothetical cache; empty: none
  double cpu_s = 0;                  // all CPU of the process, unattributed part included
  double unattributed_cpu_s = 0;     // the part of cpu_s that no operator of a stage accounts for
  double consumer_cpu_s = 0;         // the part of unattributed_cpu_s on the consumer's threads
  // Compute time of the consumer: c + b. Where several consumers run at once, of all of them
  // together.
  double consumer_s = 0;
  // Bounds of consumer_s, where it is not known how long the consumer waited for a core.
  double consumer_least_s = 0, consumer_most_s = 0;
  // Time of the consumer's requests for a batch that neither a core nor an operator accounts for,
  // where a stage runs on the consumer's thread; 0 where none does.
  double consumer_load_s = 0;
  // What the order of batches takes of each step: the consumer's wait for the batch that is due
  // while others are there, for as much of it as those who make batches had nothing to do.
  // order_wait_most_s: all of that wait.
  double order_wait_s = 0, order_wait_most_s = 0;
  // How much of the recorded difference between workers is there: 1 all of it, 0 none.
  double unevenness = 1;
  // How much of the time in which a pool is asked for nothing is there: 1 all of it, 0 none.
  double asks_late = 1;
  // How far other programs yield cores to more threads: 1 as a scheduler that is fair to threads
  // makes them, 0 not. Empty: OthersYield.
  std::optional<double> others_yield;
  double rate = 0;  // batches per second observed
  double rows = 0;  // rows per batch
};

// The knobs of a pipeline and the cores it gets.
struct Settings {
  std::vector<int> parallelism;     // per stage
  std::vector<int> queue_capacity;  // per stage: capacity of the queue after it
  double cores = 1;
  int order_window = 0;  // for all ordered queues; 0: no window set
  bool operator==(const Settings&) const = default;
};

// Draws of PipelineModel::Bootstrap.
inline constexpr size_t kBootstrapDraws = 400;

class PipelineModel {
 public:
  // Throws Error kInconclusive when the run has no operator data, no steps, is too short for a
  // statement (under 2 s and under 20 steps), or when its figures cannot be true. `run` must
  // outlive the model.
  explicit PipelineModel(const RunView& run);
  explicit PipelineModel(const RunView&& run) = delete;

  const RunView& run() const { return *run_; }
  const std::vector<StageModel>& stages() const { return stages_; }
  const std::vector<OperatorModel>& operators() const { return operators_; }
  const std::vector<ResourceModel>& resources() const { return resources_; }

  // The windows of the steady phase, as indices of run().windows. If the run has no windows this is
  // empty, and Estimate uses the whole run. steady_first_ns, steady_last_ns: when the phase began
  // and ended, since the run's start.
  const std::vector<size_t>& steady_windows() const { return steady_; }
  const Phases& phases() const { return phases_; }
  int64_t steady_first_ns() const { return first_ns_; }
  int64_t steady_last_ns() const { return last_ns_; }

  // Demands over those windows (indices into run().windows, repeats allowed); over the whole run
  // where `windows` is empty. Where c of operators is only known within intervals, it is chosen so
  // that a stage's operators add up to the stage's CPU time as far as possible: at the same part of
  // every interval, or in proportion to `places` (one number in [0, 1] per operator).
  Demands Estimate(const std::vector<size_t>& windows,
                   const std::vector<double>& places = {}) const;
  const Demands& demands() const { return demands_; }
  // What a batch might have cost in other recordings of the same pipeline: kBootstrapDraws draws.
  // In each, blocks of neighbouring windows are resampled (Künsch 1989), then each row is disturbed
  // at random by the error that the model is known to make. Found at the first call.
  const std::vector<Demands>& Bootstrap() const;

  // Whether c is known exactly for every operator, so that `places` have no effect.
  bool splits_operators() const { return splits_operators_; }
  // Whether c of every stage is known apart from b + q, and which source tells.
  bool splits_cpu() const { return splits_cpu_; }
  const std::string& split_source() const { return split_source_; }

  // Cores that this process could get with its present threads: the budget less what others were
  // measured to use; where the cores are full, its threads' share of them.
  double cores_available() const { return cores_available_; }
  // Whether other programs kept the cores so full that this one's threads waited for a core.
  bool cores_contended() const { return others_runnable_ > 0; }
  // Whether other programs use so much of them that figures hold for that load only.
  bool others_hold_cores() const;
  // Whether the other programs are known to share the cores with this one's threads one by one; if
  // not (they are in other control groups or sessions, or nobody looked), more threads may get no
  // more CPU time.
  bool others_are_peers() const { return others_are_peers_; }
  // Cores that the threads of `settings` get beside other programs. That is settings.cores unless
  // the cores are contended. If they are, each thread that wants a core gets the same share, so
  // more threads get more.
  double SharedCores(const Settings& settings, const Demands& demands) const;
  // What Demands::others_yield is of, without a draw, or drawn with `place` in [0, 1).
  double OthersYield() const;
  double OthersYield(double place) const;
  // Share of the consumer's step in which it was ready to compute but had no core; none: unknown.
  std::optional<double> consumer_runnable_ratio() const { return consumer_runnable_ratio_; }
  // Consumers that took batches at the same time, in this or in several processes.
  int consumers() const { return consumers_; }
  // Seconds a batch that stages without threads in `settings` take of the consumers' threads, which
  // work at the same time.
  double OnConsumers(const Settings& settings, const Demands& demands) const;
  // Whether the trainer's step takes more of its thread than what that thread does for batches.
  bool StepIsLarger() const { return demands_.consumer_s > OnConsumers(current_, demands_); }
  // Whether the operator is of that kind and of a stage that takes batches from workers: elsewhere
  // a program may call its own operators as it likes.
  bool IsReceiving(size_t op, const char* kind) const;
  // Whether one thread loads and computes in turn: a stage runs on the consumer's thread.
  bool loads_on_consumer() const;
  double cores_budget() const { return cores_budget_; }
  // The quota that the budget is, where one is.
  const std::optional<CpuQuota>& cpu_quota() const { return cpu_quota_; }
  std::optional<double> cores_used() const { return cores_used_; }
  std::optional<double> cores_other() const { return cores_other_; }  // used by other processes
  // Used by stages for results that nobody takes yet (StageModel::taken_ratio).
  double cores_ahead() const { return cores_ahead_; }
  // What other processes are known to use of this run's own core budget: on a host with more cores
  // they may run on the rest.
  std::optional<double> cores_other_here() const { return cores_other_here_; }
  bool cores_known() const { return cores_known_; }

  double consumer_cv() const { return consumer_cv_; }
  double stall_ratio() const { return stall_ratio_; }
  double steady_seconds() const { return static_cast<double>(steady_sum_.duration_ns) / 1e9; }
  // Seconds that the consumer waited (wait_s), and waited or computed (all_s), in each steady
  // window. The stall fraction and its interval are ratios of their sums.
  struct StallWindow {
    double wait_s = 0, all_s = 0;
  };
  const std::vector<StallWindow>& stall_by_window() const { return stall_by_window_; }

  // Whether elements leave every queue in order, and how far ahead of the next element in order
  // another one may wait (0: no bound set). Both come from the pipeline file and the command line.
  bool ordered() const { return ordered_; }
  int order_window() const { return current_.order_window; }
  // Whether the trainer's waits for the batch that is due while others are ready were accounted.
  bool measures_order() const;
  // Workers with unequal work whose batches are taken in turn, and the index of their stage.
  struct Uneven {
    size_t stage = 0;
    UnevenWorkers workers;
  };
  const std::optional<Uneven>& uneven() const { return uneven_; }
  // A pool whose workers often have nothing to do although the consumer waits for their results: it
  // asks for too few of them ahead.
  struct IdlePool {
    size_t stage = 0;
    double idle_ratio = 0;  // of its workers' time
    double at_once = 1;     // calls that the workers are at, on average, while the consumer waits
  };
  const std::optional<IdlePool>& idle_pool() const { return idle_pool_; }
  // Pauses of those that make batches, and the index of the stage whose queue runs empty in them.
  struct PausingStage {
    size_t stage = 0;
    Pauses pauses;
  };
  const std::optional<PausingStage>& pauses() const { return pauses_; }
  // Seconds a step that they take: a longer queue lasts for longer, if it has filled since the last
  // one. 0 without pauses.
  double LostToPauses(const Settings& settings, const Demands& demands) const;
  // How long that queue must be to last over one of them at the present pace; 0 without pauses.
  int QueueOverPauses() const;
  // The share of its threads' rate that a stage keeps although its queue is ordered, if all else is
  // fast. Found by simulating the stage alone; results are remembered. 1 for stages that lose
  // nothing.
  double OrderShare(size_t stage, const Settings& settings) const;

  // The part of consumer_s that uses the cores: CPU time of the consumer's operators; where that
  // was not measured, an upper bound: all CPU time of its threads.
  double ConsumerComputeCpu(const Demands& demands) const;

  Settings current() const { return current_; }
  // The same pipeline for the simulator, at these settings and demands.
  SimulatedPipeline Simulated(const Settings& settings, const Demands& demands) const;

 private:
  void ReadShape();
  void AddSimulatedOperators(const StageModel& model, size_t s, const Demands& demands,
                             double overhead, double firings, double cv,
                             SimulatedStage* stage) const;
  bool OtherThreadsHaveTime(size_t s, int64_t busy_ns) const;
  void FindStagesOnConsumer();
  void CountConsumers();
  double MakersCompute(const WindowRow& sum, size_t taker) const;
  double EstimateStage(size_t s, const WindowRow& sum, const std::vector<double>& places,
                       Demands* demands) const;
  void EstimateConsumerCpu(const WindowRow& sum, double on_stages_s, Demands* demands) const;
  void EstimateConsumer(const WindowRow& sum, Demands* demands) const;
  void EstimateLoad(const WindowRow& sum, Demands* demands) const;
  void EstimateOrder(const WindowRow& sum, Demands* demands) const;
  void EstimateStorage(const DeviceCurve& curve, Demands* demands) const;
  void EstimateCounted(const ResourceModel& counted, Demands* demands) const;
  void EstimateAccounted(const ResourceModel& accounted, const WindowRow& sum,
                         Demands* demands) const;
  StageCounters ThreadsOf(const StageModel& stage, const WindowRow& sum) const;
  bool ThreadsSustain(const Settings& settings, const Demands& demands, double rate,
                      double share) const;
  double FairCores(const Settings& settings, const Demands& demands) const;
  void ReadContention(double host);
  void ReadTree();
  void ReadAhead();
  void ReadOrder();
  void ReadUneven();
  void ReadIdlePool();
  void ReadPauses();
  void ReadSplit();
  void ChooseSteady();
  std::vector<size_t> CarriersOf(const StageModel& stage) const;
  void ReadVisits();
  void ReadOtherThreads();
  void LinkResources();
  void AddStorage();
  void AddCounted();
  void ShareCounted();
  void LeaveOutWaitsAtFullStore(const ResourceModel& store, Demands* demands) const;
  void ReadCores();
  void ReadSpread();
  WindowRow Sum(const std::vector<size_t>& windows) const;
  WindowRow SumOf(const std::vector<const WindowRow*>& windows) const;
  Demands EstimateFrom(const WindowRow& sum, const std::vector<double>& places) const;
  std::vector<WindowRow> SteadyBlocks() const;

  const RunView* run_;
  std::vector<StageModel> stages_;
  std::vector<size_t> consumer_rows_;  // indices into RunView::stages
  std::vector<OperatorModel> operators_;
  std::vector<ResourceModel> resources_;
  Phases phases_;
  std::vector<size_t> steady_;
  WindowRow steady_sum_;  // of them; of the run where there are none
  int64_t first_ns_ = 0, last_ns_ = 0;
  Demands demands_;
  bool splits_cpu_ = false, splits_operators_ = false, cores_known_ = false;
  std::string split_source_;
  double other_cpu_s_ = 0;  // CPU time per batch of threads outside the stages
  int consumers_ = 1;
  std::optional<double> consumer_runnable_ratio_;
  // Where cores are contended: how many cores this and other programs share, how many of the
  // others' threads want one (0: not contended), and how many cores the others used.
  double contended_cores_ = 0, others_runnable_ = 0, others_used_ = 0;
  double others_keep_ = 1;  // cores left to others / cores that a fair scheduler would leave them
  bool others_are_peers_ = false;
  double cores_available_ = 1, cores_budget_ = 1, cores_ahead_ = 0;
  std::optional<CpuQuota> cpu_quota_;
  std::optional<double> cores_used_, cores_other_, cores_other_here_;
  double consumer_cv_ = 0.1, stall_ratio_ = 0;
  std::vector<StallWindow> stall_by_window_;
  Settings current_;
  bool ordered_ = false;
  std::optional<Uneven> uneven_;
  std::optional<IdlePool> idle_pool_;
  std::optional<PausingStage> pauses_;
  mutable std::map<std::tuple<size_t, int, int, int>, double> order_shares_;
  // Moves that simulations for OrderShare may still make.
  mutable int64_t order_moves_ = 50'000'000;
  mutable std::vector<Demands> bootstrap_;
};

}  // namespace headrace::analysis
