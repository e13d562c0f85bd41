// Options of tf.data, and arguments of the calls that build a dataset.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "analysis/advice/emit/evidence.h"
#include "analysis/model/pipeline_model.h"
#include "analysis/thresholds.h"
#include "base/error.h"
#include "base/units.h"

namespace headrace::analysis {
namespace {

constexpr double kMiB = 1 << 20;

EmittedSetting Setting(std::string name, std::string value, std::string was, std::string why,
                       bool is_call) {
  EmittedSetting setting;
  setting.name = std::move(name);
  setting.value = std::move(value);
  setting.was = std::move(was);
  setting.why = std::move(why);
  setting.is_call = is_call;
  return setting;
}

// tf.data sizes its buffers by the machine's memory unless told; a container's limit it may pass.
void AddRamBudget(const RunView& run, const Budget& budget, Emitted* e) {
  const char* const name = "options.autotune.ram_budget";
  const WorkerProcesses all = ResidentOf(run, {});
  const bool asked = budget.memory_bytes.has_value();
  if (!asked && (!run.run.memory_bytes || run.run.memory_bound_by == "physical memory")) {
    e->unknown.push_back({name,
                          "no limit of memory below the machine's was recorded (--memory "
                          "gives one)"});
    return;
  }
  if (!all.other_bytes) {
    e->unknown.push_back({name, "the resident memory of the program was not measured"});
    return;
  }
  const double limit = asked ? static_cast<double>(*budget.memory_bytes)
                             : static_cast<double>(*run.run.memory_bytes);
  const double room = kUsableMemory * limit - *all.other_bytes;
  if (room < kMiB) {
    e->unknown.push_back({name, fmt::format("{} resident leave nothing of {}",
                                            FormatBytes(*all.other_bytes), FormatBytes(limit))});
    return;
  }
  e->settings.push_back(Setting(
      name, fmt::format("{:.0f} << 20", std::floor(room / kMiB)), "",
      fmt::format("{} of {} ({}), less the {} that the program had resident at most, "
                  "buffers included",
                  FormatPercent(kUsableMemory), FormatBytes(limit),
                  asked ? "--memory" : "the limit it ran under", FormatBytes(*all.other_bytes)),
      false));
}

Emitted TfDataFromOutside(const RunView& run, const Budget& budget) {
  const LoaderSeen seen = SeeLoader(run, budget);
  if (seen.outside.flavour != OutsideFlavour::kTensorflow) {
    throw Error(ExitCode::kInconclusive, "no thread of tf.data was seen in this run",
                fmt::format("run {}", run.run.run_id), "name a run of a program that uses tf.data");
  }
  Emitted e;
  e.target = EmitTarget::kTfData;
  e.basis = "seen from outside";
  const ProducerCount count = CountProducers(seen, "its threads");
  const int now = std::max(1, static_cast<int>(std::lround(seen.threads)));
  const char* const pool = "options.threading.private_threadpool_size";
  const UnitShares none;
  const UnitShares& shares = seen.producer != nullptr ? seen.producer->shares : none;
  const double cores = budget.cores.value_or(seen.outside.core_budget.cores.value_or(0));
  if (seen.producer == nullptr) {
    e.unknown.push_back({pool, "no thread that feeds the trainer was seen"});
  } else if (count.changes) {
    e.settings.push_back(
        Setting(pool, std::to_string(count.count), std::to_string(now), count.why, false));
    if (count.count > now) {
      e.settings.push_back(Setting(
          "dataset.map(..., num_parallel_calls", std::to_string(count.count) + ")", "",
          "for the costliest map, so that the threads have calls to run; which one that is, is "
          "not seen from outside",
          true));
    }
  } else if (shares.runnable > kMoreThreadsThanCores && cores >= 1 && now > cores) {
    const int fits = std::max(1, static_cast<int>(std::floor(cores)));
    e.settings.push_back(Setting(
        pool, std::to_string(fits), std::to_string(now),
        fmt::format("its {} threads are ready without a CPU {} of their time on {:.0f} cores: "
                    "fewer do the same work with fewer switches",
                    now, FormatPercent(shares.runnable), cores),
        false));
  } else {
    e.unknown.push_back({pool, count.why});
  }
  if (e.settings.empty() || e.settings.back().name == pool) {
    e.unknown.push_back({"num_parallel_calls", "single operations are not seen from outside"});
  }
  if (const std::optional<double> idle = WaitsInTurn(seen)) {
    e.settings.push_back(Setting(
        "dataset.prefetch(tf.data.AUTOTUNE)", "", "",
        fmt::format("as the last step: {}, and its threads wait for the trainer {} of theirs, in "
                    "turn",
                    seen.waited, FormatPercent(*idle)),
        true));
  } else {
    e.unknown.push_back({"prefetch", seen.outside.knowledge < OutsideKnowledge::kCounts
                                         ? "who ended whose waits is not known (record with eBPF)"
                                         : "trainer and threads do not wait for each other in "
                                           "turn"});
  }
  AddRamBudget(run, budget, &e);
  e.unknown.push_back(
      {"options.deterministic", "what the order of elements costs is not seen from outside"});
  e.gain_note = "a run seen from outside has no operators to predict from";
  if (count.changes && count.count > now) e.at_most = count.at_most;
  e.memory_note = "threads share the program's memory; what each adds is not measured";
  return e;
}

// What the plan changes, in words of tf.data.
void AddChange(const Change& change, Emitted* emitted) {
  const size_t dot = change.knob.rfind('.');
  std::string stage = Printable(change.knob.substr(0, dot));
  const std::string own = "tf.data ";  // stages that the import hook finds (probes/python)
  if (stage.starts_with(own)) stage = stage.substr(own.size());
  if (change.knob.ends_with(".parallelism") && change.from == 0) {
    emitted->settings.push_back(Setting("dataset.map(..., num_parallel_calls",
                                        std::to_string(change.to) + ")", "", change.why, true));
    emitted->settings.push_back(
        Setting("dataset.prefetch(tf.data.AUTOTUNE)", "", "",
                "as the last step: so that batches are made while the trainer "
                "computes",
                true));
  } else if (change.knob.ends_with(".parallelism")) {
    emitted->settings.push_back(Setting(stage + ": num_parallel_calls", std::to_string(change.to),
                                        std::to_string(change.from), change.why, true));
  } else if (change.knob.ends_with(".queue")) {
    emitted->settings.push_back(
        Setting(fmt::format("after {}: dataset.prefetch({})", stage, change.to), "",
                std::to_string(change.from), change.why, true));
  }
}

// A pipeline with accounts, its stages standing for operations.
Emitted FromStages(const RunView& run, const PipelineModel& model, const Budget& budget) {
  Emitted e;
  e.target = EmitTarget::kTfData;
  e.basis = fmt::format("its stages, measurement level {}", run.run.accounting_level);
  const Allocation plan = Allocate(model, budget);
  const Settings current = model.current();
  for (const Change& change : plan.changes) AddChange(change, &e);
  if (model.cores_known()) {
    int threads = 0;
    for (size_t s = 0; s < model.stages().size(); ++s) threads += plan.settings.parallelism[s];
    if (threads > 0) {
      e.settings.push_back(
          Setting("options.threading.private_threadpool_size", std::to_string(threads), "",
                  fmt::format("as many as its stages have threads with the plan, for {:.3g} cores",
                              plan.settings.cores),
                  false));
    }
  }
  AddRamBudget(run, budget, &e);
  if (!model.ordered()) {
    e.unknown.push_back({"options.deterministic", "the run does not say whether order was kept"});
  } else {
    double kept = 1;
    for (size_t s = 0; s < model.stages().size(); ++s) {
      kept = std::min(kept, model.OrderShare(s, plan.settings));
    }
    if (kept < 1 - kOrderLoss) {
      e.settings.push_back(Setting(
          "options.deterministic", "False", "True",
          fmt::format("keeping the order costs the stage that it holds up most {} of its rate "
                      "(simulated); elements then come in another order",
                      FormatPercent(1 - kept)),
          true));
    } else {
      e.unknown.push_back({"options.deterministic", "the order costs under 3 % (simulated)"});
    }
  }
  e.now = plan.now;
  e.predicted = plan.predicted;
  e.predicted_interval = plan.predicted_interval;
  e.gain_interval = plan.gain_interval;
  e.memory_note = plan.memory_bytes
                      ? fmt::format("queues and elements in work take {} with the plan",
                                    FormatBytes(*plan.memory_bytes))
                      : "the run recorded no size of elements";
  return e;
}

}  // namespace

Emitted EmitTfData(const RunView& run, const Budget& budget) {
  if (run.operators.empty()) return TfDataFromOutside(run, budget);
  const PipelineModel model(run);
  const bool wrapped_only =
      std::all_of(model.stages().begin(), model.stages().end(),
                  [](const StageModel& stage) { return stage.name == "loader"; });
  if (wrapped_only) {
    throw Error(ExitCode::kInconclusive,
                "only the trainer was instrumented in this run, which hides the threads of tf.data",
                fmt::format("run {}", run.run.run_id),
                "record it from outside: HEADRACE_ACCOUNTS=off headrace profile -- COMMAND");
  }
  return FromStages(run, model, budget);
}

}  // namespace headrace::analysis
