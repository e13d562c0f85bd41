#include "analysis/model/row_cost.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "analysis/model/limits/limit.h"
#include "analysis/run/counter_sums.h"
#include "analysis/run/memory_bandwidth.h"
#include "analysis/statistics/statistics.h"
#include "base/error.h"

namespace headrace::analysis {
namespace {

constexpr size_t kRowCostDraws = 400;
constexpr uint64_t kRowCostSeed = 20261201;

bool IsSending(const OperatorModel& op) {
  return op.kind == "serialize" || op.kind == "send" || op.kind == "compress_frame";
}

// Counters of operator `i` over `windows` (over the run where there are none), per row.
struct PerRow {
  double bytes_in = 0, bytes_out = 0, completions = 0, on_cpu_s = 0, busy_s = 0;
};

PerRow Over(const RunView& run, const std::vector<size_t>& windows, size_t i) {
  PerRow sum;
  double rows = 0;
  const auto add = [&](const OperatorCounters& op, const StepCounters& steps) {
    sum.bytes_in += static_cast<double>(op.bytes_in_bytes);
    sum.bytes_out += static_cast<double>(op.bytes_out_bytes);
    sum.completions += static_cast<double>(op.completions_count);
    sum.on_cpu_s += static_cast<double>(LikelyCpuNs(op).value_or(0)) * 1e-9;
    sum.busy_s += static_cast<double>(op.busy_ns) * 1e-9;
    rows += static_cast<double>(steps.rows_count);
  };
  if (windows.empty()) {
    add(run.operators[i], run.steps);
  } else {
    for (size_t w : windows) add(run.windows[w].operators[i], run.windows[w].steps);
  }
  if (rows <= 0) return {};
  return {sum.bytes_in / rows, sum.bytes_out / rows, sum.completions / rows, sum.on_cpu_s / rows,
          sum.busy_s / rows};
}

// Which operators tell of the storage: the accounts of its requests, else what reads.
struct Readers {
  std::vector<size_t> operators;
  bool by_requests = false;  // accounts of requests: bytes read are their output
};

Readers ReadersOf(const PipelineModel& model) {
  Readers readers;
  for (const char* kind : {"io", "fetch", "read"}) {
    for (size_t i = 0; i < model.operators().size(); ++i) {
      if (model.operators()[i].kind == kind && model.run().operators[i].completions_count > 0)
        readers.operators.push_back(i);
    }
    readers.by_requests = std::string(kind) == "io";
    if (!readers.operators.empty()) return readers;
  }
  return readers;
}

class Estimator {
 public:
  Estimator(const PipelineModel& model, RowCost* cost) : model_(model), cost_(*cost) {
    for (size_t i = 0; i < model.operators().size(); ++i) {
      const OperatorModel& op = model.operators()[i];
      if (op.stage == kNoStage && !IsSending(op)) continue;
      members_.push_back(i);
      cost_.operators.push_back({op.name, op.kind});
    }
    readers_ = ReadersOf(model);
    ReadCpuOfProcess();
    ReadTraffic();
  }

  RowFigures Figures(const std::vector<size_t>& windows, const Demands& demands) const {
    const RunView& run = model_.run();
    RowFigures row;
    const double rows = demands.rows;
    double accounted = 0;
    for (size_t i : members_) {
      const bool sends = model_.operators()[i].stage == kNoStage;
      const Demands::Operator& op = demands.operators[i];
      double cpu = op.cpu_s / rows, blocked = op.blocked_s / rows;
      if (sends) cpu = Over(run, windows, i).on_cpu_s;
      if (!model_.splits_cpu()) {
        // c is not known apart: shares of what the process used, or all of the busy time.
        cpu = process_cpu_s_ ? op.busy_s / rows : (op.cpu_s + op.blocked_s) / rows;
        if (sends) cpu = Over(run, windows, i).busy_s;
        blocked = 0;
      }
      row.operator_cpu_s.push_back(cpu);
      row.blocked_s += blocked;
      accounted += cpu;
    }
    if (!model_.splits_cpu() && process_cpu_s_ && accounted > *process_cpu_s_) {
      const double share = *process_cpu_s_ / accounted;
      for (double& cpu : row.operator_cpu_s) cpu *= share;
      row.blocked_s = accounted - *process_cpu_s_;
    }
    if (model_.splits_cpu()) {
      double consumer = 0;  // its own operators: they stay with the consumer
      for (size_t i = 0; i < model_.operators().size(); ++i) {
        if (model_.operators()[i].stage == kNoStage) consumer += Over(run, windows, i).on_cpu_s;
      }
      row.other_cpu_s = std::max(0.0, demands.unattributed_cpu_s / rows - consumer);
    }
    if (!readers_.operators.empty()) {
      double bytes = 0, requests = 0;
      for (size_t i : readers_.operators) {
        const PerRow read = Over(run, windows, i);
        bytes += readers_.by_requests || read.bytes_in <= 0 ? read.bytes_out : read.bytes_in;
        requests += read.completions;
      }
      if (bytes > 0) row.stored_bytes = bytes;
      // What reads and fetches complete is not what the storage is asked for.
      if (readers_.by_requests && requests > 0) row.stored_requests = requests;
    }
    row.sent_bytes = Sent(windows);
    row.memory_traffic_bytes = traffic_per_row_;
    return row;
  }

