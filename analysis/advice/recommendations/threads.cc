// Threads, workers, queues and order: R1, R2, R3, R18, R22, R23.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "analysis/advice/recommendations.h"
#include "analysis/advice/tried.h"
#include "analysis/model/bottleneck.h"
#include "analysis/model/limits/bounds.h"
#include "analysis/run/settings.h"
#include "analysis/thresholds.h"
#include "base/units.h"

namespace headrace::analysis {
namespace {

std::string Batches(double rate) { return FormatRate(rate, "batches"); }

// What a stage on the consumer's thread (0 of its own) gets are workers.
std::string WordOf(const std::string& knob, int from) {
  if (knob != "parallelism") return knob;
  return from == 0 ? "workers" : "threads";
}

// "decode threads 1 -> 5, decode queue 4 -> 8"; empty where the plan changes nothing.
std::string AllSettings(const Allocation& plan) {
  std::string text;
  for (const Change& change : plan.changes) {
    const size_t dot = change.knob.rfind('.');
    const std::string knob = dot == std::string::npos ? "" : change.knob.substr(dot + 1);
    text += fmt::format("{}{} {} {} -> {}", text.empty() ? "" : ", ", change.knob.substr(0, dot),
                        WordOf(knob, change.from), change.from, change.to);
  }
  return text;
}

// What so many workers like `one` do together, for a consumer that takes `wanted` at most.
Outcome OfWorkers(const Evidence& e, const Outcome& one, double workers, double wanted) {
  Interval wants = {wanted, wanted};
  for (const Finding& finding : e.bottleneck().findings) {
    if (!finding.limit.Is(kConsumerLimit)) continue;
    wants = {std::min(wanted, finding.bound_interval.low),
             std::max(wanted, finding.bound_interval.high)};
  }
  Outcome outcome = one;
  outcome.rate = std::min(wanted, workers * one.rate);
  // That workers do not disturb each other is not measured: the error of a prediction on top.
  outcome.rate_interval = {
      std::min({wants.low, kWorkersBesideOthers * workers * one.rate_interval.low, outcome.rate}),
      std::max(std::min(wants.high, workers * one.rate_interval.high), outcome.rate)};
  // The more one worker does after all, the less others add to it.
  outcome.gain = outcome.rate / one.rate - 1;
  const double most = std::max(one.rate, one.rate_interval.high);
  const double least = std::min(one.rate, one.rate_interval.low);
  outcome.gain_interval = {
      std::min(
          outcome.gain,
          std::max(0.0, std::min(wants.low, kWorkersBesideOthers * workers * most) / most - 1)),
      std::max(outcome.gain, std::min(wants.high / least, workers) - 1)};
  return outcome;
}

// The consumer listens; workers find it or end.
std::string WorkersCommand(const Evidence& e, double workers, bool planned) {
  const std::string run =
      e.Command(fmt::format("run {}{} --set delivery.to=unix:batches.sock",
                            PipelineWord(e.run().run), planned ? " --plan plan.json" : ""));
  return fmt::format(
      "{}{{ {} consume unix:batches.sock --producers {:.0f} & sleep 1; for i in $(seq {:.0f}); do "
      "{} & done; wait; }}",
      planned ? e.Command(fmt::format("plan {} -o plan.json -f", e.run().run.run_id)) + " && " : "",
      e.run().program, workers, workers, run);
}

Recommendation MoreWorkers(const Evidence& e) {
  const Demands& demands = e.model().demands();
  if (e.run().run.pipeline_path.empty()) {
    return DoesNotFire(
        "this is a program of its own, which no other machine can feed; its workers are R2's");
  }
  if (e.stall() < kSmallStall) {
    return DoesNotFire(fmt::format("the trainer waits {} of each step: no worker is missing",
                                   FormatPercent(e.stall())));
  }
  Outcome one;
  one.rate = demands.rate;
  one.rate_interval = {demands.rate, demands.rate};
  one.limited_by = e.bottleneck().findings[0].limit;
  if (e.statements().allocation) one = OutcomeOf(*e.statements().allocation);
  const bool known = demands.consumer_s * demands.rate >= kComputesNothing;
  const double wanted = known ? 1 / demands.consumer_s : std::numeric_limits<double>::infinity();
  if (one.rate >= wanted * (1 - kWorthwhileGain)) {
    return DoesNotFire(fmt::format(
        "one worker is enough: with the settings of R2 and R3 it can do {}, the trainer wants {}",
        Batches(one.rate), Batches(wanted)));
  }
  if (one.limited_by.Is(kDeviceLimit)) {
    return DoesNotFire(fmt::format(
        "stop adding: device {} limits all workers together ({}), whatever their number",
        one.limited_by.name, Batches(one.limited_by.bound)));
  }
  if (!known) {
    return CannotSay("the trainer computes nothing, so how many workers it wants is not known",
                     "record with the real trainer, or set consumer.step");
  }
  const double workers = std::ceil(wanted / one.rate * (1 - 1e-9));
  if (!std::isfinite(workers) || workers > 1e6) {
    return CannotSay("the rate of one worker is too small to say", "record longer");
  }
  // A single worker with the settings of the plan is what more of them are compared with.
  const std::string settings =
      e.statements().allocation ? AllSettings(*e.statements().allocation) : "";
  Outcome outcome = OfWorkers(e, one, workers, wanted);
  if (!settings.empty()) outcome.over = "the plan of R2";
  outcome.limited_by = LimitOfConsumer(wanted);
  Recommendation result = IfWorthwhile(
      e, outcome,
      fmt::format(
          "the trainer waits {} and wants {}; one worker {} can do {} at most, limited by {}",
          FormatPercent(e.stall()), Batches(wanted),
          settings.empty() ? "like this" : "with the settings of R2", Batches(one.rate),
          Describe(one.limited_by)),
      fmt::format("{:.0f} workers{}, each with its own cores", workers,
                  settings.empty() ? " like this one"
                                   : fmt::format(" with the settings of R2 ({})", settings)),
      WorkersCommand(e, workers, !settings.empty()));
  result.only_if = fmt::format(
      "storage and network can carry {:.0f} times the load of one worker; and each worker is given "
      "other files (source.table): runs of one file deliver the same rows",
      workers);
  Effect& memory = result.effects.reader_memory;
  SetThen(&memory, memory.now.optional_value().value_or(0) * workers, "");
  return result;
}

std::string SettingsText(const Allocation& plan, const std::string& knob) {
  std::string text;
  for (const Change& change : plan.changes) {
    if (!change.knob.ends_with("." + knob)) continue;
    const std::string stage = change.knob.substr(0, change.knob.size() - knob.size() - 1);
    text += fmt::format("{}{} {} {} -> {}", text.empty() ? "" : ", ", stage,
                        WordOf(knob, change.from), change.from, change.to);
  }
  return text;
}

Recommendation Parallelism(const Evidence& e) {
  if (!e.statements().allocation) {
    return CannotSay("there is no plan for this run", "see the verdict");
  }
  const Allocation& plan = *e.statements().allocation;
  const std::string threads = SettingsText(plan, "parallelism");
  const Limit& limit = e.bottleneck().findings[0].limit;
  if (threads.empty()) {
    return DoesNotFire(fmt::format("no other number of threads gains {:.0f} % or more; {} limits",
                                   100 * kWorthwhileGain, Describe(limit)));
  }
  std::string why;
  for (const Change& change : plan.changes) {
    if (!change.knob.ends_with(".parallelism")) continue;
    why += fmt::format("{}{}: {}", why.empty() ? "" : "; ",
                       change.knob.substr(0, change.knob.find(".parallelism")), change.why);
  }
  const std::string queues = SettingsText(plan, "queue");
  const std::string id = std::to_string(e.run().run.run_id);
  std::string command = e.Command("plan " + id);
  if (!e.run().run.pipeline_path.empty()) {
    command += fmt::format(" -o plan.json -f && {}",
                           e.Command(fmt::format("run {} --plan plan.json --duration 10s",
                                                 PipelineWord(e.run().run))));
  }
  Recommendation result = IfWorthwhile(
      e, OutcomeOf(plan), why,
      queues.empty() ? threads : fmt::format("{}; with it {}", threads, queues), command);
  const std::string short_of = WhatWasTried(e.run(), plan);
  if (const auto measured = MeasuredBefore(e.run(), plan)) {
    if (measured->outcome == MeasuredPlan::Outcome::kNotFaster)
      return DoesNotFire(fmt::format("{}: measured {}", threads, ToText(*measured)));
    if (result.advice != Advice::kDoesNotFire) {
      const bool faster = measured->outcome == MeasuredPlan::Outcome::kFaster;
      result.advice = faster ? Advice::kFires : Advice::kTry;
      result.why += "; measured " + ToText(*measured);
      result.record = faster ? "" : "more pairs of runs, as they were too few to tell";
    }
  } else if (result.advice == Advice::kFires && !short_of.empty()) {
    result.advice = Advice::kTry;
    result.why += "; " + short_of;
    result.record = "an A/B comparison of both, as one run fell short of it";
  }
  Effect& memory = result.effects.reader_memory;
  std::optional<double> bytes;
  if (plan.memory_change_bytes) {
    bytes = memory.now.optional_value().value_or(0) + *plan.memory_change_bytes;
  }
  SetThen(&memory, bytes, "elements have no recorded size");
  return result;
}

// Four times as long, up to 32 elements, where they are shorter than that.
int Deeper(int capacity) { return std::max(capacity, std::min(32, 4 * std::max(1, capacity))); }

Recommendation Prefetch(const Evidence& e) {
  const PipelineModel& model = e.model();
  Variant all = e.Now();
  bool any = false;
  for (size_t s = 0; s < model.stages().size(); ++s) {
    if (model.stages()[s].on_consumer) continue;  // it has no queue
    int& capacity = all.settings.queue_capacity[s];
    any = any || Deeper(capacity) != capacity;
    capacity = Deeper(capacity);
  }
  if (!any && model.loads_on_consumer()) {
    return DoesNotFire("there is no queue: the trainer's thread makes each batch when it wants it");
  }
  double emptiest = -1;
  std::string evidence = "no queue was recorded";
  for (const QueueRow& queue : e.run().queues) {
    if (!queue.empty_ratio || *queue.empty_ratio <= emptiest) continue;
    emptiest = *queue.empty_ratio;
    evidence = fmt::format("queue {} of {} elements is empty {} of the time", queue.name,
                           queue.capacity_count, FormatPercent(emptiest));
  }
  if (!any) return DoesNotFire("all queues hold 32 elements or more");
  Outcome outcome = e.Predict(all);
  Variant best = all;
  // One queue alone, where that is nearly as good.
  for (size_t s = 0; s < model.stages().size() && outcome.gain >= kWorthwhileGain; ++s) {
    Variant one = e.Now();
    if (model.stages()[s].on_consumer) continue;
    one.settings.queue_capacity[s] = Deeper(one.settings.queue_capacity[s]);
    const Outcome alone = e.Predict(one);
    if (alone.gain < kOneQueueIsEnough * outcome.gain) continue;
    best = one;
    outcome = alone;
    break;
  }
  std::string act, settings;
  double bytes = 0;
  bool sizes = true;
  for (size_t s = 0; s < model.stages().size(); ++s) {
    const int from = model.current().queue_capacity[s], to = best.settings.queue_capacity[s];
    if (from == to) continue;
    act += fmt::format("{}queue behind {} {} -> {}", act.empty() ? "" : ", ",
                       model.stages()[s].name, from, to);
    settings +=
        fmt::format("{}{}.queue={}", settings.empty() ? "" : " --set ", model.stages()[s].name, to);
    sizes = sizes && model.stages()[s].element_bytes.has_value();
    bytes += model.stages()[s].element_bytes.value_or(0) * (to - from);
  }
  double cv = model.consumer_cv();
  for (const StageModel& stage : model.stages()) cv = std::max(cv, stage.cv);
  Recommendation result =
      IfWorthwhile(e, outcome, fmt::format("{}; costs vary by up to {:.0f} %", evidence, 100 * cv),
                   act, e.RunWith(settings));
  Effect& memory = result.effects.reader_memory;
  std::optional<double> then;
  if (sizes) then = memory.now.optional_value().value_or(0) + bytes;
  SetThen(&memory, then, "elements have no recorded size");
  return result;
}

// Share of the simulated rate that would be gained, with the same elements, if elements did not
// have to leave in order.
double GainWithoutOrder(const PipelineModel& model) {
  constexpr int64_t kSteps = 2500;
  constexpr uint64_t kSeed = 20261122;
  int64_t moves = 20'000'000;
  SimulatedPipeline pipeline = model.Simulated(model.current(), model.demands());
  const std::optional<double> ordered = SimulatedRate(pipeline, kSteps, kSeed, &moves);
  for (SimulatedStage& stage : pipeline.stages) stage.ordered = false;
  const std::optional<double> free = SimulatedRate(pipeline, kSteps, kSeed, &moves);
  if (!ordered || !free || *ordered <= 0) return 0;
  return std::max(0.0, *free / *ordered - 1);
}

// Where it was measured how long the trainer waits for the batch that is due while others are
// there.
Recommendation TakeAsTheyCome(const Evidence& e) {
  const PipelineModel& model = e.model();
  const Demands& demands = model.demands();
  double others = std::numeric_limits<double>::infinity();
  Outcome outcome = e.Predict(e.Now());
  const Demands free = Apply(model, demands, {{Scaled::kOrder, 0, 0}});
  for (const Limit& limit : Bounds(model, free, model.current())) {
    if (limit.Is(kOrderLimit) || limit.bound >= others) continue;
    others = limit.bound;
    outcome.limited_by = limit;
  }
  const double now = demands.rate;
  const auto without = [&](double wait_s) {
    const double left_s = std::max(1e-9, 1 / now - wait_s);
    return std::max(0.0, std::min(1 / left_s, others) / now - 1);
  };
  outcome.gain = without(demands.order_wait_s);
  // A worker that has a shard of its own, the long one, needs as long for it in any order.
  const double kept = model.uneven() ? 0 : kOrderGainKept;
  outcome.gain_interval = {kept * outcome.gain,
                           (1 + kOrderGainMore) * (1 + without(demands.order_wait_most_s)) - 1};
  outcome.rate = now * (1 + outcome.gain);
  outcome.rate_interval = {now * (1 + outcome.gain_interval.low),
                           now * (1 + outcome.gain_interval.high)};
  outcome.between = true;
  Recommendation result = IfWorthwhile(
      e, outcome,
      fmt::format("the trainer waits {} of each step for the batch that is due while others are "
                  "ready, and the workers have nothing to do meanwhile",
                  FormatPercent(demands.order_wait_most_s * now)),
      "in_order=False in the DataLoader");
  result.only_if = "the training does not need the order of the batches (torch 2.6 or later)";
  if (model.uneven()) result.only_if += ", and the long items are not all of one worker's shard";
  return result;
}

Recommendation RelaxOrder(const Evidence& e) {
  if (e.model().demands().order_wait_s > 0) return TakeAsTheyCome(e);
  if (!e.model().ordered()) {
    return DoesNotFire(e.run().run.pipeline_text.empty()
                           ? "the pipeline names no order of its batches"
                           : "batches may leave in any order already (pipeline.order)");
  }
  std::optional<size_t> worst;
  double kept = 1;
  for (size_t s = 0; s < e.model().stages().size(); ++s) {
    const double share = e.model().OrderShare(s, e.model().current());
    if (share >= kept) continue;
    kept = share;
    worst = s;
  }
  std::string why = "no stage waits for its slowest thread";
  if (worst) {
    const StageModel& stage = e.model().stages()[*worst];
    why = fmt::format(
        "in order, the threads of {} do {} of what they could, as they wait for the slowest of "
        "them (costs vary by {:.0f} %)",
        stage.name, FormatPercent(kept), 100 * stage.cv);
  }
  Outcome outcome = e.Predict(e.Now());
  const double now = e.model().demands().rate;
  const double consumer_s = e.model().demands().consumer_s;
  // A prediction errs by 8 % where order limits (Predictor); less where little changes.
  const double gain = GainWithoutOrder(e.model());
  const double error = std::expm1(1.645 * 0.08 * std::min(1.0, gain / 0.3));
  const auto capped = [&](double ratio) {
    return consumer_s > 0 ? std::min(ratio, std::max(0.0, 1 / (now * consumer_s) - 1)) : ratio;
  };
  outcome.gain = capped(gain);
  outcome.gain_interval = {capped(std::max(0.0, (1 + gain) / (1 + error) - 1)),
                           capped((1 + gain) * (1 + error) - 1)};
  outcome.rate = now * (1 + outcome.gain);
  outcome.rate_interval = {now * (1 + outcome.gain_interval.low),
                           now * (1 + outcome.gain_interval.high)};
  Recommendation result =
      IfWorthwhile(e, outcome, why, "let batches leave as they are ready: pipeline.order = \"any\"",
                   e.RunWith("pipeline.order=any"));
  result.only_if = "the training does not need the order of the table";
  return result;
}

Recommendation ModelBound(const Evidence& e) {
  const Demands& demands = e.model().demands();
  const Finding& first = e.bottleneck().findings[0];
  if (!e.model_bound()) {
    if (demands.consumer_s * demands.rate < kComputesNothing) {
      return DoesNotFire("the trainer computes nothing: it takes what comes");
    }
    return DoesNotFire(fmt::format("the trainer waits {} of each step; {} limits",
                                   FormatPercent(e.stall()), Describe(first.limit)));
  }
  double next = 0;
  std::string name;
  for (const Finding& finding : e.bottleneck().findings) {
    if (finding.limit.Is(kConsumerLimit) || !std::isfinite(finding.limit.bound)) continue;
    if (name.empty() || finding.limit.bound < next) {
      next = finding.limit.bound;
      name = Describe(finding.limit);
    }
  }
  Recommendation result;
  result.advice = Advice::kFires;
  result.why = fmt::format("the trainer waits {} of each step and takes all it can, {}",
                           FormatPercent(e.stall()), Batches(demands.rate));
  if (!name.empty()) {
    result.why += fmt::format("; the pipeline could do {} before {} limits", Batches(next), name);
  }
  result.act =
      "nothing in the reader: a faster one does not help. Make the model's step cheaper, or "
      "save (R23)";
  result.effects = e.Unchanged();
  return result;
}

Recommendation FewerThreads(const Evidence& e) {
  const PipelineModel& model = e.model();
  const double rate = model.demands().rate;
  if (e.stall() >= kSmallStall || !e.model_bound()) {
    return DoesNotFire(
        fmt::format("the trainer waits {} of each step: no thread can be removed yet",
                    FormatPercent(e.stall())));
  }
  Variant change = e.Now();
  int fewer = 0;
  double bytes = 0;
  std::string act, settings;
  for (size_t s = 0; s < model.stages().size(); ++s) {
    const int now = model.stages()[s].parallelism;
    const double needed = std::ceil(model.demands().stage_s[s] * rate * (1 + kThreadsMargin));
    const int then = std::clamp(static_cast<int>(std::min(needed, 1e6)), 1, now);
    if (then == now) continue;
    change.settings.parallelism[s] = then;
    fewer += now - then;
    bytes += model.stages()[s].element_bytes.value_or(0) * (now - then);
    act += fmt::format("{}{} threads {} -> {}", act.empty() ? "" : ", ", model.stages()[s].name,
                       now, then);
    settings += fmt::format("{}{}.parallelism={}", settings.empty() ? "" : " --set ",
                            model.stages()[s].name, then);
  }
  if (fewer == 0) {
    return DoesNotFire(
        fmt::format("no stage has a thread more than {} times the rate needs", 1 + kThreadsMargin));
  }
  const Outcome outcome = e.Predict(change);
  const Outcome now = e.Predict(e.Now());
  if (outcome.rate < (1 - kFewerMayLosePredicted) * std::min(rate, now.rate)) {
    return DoesNotFire(fmt::format("with {} threads fewer the rate would fall by {}", fewer,
                                   FormatPercent(1 - outcome.rate / now.rate)));
  }
  Recommendation result;
  result.advice = Advice::kFires;
  result.why = fmt::format(
      "{} thread{} more than the trainer's rate needs with a margin of {:.0f} %; without them the "
      "predicted rate is {} [{:.3g}, {:.3g}]",
      fewer, fewer == 1 ? "" : "s", 100 * kThreadsMargin, Batches(outcome.rate),
      outcome.rate_interval.low, outcome.rate_interval.high);
  result.act = act;
  result.command = e.RunWith(settings);
  result.effects = e.Unchanged();
  Effect& memory = result.effects.reader_memory;
  std::optional<double> then;
  if (bytes > 0) then = memory.now.optional_value().value_or(0) - bytes;
  SetThen(&memory, then, "elements have no recorded size");
  return result;
}

HR_RECOMMENDATION(1, "add workers, or stop adding",
                  "9 to 55 workers for one trainer node (ISCA'22, secondary source)", MoreWorkers);
HR_RECOMMENDATION(2, "set the threads of each stage", "up to 47x over naive (Plumber)",
                  Parallelism);
HR_RECOMMENDATION(3, "deepen prefetch", "", Prefetch);
HR_RECOMMENDATION(18, "relax the order of batches", "+40 % on ResNet (tf.data)", RelaxOrder);
HR_RECOMMENDATION(22, "do nothing: model-bound", "", ModelBound);
HR_RECOMMENDATION(23, "fewer threads or workers", "cost only (Cachew)", FewerThreads);

}  // namespace
}  // namespace headrace::analysis
