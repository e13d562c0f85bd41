#include "analysis/advice/next_step.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cmath>

#include "analysis/advice/recommendations.h"
#include "analysis/advice/tried.h"
#include "analysis/model/bottleneck.h"
#include "analysis/model/limits/limit_kind.h"
#include "analysis/run/known_loaders.h"
#include "analysis/run/ranks.h"
#include "analysis/run/settings.h"
#include "analysis/thresholds.h"
#include "base/terminal_text.h"
#include "base/units.h"

namespace headrace::analysis {
namespace {

// What this run shows of a store that may be full.
std::string SeenOf(const RunView& run, const std::string& stage) {
  for (const StoreProbeRow& probe : run.store_probes) {
    if (probe.stage != stage || probe.few_rows_per_s <= 0) continue;
    const double more = probe.many_rows_per_s / probe.few_rows_per_s - 1;
    return fmt::format("{} threads for a moment got {} {}", probe.many_count,
                       FormatPercent(std::abs(more)), more < 0 ? "less" : "more");
  }
  return "one run cannot tell";
}

// "+4 %", "+35 % [20, 51]"
std::string Percents(double ratio, const Interval& interval) {
  return fmt::format("{:+.0f} % [{:.0f}, {:.0f}]", 100 * ratio, 100 * interval.low,
                     100 * interval.high);
}

// Runs the plan and compares it with before; of a program of the user's own, what to set in it.
std::string ApplyCommand(const RunView& run) {
  if (CannotApply(run.run).empty())
    return fmt::format("{} apply {}{}", run.program, run.run.run_id, run.database_option);
  return fmt::format("{} plan {}{}{}", run.program, run.run.run_id, EmitOption(run),
                     run.database_option);
}

// Worker processes of a DataLoader, of all ranks together; 0: it is none.
struct Workers {
  int now = 0, then = 0;
};

Workers WorkersOf(const RunView& run, const Allocation& plan) {
  Workers workers;
  for (const StageRow& stage : run.stages) {
    // They may have been ended before the program was.
    if (stage.name == "workers") {
      workers.now = static_cast<int>(
          std::max<int64_t>(stage.last_parallelism_count, std::llround(stage.parallelism_count)));
    }
  }
  workers.now = std::max(workers.now, 0);
  workers.then = workers.now;
  for (const Change& change : plan.changes) {
    if (change.knob != "workers.parallelism") continue;
    workers.now = std::max(1, change.from);
    workers.then = std::max(1, change.to);
  }
  return workers;
}

// The run with the plan's settings; of a program of the user's own, what says how to set them.
std::string KeepCommand(const RunView& run, const Allocation& plan) {
  if (!CannotApply(run.run).empty()) return ApplyCommand(run);
  std::vector<std::string> settings;
  for (const Change& change : plan.changes) {
    settings.push_back(fmt::format("{}={}", change.knob, change.to));
  }
  return RunCommand(run, settings);
}

// Nobody is asked to measure again what was measured.
NextStep OfMeasured(const RunView& run, const Allocation& plan, const MeasuredPlan& measured) {
  const std::string words = ChangeWords(run, plan);
  NextStep next;
  switch (measured.outcome) {
    case MeasuredPlan::Outcome::kFaster:
      next = {NextKind::kChange, fmt::format("{}: measured {}", words, ToText(measured)),
              KeepCommand(run, plan)};
      break;
    case MeasuredPlan::Outcome::kNotFaster:
      next = {NextKind::kWork,
              fmt::format("This was measured and does not help: {}, {}", words, ToText(measured)),
              fmt::format("{} compare --show {}{}", run.program, measured.comparison_id,
                          run.database_option)};
      break;
    case MeasuredPlan::Outcome::kCannotTell:
      next = {NextKind::kCompare,
              fmt::format("{}: measured {}. That may be no gain; more pairs can tell:", words,
                          ToText(measured)),
              ApplyCommand(run)};
      if (CannotApply(run.run).empty()) {
        next.command =
            fmt::format("{} apply {} --pairs {}{}", run.program, run.run.run_id,
                        3 * std::max<int64_t>(measured.pairs_count, 1), run.database_option);
      }
      break;
  }
  next.measured = true;
  return next;
}

NextStep OfPlan(const RunView& run, const PipelineModel& model, const Allocation& plan) {
  if (const auto measured = MeasuredBefore(run, plan)) return OfMeasured(run, plan, *measured);
  NextStep next;
  const std::string words = ChangeWords(run, plan);
  const std::string gain = Percents(plan.predicted / plan.now - 1, plan.gain_interval);
  next.command = ApplyCommand(run);
  const std::optional<Tried> tried = TriedBefore(run, plan);
  if (plan.shown() && tried && tried->fell_short) {
    const std::string short_of = ToText(*tried);
    next.kind = NextKind::kCompare;
    next.text = fmt::format("{}: {} predicted. But {}{} Measure both alternately:", words, gain,
                            static_cast<char>(std::tolower(short_of[0])), short_of.substr(1));
    return next;
  }
  if (plan.shown()) {
    next.kind = NextKind::kChange;
    next.text = fmt::format("{}: {} predicted", words, gain);
    if (plan.handing_over_s > 0) next.text += ", " + HandingOverWords(plan.handing_over_s);
    if (plan.predicted < plan.now) next.text += ", to stay within the budget";
    if (plan.memory_change_bytes && std::abs(*plan.memory_change_bytes) >= 1) {
      const double bytes = *plan.memory_change_bytes;
      next.text +=
          fmt::format(", {}{} memory", bytes < 0 ? "-" : "+", FormatBytes(std::abs(bytes)));
    }
    return next;
  }
  next.kind = NextKind::kCompare;
  const char* const measure = run.run.pipeline_path.empty()
                                  ? "Try it, record that run and compare the two."
                                  : "Measure it:";
  // One run is no proof; what both do in turns is.
  if (tried && tried->gain < kWorthwhileGain) {
    return {NextKind::kWork,
            fmt::format("No setting is known to help. {}: {}", words, ToText(*tried)), ""};
  }
  if (tried) {
    next.text =
        fmt::format("{}: {} predicted. {} Measure both alternately:", words, gain, ToText(*tried));
    return next;
  }
  next.text = fmt::format("No change is sure to help. {} may: {} predicted. ", words, gain);
  const bool more_threads =
      std::any_of(plan.changes.begin(), plan.changes.end(), [](const Change& change) {
        return change.knob.ends_with(".parallelism") && change.to > change.from;
      });
  if (!plan.unknown_store.empty()) {
    next.text += fmt::format("What stage {} waits for may have no more to give; {}. ",
                             Printable(plan.unknown_store), SeenOf(run, plan.unknown_store));
  } else if (more_threads && model.cores_contended() && !model.others_are_peers()) {
    next.text +=
        "Other programs may be in other control groups or sessions: more threads then get no more "
        "CPU time. ";
  }
  next.text += measure;
  return next;
}

// The trainer has the smallest bound and waits all the same.
NextStep OfWaitingConsumer(const PipelineModel& model, const Bottleneck& bottleneck) {
  return {NextKind::kWork,
          fmt::format("No setting gains 3 % or more. The trainer has the smallest bound and waits "
                      "{} of each step anyway{}",
                      FormatPercent(model.stall_ratio()),
                      bottleneck.loss.empty() ? std::string() : ": " + bottleneck.loss),
          ""};
}

NextStep OfCores(const RunView& run, const Statements& statements, const std::string& culprit) {
  const PipelineModel& model = *statements.model;
  const double others = model.cores_other_here().value_or(0);
  std::string text;
  std::optional<Limit> then;
  if (others > kOthersToStop * model.cores_budget()) {
    text = fmt::format(
        "Stop the other programs on this machine, or move them: they use {:.1f} "
        "cores.",
        others);
    then = statements.bottleneck->alone;
  } else {
    const Limit& cores = statements.bottleneck->findings[0].limit;
    text = cores.kind->WithoutSetting(model, cores, culprit);
  }
  const MoreCores more = PredictMoreCores(Evidence(run, statements));
  if (more.outcome.gain_interval.low > 0) {
    text += fmt::format(" {:.0f} more core{} {} predicted.", more.cores,
                        more.cores == 1 ? " gives" : "s give",
                        Percents(more.outcome.gain, more.outcome.gain_interval));
  }
  if (!culprit.empty()) {
    const double share =
        model.demands().cpu_s > 0
            ? model.demands().operators[*statements.bottleneck->findings[0].culprit].cpu_s /
                  model.demands().cpu_s
            : 0;
    if (share >= kWorthMakingCheaper) text += fmt::format(" Or make {} cheaper.", culprit);
  }
  return {NextKind::kWork, text, "", then};
}

// What the rule for this kind of limit advises; empty where it does not fire.
std::optional<NextStep> OfRule(const RunView& run, const Statements& statements,
                               const Limit& limit) {
  const RecommendationRule* rule = Registry<RecommendationRule>::Global().Find(
      limit.kind->Recommended(*statements.model, limit));
  if (rule == nullptr) return std::nullopt;
  const Recommendation advice = rule->judge(Evidence(run, statements));
  if (advice.advice != Advice::kFires || !advice.outcome) return std::nullopt;
  std::string text = advice.act;
  if (text.substr(0, text.find(' ')).find('=') == std::string::npos) {
    text[0] = static_cast<char>(std::toupper(static_cast<unsigned char>(text[0])));
  } else {
    text = "Set " + text;
  }
  const Interval& gain = advice.outcome->gain_interval;
  const bool sure = gain.low > 0;
  text += fmt::format(": {} predicted", Percents(advice.outcome->gain, gain));
  if (!sure) text += ". That may be nothing: measure it";
  return NextStep{sure ? NextKind::kChange : NextKind::kCompare, text, advice.command,
                  advice.outcome->limited_by, advice.outcome->gain};
}

}  // namespace

std::string CannotApply(const RunRow& run) {
  if (run.pipeline_path.empty()) return "its settings are in its own code";
  if (!run.settings_text) return "its pipeline was run by another program";
  const std::string to = SettingOf(run, "delivery.to").value_or("");
  if (!to.empty() && to != "inline") return "it delivers its batches to another process";
  return "";
}

std::string EmitOption(const RunView& run) {
  // What headrace.wrap() or the import hook accounts for.
  std::string option;
  for (const OperatorRow& op : run.operators) {
    const bool its = op.stage == "workers" || op.stage == "loader";
    if (its && (op.name == "getitem" || op.name == "collate")) option = " --emit dataloader";
    if (op.stage.starts_with("tf.data")) option = " --emit tfdata";
  }
  return option;
}

bool IsOfService(const RunRow& run) {
  const bool may_be =
      run.program == "dispatcher" || run.program == "worker" || run.program == "consume";
  return may_be && run.command.find(" service") != std::string::npos;
}

std::string CommandWords(const RunRow& run) {
  constexpr size_t kLongest = 100;
  if (run.command.empty() || run.command.size() > kLongest) return "";
  size_t begin = 0;
  while (begin <= run.command.size()) {
    const size_t end = std::min(run.command.find(' ', begin), run.command.size());
    const std::string word = run.command.substr(begin, end - begin);
    if (word.empty() || ShellWord(word) != word) return "";
    begin = end + 1;
  }
  return run.command;
}

std::string ChangeWords(const RunView& run, const Allocation& plan) {
  std::string text;
  const char* pool = nullptr;  // that is too small for one of the changes
  int pool_threads = 0;        // for all of them at once
  const bool own = run.run.pipeline_path.empty();
  const int ranks = own ? RanksOf(run) : 1;
  const Workers workers = own ? WorkersOf(run, plan) : Workers();
  const HostRow* cores = own ? run.FindHost("host_cores") : nullptr;
  for (const Change& change : plan.changes) {
    std::string knob = change.knob;
    int from = change.from, to = change.to;
    const size_t dot = knob.rfind('.');
    const std::string what = dot == std::string::npos ? "" : knob.substr(dot + 1);
    const KnownLoader* known = FindKnownLoader(run, knob.substr(0, dot));
    if (known != nullptr && what == "parallelism") {
      const std::string stage = knob.substr(0, dot);
      knob = known->setting;
      if (knob.empty()) knob = stage + " threads";  // nobody knows a setting
      if (known->before != nullptr) {
        knob = fmt::format("{} {}", stage.substr(std::string_view(known->before).size()), knob);
      }
      from = EachRank(run, from);
      to = EachRank(run, to);
      if (known->pool != nullptr && cores != nullptr) {
        if (from != to && to > cores->last_value.value_or(to)) pool = known->pool;
        pool_threads += to;
      }
      if (from == 0 && known->first != nullptr) {
        text += fmt::format("{}{}", text.empty() ? "" : ", ",
                            fmt::format(fmt::runtime(known->first), to));
        continue;
      }
    } else if (known != nullptr && known->queue != nullptr && what == "queue") {
      const std::string stage = knob.substr(0, dot);
      const bool seen =
          std::any_of(run.queues.begin(), run.queues.end(),
                      [&](const QueueRow& queue) { return queue.producer_stage == stage; });
      if (!seen) continue;
      knob = known->queue;
    } else if (own && workers.now > 0 && knob == "workers.queue") {
      knob = "prefetch_factor";  // batches for each worker
      from = (from + workers.now - 1) / workers.now;
      to = (to + workers.then - 1) / workers.then;
    } else if (own && workers.now > 0 && knob == "pipeline.reorder_window") {
      continue;  // a DataLoader's is what it holds
    } else if (dot != std::string::npos) {
      knob = knob.substr(0, dot) + " " + (what == "parallelism" ? "threads" : what);
    }
    if (from == to) continue;
    text += fmt::format("{}{} {} -> {}", text.empty() ? "" : ", ", knob, from, to);
  }
  if (pool != nullptr) text += fmt::format(" with {}={}", pool, pool_threads);
  if (ranks > 1 && !text.empty()) text += fmt::format(" in each of {} ranks", ranks);
  return text;
}

std::string CompareCommand(const RunView& run, const Allocation& plan) {
  if (run.run.pipeline_path.empty() || plan.changes.empty()) return "";
  std::string a, b;
  for (const Change& change : plan.changes) {
    a += fmt::format(" --a {}={}", change.knob, change.from);
    b += fmt::format(" --b {}={}", change.knob, change.to);
  }
  return fmt::format("{} compare {}{}{}{}", run.program, PipelineArguments(run.run), a, b,
                     run.database_option);
}

// Of a pool's processes that mostly pack their results.
constexpr const char* kReturnLess =
    "Return less from each task, or share memory with the pool's processes "
    "(multiprocessing.shared_memory): handing over results is most of their work. More processes "
    "may not help.";

NextStep NextStepOf(const RunView& run, const Statements& statements) {
  const PipelineModel& model = *statements.model;
  if (statements.bottleneck->unexplained) {
    return {NextKind::kWork, statements.bottleneck->measure, ""};
  }
  const Bottleneck& bottleneck = *statements.bottleneck;
  const Finding& first = bottleneck.findings[0];
  const std::optional<NextStep> advised = OfRule(run, statements, first.limit);
  const std::string culprit = first.culprit ? model.operators()[*first.culprit].name : "";
  // A device that is busy all the time has no more to give, whatever else is changed.
  if (first.limit.Is(kAcceleratorLimit) && bottleneck.verdict == Verdict::kConsumer) {
    return {NextKind::kWork, first.limit.kind->WithoutSetting(model, first.limit, ""), ""};
  }
  // Of several ranks, less than one worker for each is no change.
  if (statements.allocation && !ChangeWords(run, *statements.allocation).empty()) {
    NextStep planned = OfPlan(run, *statements.model, *statements.allocation);
    const bool better =
        advised && advised->kind == NextKind::kChange &&
        (planned.kind != NextKind::kChange ||
         advised->gain > statements.allocation->predicted / statements.allocation->now - 1);
    // Where neither is sure, what is about the limit itself comes first.
    const bool first_try = advised && advised->kind == NextKind::kCompare &&
                           planned.kind == NextKind::kCompare && !planned.measured;
    // A trainer that hardly waits for batches hardly gains by a change of what makes them.
    const bool idle_guess = model.stall_ratio() < kSmallStall && planned.kind == NextKind::kCompare;
    // Nor does one whose step waits for another thread's Python.
    const bool held_guess = first.limit.Is(kHeldStepLimit) && planned.kind == NextKind::kCompare;
    // A guess that is predicted to lose is none.
    const Allocation& plan = *statements.allocation;
    const bool loses = planned.kind == NextKind::kCompare && !planned.measured && !plan.shown() &&
                       plan.predicted <= plan.now && !TriedBefore(run, plan);
    if (better || first_try) return *advised;
    // More processes of a pool pack as much for each result.
    const bool packs =
        !advised && planned.kind == NextKind::kCompare && !RuleOfPool(model, first.culprit).empty();
    if (packs) return {NextKind::kWork, kReturnLess, ""};
    if (!idle_guess && !held_guess && !loses) {
      const bool is_try = planned.kind == NextKind::kCompare && run.run.pipeline_path.empty();
      // Beside work that one thread does alone.
      if (is_try && first.limit.Is(kThreadLimit) && !culprit.empty() && !model.StepIsLarger()) {
        planned.text += fmt::format(" Or make {} cheaper.", culprit);
      }
      return planned;
    }
  }
  if (first.limit.Is(kConsumerLimit) && model.stall_ratio() >= kSmallStall) {
    const bool beside_others = bottleneck.verdict == Verdict::kBalanced &&
                               bottleneck.findings[1].limit.Is(kCoresLimit) &&
                               model.others_hold_cores();
    if (beside_others) return OfCores(run, statements, culprit);
    return OfWaitingConsumer(model, bottleneck);
  }
  if (advised && advised->kind == NextKind::kChange) return *advised;
  if (first.limit.Is(kCoresLimit)) return OfCores(run, statements, culprit);
  if (advised) return *advised;
  const bool keeps_up = first.limit.Is(kConsumerLimit);
  return {keeps_up ? NextKind::kNothing : NextKind::kWork,
          first.limit.kind->WithoutSetting(model, first.limit, culprit), ""};
}

}  // namespace headrace::analysis