 private:
  std::optional<double> Sent(const std::vector<size_t>& windows) const {
    for (size_t i = 0; i < model_.operators().size(); ++i) {
      if (model_.operators()[i].kind != "send") continue;
      const double bytes = Over(model_.run(), windows, i).bytes_out;
      if (bytes > 0) return bytes;
    }
    if (model_.stages().empty()) return std::nullopt;
    const double bytes = Over(model_.run(), windows, model_.stages().back().last).bytes_out;
    return bytes > 0 ? std::optional<double>(bytes) : std::nullopt;
  }

  void ReadCpuOfProcess() {
    if (model_.splits_cpu()) return;
    const HostRow* used = model_.run().FindHost("process_cpu_ns");
    const double rows = static_cast<double>(model_.run().steps.rows_count);
    if (used != nullptr && used->last_value && rows > 0)
      process_cpu_s_ = *used->last_value * 1e-9 / rows;
  }

  void ReadTraffic() {
    const RunView& run = model_.run();
    const auto bandwidth = MemoryBandwidthOf(run);
    const double rows = static_cast<double>(run.steps.rows_count);
    if (!bandwidth || !bandwidth->bytes_per_s.available() || rows <= 0) {
      cost_.no_traffic = "the run counted no traffic to memory";
      return;
    }
    // Bytes that operators account say next to nothing of what missed the caches.
    if (bandwidth->bytes_per_s.source() == Source::kEstimate && !run.Has("llc_misses_count")) {
      cost_.no_traffic = "the run counted no traffic to memory";
      return;
    }
    if (bandwidth->bytes_per_s.source() == Source::kEstimate)
      cost_.assumptions.push_back("memory traffic is estimated from " + bandwidth->told_by);
    traffic_per_row_ =
        bandwidth->bytes_per_s.value() * static_cast<double>(run.run.duration_ns) * 1e-9 / rows;
    if (bandwidth->whole_machine) {
      cost_.assumptions.push_back(
          "memory traffic is that of the whole machine, other processes included");
    }
  }

