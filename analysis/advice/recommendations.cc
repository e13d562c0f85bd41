#include "analysis/advice/recommendations.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <limits>

#include "analysis/model/bottleneck.h"
#include "analysis/model/limits/bounds.h"
#include "analysis/run/settings.h"
#include "analysis/thresholds.h"
#include "base/error.h"
#include "base/units.h"

namespace headrace::analysis {
namespace {

std::string Percent(double ratio) {
  const double points = 100 * ratio;
  return std::abs(points) < 10 ? fmt::format("{:+.1f} %", points)
                               : fmt::format("{:+.0f} %", points);
}

// A row that allowed less than was observed is known too badly, and allows as much more: of a stage
// that handed over a few large pieces the bound itself says little.
std::vector<Limit> AtLeastObserved(const PipelineModel& model, std::vector<Limit> limits) {
  const double rate = model.demands().rate;
  for (const Limit& now : Bounds(model, model.demands(), model.current())) {
    if (!(now.bound < rate) || now.bound <= 0) continue;
    for (Limit& then : limits) {
      if (SameRow(then, now)) then.bound *= rate / now.bound;
    }
  }
  return limits;
}

}  // namespace

Outcome OutcomeOf(const Allocation& plan) {
  Outcome outcome;
  outcome.rate = plan.predicted;
  outcome.rate_interval = plan.predicted_interval;
  outcome.gain = plan.predicted / plan.now - 1;
  outcome.gain_interval = plan.gain_interval;
  outcome.limited_by = plan.limited_by;
  return outcome;
}

const char* AdviceName(Advice advice) {
  constexpr const char* kNames[] = {"fires", "may gain", "does not fire", "cannot say"};
  return kNames[static_cast<int>(advice)];
}

Evidence::Evidence(const RunView& run, const Statements& statements)
    : run_(run),
      statements_(statements),
      predictor_(*statements.predictor),
      bytes_(ByteFlow(run, statements.doubts)),
      reads_(ReadsOf(run)),
      read_cost_(ReadCostOf(run)) {}

std::optional<size_t> Evidence::FindKind(const std::string& kind) const {
  for (size_t i = 0; i < run_.operators.size(); ++i) {
    if (run_.operators[i].kind == kind && run_.operators[i].name.find('.') == std::string::npos) {
      return i;
    }
  }
  return std::nullopt;
}

std::optional<size_t> Evidence::FindName(const std::string& name) const {
  for (size_t i = 0; i < run_.operators.size(); ++i) {
    if (run_.operators[i].name == name) return i;
  }
  return std::nullopt;
}

std::vector<size_t> Evidence::WithParts(size_t op) const {
  std::vector<size_t> parts = {op};
  const std::string prefix = run_.operators[op].name + ".";
  for (size_t i = 0; i < run_.operators.size(); ++i) {
    if (run_.operators[i].name.starts_with(prefix)) parts.push_back(i);
  }
  return parts;
}

bool Evidence::model_bound() const {
  if (bottleneck().verdict != Verdict::kConsumer) return false;
  return stall() < kSmallStall || bottleneck().findings[0].limit.Is(kAcceleratorLimit);
}

Outcome Evidence::Predict(const Variant& change) const {
  const double now = model().demands().rate;
  const Variant present = Now();
  Outcome outcome;
  outcome.gain = now > 0 ? predictor_.Rate(change) / now - 1 : 0;
  const bool cheaper =
      change.settings == present.settings &&
      std::none_of(change.scales.begin(), change.scales.end(), [](const Scale& scale) {
        // What a cache costs on a CPU or a disk is less than what it saves.
        if (scale.part == Scaled::kAdded) return !scale.cpu && scale.factor > 0;
        return scale.part != Scaled::kCacheDisk && scale.factor > 1;
      });
  if (cheaper) outcome.gain = std::max(0.0, outcome.gain);
  // The observed rate is the better known one; no gain leads beyond the least bound.
  Demands demands = Apply(model(), model().demands(), change.scales);
  predictor_.AddHandingOver(change.settings, &demands);
  const std::vector<Limit> limits =
      AtLeastObserved(model(), Bounds(model(), demands, change.settings));
  outcome.limited_by = limits[BindingRow(model(), demands, limits)];
  const double least = LeastBound(limits);
  double most = std::numeric_limits<double>::infinity();
  for (const Limit& limit : limits) {
    if (limit.Is(kConsumerLimit) || limit.Is(kAcceleratorLimit)) {
      most = std::min(most, std::max(now, limit.bound));
    }
  }
  const auto capped = [&](double gain, double bound) { return std::min(bound / now - 1, gain); };
  outcome.gain = capped(outcome.gain, std::max(now, least));
  outcome.gain_interval = predictor_.Gain(present, change, outcome.gain);
  if (cheaper) outcome.gain_interval.low = std::max(0.0, outcome.gain_interval.low);
  outcome.gain_interval = {capped(std::min(outcome.gain_interval.low, outcome.gain), most),
                           capped(outcome.gain_interval.high, most)};
  outcome.rate = now * (1 + outcome.gain);
  outcome.rate_interval = {now * (1 + outcome.gain_interval.low),
                           now * (1 + outcome.gain_interval.high)};
  return outcome;
}

Outcome Evidence::Predict(const Variant& least, const Variant& likely, const Variant& most) const {
  Outcome outcome = Predict(likely);
  outcome.between = true;
  for (const Variant* end : {&least, &most}) {
    const Outcome other = Predict(*end);
    outcome.rate_interval.low = std::min(outcome.rate_interval.low, other.rate_interval.low);
    outcome.rate_interval.high = std::max(outcome.rate_interval.high, other.rate_interval.high);
    outcome.gain_interval.low = std::min(outcome.gain_interval.low, other.gain_interval.low);
    outcome.gain_interval.high = std::max(outcome.gain_interval.high, other.gain_interval.high);
  }
  return outcome;
}

std::optional<double> Evidence::CpuOf(const Variant& change) const {
  if (!model().splits_cpu() || rows_per_batch() <= 0) return std::nullopt;
  return Apply(model(), model().demands(), change.scales).cpu_s / rows_per_batch() * 1e9;
}

Effects Evidence::Unchanged() const {
  Effects effects;
  const auto both = [](const Quantity& quantity) { return Effect{quantity, quantity}; };
  const std::string no_reads = "nothing counts requests to the storage (fetch.io)";
  if (reads_) {
    effects.storage_bytes =
        both(Quantity::Of(reads_->bytes_per_row, headrace::Unit::kBytes, Source::kAccount));
    effects.storage_requests =
        both(Quantity::Of(reads_->requests_per_row, headrace::Unit::kCount, Source::kAccount));
  } else {
    effects.storage_bytes = both(Quantity::Unavailable(no_reads, headrace::Unit::kBytes));
    effects.storage_requests = both(Quantity::Unavailable(no_reads, headrace::Unit::kCount));
  }
  const Demands& demands = model().demands();
  effects.reader_cpu = both(model().splits_cpu() && demands.rows > 0
                                ? Quantity::Of(demands.cpu_s / demands.rows * 1e9,
                                               headrace::Unit::kNanoseconds, Source::kAccount)
                                : Quantity::Unavailable("CPU time was not split from waiting",
                                                        headrace::Unit::kNanoseconds));
  const HostRow* rss = run_.FindHost("process_rss_bytes");
  effects.reader_memory = both(
      rss != nullptr && rss->maximum_value
          ? Quantity::Of(*rss->maximum_value, headrace::Unit::kBytes, Source::kCounter)
          : Quantity::Unavailable("the process's memory was not recorded", headrace::Unit::kBytes));
  effects.trainer_stall = both(StallAt(demands.rate));
  if (effects.trainer_stall.now.available()) {
    effects.trainer_stall = both(Quantity::Of(stall(), headrace::Unit::kRatio, Source::kAccount));
  }
  return effects;
}

Quantity Evidence::StallAt(double rate) const {
  const double consumer_s = model().demands().consumer_s;
  if (consumer_s * model().demands().rate < kComputesNothing) {
    return Quantity::Unavailable("the trainer computes nothing", headrace::Unit::kRatio);
  }
  return Quantity::Of(std::clamp(1 - rate * consumer_s, 0.0, 1.0), headrace::Unit::kRatio,
                      Source::kEstimate);
}

std::string Evidence::Command(const std::string& words) const {
  return fmt::format("{} {}{}", run_.program, words, run_.database_option);
}

std::string Evidence::OnTable(const std::string& before, const std::string& after) const {
  const std::string table = TableOf(run_.run);
  if (table.empty() && !run_.run.pipeline_text.empty()) return "";
  const std::string path = table.empty() ? "TABLE" : ShellWord(table);
  return fmt::format("{} {} {} {}", run_.program, before, path, after);
}

std::string Evidence::PipelinePath() const {
  return run_.run.pipeline_path.empty() ? "FILE" : PipelineWord(run_.run);
}

std::string Evidence::RunWith(const std::string& setting) const {
  if (run_.run.pipeline_path.empty()) return "";
  return Command(fmt::format("run {} --set {}", PipelineWord(run_.run), setting));
}

std::string Evidence::CompareWith(const std::string& setting,
                                  const std::optional<std::string>& present,
                                  const std::string& then) const {
  if (run_.run.pipeline_path.empty() || !present) return "";
  return Command(fmt::format("compare {} --a {} --b {}", PipelineArguments(run_.run),
                             ShellWord(setting + "=" + *present), ShellWord(setting + "=" + then)));
}

void SetThen(Effect* effect, std::optional<double> value, const std::string& reason) {
  if (!effect->now.available()) {
    effect->then =
        Quantity::Unavailable("it changes; now: " + effect->now.reason(), effect->now.unit());
  } else if (!value || !std::isfinite(*value)) {
    effect->then = Quantity::Unavailable(reason, effect->now.unit());
  } else {
    effect->then = Quantity::Of(std::max(0.0, *value), effect->now.unit(), Source::kEstimate);
  }
}

Recommendation Fires(const Evidence& evidence, const Outcome& outcome, std::string why,
                     std::string act, std::string command) {
  Recommendation result;
  result.advice = Advice::kFires;
  result.why = std::move(why);
  result.act = std::move(act);
  result.command = std::move(command);
  result.outcome = outcome;
  result.effects = evidence.Unchanged();
  result.effects.trainer_stall.then = evidence.StallAt(outcome.rate);
  return result;
}

Recommendation DoesNotFire(std::string why) {
  Recommendation result;
  result.why = std::move(why);
  return result;
}

Recommendation CannotSay(std::string why, std::string record) {
  Recommendation result;
  result.advice = Advice::kCannotSay;
  result.why = std::move(why);
  result.record = std::move(record);
  return result;
}

Recommendation IfWorthwhile(const Evidence& evidence, const Outcome& outcome, std::string why,
                            std::string act, std::string command) {
  Recommendation result =
      Fires(evidence, outcome, std::move(why), std::move(act), std::move(command));
  if (outcome.gain >= kWorthwhileGain) return result;
  result.advice = Advice::kDoesNotFire;
  result.why += fmt::format("; it would gain {} here", Percent(std::max(0.0, outcome.gain)));
  if (outcome.limited_by.kind != nullptr) {
    result.why += fmt::format(", as {} will limit it next", Describe(outcome.limited_by));
  }
  return result;
}

MoreCores PredictMoreCores(const Evidence& evidence) {
  MoreCores more;
  more.cores = std::max(1.0, std::round(0.5 * evidence.model().cores_budget()));
  Variant change = evidence.Now();
  change.settings.cores += more.cores;
  more.outcome = evidence.Predict(change);
  return more;
}

namespace {

// A gain that may be none is no advice. What would decide it is said instead.
void Doubt(Recommendation* one) {
  if (one->advice != Advice::kFires || !one->outcome) return;
  const Interval& gain = one->outcome->gain_interval;
  if (gain.low > 0 || gain.high < 0) return;
  one->advice = Advice::kTry;
  one->record = "a run with it, compared with one without";
}

}  // namespace

std::vector<Recommendation> Recommend(const RunView& run, const Statements& statements) {
  std::vector<Recommendation> all;
  if (!statements.model || !statements.bottleneck) return all;
  const Evidence evidence(run, statements);
  const bool model_bound = evidence.model_bound();
  std::vector<std::pair<int, Recommendation>> judged;
  for (const auto& [id, rule] : Registry<RecommendationRule>::Global().entries()) {
    Recommendation result = rule.judge(evidence);
    result.id = id;
    result.title = rule.title;
    result.published = rule.published;
    const bool speeds_up = result.outcome.has_value();
    if (model_bound && speeds_up && result.advice == Advice::kFires) {
      result.advice = Advice::kDoesNotFire;
      result.why += "; but the trainer is the limit, so a faster reader has no value";
    }
    Doubt(&result);
    judged.emplace_back(rule.number, std::move(result));
  }
  // What fires by gain, those whose gain is not a rate after them, more machines (R1) last; then
  // what may gain; the rest by number.
  const auto place = [](const Recommendation& one) {
    if (one.advice == Advice::kTry) return 3;
    if (one.advice != Advice::kFires) return 4;
    if (one.id == "R1") return 2;
    return one.outcome ? 0 : 1;
  };
  std::stable_sort(judged.begin(), judged.end(), [&](const auto& a, const auto& b) {
    if (place(a.second) != place(b.second)) return place(a.second) < place(b.second);
    if (place(a.second) == 0 && a.second.outcome->gain != b.second.outcome->gain) {
      return a.second.outcome->gain > b.second.outcome->gain;
    }
    return a.first < b.first;
  });
  for (auto& [number, one] : judged) all.push_back(std::move(one));
  return all;
}

}  // namespace headrace::analysis
