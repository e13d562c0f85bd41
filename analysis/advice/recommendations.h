// Recommendations: what to change, what to leave, and why: R1 to R30, each a rule over what the run
// measured. A rule fires with its evidence and the gain predicted from this run (never a published
// figure), does not fire and says what was measured instead, or cannot say and names what to
// record.
//
// One change can help one part and harm another: every recommendation has its effect on the
// storage, the reader and the trainer side by side, unavailable where nothing tells it.
//
// A rule is one function and one HR_RECOMMENDATION in analysis/advice/recommendations/.
#pragma once
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "analysis/advice/statements.h"
#include "analysis/model/bottleneck.h"
#include "analysis/model/prediction.h"
#include "analysis/run/byte_flow.h"
#include "analysis/run/reads.h"
#include "base/quantity.h"
#include "base/registry.h"

namespace headrace::analysis {

// What the pipeline would do with a change.
struct Outcome {
  double rate = 0;         // batches per second
  Interval rate_interval;  // 90 %
  double gain = 0;         // of the rate
  Interval gain_interval;
  Limit limited_by;  // then
  // What the gain is over, where that is not the present rate: "the plan of R2". Empty: that rate.
  std::string over;
  // The effect is only known to lie between two ends: the gain is between them, and the interval
  // goes from the lowest of the least to the highest of the most, so that it holds 90 % or more.
  bool between = false;
};
// The outcome of a finished plan, against the settings that run now.
Outcome OutcomeOf(const Allocation& plan);

// A figure before and after the change.
struct Effect {
  Quantity now, then;
};

struct Effects {
  Effect storage_bytes;     // read from the storage, a row
  Effect storage_requests;  // to the storage, a row
  Effect reader_cpu;        // ns a row
  Effect reader_memory;     // bytes of the process, at its peak
  Effect trainer_stall;     // share of a step
};

// kTry: it would fire, but the interval of its gain includes 0; only trying it decides.
enum class Advice : unsigned char { kFires, kTry, kDoesNotFire, kCannotSay };
const char* AdviceName(Advice advice);  // "fires", "may gain", "does not fire", "cannot say"

struct Recommendation {
  std::string id;     // "R5"
  std::string title;  // "coalesce reads"
  Advice advice = Advice::kDoesNotFire;
  std::string why;      // the evidence with its figures; or why not; or what is not known
  std::string record;   // cannot say, may gain: how to decide it
  std::string act;      // fires, may gain: what to do
  std::string command;  // the same to be pasted; may be empty
  std::string only_if;  // what must hold that nothing measured; may be empty
  std::optional<Outcome> outcome;  // predicted; none where the rate is not what changes
  Effects effects;
  std::string published;  // what others reported of it; not a prediction. May be empty
};

// What rules look at: the run, its model, and what the run would be with other work.
class Evidence {
 public:
  // `statements` must have a model and a bottleneck; all must outlive it.
  Evidence(const RunView& run, const Statements& statements);

  const RunView& run() const { return run_; }
  const Statements& statements() const { return statements_; }
  const PipelineModel& model() const { return *statements_.model; }
  const Bottleneck& bottleneck() const { return *statements_.bottleneck; }
  // The pipeline as it is, to make variants of.
  Variant Now() const { return {model().current(), {}}; }
  // Predicts the rate with that change. Work that only becomes cheaper never counts as a loss.
  Outcome Predict(const Variant& change) const;
  // For an effect that is only known to lie between `least` and `most`: the outcome of `likely`,
  // with an interval that holds all three.
  Outcome Predict(const Variant& least, const Variant& likely, const Variant& most) const;
  const Predictor& predictor() const { return predictor_; }
  // CPU time per row with that change, ns; empty where CPU time was not split from waiting.
  std::optional<double> CpuOf(const Variant& change) const;
  const std::vector<ByteBorder>& bytes() const { return bytes_; }

  // Index of the operator with that kind which is no part of another ("fetch", not "fetch.io"), or
  // with that name.
  std::optional<size_t> FindKind(const std::string& kind) const;
  std::optional<size_t> FindName(const std::string& name) const;
  // Indices of an operator and of the parts within it ("fetch" and "fetch.io").
  std::vector<size_t> WithParts(size_t op) const;

  double rows_per_batch() const { return model().demands().rows; }
  double stall() const { return model().stall_ratio(); }
  // Whether the consumer is the limit and hardly waits.
  bool model_bound() const;

  const std::optional<Reads>& reads() const { return reads_; }
  const std::optional<ReadCost>& read_cost() const { return read_cost_; }

  // The present figures as both "now" and "then": for a change that affects none of them.
  Effects Unchanged() const;
  // The share of a step that the consumer would wait at that rate.
  Quantity StallAt(double rate) const;

  // `words` as a command line that the user can paste, on the database of this run.
  std::string Command(const std::string& words) const;
  // "headrace BEFORE TABLE AFTER", with the table of the run's pipeline; empty where its file names
  // none, TABLE where the run has no file.
  std::string OnTable(const std::string& before, const std::string& after) const;
  std::string PipelinePath() const;  // as a shell word; "FILE" where the run has none
  std::string RunWith(const std::string& setting) const;
  // The A/B of that setting; empty where the run has no file, or its present value is not known.
  std::string CompareWith(const std::string& setting, const std::optional<std::string>& present,
                          const std::string& then) const;

 private:
  const RunView& run_;
  const Statements& statements_;
  Predictor predictor_;
  std::vector<ByteBorder> bytes_;
  std::optional<Reads> reads_;
  std::optional<ReadCost> read_cost_;
};

// Sets `effect->then` to `value` if both that and the present figure are known, else to `reason`.
void SetThen(Effect* effect, std::optional<double> value, const std::string& reason);

// The results that a rule can return.
Recommendation Fires(const Evidence& evidence, const Outcome& outcome, std::string why,
                     std::string act, std::string command = "");
Recommendation DoesNotFire(std::string why);
Recommendation CannotSay(std::string why, std::string record);
// Fires if the predicted gain is worth a change. If not, says what the change would gain.
Recommendation IfWorthwhile(const Evidence& evidence, const Outcome& outcome, std::string why,
                            std::string act, std::string command = "");

struct RecommendationRule {
  int number = 0;  // 5 of R5
  std::string title;
  std::string published;
  Recommendation (*judge)(const Evidence&) = nullptr;
};

#define HR_RECOMMENDATION(number, title, published, function)                       \
  [[maybe_unused]] static const bool hr_recommendation_##number =                   \
      ::headrace::Registry<::headrace::analysis::RecommendationRule>::Global().Add( \
          "R" #number,                                                              \
          ::headrace::analysis::RecommendationRule{number, title, published, function})

// What half as many cores again (at least one more) would give. Useful where the cores are the
// limit; R21 and the verdict share this one prediction.
struct MoreCores {
  double cores = 0;
  Outcome outcome;
};
MoreCores PredictMoreCores(const Evidence& evidence);

// All rules over the run: those that fire first, by gain; those that may gain; then the rest by
// number. Where the consumer is the limit, rules that speed up the reader do not fire, because they
// would gain nothing. Empty where the run has no model (statements.withheld says why).
std::vector<Recommendation> Recommend(const RunView& run, const Statements& statements);

}  // namespace headrace::analysis
