// What no page may say of one run: statements that contradict each other. Used by the tests of
// analysis, of the pages, and of the validation bench, each over the runs that it makes.
#pragma once
#include <fmt/format.h>

#include <cmath>
#include <string>
#include <vector>

#include "analysis/advice/next_step.h"
#include "analysis/advice/recommendations.h"
#include "analysis/advice/statements.h"
#include "analysis/model/bottleneck.h"
#include "analysis/thresholds.h"

namespace headrace::analysis {

// Empty: none.
class Contradictions {
 public:
  explicit Contradictions(const RunView& run, bool with_recommendations = true)
      : run_(run), statements_(MakeStatements(run)) {
    if (statements_.outside && statements_.outside->stall_interval) {
      Holds("stall from outside", statements_.outside->stall_ratio,
            *statements_.outside->stall_interval);
    }
    if (!statements_.bottleneck) return;
    CheckCulprit();
    CheckUsedUp();
    CheckIntervals();
    CheckNext();
    if (with_recommendations) CheckRecommendations();
  }
  const std::vector<std::string>& found() const { return found_; }
  const Statements& statements() const { return statements_; }
  std::string text() const {
    std::string text;
    for (const std::string& one : found_) text += one + "\n";
    return text;
  }

 private:
  void Say(std::string what) { found_.push_back(std::move(what)); }

  void Holds(const std::string& of, double point, const Interval& interval) {
    const double slack = 1e-9 * std::abs(point);
    if (!std::isfinite(point)) return;
    if (point < interval.low - slack || point > interval.high + slack) {
      Say(fmt::format("{}: {} is outside [{}, {}]", of, point, interval.low, interval.high));
    }
  }

  // The row that is blamed has the smallest bound of those listed beside it.
  void CheckCulprit() {
    const Bottleneck& b = *statements_.bottleneck;
    if (b.verdict != Verdict::kLimited && b.verdict != Verdict::kConsumer) return;
    for (size_t i = 1; i < b.findings.size(); ++i) {
      const Finding& other = b.findings[i];
      if (other.within_first || other.limit.bound >= b.findings[0].limit.bound) continue;
      Say(fmt::format("{} is blamed and allows {:.4g}, {} allows {:.4g}",
                      Describe(b.findings[0].limit), b.findings[0].limit.bound,
                      Describe(other.limit), other.limit.bound));
    }
    if (b.verdict == Verdict::kConsumer && statements_.model->stall_ratio() >= kSmallStall) {
      Say(fmt::format("the pipeline keeps up, and the consumer waits {}",
                      statements_.model->stall_ratio()));
    }
  }

  // A shared thing that is blamed alone is used up, or something is said of the rest.
  void CheckUsedUp() {
    const Bottleneck& b = *statements_.bottleneck;
    const Finding& first = b.findings[0];
    const bool shared =
        first.limit.Is(kCoresLimit) || first.limit.Is(kLockLimit) || first.limit.Is(kDeviceLimit);
    if (b.verdict != Verdict::kLimited || !shared || first.utilisation >= 0.9) return;
    if (!b.loss.empty()) return;
    if (first.limit.Is(kCoresLimit) && statements_.model->cores_contended()) return;
    Say(fmt::format("{} is blamed and used {:.2f}", Describe(first.limit), first.utilisation));
  }

  void CheckIntervals() {
    const Bottleneck& b = *statements_.bottleneck;
    for (const Finding& finding : b.findings) {
      Holds("bound of " + Describe(finding.limit), finding.limit.bound, finding.bound_interval);
    }
    if (b.stall_interval) Holds("stall", statements_.model->stall_ratio(), *b.stall_interval);
    if (!statements_.allocation) return;
    const Allocation& plan = *statements_.allocation;
    Holds("predicted rate", plan.predicted, plan.predicted_interval);
    Holds("predicted gain", plan.predicted / plan.now - 1, plan.gain_interval);
  }

  void CheckNext() {
    const NextStep next = NextStepOf(run_, statements_);
    const double stall = statements_.model->stall_ratio();
    if (next.text.find("keeps up") != std::string::npos && stall >= kSmallStall) {
      Say(fmt::format("\"{}\" with a stall of {}", next.text, stall));
    }
    if (next.kind != NextKind::kChange) return;
    const Interval& gain = statements_.allocation->gain_interval;
    if (gain.low <= 0 && gain.high >= 0) {
      Say(fmt::format("\"{}\" is advised with a gain of [{}, {}]", next.text, gain.low, gain.high));
    }
  }

  void CheckRecommendations() {
    for (const Recommendation& one : Recommend(run_, statements_)) {
      if (!one.outcome) continue;
      Holds(one.id + "'s gain", one.outcome->gain, one.outcome->gain_interval);
      Holds(one.id + "'s rate", one.outcome->rate, one.outcome->rate_interval);
      const Interval& gain = one.outcome->gain_interval;
      if (one.advice == Advice::kFires && gain.low <= 0 && gain.high >= 0) {
        Say(fmt::format("{} fires with a gain of [{}, {}]", one.id, gain.low, gain.high));
      }
    }
  }

  const RunView& run_;
  Statements statements_;
  std::vector<std::string> found_;
};

}  // namespace headrace::analysis
