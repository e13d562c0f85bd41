// Keyword arguments of torch.utils.data.DataLoader.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "analysis/advice/emit/evidence.h"
#include "analysis/advice/next_step.h"
#include "analysis/advice/tried.h"
#include "analysis/model/prediction.h"
#include "analysis/model/what_if.h"
#include "analysis/run/ranks.h"
#include "analysis/thresholds.h"
#include "base/error.h"
#include "base/units.h"

namespace headrace::analysis {
namespace {

EmittedSetting Setting(const char* name, std::string value, std::string was, std::string why) {
  EmittedSetting setting;
  setting.name = name;
  setting.value = std::move(value);
  setting.was = std::move(was);
  setting.why = std::move(why);
  return setting;
}

bool SawAccelerator(const RunView& run) {
  return std::any_of(run.measurements.begin(), run.measurements.end(),
                     [](const MeasurementRow& row) { return row.metric == "gpu_use_ratio"; });
}

// Arguments that every loader has and of which a run may say something.
void AddCommon(const RunView& run, const WorkerProcesses& workers, double now_workers, Emitted* e) {
  const double generations =
      now_workers >= 1 ? static_cast<double>(workers.started) / now_workers : 0;
  if (generations > kWorkersStartedAgain) {
    e->settings.push_back(
        Setting("persistent_workers", "True", "",
                fmt::format("the run started {} worker processes, {:.0f} at a time: they end with "
                            "each epoch and are started again",
                            workers.started, now_workers)));
  } else {
    e->unknown.push_back({"persistent_workers",
                          now_workers < 1 ? "there were no workers in the run"
                                          : "the run saw its workers start once at most; record "
                                            "over the end of an epoch"});
  }
  e->unknown.push_back({"pin_memory", SawAccelerator(run)
                                          ? "the time of copies to the accelerator is not recorded"
                                          : "no accelerator was recorded"});
}

const StageModel* StageNamed(const PipelineModel& model, const char* name) {
  for (const StageModel& stage : model.stages()) {
    if (stage.name == name) return &stage;
  }
  return nullptr;
}

std::string Waited(const PipelineModel& model) {
  return fmt::format("the trainer waits {} of each step", FormatPercent(model.stall_ratio()));
}

std::string CpuWords(const Demands& demands, size_t stage) {
  if (demands.stage_s[stage] <= 0) return "";
  return fmt::format("a batch takes {} in a worker, {} of it on a CPU",
                     FormatDuration(demands.stage_s[stage] * 1e9),
                     FormatPercent(demands.stage_cpu_s[stage] / demands.stage_s[stage]));
}

// The reason that the plan, the model or the spare time of workers gives for their number.
std::string WhyWorkers(const PipelineModel& model, const Allocation& plan, size_t stage, int to) {
  const int now = model.current().parallelism[stage];
  const std::string cost = CpuWords(model.demands(), stage);
  if (to > now) {
    return fmt::format("{}; {}; then limited by {}", Waited(model), cost,
                       Describe(plan.limited_by));
  }
  if (to < now) {
    return fmt::format("{}, and workers work {} of their time", Waited(model),
                       FormatPercent(model.stages()[stage].busy_ratio));
  }
  return fmt::format("{}; {}; more would gain less than 3 %", Waited(model), cost);
}

// `now`: batches that each worker prepares ahead; `all`: that all workers will.
void AddPrefetchFactor(const StageModel& stage, int factor, int now, int all, Emitted* e) {
  if (factor != now) {
    e->settings.push_back(
        Setting("prefetch_factor", std::to_string(factor), std::to_string(now),
                fmt::format("{} batches ahead in all: their cost varies by {} from one to the next",
                            all, FormatPercent(stage.cv))));
  } else {
    e->settings.push_back(Setting(
        "prefetch_factor", std::to_string(factor), std::to_string(now),
        fmt::format("unchanged: {} batches ahead in all are enough for a cost that varies by "
                    "{} from one to the next",
                    all, FormatPercent(stage.cv))));
  }
}

// Whether batches may come out of order, where that pays.
void AddOrder(const PipelineModel& model, size_t s, const Settings& settings, Emitted* e) {
  const double kept = model.ordered() ? model.OrderShare(s, settings) : 1;
  if (model.ordered() && kept < 1 - kOrderLoss) {
    EmittedSetting order = Setting(
        "in_order", "False", "True",
        fmt::format("waiting for the batch that is due costs workers {} of their rate (simulated); "
                    "torch 2.6 or later; batches then come in another order",
                    FormatPercent(1 - kept)));
    order.is_choice = true;
    e->settings.push_back(order);
  } else if (!model.ordered()) {
    e->unknown.push_back({"in_order", "what the order of batches costs is not recorded"});
  }
}

// Why a plan may gain nothing, and how to find out.
void AddDoubt(const RunView& run, const Allocation& plan, Emitted* e) {
  if (plan.shown()) return;
  e->doubt =
      plan.unknown_store.empty()
          ? std::string("the interval of the gain holds 0")
          : fmt::format("what stage {} waits for may have no more to give", plan.unknown_store);
  const std::string command = CommandWords(run.run);
  e->doubt_command = fmt::format("{} compare --a-cmd {} --b-cmd 'the changed program'", run.program,
                                 ShellWord(command.empty() ? "the program as it is" : command));
}

Emitted FromWorkers(const RunView& run, const PipelineModel& model, const StageModel& stage,
                    const Budget& budget) {
  const auto s = static_cast<size_t>(&stage - model.stages().data());
  const Predictor predictor(model);
  const Allocation plan = Allocate(predictor, budget);
  const WorkerProcesses workers = ResidentOf(run, AccountedWorkers(run));
  const Settings current = model.current();
  const int now = std::max(1, current.parallelism[s]);
  const int ahead =
      std::max(1, static_cast<int>(std::ceil(double(current.queue_capacity[s]) / now)));
  Emitted e;
  e.basis = fmt::format("operators of its workers and trainer, measurement level {}",
                        run.run.accounting_level);

  int to = plan.settings.parallelism[s];
  int planned_queue = plan.settings.queue_capacity[s];
  // Workers that mostly wait for the trainer cost memory and nothing else.
  if (to == now && model.stall_ratio() < kSmallStall && stage.busy_ratio < kPlannedWork) {
    to = std::clamp(static_cast<int>(std::ceil(now * stage.busy_ratio / kPlannedWork)), 1, now);
    Settings fewer = plan.settings;
    fewer.parallelism[s] = to;
    const double rate = predictor.Rate({fewer, {}});
    if (rate < kFewerWorkersKeep * model.demands().rate) to = now;
  }
  to = WithinMemory(run, budget, workers, to, &e.memory_note);
  // The queue grows with the workers: it holds prefetch_factor batches for each.
  int factor = ahead;
  if (planned_queue > current.queue_capacity[s]) {
    factor = std::max(ahead, static_cast<int>(std::ceil(double(planned_queue) / to)));
  }
  Settings settings = current;
  settings.parallelism[s] = to;
  settings.queue_capacity[s] = factor * to;

  const int ranks = RanksOf(run);
  std::string why = WhyWorkers(model, plan, s, to);
  if (ranks > 1) why += fmt::format("; of each of {} ranks", ranks);
  e.settings.push_back(Setting("num_workers", std::to_string(EachRank(run, to)),
                               std::to_string(EachRank(run, now)), why));
  AddPrefetchFactor(stage, factor, ahead, factor * to, &e);
  AddCommon(run, workers, now, &e);
  AddOrder(model, s, settings, &e);
  e.now = model.demands().rate;
  const Variant what{settings, {}};
  if (settings == current) {
    e.predicted = e.now;
    e.predicted_interval = {*e.now, *e.now};
    e.gain_interval = {0, 0};
  } else {
    const Prediction prediction = predictor.Predict(what);
    e.predicted = prediction.rate;
    e.predicted_interval = prediction.interval;
    e.gain_interval =
        predictor.Gain({current, {}}, what, prediction.rate / model.demands().rate - 1);
    if (to > now && e.gain_interval.low <= 0) AddDoubt(run, plan, &e);
  }
  AddMemory(workers, now, to, &e);
  return e;
}

std::string NoWorkerMeasured(const RunView& run) {
  std::string note = "no worker was measured; each begins as a copy of the trainer's process";
  const WorkerProcesses all = ResidentOf(run, {});
  if (all.other_bytes) {
    note += fmt::format(", which has {} resident", FormatBytes(*all.other_bytes));
  }
  return note;
}

// The number of workers that the plan gives a loader that has none, as every page of the run says.
void PlanFirstWorkers(const RunView& run, const PipelineModel& model, size_t s,
                      const Budget& budget, Emitted* e) {
  const Demands& d = model.demands();
  const Allocation plan = Allocate(model, budget);
  const int to = plan.settings.parallelism[s];
  const std::optional<Tried> tried = TriedBefore(run, plan);
  const bool in_vain = !plan.shown() && tried && tried->gain < kWorthwhileGain;
  if (to == 0 || in_vain) {
    e->settings.push_back(
        Setting("num_workers", "0", "0",
                fmt::format("{}; {}", Waited(model),
                            to == 0 ? std::string("workers gain less than 3 %") : ToText(*tried))));
    e->gain_note = "nothing changes";
    return;
  }
  e->settings.push_back(Setting(
      "num_workers", std::to_string(to), "0",
      fmt::format(
          "{}: it makes each batch itself in {}, {} of it on a CPU, and trains on it in {}; "
          "{:.1f} cores are available to it",
          Waited(model), FormatDuration(d.stage_s[s] * 1e9),
          FormatPercent(d.stage_s[s] > 0 ? d.stage_cpu_s[s] / d.stage_s[s] : 0),
          FormatDuration(d.consumer_s * 1e9), model.cores_available())));
  e->predicted = plan.predicted;
  e->predicted_interval = plan.predicted_interval;
  e->gain_interval = plan.gain_interval;
  AddDoubt(run, plan, e);
}

// num_workers=0: the trainer's thread makes its batches.
Emitted FromLoader(const RunView& run, const PipelineModel& model, const StageModel& stage,
                   const Budget& budget) {
  const auto s = static_cast<size_t>(&stage - model.stages().data());
  const Demands& d = model.demands();
  const double makes = d.stage_s[s], takes = std::max(1e-9, d.consumer_s);
  const double cores = budget.cores.value_or(model.cores_available());
  Emitted e;
  e.basis = "operators of the trainer, which makes its batches itself";
  e.now = d.rate;
  if (model.current().parallelism[s] == 0) {
    PlanFirstWorkers(run, model, s, budget, &e);
    e.unknown.push_back({"prefetch_factor", "there was no queue of batches in the run"});
    AddCommon(run, {}, 0, &e);
    e.memory_note = NoWorkerMeasured(run);
    return e;
  }
  const double wanted = std::ceil(makes / takes - 1e-9);
  const double room = std::floor(cores * makes / std::max(1e-9, d.stage_cpu_s[s]) + 1e-9);
  int to = static_cast<int>(std::clamp(std::min(wanted, room), 1.0, kMostWorkersAdvised));
  if (model.stall_ratio() < kSmallStall) to = 0;
  if (to > 0) {
    e.settings.push_back(Setting(
        "num_workers", std::to_string(to), "0",
        fmt::format(
            "{}: it makes each batch itself in {}, {} of it on a CPU, and trains on it in {}; "
            "{:.1f} cores are available to it",
            Waited(model), FormatDuration(makes * 1e9),
            FormatPercent(makes > 0 ? d.stage_cpu_s[s] / makes : 0), FormatDuration(takes * 1e9),
            cores)));
    // Work beside the trainer, on the cores that there are, no faster than the trainer.
    double bound = std::min(to / std::max(makes, 1e-9), 1 / takes);
    if (d.cpu_s > 0) bound = std::min(bound, cores / d.cpu_s);
    e.at_most = std::max(1.0, bound / d.rate);
    e.gain_note = "no worker was seen at work; record again with these";
  } else {
    e.settings.push_back(
        Setting("num_workers", "0", "0", Waited(model) + ": workers would not help"));
    e.gain_note = "nothing changes";
  }
  e.unknown.push_back({"prefetch_factor", "there was no queue of batches in the run"});
  AddCommon(run, {}, 0, &e);
  e.memory_note = NoWorkerMeasured(run);
  return e;
}

Emitted DataLoaderFromOutside(const RunView& run, const Budget& budget) {
  const LoaderSeen seen = SeeLoader(run, budget);
  if (seen.outside.flavour != OutsideFlavour::kTorch) {
    throw Error(ExitCode::kInconclusive, "no worker of a DataLoader was seen in this run",
                fmt::format("run {}", run.run.run_id),
                "wrap the loader (headrace.wrap(loader)) or name another run");
  }
  Emitted e;
  e.basis = "seen from outside";
  ProducerCount count = CountProducers(seen, "workers");
  WorkerProcesses workers;
  if (seen.producer != nullptr) {
    workers = ResidentOf(run, seen.outside.kinds[seen.producer->kind].process_ids);
  }
  const int now = std::max(1, static_cast<int>(std::lround(seen.threads)));
  const int to = WithinMemory(run, budget, workers, count.count, &e.memory_note);
  if (seen.producer != nullptr && !count.why.empty()) {
    e.settings.push_back(
        Setting("num_workers", std::to_string(to), std::to_string(now), count.why));
  } else {
    e.unknown.push_back({"num_workers", "no process that feeds the trainer was seen"});
  }
  if (const std::optional<double> idle = WaitsInTurn(seen)) {
    e.unknown.push_back(
        {"prefetch_factor",
         fmt::format("workers wait for the trainer {} of their time although it waits for them, "
                     "which a longer queue may fix; its length is not seen from outside: raise it "
                     "(2 by default) and compare, or wrap the loader",
                     FormatPercent(*idle))});
  } else {
    e.unknown.push_back({"prefetch_factor", "the queue of batches is not seen from outside"});
  }
  AddCommon(run, workers, seen.threads, &e);
  e.unknown.push_back({"in_order", "the order of batches is not seen from outside"});
  e.gain_note =
      "a run seen from outside has no operators to predict from (headrace.wrap(loader) "
      "adds them)";
  if (count.changes && count.at_most && to > now) {
    e.at_most = std::min(*count.at_most, static_cast<double>(to) / now);
  }
  AddMemory(workers, now, to, &e);
  return e;
}

}  // namespace

Emitted EmitDataLoader(const RunView& run, const Budget& budget) {
  if (run.operators.empty()) return DataLoaderFromOutside(run, budget);
  const PipelineModel model(run);
  if (const StageModel* workers = StageNamed(model, "workers")) {
    return FromWorkers(run, model, *workers, budget);
  }
  if (const StageModel* loader = StageNamed(model, "loader")) {
    return FromLoader(run, model, *loader, budget);
  }
  throw Error(ExitCode::kInconclusive, "this run is of no DataLoader: it has no stage 'workers'",
              fmt::format("run {}", run.run.run_id),
              "record one: loader = headrace.wrap(loader), then headrace profile -- python ...");
}

}  // namespace headrace::analysis
