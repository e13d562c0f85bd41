#include "analysis/model/unknown_store.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>

#include "analysis/model/python_threads.h"
#include "analysis/model/resource_model.h"
#include "analysis/run/reads.h"
#include "analysis/thresholds.h"

namespace headrace::analysis {
namespace {

// Whether an account, a model, a calibration or an experiment says what the store of one of these
// operators gives.
bool HasKnownDevice(const std::vector<ResourceModel>& resources,
                    const std::vector<size_t>& operators) {
  for (const ResourceModel& resource : resources) {
    if (resource.kind != "device" && resource.kind != "lock") continue;
    for (const auto& [user, share] : resource.users) {
      if (std::find(operators.begin(), operators.end(), user) != operators.end()) return true;
    }
  }
  return false;
}

// Whether the reference reader read from further away than the page cache.
bool ReadsFromStore(const RunView& run) {
  if (TableOf(run.run).find("://") != std::string::npos) return true;
  if (!run.device_bytes || !run.fetched_bytes || *run.fetched_bytes <= 0) return true;
  return static_cast<double>(*run.device_bytes) >=
         kLeastFromStore * static_cast<double>(*run.fetched_bytes);
}

// Whether most of the time that the operator was seen blocked was for a store, or for somebody
// else of whom nobody says how much more he can do: another process behind a pipe, or a timer, by
// which a program waits before it asks a store again that refused, or keeps to a rate.
bool SeenWaitingForStore(const RunView& run, const OperatorRow& op) {
  if (op.kind == "sleep") return false;  // of the reference reader: it sleeps as long in any number
  double all = 0, store = 0;
  for (const MeasurementRow& row : run.measurements) {
    if (row.metric != "off_cpu_ns" || row.operator_name != op.name || !row.value) continue;
    if (!row.stage.empty() && row.stage != op.stage) continue;
    all += *row.value;
    if (row.cause == "storage" || row.cause == "network" || row.cause == "poll" ||
        row.cause == "lock" || row.cause == "pipe" || row.cause == "sleep") {
      store += *row.value;
    }
  }
  // Others' waits that the kernel's split does not reach, as those in threads of a run-time.
  const double blocked = static_cast<double>(op.blocked_ns.value_or(0) - op.lock_wait_ns);
  if (run.Has("off_cpu_ns") && all < (1 - kMostlyForStore) * blocked) return true;
  return store > 0 && store >= kMostlyForStore * all;
}

// Where b is not known apart from c, all of the busy time may be it.
double MostBlocked(const OperatorRow& op) {
  const int64_t off_cpu_ns = op.busy_ns - op.on_cpu_ns.value_or(0);
  const int64_t blocked_ns = op.blocked_ns.value_or(op.blocked_high_ns.value_or(off_cpu_ns));
  return static_cast<double>(blocked_ns - op.lock_wait_ns);
}

bool WaitsForStore(const RunView& run, size_t op, double stage_busy) {
  const OperatorRow& row = run.operators[op];
  if (MostBlocked(row) < kStoreWaitMatters * stage_busy || stage_busy <= 0) return false;
  const auto reads = ReadsOf(run);
  if (reads && (op == reads->fetch || op == reads->io)) return ReadsFromStore(run);
  return SeenWaitingForStore(run, row);
}

std::vector<size_t> OperatorsOf(const RunView& run, const std::string& stage) {
  std::vector<size_t> operators;
  for (size_t i = 0; i < run.operators.size(); ++i) {
    if (run.operators[i].stage == stage) operators.push_back(i);
  }
  return operators;
}

// The one of these that waits most for a store.
std::optional<size_t> OperatorThatWaits(const RunView& run, const std::vector<size_t>& operators) {
  double busy = 0;
  for (const size_t op : operators) busy += static_cast<double>(run.operators[op].busy_ns);
  std::optional<size_t> waits;
  for (const size_t op : operators) {
    if (!WaitsForStore(run, op, busy)) continue;
    if (!waits || MostBlocked(run.operators[op]) > MostBlocked(run.operators[*waits])) waits = op;
  }
  return waits;
}

struct FullStore {
  double rows_per_s = 0;      // the most it gave
  double enough_threads = 0;  // that would have got it
  bool for_this_run = false;  // this run's threads get it
};

// What two numbers of threads, all of them waiting in their operators, show of their store.
enum class Shown { kNothing, kFullForBoth, kFullForMany };

Shown ShownBy(const StageRateRow& few, const StageRateRow& many) {
  if (std::min(few.blocked_ratio, many.blocked_ratio) < kStageWaits) return Shown::kNothing;
  if (few.threads <= 0 || few.rows_per_s <= 0) return Shown::kNothing;
  const double times = many.threads / few.threads, gain = many.rows_per_s / few.rows_per_s;
  if (times < kThreadsThatTell) return Shown::kNothing;
  // So much less is another store, or one that is busy with others.
  if (gain < 1 - kFullStoreLoss) return Shown::kNothing;
  if (gain <= std::pow(1 + kFullStoreGain, std::log2(times))) return Shown::kFullForBoth;
  // Threads that fill it hardly wait for anything else: where they wait for room as well, what
  // comes after them is why more got no more.
  const bool are_all_there = 1 - many.blocked_ratio <= (1 - kStageWaits) / 2;
  return are_all_there && gain <= kStoreBends * times ? Shown::kFullForMany : Shown::kNothing;
}

// The run's own probes as if each had been a run of its own.
std::vector<StageRateRow> RatesOf(const RunView& run, const std::string& stage) {
  std::vector<StageRateRow> rates;
  const StageRateRow* own = nullptr;
  for (const StageRateRow& row : run.stage_rates) {
    if (row.stage == stage && row.own) own = &row;
  }
  for (const StoreProbeRow& probe : run.store_probes) {
    if (probe.stage != stage || probe.few_rows_per_s <= 0 || own == nullptr) continue;
    rates.push_back({stage, static_cast<double>(probe.many_count), probe.many_blocked_ratio,
                     own->rows_per_s * probe.many_rows_per_s / probe.few_rows_per_s, false});
  }
  for (const StageRateRow& row : run.stage_rates) {
    if (row.stage == stage) rates.push_back(row);
  }
  return rates;
}

// From this run and, of each other number of threads, the latest; empty: none shows it, or one got
// more than the others say there is.
std::optional<FullStore> FullStoreOf(const RunView& run, const std::string& stage) {
  const StageRateRow* own = nullptr;
  std::map<double, const StageRateRow*> latest;
  const std::vector<StageRateRow> rates = RatesOf(run, stage);
  for (const StageRateRow& row : rates) {
    if (row.own) own = &row;
    if (!row.own) latest.try_emplace(row.threads, &row);
  }
  if (own == nullptr) return std::nullopt;
  std::optional<FullStore> full;
  std::optional<double> own_most;  // what it gave where this run's threads, too, filled it
  for (const auto& [threads, other] : latest) {
    const StageRateRow& few = threads < own->threads ? *other : *own;
    const StageRateRow& many = threads < own->threads ? *own : *other;
    const Shown shown = ShownBy(few, many);
    if (shown == Shown::kNothing) continue;
    double enough = few.threads * std::max(1.0, own->rows_per_s / few.rows_per_s);
    // With the fewer threads, too, it is the store that is waited for: more threads get hardly
    // more.
    if (&few == own && shown == Shown::kFullForBoth) enough *= 1 - kFullStoreGain;
    if (!full) full = FullStore{0, enough};
    const double most = std::max(few.rows_per_s, many.rows_per_s);
    if (shown == Shown::kFullForBoth || &many == own)
      own_most = std::max(own_most.value_or(0), most);
    full->rows_per_s = std::max(full->rows_per_s, most);
    full->enough_threads = std::min(full->enough_threads, enough);
  }
  if (!full) return full;
  full->for_this_run = own_most.has_value();
  const double most = own_most.value_or(full->rows_per_s);
  for (const auto& [threads, other] : latest) {
    if (other->rows_per_s > (1 + kFullStoreGain) * most) return std::nullopt;
  }
  return full;
}

void AddFullStores(const RunView& run, std::vector<ResourceModel>* resources) {
  if (run.steps.steps_count <= 0 || run.steps.rows_count <= 0) return;
  for (const StageRow& stage : run.stages) {
    const auto full = FullStoreOf(run, stage.name);
    if (!full) continue;
    const std::vector<size_t> operators = OperatorsOf(run, stage.name);
    const auto op = OperatorThatWaits(run, operators);
    if (!op || HasKnownDevice(*resources, operators)) continue;
    ResourceModel store{StoreNameOf(stage.name), "device", 1, {{*op, 1.0}}};
    store.counted_s = static_cast<double>(run.steps.rows_count) /
                      static_cast<double>(run.steps.steps_count) / full->rows_per_s;
    store.enough_threads = full->enough_threads;
    // Another run's mean rate, its start included, is known less well.
    if (!full->for_this_run) store.counted_error = kSaturatedError;
    resources->push_back(std::move(store));
  }
}

HR_COUNTED_RESOURCES("full store", AddFullStores);

// The most threads with which the stage was seen to get as much more as it had more threads.
double ShownThreads(const RunView& run, const std::string& stage) {
  const std::vector<StageRateRow> rates = RatesOf(run, stage);
  const auto own =
      std::find_if(rates.begin(), rates.end(), [](const StageRateRow& row) { return row.own; });
  double most = 0;
  if (own == rates.end() || own->rows_per_s <= 0 || own->threads <= 0) return most;
  for (const StageRateRow& row : rates) {
    const double more = row.threads / own->threads;
    if (more > 1 && row.blocked_ratio >= kStageWaits && own->blocked_ratio >= kStageWaits &&
        row.rows_per_s >= (1 - kFullStoreGain) * more * own->rows_per_s) {
      most = std::max(most, row.threads);
    }
  }
  return most;
}

}  // namespace

std::vector<UnknownStore> UnknownStoresOf(const PipelineModel& model) {
  std::vector<UnknownStore> stores;
  for (const size_t s : StagesOnUnknownStores(model)) {
    const double shown = ShownThreads(model.run(), model.stages()[s].name);
    stores.push_back({s, std::max(model.current().parallelism[s], static_cast<int>(shown))});
  }
  return stores;
}

std::vector<size_t> StagesOnUnknownStores(const PipelineModel& model) {
  std::vector<size_t> stages;
  for (size_t s = 0; s < model.stages().size(); ++s) {
    const StageModel& stage = model.stages()[s];
    if (HasKnownDevice(model.resources(), stage.operators)) continue;
    if (OperatorThatWaits(model.run(), OperatorsOf(model.run(), stage.name)) ||
        MayShareInterpreter(model, s)) {
      stages.push_back(s);
    }
  }
  return stages;
}

}  // namespace headrace::analysis