  const PipelineModel& model_;
  RowCost& cost_;
  std::vector<size_t> members_;
  Readers readers_;
  std::optional<double> process_cpu_s_;  // per row; only without a split
  std::optional<double> traffic_per_row_;
};

// One process with its recorded queues and threads, less what those held.
void ReadMemory(const PipelineModel& model, RowCost* cost) {
  const Settings settings = model.current();
  double held = 0, threads = 0;
  for (size_t s = 0; s < model.stages().size(); ++s) {
    const double bytes = model.stages()[s].element_bytes.value_or(0);
    held += bytes * (static_cast<double>(settings.queue_capacity[s]) + settings.parallelism[s]);
    threads += settings.parallelism[s];
  }
  if (threads > 0) cost->thread_bytes = held / threads;
  const HostRow* rss = model.run().FindHost("process_rss_bytes");
  if (rss == nullptr || !rss->maximum_value) {
    cost->assumptions.push_back("memory does not limit a node: the run did not record its own");
    return;
  }
  cost->process_bytes = std::max(0.0, *rss->maximum_value - held);
}

// Locks and sequential stages limit a process, not a node: a node may run several.
void ReadProcessLimit(const PipelineModel& model, RowCost* cost) {
  const Demands& demands = model.demands();
  const auto limit = [&](double batches_per_s, const std::string& name) {
    const double rows = batches_per_s * demands.rows;
    if (!(rows > 0) || rows >= cost->process_rows_per_s) return;
    cost->process_rows_per_s = rows;
    cost->process_limit = name;
  };
  for (size_t s = 0; s < model.stages().size(); ++s) {
    const StageModel& stage = model.stages()[s];
    if (stage.max_parallelism <= 0 || demands.stage_s[s] <= 0) continue;
    limit(stage.max_parallelism / demands.stage_s[s], "stage " + stage.name);
  }
  for (size_t r = 0; r < model.resources().size(); ++r) {
    const ResourceModel& resource = model.resources()[r];
    if (demands.resources[r].hold_s <= 0) continue;
    if (resource.kind == kMemoryBandwidthLimit) continue;  // memory_traffic_bytes has it
    if (resource.kind != "lock") {
      cost->assumptions.push_back(
          fmt::format("the device '{}' of the recorded machine is not part of the fleet; say what "
                      "its storage can do under [storage]",
                      Printable(resource.name, 40)));
      continue;
    }
    limit(resource.servers / demands.resources[r].hold_s, resource.kind + " " + resource.name);
  }
}

// The variances of the stages' work add up in a batch.
double BatchCv(const PipelineModel& model) {
  double variance = 0, mean = 0;
  for (size_t s = 0; s < model.stages().size(); ++s) {
    const StageModel& stage = model.stages()[s];
    const double time = model.demands().stage_s[s];
    mean += time;
    variance += std::pow(time * stage.cv, 2) / std::max(1e-6, stage.firings);
  }
  return mean > 0 ? std::min(3.0, std::sqrt(variance) / mean) : 0;
}

void SayAssumptions(RowCost* cost) {
  if (!cost->splits_cpu) {
    cost->assumptions.push_back(
        "CPU and blocked time were not measured separately, so CPU is an upper bound; record it at "
        "--level 2 or above");
  }
  if (!cost->sends) {
    cost->assumptions.push_back(
        "the batches never left the process, so the CPU that sending them costs is not in this; "
        "record with [delivery] (docs/delivery.md)");
    if (cost->figures.sent_bytes)
      cost->assumptions.push_back("bytes sent are those of the batches in memory");
  }
  if (!std::isfinite(cost->process_rows_per_s)) return;
  cost->assumptions.push_back(
      fmt::format("a node runs as many processes as {} asks for, each up to {:.4g} rows/s",
                  Printable(cost->process_limit, 40), cost->process_rows_per_s));
}

}  // namespace

double RowFigures::cpu_s() const {
  return std::accumulate(operator_cpu_s.begin(), operator_cpu_s.end(), other_cpu_s);
}

RowCost RowCostOf(const PipelineModel& model) {
  const Demands& demands = model.demands();
  if (!(demands.rows > 0)) {
    throw Error(ExitCode::kInconclusive, "the run recorded no rows, so a row has no cost",
                fmt::format("run {}", model.run().run.run_id),
                "let the trainer's steps count their rows (docs/accounts.md)");
  }
  RowCost cost;
  cost.batch_rows = demands.rows;
  cost.rows_per_s = demands.rate * demands.rows;
  cost.cores = model.cores_available();
  cost.cpu_model = model.run().run.cpu_model;
  cost.splits_cpu = model.splits_cpu();
  cost.batch_cv = BatchCv(model);
  for (const OperatorModel& op : model.operators()) cost.sends = cost.sends || op.kind == "send";
  const double splits = model.stages().empty() ? 1 : model.stages().front().firings;
  cost.split_rows = demands.rows / std::max(1e-9, splits);

  const Estimator estimator(model, &cost);
  const std::vector<size_t>& steady = model.steady_windows();
  cost.figures = estimator.Figures(steady, demands);
  if (steady.size() >= 3) {
    Random random(kRowCostSeed);
    const size_t block = steady.size() >= 12 ? 2 : 1;
    for (size_t draw = 0; draw < kRowCostDraws; ++draw) {
      std::vector<size_t> windows = BlockResample(steady.size(), block, random);
      for (size_t& window : windows) window = steady[window];
      const Demands drawn = model.Estimate(windows);
      if (drawn.rows > 0) cost.draws.push_back(estimator.Figures(windows, drawn));
    }
  } else {
    cost.assumptions.push_back(
        "the run is too short to say how its costs vary; record longer for true intervals");
  }
  if (!cost.figures.stored_bytes)
    cost.no_stored = "no operator of this run reads bytes from a storage";
  if (!cost.figures.stored_requests)
    cost.no_requests = "the run did not count its requests to a storage (kind io)";
  if (!cost.figures.sent_bytes) cost.no_sent = "the last stage counts no bytes";
  ReadMemory(model, &cost);
  ReadProcessLimit(model, &cost);
  SayAssumptions(&cost);
  return cost;
}

}  // namespace headrace::analysis
