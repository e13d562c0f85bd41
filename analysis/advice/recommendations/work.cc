// What operators do: R8, R9, R14, R15, R16, R20.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <map>

#include "analysis/advice/recommendations.h"
#include "analysis/model/bottleneck.h"
#include "analysis/run/operator_class.h"
#include "analysis/run/settings.h"
#include "analysis/thresholds.h"
#include "base/units.h"

namespace headrace::analysis {
namespace {

// The work of these operators times `factor`.
Variant Times(const Evidence& e, const std::vector<size_t>& operators, double factor) {
  Variant change = e.Now();
  for (const size_t i : operators) change.scales.push_back({Scaled::kOperator, i, factor});
  return change;
}

// A pipeline that needs `less_s` less CPU a batch outside its operators: to the cores that is as if
// there were more of them.
Variant LessOtherCpu(const Evidence& e, double less_s) {
  Variant change = e.Now();
  const double cpu_s = e.model().demands().cpu_s;
  if (less_s < cpu_s) change.settings.cores *= cpu_s / (cpu_s - less_s);
  return change;
}

void SetCpu(const Evidence& e, const Variant& change, Effects* effects) {
  SetThen(&effects->reader_cpu, e.CpuOf(change), "");
}

double CpuOf(const Evidence& e, const std::vector<size_t>& operators) {
  double cpu = 0;
  for (const size_t i : operators) cpu += e.model().demands().operators[i].cpu_s;
  return cpu;
}

// "4.1 us of 20.3 us of CPU a row"
std::string CpuText(const Evidence& e, const std::vector<size_t>& operators) {
  const double rows = std::max(1.0, e.rows_per_batch());
  return fmt::format("{} of {} of CPU a row", FormatDuration(CpuOf(e, operators) / rows * 1e9),
                     FormatDuration(e.model().demands().cpu_s / rows * 1e9));
}

constexpr const char* kNoSplit = "CPU time was not split from waiting";
constexpr const char* kSplit = "record at level 2 or more (docs/collector.md)";

Recommendation ColumnMajor(const Evidence& e) {
  if (!e.model().splits_cpu()) return CannotSay(kNoSplit, kSplit);
  std::vector<size_t> conversions;
  for (size_t i = 0; i < e.run().operators.size(); ++i) {
    const OperatorRow& op = e.run().operators[i];
    if (ClassOf(op.kind, op.name) == OperatorClass::kConvert || op.kind == "convert") {
      conversions.push_back(i);
    }
  }
  if (conversions.empty()) {
    return DoesNotFire("no operator converts between rows and columns (rowmap)");
  }
  const Variant change = Times(e, conversions, 0);
  Recommendation result =
      IfWorthwhile(e, e.Predict(change),
                   fmt::format("{} takes {} to make a map of each row and columns of the maps",
                               e.run().operators[conversions[0]].name, CpuText(e, conversions)),
                   "hand batches on as columns: leave the operator rowmap out of its stage");
  result.only_if = "no step between needs a map for each row";
  SetCpu(e, change, &result.effects);
  result.effects.reader_memory.then = Quantity::Unavailable(
      "what the row maps hold in memory was not counted", headrace::Unit::kBytes);
  return result;
}

// The function at the end of the stack that an operator's samples end in most.
struct HotSpot {
  std::string frame;
  double share = 0;
  int64_t samples = 0;  // of the operator
};
std::optional<HotSpot> HotSpotOf(const Evidence& e, size_t op) {
  std::map<std::string, double> leaves;
  double all = 0;
  int64_t samples = 0;
  for (const StackRow& stack : e.run().stacks) {
    if (stack.kind != "cpu" || stack.operator_name != e.run().operators[op].name) continue;
    samples += stack.samples_count;
    const double time = static_cast<double>(stack.time_ns);
    const size_t last = stack.folded.rfind(';');
    leaves[last == std::string::npos ? stack.folded : stack.folded.substr(last + 1)] += time;
    all += time;
  }
  if (all <= 0) return std::nullopt;
  HotSpot hottest;
  for (const auto& [frame, time] : leaves) {
    if (time / all > hottest.share) hottest = {frame, time / all, samples};
  }
  return hottest;
}

// Whether a frame is of a library or the kernel, which the pipeline's authors do not write: without
// a name ("[libzstd.so.1+0x97000]", "[kernel]"), of the kernel ("read_[k]"), or by the names that
// the C library and the codecs keep to themselves. Stacks do not say whose a named function is.
bool IsForeign(const std::string& frame) {
  constexpr const char* kPrefixes[] = {
      "[",    "__",  "pthread_", "_int_",  "mem", "malloc",  "cfree", "ZSTD",   "HUF_",
      "FSE_", "LZ4", "snappy::", "Brotli", "XXH", "inflate", "crc32", "adler32"};
  if (frame.ends_with("_[k]")) return true;
  return std::any_of(std::begin(kPrefixes), std::end(kPrefixes),
                     [&](const char* prefix) { return frame.starts_with(prefix); });
}

Recommendation LocalFixes(const Evidence& e) {
  if (!e.model().splits_cpu()) return CannotSay(kNoSplit, kSplit);
  const Finding& first = e.bottleneck().findings[0];
  if (!first.culprit || (!first.limit.Is(kCoresLimit) && !first.limit.Is(kStageLimit))) {
    return DoesNotFire(fmt::format("{} limits, not an operator's CPU time", Describe(first.limit)));
  }
  const size_t op = *first.culprit;
  const Demands::Operator& demand = e.model().demands().operators[op];
  const std::string& name = e.run().operators[op].name;
  if (demand.cpu_s < kCodeIsTheCost * (demand.cpu_s + demand.blocked_s)) {
    return DoesNotFire(fmt::format(
        "{} is blocked {} of its time: its code is not what costs", name,
        FormatPercent(demand.blocked_s / std::max(1e-12, demand.cpu_s + demand.blocked_s))));
  }
  const auto hot = HotSpotOf(e, op);
  if (!hot) {
    return CannotSay(
        fmt::format("{} takes {}, but where in its code is not known", name, CpuText(e, {op})),
        "sampled stacks (docs/stacks.md)");
  }
  const std::string evidence =
      fmt::format("{} of the CPU samples of {} end in {}; {} takes {}", FormatPercent(hot->share),
                  name, hot->frame, name, CpuText(e, {op}));
  if (static_cast<double>(hot->samples) < kSamplesForHotSpot) {
    return CannotSay(
        fmt::format("{}; but these are {} samples, too few to tell", evidence, hot->samples),
        fmt::format("a longer run: {:g} samples of {} or more (docs/stacks.md)", kSamplesForHotSpot,
                    name));
  }
  if (hot->share < kHotSpot) return DoesNotFire(evidence + ": no hot spot");
  if (IsForeign(hot->frame)) {
    return DoesNotFire(evidence +
                       ": that is not code of the pipeline, it can only be called less often");
  }
  const Variant likely = Times(e, {op}, 1 - hot->share / 2);
  Recommendation result =
      IfWorthwhile(e, e.Predict(e.Now(), likely, Times(e, {op}, 1 - hot->share)), evidence,
                   fmt::format("look into {}: checks out of the loop over rows, link-time and "
                               "profile-guided optimisation",
                               hot->frame));
  result.only_if = "half of its time can be saved (the interval: none to all)";
  SetCpu(e, likely, &result.effects);
  return result;
}

Recommendation Precompute(const Evidence& e) {
  if (!e.model().splits_cpu()) return CannotSay(kNoSplit, kSplit);
  std::vector<size_t> derived;
  bool transforms = false;
  for (size_t i = 0; i < e.run().operators.size(); ++i) {
    const OperatorRow& op = e.run().operators[i];
    const OperatorClass cls = ClassOf(op.kind, op.name);
    transforms = transforms || IsTransformClass(cls);
    if (cls == OperatorClass::kGeneration) derived.push_back(i);
  }
  if (!transforms) {
    return CannotSay("nothing says which transform takes which time",
                     "an operator of the kind \"transform\" for each kind of transform");
  }
  if (derived.empty()) return DoesNotFire("no transform makes a new feature");
  const size_t dearest = *std::max_element(derived.begin(), derived.end(), [&](size_t a, size_t b) {
    return e.model().demands().operators[a].cpu_s < e.model().demands().operators[b].cpu_s;
  });
  const std::string& name = e.run().operators[dearest].name;
  const Variant change = Times(e, {dearest}, 0.25);
  // What reading the stored feature costs instead is not known: half of what is saved at most.
  const Outcome outcome = e.Predict(Times(e, {dearest}, 0.5), change, Times(e, {dearest}, 0));
  Recommendation result = IfWorthwhile(
      e, outcome,
      fmt::format("{} is the most expensive feature generation: {}", name, CpuText(e, {dearest})),
      fmt::format("store what {} makes as features of the table, and read them", name));
  result.only_if =
      "several jobs or epochs want the same features, and reading them costs less than half of "
      "making them";
  SetCpu(e, change, &result.effects);
  result.effects.storage_bytes.then = Quantity::Unavailable(
      "grows by the stored features, whose bytes nothing counts", headrace::Unit::kBytes);
  result.effects.storage_requests.then =
      Quantity::Unavailable("grows by the streams of the stored features", headrace::Unit::kCount);
  return result;
}

// An operator that drops rows or bytes.
struct Shrinking {
  std::string by;              // its name; empty: there is none
  std::vector<size_t> before;  // operators before it that could come after it
  double kept = 1;
  bool counted = false;  // an operator counts bytes in and out (FindShrinking)
};

// `sampling`, one of the transforms, whose common account is `transform`.
Shrinking FindSampling(const Evidence& e, size_t sampling, size_t transform) {
  const RunView& run = e.run();
  const std::vector<std::string> order = TransformsOf(run.run);
  Shrinking found;
  found.kept = static_cast<double>(run.operators[sampling].rows_count) /
               static_cast<double>(run.operators[transform].rows_count);
  found.by = "sampling";
  for (const std::string& op : order) {
    if (op == "sampling") break;
    const auto index = e.FindName(op);
    // An account is shared by all transforms of a kind; only a kind that never comes later counts.
    const auto last = std::find(order.rbegin(), order.rend(), op);
    const auto drop = std::find(order.rbegin(), order.rend(), "sampling");
    const bool is_new =
        index && std::find(found.before.begin(), found.before.end(), *index) == found.before.end();
    if (is_new && last > drop) found.before.push_back(*index);
  }
  return found;
}

// The first operator that gives clearly fewer bytes than it takes.
Shrinking FindShrinking(const RunView& run) {
  Shrinking found;
  std::vector<size_t> passed;
  for (size_t i = 0; i < run.operators.size() && found.by.empty(); ++i) {
    const OperatorRow& op = run.operators[i];
    if (ClassOf(op.kind, op.name) != OperatorClass::kOther) continue;
    if (op.bytes_in_bytes > 0 && op.bytes_out_bytes > 0) {
      found.counted = true;
      const double ratio =
          static_cast<double>(op.bytes_out_bytes) / static_cast<double>(op.bytes_in_bytes);
      if (ratio < kShrinks && !passed.empty()) {
        found.kept = ratio;
        found.by = op.name;
        found.before = passed;
      }
    }
    passed.push_back(i);
  }
  return found;
}

// Operators before the one that drops rows or bytes, which could come after it.
Recommendation ShrinkEarly(const Evidence& e) {
  const RunView& run = e.run();
  if (!e.model().splits_cpu()) return CannotSay(kNoSplit, kSplit);
  // In the reference reader rows are dropped by `sampling`, somewhere in the list of transforms.
  const auto sampling = e.FindName("sampling"), transform = e.FindKind("transform");
  const bool samples = sampling && transform && run.operators[*transform].rows_count > 0;
  const Shrinking found = samples ? FindSampling(e, *sampling, *transform) : FindShrinking(run);
  if (!samples && !found.counted && TransformsOf(run.run).empty()) {
    return CannotSay("no operator counts bytes in and out", "bytes in hr_done (docs/accounts.md)");
  }
  const auto& [by, before, kept, counted] = found;
  if (by.empty() || before.empty() || kept > kShrinks) {
    return DoesNotFire(by.empty()
                           ? "no operator that could come earlier drops rows or bytes"
                           : fmt::format("{} keeps {}, and nothing expensive comes before it", by,
                                         FormatPercent(std::min(1.0, kept))));
  }
  const Variant change = Times(e, before, kept);
  Recommendation result =
      IfWorthwhile(e, e.Predict(change),
                   fmt::format("{} keeps {} of what it gets, and operators before it take {}", by,
                               FormatPercent(kept), CpuText(e, before)),
                   fmt::format("let {} come before {}", by, run.operators[before[0]].name));
  result.only_if = "they commute: their results must not depend on the order";
  SetCpu(e, change, &result.effects);
  return result;
}

Recommendation Fuse(const Evidence& e) {
  const PipelineModel& model = e.model();
  const RunView& run = e.run();
  std::optional<size_t> dearest;
  double most = 0, most_ratio = 0;
  bool known = false;
  for (size_t s = 1; s < model.stages().size(); ++s) {
    const StageModel& stage = model.stages()[s];
    if (stage.row >= run.stages.size() || !run.stages[stage.row].on_cpu_ns) continue;
    double inside = 0;
    bool split = true;
    for (const size_t i : stage.operators) {
      split = split && run.operators[i].on_cpu_ns.has_value();
      inside += static_cast<double>(run.operators[i].on_cpu_ns.value_or(0));
    }
    if (!split || inside <= 0) continue;
    known = true;
    const double outside =
        std::max(0.0, static_cast<double>(*run.stages[stage.row].on_cpu_ns) - inside);
    if (outside <= most) continue;
    most = outside;
    most_ratio = outside / inside;
    dearest = s;
  }
  if (model.stages().size() < 2) return DoesNotFire("there is one stage only");
  if (!known) {
    return CannotSay("what handing elements from stage to stage costs is not known", kSplit);
  }
  if (!dearest || most_ratio < kHandingOverDear) {
    return DoesNotFire(
        fmt::format("handing elements over costs {} of the work in the stage where it costs most",
                    FormatPercent(most_ratio)));
  }
  const double steps = std::max<double>(1, static_cast<double>(run.steps.steps_count));
  const double each_s = most * 1e-9 / steps;
  const double less_s = std::min(each_s, model.demands().unattributed_cpu_s);
  const Variant change = LessOtherCpu(e, less_s);
  const std::string& name = model.stages()[*dearest].name;
  const std::string& before = model.stages()[*dearest - 1].name;
  Recommendation result = IfWorthwhile(
      e, e.Predict(change),
      fmt::format("stage {} spends {} of CPU a batch outside its operators, {} of their work", name,
                  FormatDuration(each_s * 1e9), FormatPercent(most_ratio)),
      fmt::format("make one stage of {} and {}: their operators in one list", before, name));
  result.only_if = "nothing is to be cached or scaled between them";
  SetThen(&result.effects.reader_cpu,
          result.effects.reader_cpu.now.optional_value().value_or(0) -
              less_s / std::max(1.0, e.rows_per_batch()) * 1e9,
          "");
  return result;
}

Recommendation Accelerate(const Evidence& e) {
  if (!e.model().splits_cpu()) return CannotSay(kNoSplit, kSplit);
  std::optional<double> busy;
  for (const MeasurementRow& row : e.run().measurements) {
    if (row.metric == "gpu_use_ratio" && row.cause == "compute" && row.value) {
      busy = std::max(busy.value_or(0), *row.value);
    }
  }
  std::optional<size_t> dearest;
  for (size_t i = 0; i < e.run().operators.size(); ++i) {
    const OperatorRow& op = e.run().operators[i];
    if (!IsTransformClass(ClassOf(op.kind, op.name))) continue;
    if (!dearest ||
        e.model().demands().operators[i].cpu_s > e.model().demands().operators[*dearest].cpu_s) {
      dearest = i;
    }
  }
  if (!dearest) return DoesNotFire("no transform is an operator of its own");
  const std::string& name = e.run().operators[*dearest].name;
  const Variant most = Times(e, {*dearest}, 0), half = Times(e, {*dearest}, 0.5);
  const std::string evidence =
      fmt::format("{} is the most expensive transform: {}", name, CpuText(e, {*dearest}));
  if (!busy) {
    const Outcome free = e.Predict(most);
    return CannotSay(fmt::format("{}; if it cost nothing, the rate would rise by {}; no "
                                 "accelerator was seen, so what it would cost there is not known",
                                 evidence, FormatPercent(std::max(0.0, free.gain))),
                     "on a machine with an accelerator whose driver the doctor sees");
  }
  if (*busy > kAcceleratorBusy) {
    return DoesNotFire(
        fmt::format("{}; the accelerator is busy {} of the time", evidence, FormatPercent(*busy)));
  }
  Recommendation result = IfWorthwhile(
      e, e.Predict(e.Now(), half, most),
      fmt::format("{}; the accelerator is busy {} of the time", evidence, FormatPercent(*busy)),
      fmt::format("measure {} on the accelerator, with the copies to it and back, before moving it",
                  name));
  result.only_if = "the accelerator does it in its idle time (the interval: no gain to all of it)";
  SetCpu(e, half, &result.effects);
  result.effects.trainer_stall.then = Quantity::Unavailable(
      "what the operator takes from the model's own time was not measured", headrace::Unit::kRatio);
  return result;
}

HR_RECOMMENDATION(8, "column-major batches in memory", "+9 to +17 % (Meta engineering blog 2022)",
                  ColumnMajor);
HR_RECOMMENDATION(9, "local fixes", "+28 % (ISCA'22 table 12, secondary source)", LocalFixes);
HR_RECOMMENDATION(14, "precompute a derived feature", "", Precompute);
HR_RECOMMENDATION(15, "shrink early, expand late", "part of -87 % cost (Pecan)", ShrinkEarly);
HR_RECOMMENDATION(16, "fuse stages", "448 s to 110 s for map and batch (tf.data)", Fuse);
HR_RECOMMENDATION(20, "move an operator to the accelerator", "9.6x (PreSto)", Accelerate);

}  // namespace
}  // namespace headrace::analysis
