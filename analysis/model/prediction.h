// Prediction: the rate that a recorded pipeline would have at other settings, with an interval.
//
// The rate is the simulated one (which includes what finite queues, variance and shared cores cost
// below the bound). It is corrected by the ratio of observed to simulated rate at the present
// settings; the correction fades the further the rate moves. It is never above the smallest bound,
// and it is that bound where a simulation would take too long. At the present settings the
// prediction is the observed rate: nothing predicts that better. The cost of work on the cores
// depends on their load (analysis/model/contention). How costs spread is chosen so that the present
// settings have the observed rate. The interval combines three parts: how far resampling the
// windows moves the bound; the errors of earlier predictions, on the fitting seeds of the
// validation bench (tests/validation) and on this machine's runs that were started with a plan
// (prediction_summary), as far as there are any; and, where elements that vary much stay in order,
// what chance does in a run as long as the one seen. Where more threads would read from a store
// whose most nobody measured (analysis/model/unknown_store), the interval holds that they get
// nothing more.
#pragma once
#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "analysis/model/contention.h"
#include "analysis/model/limits/limit.h"
#include "analysis/model/scale.h"
#include "analysis/model/unknown_store.h"

namespace headrace::analysis {

struct Prediction {
  double rate = 0;            // batches per second
  Interval interval;          // 90 %
  std::vector<Limit> limits;  // all rows at those settings
  size_t binding = 0;         // index into limits
  // The low end of the interval is the rate at which stores that nobody measured give no more.
  bool store_may_be_full = false;
  double cpu_cost = 1;  // cost of work on the cores then / its cost at the present settings
  // Assumed for each batch, as processes make batches for the first time; 0: they do not.
  double handing_over_s = 0;
};

// "assuming 0.5 to 7.5 ms to hand over a batch"; empty for 0.
std::string HandingOverWords(double handing_over_s);

// The predicted `rate`, corrected by one known error: at the present settings `before` was
// predicted and `seen` observed. A rate equal to `before` becomes `seen`, a rate far from it is not
// changed. The correction never reverses the order of two rates.
double CorrectedRate(double rate, double before, double seen);

class Predictor {
 public:
  // `model` must outlive it. Learning from the recording takes long; a copy has it for nothing, and
  // may simulate as much as the first.
  explicit Predictor(const PipelineModel& model);

  const PipelineModel& model() const { return model_; }

  // The pipeline as it might be.
  Prediction Predict(const Variant& variant) const;
  // Predict(variant).rate in a fraction of the time, because the interval takes long.
  double Rate(const Variant& variant) const;
  // The same if it is at least `floor`; else any rate below it, at once where the bounds allow no
  // more.
  double RateOver(const Variant& variant, double floor) const;
  // 90 % interval of `gain`, the predicted Rate(to) / Rate(from) - 1. It is narrower than two
  // separate predictions would give, because their errors are alike.
  Interval Gain(const Variant& from, const Variant& to, double gain) const;

  // The first stage that waits for a store whose most nobody measured, and has more threads in
  // `settings` than the store was seen to serve; none: no promise hangs on such a store.
  std::optional<size_t> OnUnknownStore(const Settings& settings) const;

  // The stage whose store may give no more than now at `variant`; empty: none.
  std::string StoreInDoubt(const Variant& variant) const;

  // Adds to `demands` what handing batches over is assumed to cost in the middle.
  void AddHandingOver(const Settings& settings, Demands* demands) const;

  const Contention& contention() const { return contention_; }
  // The simulated rate of the present settings, no higher than what rows allow that the simulation
  // does not have, and not corrected by the observed rate; none where the
  // simulation would take too long.
  const std::optional<double>& simulated_now() const { return simulated_now_; }

