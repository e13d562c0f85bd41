// Where data and work live: R10, R11, R12, R17, R19, R21.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "analysis/advice/recommendations.h"
#include "analysis/model/bottleneck.h"
#include "analysis/program/cache_choice.h"
#include "analysis/run/memory_bandwidth.h"
#include "analysis/run/operator_class.h"
#include "analysis/run/settings.h"
#include "analysis/thresholds.h"
#include "base/error.h"
#include "base/units.h"

namespace headrace::analysis {
namespace {

// Memory that the process used and may use.
struct MemoryUse {
  double peak = 0, limit = 0;
};
std::optional<MemoryUse> MemoryOf(const Evidence& e) {
  const HostRow* rss = e.run().FindHost("process_rss_bytes");
  if (rss == nullptr || !rss->maximum_value || !e.run().run.memory_bytes) return std::nullopt;
  return MemoryUse{*rss->maximum_value, static_cast<double>(*e.run().run.memory_bytes)};
}
constexpr const char* kNoMemory = "the process's memory or its limit was not recorded";
constexpr const char* kRecordMemory = "record with the collector (process_rss_bytes, memory_bytes)";

// The plan with all the memory it wants. Empty where even that has no plan.
std::optional<Outcome> PlanWithoutMemory(const Evidence& e) {
  try {
    Budget budget;
    budget.memory_bytes = uint64_t{1} << 60;
    return OutcomeOf(Allocate(e.predictor(), budget));
  } catch (const Error&) {
    return std::nullopt;
  }
}

// What memory alone costs: the gain of the plan without a limit, against that within it.
std::optional<Outcome> GainOfMemory(const Evidence& e) {
  const double planned =
      e.statements().allocation ? e.statements().allocation->predicted : e.model().demands().rate;
  std::optional<Outcome> free = PlanWithoutMemory(e);
  if (!free) return std::nullopt;
  if (e.statements().allocation && !e.statements().allocation->changes.empty()) {
    free->over = "the plan of R2";
  }
  free->gain = free->rate / planned - 1;
  free->gain_interval = {free->rate_interval.low / planned - 1,
                         free->rate_interval.high / planned - 1};
  return free;
}

Recommendation SmallBatches(const Evidence& e) {
  const auto memory = MemoryOf(e);
  if (!memory) return CannotSay(kNoMemory, kRecordMemory);
  const std::string evidence = fmt::format("{} of {} of memory in use at the peak",
                                           FormatBytes(memory->peak), FormatBytes(memory->limit));
  if (memory->peak < kMemoryToSpare * memory->limit && e.statements().allocation) {
    return DoesNotFire(evidence + ": it keeps no thread from running");
  }
  const auto outcome = GainOfMemory(e);
  if (!outcome) return CannotSay(evidence + "; no plan was found", "see headrace plan");
  const double worker_rows = std::max(1.0, std::floor(e.rows_per_batch() / 8));
  const bool joins = e.FindKind("rebatch").has_value();  // else the setting is refused
  Recommendation result = IfWorthwhile(
      e, *outcome, evidence + ": with room for more threads the plan would gain what is given here",
      fmt::format("smaller batches in the workers, joined at the client: worker_rows = {:.0f} and "
                  "{}the operator rebatch",
                  worker_rows, joins ? "" : "a stage of its own with "),
      joins ? e.RunWith(fmt::format("pipeline.worker_rows={:.0f}", worker_rows)) : "");
  result.only_if = "the client has CPU and memory to join them (docs/batches.md)";
  result.effects.reader_cpu.then = Quantity::Unavailable(
      "what joining costs the client was not measured", headrace::Unit::kNanoseconds);
  result.effects.reader_memory.then = Quantity::Unavailable(
      "depends on the threads that it makes room for", headrace::Unit::kBytes);
  return result;
}

// The operators that work on lists, with so much of their work left; some may not be able to use
// unique lists, so half of it, between none and all.
// `stored`: they are fewer where they are read and decoded too.
Recommendation OnUniqueLists(const Evidence& e, double left, bool stored, std::string why,
                             std::string act, std::string command) {
  const auto tensorize = e.FindKind("tensorize");
  std::vector<size_t> operators;
  for (size_t i = 0; i < e.run().operators.size(); ++i) {
    const OperatorRow& op = e.run().operators[i];
    const OperatorClass cls = ClassOf(op.kind, op.name);
    // Repeats that lie together are stored, unpacked and decoded as little more than one.
    const bool unpacks = stored && (op.kind == "fetch" || op.kind == "decompress" ||
                                    op.kind == "decode" || op.kind == "extract");
    if (cls == OperatorClass::kSparseNormalisation || cls == OperatorClass::kGeneration ||
        (tensorize && i == *tensorize) || unpacks) {
      operators.push_back(i);
    }
  }
  const auto with = [&](double part) {
    Variant work = e.Now();
    for (const size_t i : operators) work.scales.push_back({Scaled::kOperator, i, part});
    return work;
  };
  const Variant change = with((1 + left) / 2);
  Recommendation result = IfWorthwhile(e, e.Predict(e.Now(), change, with(left)), std::move(why),
                                       std::move(act), std::move(command));
  result.only_if = "the model takes inverse keyed jagged tensors, or they are expanded before it";
  SetThen(&result.effects.reader_cpu, e.CpuOf(change), "");
  return result;
}

// Rows that lie by session repeat more: the factor then, against `now`.
Recommendation Cluster(const Evidence& e, double now, double clustered, const std::string& seen) {
  std::string act =
      "write the table with its rows by session, and keep each list once: dedup.mode = "
      "\"auto\"";
  Recommendation result = OnUniqueLists(
      e, now / clustered, true,
      fmt::format(
          "{}; if rows lay by session, {:.2f} bytes of lists for each that is kept (a sample "
          "of the table's first rows)",
          seen, clustered),
      std::move(act), e.OnTable("rewrite", "--cluster session_id -o NEW"));
  result.only_if += "; and training may see a session's rows together";
  SetThen(&result.effects.storage_bytes, std::nullopt,
          "how much smaller repeats compress is not known before they are written");
  return result;
}

// Rows that lie by session already, or as well as that: their lists can be kept once as they are.
Recommendation AsTheyLie(const Evidence& e, double now, const std::string& seen) {
  return OnUniqueLists(
      e, 1 / now, false,
      fmt::format("{}; in the order that the rows have, {:.2f} bytes of lists for each that is "
                  "kept, and barely more by session (a sample of the table's first rows)",
                  seen, now),
      "keep each list once from the decoder to the model: dedup.mode = \"auto\"",
      e.RunWith("dedup.mode=auto"));
}

Recommendation Deduplicate(const Evidence& e) {
  const std::string layout = e.OnTable("layout", "--pipeline " + e.PipelinePath() + " --dedup");
  const std::string how = layout.empty()
                              ? "operators of the kind \"dedup\" with bytes (docs/accounts.md)"
                              : layout + " (the factor now, and if clustered)";
  const Real clustered = e.run().run.Fact("clustered_dedup_ratio");
  const Real lies = e.run().run.Fact("sample_dedup_ratio");
  const bool by_session = clustered && lies && *clustered < kLiesBySession * *lies;
  const bool used = SettingOf(e.run().run, "dedup.mode").value_or("off") != "off";
  const std::vector<Duplication> groups = DuplicationOf(e.run(), e.statements().doubts);
  double in = 0, out = 0;
  for (const Duplication& group : groups) {
    if (!group.factor.available()) continue;
    in += group.bytes_in.value();
    out += group.bytes_out.value();
  }
  if (out <= 0) {
    const std::string unseen = "nothing in this run compared its rows";
    if (!clustered) {
      return CannotSay(unseen + ", so how often they repeat is not known", how);
    }
    if (by_session && used) {
      return DoesNotFire(
          fmt::format("{}; rows lie by session already, with {:.2f} bytes of lists for each unique "
                      "one, and dedup.mode is on (a sample of the table's first rows)",
                      unseen, *lies));
    }
    if (by_session && *lies >= kDedupPays) return AsTheyLie(e, *lies, unseen);
    if (*clustered >= kDedupPays) return Cluster(e, 1, *clustered, unseen);
    return DoesNotFire(fmt::format(
        "lists would repeat too little even if rows lay by session: {:.2f} bytes of them for each "
        "unique one (a sample of the table's first rows)",
        *clustered));
  }
  const double factor = in / out;
  // What runs on unique rows where the factor is used; a pipeline that counts duplicates without
  // using them (its tensors are as large as its lists) can gain it.
  if (used) {
    const std::string now = fmt::format(
        "duplicates are left out already: {:.2f} bytes of lists for "
        "each that is kept",
        factor);
    if (clustered && *clustered >= kDedupPays * factor && !by_session)
      return Cluster(e, factor, *clustered, now);
    if (factor >= kDedupPays) return DoesNotFire(now);
    if (clustered) {
      return DoesNotFire(
          fmt::format("{}, and {:.2f} if rows lay by session (a sample)", now, *clustered));
    }
    return CannotSay(now + "; clustering by session may raise it", how);
  }
  if (factor < kDedupPays) {
    const std::string little =
        fmt::format("lists repeat too little: {:.2f} bytes of them for each unique one", factor);
    if (by_session && *lies >= kDedupPays) return AsTheyLie(e, *lies, little);
    if (clustered && *clustered >= kDedupPays) return Cluster(e, 1, *clustered, little);
    return DoesNotFire(little);
  }
  return OnUniqueLists(
      e, 1 / factor, false,
      fmt::format("{:.2f} bytes of lists for each unique one, and transforms work on all of them",
                  factor),
      "keep each list once from the decoder to the model: dedup.mode = \"auto\"",
      e.RunWith("dedup.mode=auto"));
}

// Where [[cache]] can keep something: what leaves extract, rowmap or transform; behind what draws
// at random nothing may be kept.
std::vector<bool> KeptStages(const Evidence& e, bool random) {
  std::vector<bool> can;
  for (const StageModel& stage : e.model().stages()) {
    const std::string& kind = e.run().operators[stage.last].kind;
    can.push_back(kind == "extract" || kind == "rowmap" || (kind == "transform" && !random));
  }
  return can;
}

// A cache in `free` bytes of memory. How long an epoch is the run does not tell: taken is one that
// fits, and said how long that is.
CacheQuestion FittingCache(double free, int epochs, const std::vector<bool>& can) {
  CacheTier tier;
  tier.name = "memory";
  tier.budget_bytes = free;
  tier.read_bytes_per_second = tier.write_bytes_per_second = kMemoryCacheBytesPerSecond;
  CacheQuestion question;
  question.epoch_batches = 1;
  question.epochs = epochs;
  question.tiers = {tier};
  question.allowed = can;
  return question;
}

// The rate of all epochs together: the first fills the cache. 0 epochs: endless.
Outcome OverAllEpochs(const CacheChoice& choice, const CacheOption& best, int epochs) {
  const auto over_all = [&](double warm) {
    if (epochs == 0) return warm;
    return epochs / (1 / best.fill_rate + (epochs - 1) / warm);
  };
  Outcome outcome;
  outcome.rate = over_all(best.warm_rate);
  outcome.gain = outcome.rate / choice.rate - 1;
  outcome.rate_interval = {over_all(choice.rate * (1 + best.warm_gain.low)),
                           over_all(choice.rate * (1 + best.warm_gain.high))};
  outcome.gain_interval = {std::min(outcome.gain, outcome.rate_interval.low / choice.rate - 1),
                           std::max(outcome.gain, outcome.rate_interval.high / choice.rate - 1)};
  outcome.limited_by = best.then;
  return outcome;
}

// `misses`: the share of the epochs that read their rows from the storage.
void SayCacheEffects(const Evidence& e, const std::vector<Scale>& warm, double misses,
                     Effects* effects) {
  for (Effect* effect : {&effects->storage_bytes, &effects->storage_requests}) {
    if (!effect->now.available()) continue;
    effect->then =
        Quantity::Of(effect->now.value() * misses, effect->now.unit(), Source::kEstimate);
  }
  const auto now_cpu = e.CpuOf(e.Now()), warm_cpu = e.CpuOf({e.Now().settings, warm});
  SetThen(&effects->reader_cpu,
          now_cpu && warm_cpu ? std::optional<double>(*now_cpu * misses + *warm_cpu * (1 - misses))
                              : std::nullopt,
          "CPU time was not split from waiting");
  if (effects->reader_memory.now.available()) {
    effects->reader_memory.then =
        Quantity::Unavailable("the cache takes its budget", headrace::Unit::kBytes);
  }
}

// A cache in memory behind a stage. `free`: bytes of memory for it; `random`: the pipeline has
// random transforms.
Recommendation OfferCache(const Evidence& e, const CacheChoice& choice, const CacheOption& best,
                          int epochs, double free, bool random) {
  const double row_bytes = best.stored_bytes / e.rows_per_batch();
  const OperatorRow& place = e.run().operators[e.model().stages()[best.stage].last];
  Recommendation result = IfWorthwhile(
      e, OverAllEpochs(choice, best, epochs),
      fmt::format("{} epochs come by the same rows, {}; {} a row after {}; {} of memory are free; "
                  "filling it and reading it back is taken at {} on each thread",
                  epochs == 0 ? std::string("endless") : std::to_string(epochs),
                  random ? "random transforms allow it only behind extract"
                         : "and nothing before it is random",
                  FormatBytes(row_bytes), place.name, FormatBytes(free),
                  FormatBytesRate(kMemoryCacheBytesPerSecond)),
      fmt::format("keep what leaves {}: [[cache]] after = \"{}\", tier = \"memory\", budget = what "
                  "fits; with the rows N of your epoch the plan says what a part of it gains, and "
                  "when it pays",
                  place.name, place.kind),
      e.Command(fmt::format("plan {} --cache memory={:.0f}MiB --epoch-rows N", e.run().run.run_id,
                            std::floor(free / 1048576))));
  result.only_if = fmt::format(
      "an epoch has at most {} rows, so that all of it fits; in place of a fast tier (R13), not "
      "with it",
      FormatCount(free / row_bytes));
  SayCacheEffects(e, best.warm, epochs == 0 ? 0.0 : 1.0 / epochs, &result.effects);
  return result;
}

Recommendation Cache(const Evidence& e) {
  const RunView& run = e.run();
  if (const auto hit = e.FindName("cache.hit")) {
    const auto miss = e.FindName("cache.miss");
    const double hits = static_cast<double>(run.operators[*hit].completions_count);
    const double misses = miss ? static_cast<double>(run.operators[*miss].completions_count) : 0;
    return DoesNotFire(fmt::format("there is a cache already: {} of the splits came from it",
                                   FormatPercent(hits + misses > 0 ? hits / (hits + misses) : 0)));
  }
  const std::optional<int> epochs = EpochsOf(run.run);
  if (!epochs) {
    return CannotSay("how often the same rows come is not known",
                     "a pipeline file, or the Python wrapper's epochs");
  }
  if (*epochs == 1)
    return DoesNotFire(
        "the pipeline reads its table once (source.epochs): nothing comes a second time");
  const std::vector<std::string> transforms = TransformsOf(run.run);
  const bool random = std::any_of(transforms.begin(), transforms.end(), [](const std::string& op) {
    return op == "sampling" || op == "random_crop";
  });
  const auto memory = MemoryOf(e);
  if (!memory) return CannotSay(kNoMemory, kRecordMemory);
  const PipelineModel& model = e.model();
  const std::vector<bool> can = KeptStages(e, random);
  if (std::find(can.begin(), can.end(), true) == can.end()) {
    return CannotSay(
        "no stage ends in an operator \"transform\" or \"extract\" whose results "
        "could be kept",
        "operators of these kinds");
  }
  const std::string id = std::to_string(run.run.run_id);
  const double free = kNearlyFull * memory->limit - memory->peak;
  if (free < kLeastCacheBytes) {
    return CannotSay(fmt::format("{} of {} of memory in use: no room for a cache",
                                 FormatBytes(memory->peak), FormatBytes(memory->limit)),
                     e.Command(fmt::format("plan {} --cache disk=SIZE@RATE --epoch-rows N", id)));
  }
  if (e.rows_per_batch() <= 0) {
    return CannotSay("the run recorded no rows per batch", "rows in hr_done (docs/accounts.md)");
  }
  const CacheChoice choice = ChooseCache(model, e.predictor(), FittingCache(free, *epochs, can));
  const auto best = std::find_if(
      choice.options.begin(), choice.options.end(),
      [](const CacheOption& option) { return option.allowed && option.random.empty(); });
  if (best == choice.options.end()) {
    return CannotSay("the bytes that leave the stages were not counted",
                     "bytes in hr_done (docs/accounts.md)");
  }
  if (best->share < 1) {
    return DoesNotFire(fmt::format("a batch takes {} there, and {} of memory are free",
                                   FormatBytes(best->stored_bytes), FormatBytes(free)));
  }
  return OfferCache(e, choice, *best, *epochs, free, random);
}

// `sending`: operators that hand batches to another process; `cores`: how many are in use, in
// words.
Recommendation ReadInline(const Evidence& e, const std::vector<size_t>& sending,
                          const std::string& cores) {
  double sending_s = 0;
  Variant change = e.Now();
  for (const size_t i : sending) {
    sending_s += e.model().demands().operators[i].cpu_s;
    change.scales.push_back({Scaled::kOperator, i, 0});
  }
  Recommendation result =
      IfWorthwhile(e, e.Predict(change),
                   fmt::format("handing batches to another process takes {} of CPU a batch; {}",
                               FormatDuration(sending_s * 1e9), cores),
                   "read in the trainer's own process: delivery.to = \"inline\"",
                   e.RunWith("delivery.to=inline"));
  result.only_if = "the trainer's machine has the cores that the reader uses";
  return result;
}

Recommendation Place(const Evidence& e) {
  const PipelineModel* model = &e.model();
  if (e.run().run.pipeline_path.empty()) {
    return DoesNotFire("the program loads its data by its own means (R26, R30, R32)");
  }
  if (!model->splits_cpu() || !model->cores_known()) {
    return CannotSay("the cores in use were not recorded",
                     "record at level 2 or more (docs/collector.md)");
  }
  const double used = model->cores_used().value_or(0), available = model->cores_available();
  std::vector<size_t> sending;
  for (size_t i = 0; i < e.run().operators.size(); ++i) {
    const OperatorRow& op = e.run().operators[i];
    if (ClassOf(op.kind, op.name) == OperatorClass::kSend) sending.push_back(i);
  }
  const std::string cores = fmt::format("{:.2f} of {:.2f} cores in use", used, available);
  if (!sending.empty()) return ReadInline(e, sending, cores);
  double consumer_s = 0;
  for (size_t i = 0; i < e.run().operators.size(); ++i) {
    if (model->operators()[i].stage == kNoStage) consumer_s += model->demands().operators[i].cpu_s;
  }
  const Finding& first = e.bottleneck().findings[0];
  if (!first.limit.Is(kCoresLimit)) {
    return DoesNotFire(fmt::format("{}; {} limits, so the place of the reader does not matter",
                                   cores, Describe(first.limit)));
  }
  const double others = model->cores_budget() - available;
  if (consumer_s < kWorthMoving * model->demands().cpu_s &&
      others < kWorthMoving * model->cores_budget()) {
    return DoesNotFire(
        fmt::format("{}, all by the reader itself: another place needs as many (R1, R21)", cores));
  }
  // To the cores, CPU time that is no longer asked for is as good as more cores.
  Variant change = e.Now();
  const double cpu_s = model->demands().cpu_s;
  change.settings.cores = model->cores_budget();
  if (consumer_s < cpu_s) change.settings.cores *= cpu_s / (cpu_s - consumer_s);
  Recommendation result = IfWorthwhile(
      e, e.Predict(change),
      fmt::format("{}; the trainer takes {} of CPU a batch and other processes {:.2f} cores beside "
                  "the reader",
                  cores, FormatDuration(consumer_s * 1e9), std::max(0.0, others)),
      "read on another machine, or on cores of its own, and send the batches: [delivery]",
      e.RunWith("delivery.to=unix:PATH"));
  result.only_if = "serialising and sending cost less than the cores it frees (not measured here)";
  result.effects.reader_cpu.then =
      Quantity::Unavailable("what sending costs was not measured", headrace::Unit::kNanoseconds);
  return result;
}

Recommendation Share(const Evidence& e) {
  if (!e.run().same_pipeline_runs) {
    return CannotSay("whether the same pipeline ran beside this one is not known",
                     "record the jobs into one database, with their pipeline file");
  }
  const int64_t others = *e.run().same_pipeline_runs;
  if (others <= 0) {
    return DoesNotFire("no other recorded run of the same pipeline file overlapped with this one");
  }
  if (!e.model().splits_cpu()) {
    return CannotSay("CPU time was not split from waiting",
                     "record at level 2 or more (docs/collector.md)");
  }
  // What the others took of this machine is at most what other processes were seen to use.
  const double freed = std::min(e.model().cores_other().value_or(0),
                                static_cast<double>(others) * e.model().cores_used().value_or(0));
  Variant change = e.Now();
  change.settings.cores = std::min(e.model().cores_budget(), e.model().cores_available() + freed);
  const Outcome outcome = e.Predict(change);
  Recommendation result = Fires(
      e, outcome,
      fmt::format(
          "{} other run{} of the same pipeline file overlapped with this one: the same work "
          "{} times",
          others, others == 1 ? "" : "s", others + 1),
      "prepare the batches once: one reader for all jobs, or a [[cache]] on disk that one fills");
  result.only_if = "all jobs may see the same batches in the same order";
  if (outcome.gain < kWorthwhileGain) result.outcome.reset();
  Effects& effects = result.effects;
  for (Effect* effect : {&effects.storage_bytes, &effects.storage_requests, &effects.reader_cpu}) {
    if (!effect->now.available()) continue;
    effect->then = Quantity::Of(effect->now.value() / (1 + static_cast<double>(others)),
                                effect->now.unit(), Source::kEstimate);
  }
  return result;
}

Recommendation Hardware(const Evidence& e) {
  const PipelineModel* model = &e.model();
  const Finding& first = e.bottleneck().findings[0];
  if (const auto memory = MemoryBandwidthOf(e.run());
      memory && memory->ceiling_bytes_per_s && *memory->ceiling_bytes_per_s > 0 &&
      memory->bytes_per_s.value() > kBandwidthInUse * *memory->ceiling_bytes_per_s) {
    Recommendation result;
    result.advice = Advice::kFires;
    result.why = fmt::format("{} of {} of memory bandwidth in use ({})",
                             FormatBytesRate(memory->bytes_per_s.value()),
                             FormatBytesRate(*memory->ceiling_bytes_per_s), memory->told_by);
    result.act = "a machine with more memory bandwidth for each core; more cores alone do not help";
    result.effects = e.Unchanged();
    return result;
  }
  for (const MeasurementRow& row : e.run().measurements) {
    if (row.metric != "nic_use_ratio" || !row.value || *row.value < kNearlyFull) continue;
    Recommendation result;
    result.advice = Advice::kFires;
    result.why = fmt::format("interface {} is in use {} {}", row.subject, FormatPercent(*row.value),
                             row.cause);
    result.act = "a faster network interface, or fewer bytes over it (R6, R17)";
    result.effects = e.Unchanged();
    return result;
  }
  Variant change = e.Now();
  std::string why, act;
  if (first.limit.Is(kCoresLimit)) {
    const MoreCores more = PredictMoreCores(e);
    return IfWorthwhile(e, more.outcome,
                        fmt::format("{:.2f} of {:.2f} cores in use, and CPU cores are the limit",
                                    model->cores_used().value_or(0), model->cores_available()),
                        fmt::format("{:.0f} more core{}", more.cores, more.cores == 1 ? "" : "s"));
  } else if (first.limit.Is(kDeviceLimit)) {
    change.scales.push_back({Scaled::kResource, first.limit.index, 0.5});
    why = fmt::format("device {} is held {} of the time, and it limits", first.limit.name,
                      FormatPercent(std::min(1.0, first.utilisation)));
    act = fmt::format("a device twice as fast as {}", first.limit.name);
  } else if (const auto memory = MemoryOf(e);
             memory && memory->peak > kNearlyFull * memory->limit && e.statements().allocation) {
    const auto outcome = GainOfMemory(e);
    if (outcome && outcome->gain >= kWorthwhileGain) {
      return Fires(e, *outcome,
                   fmt::format("{} of {} of memory in use, which keeps threads from running",
                               FormatBytes(memory->peak), FormatBytes(memory->limit)),
                   "more memory for this process (or smaller batches, R10)");
    }
    return DoesNotFire("memory is nearly full, but more of it does not help");
  } else {
    return DoesNotFire(fmt::format("{} limits, which no hardware row is", Describe(first.limit)));
  }
  return IfWorthwhile(e, e.Predict(change), why, act);
}

HR_RECOMMENDATION(10, "small batches in workers, joined at the client",
                  "+20 to +40 % (Meta engineering blog 2022)", SmallBatches);
HR_RECOMMENDATION(11, "cluster by session and deduplicate",
                  "reader up to 1.8x, storage up to 3.7x, trainer up to 2.5x (RecD)", Deduplicate);
HR_RECOMMENDATION(12, "cache", "36 to 59 % of the time saved (Plumber, Cachew, Seneca)", Cache);
HR_RECOMMENDATION(17, "another place for the reader", "-55 to -87 % cost (Pecan)", Place);
HR_RECOMMENDATION(19, "share results between identical jobs",
                  "CPU divided by jobs (tf.data service)", Share);
HR_RECOMMENDATION(21, "other hardware", "", Hardware);

}  // namespace
}  // namespace headrace::analysis