 private:
  static constexpr uint64_t kSeed = 20240612;
  // One bootstrap draw of the demands and of contention, and the load at the present settings.
  struct Draw {
    Demands demands;
    Contention contention;
    double load = 0;
    double handing_over_s = 0;  // a batch, where processes make batches for the first time
  };
  // A variant without the interval of its rate.
  struct Point {
    Demands demands;
    std::vector<Limit> limits;
    double least = 0;  // the smallest bound
    double rate = 0;
  };
  Demands At(const Draw& draw, const Variant& variant) const;
  Point PointAt(const Variant& variant) const;
  // The same with the most that the bounds allow as its rate.
  Point BoundedAt(const Variant& variant) const;
  double RateWithin(const Variant& variant, const Point& bounded) const;
  // Simulated(...) with what was simulated already.
  std::optional<double> SimulatedAt(const Variant& variant, const Demands& demands) const;
  double Corrected(double simulated, double least) const;
  // How many times the bound of `variant`, `least` at the rate `rate`, it may be once threads that
  // mostly waited are busy (analysis/model/starved); at least 1.
  double HigherOnceBusy(const Variant& variant, double least, double rate) const;
  void ChooseShape();
  // How costs spread that are slow in `slow` of all firings (0: lognormal): as windows show it, or
  // less or more by a factor.
  struct Shape {
    double slow = 0, cv_factor = 1;
    double log_rate_error = 0;  // of the simulated rate at the present settings
    double misfit = std::numeric_limits<double>::infinity();
  };
  std::vector<Shape> TryShapes(double slow);
  Shape FittedShape(double slow);
  // Standard deviation of the logarithm of the rate of runs as long as this one, by the elements
  // that come: where they vary much and stay in order, one slow element holds the others up.
  double ChanceAt(const Settings& settings, const Demands& demands, double rate) const;
  double ChanceOf(const Variant& variant, const Demands& demands, double rate) const;
  std::optional<double> Simulated(const Settings& settings, const Demands& demands, int64_t steps,
                                  uint64_t seed = kSeed) const;
  bool IsCurrent(const Variant& variant) const;
  // A store that other runs have shown to be full, and the rate at `variant` if it gives no more
  // than it gave this run; the least such rate. None: there is no such store.
  struct FullStore {
    std::string stage;  // that reads from it
    double rate = 0;
  };
  std::optional<FullStore> OnFullStore(const Variant& variant) const;
  // The rate at `variant`, predicted as `rate`, if unknown and full stores give no more than now;
  // none: it does not hang on them.
  std::optional<double> RateOfFullStores(const Variant& variant, double rate) const;
  // Whether workers make batches there that the consumer's thread makes now; whether such workers
  // are processes.
  bool FirstWorkers(const Settings& settings) const;
  bool FirstProcesses(const Settings& settings) const;
  void AddHandingOver(const Settings& settings, double seconds, Demands* demands) const;
  double ErrorAt(const LimitKind* kind, const Settings& settings) const;

  const PipelineModel& model_;
  Contention contention_;
  Draw middle_;
  double widest_cv_ = 0;   // of a stage's firings, as windows show it
  double chance_now_ = 0;  // ChanceAt the present settings
  Shape shape_;
  double correction_ = 1;
  std::optional<double> simulated_now_;
  std::vector<UnknownStore> unknown_stores_;
  std::vector<Draw> draws_;
  // For the present settings: the rate predicted before the correction by the observed rate, and
  // the smallest bound (batches/s).
  double before_ = 0, least_now_ = 0;
  // Standard deviation of log(predicted / observed), by the kind of limit.
  std::map<const LimitKind*, double> errors_;
  // What simulations may still do. A copy of it is whole again.
  struct Moves {
    Moves() = default;
    Moves(const Moves&) {}
    int64_t left = 300'000'000;
  };
  mutable Moves moves_;
  mutable std::unordered_map<std::string, std::optional<double>> simulated_;  // by variant
  mutable std::unordered_map<std::string, double> chances_;                   // by variant
};

}  // namespace headrace::analysis
