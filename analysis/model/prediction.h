// Prediction: the rate that a recorded pipeline would have at other settings, with an interval.
//
// The rate is the simulated one (what finite queues, variance and shared cores cost below the
// bound), scaled by how far the simulation of the present settings is from what was observed, the
// less the further the rate moves, and never more than the least bound; where a simulation would
// take too long it is that bound. At the present settings it is the observed one: nothing predicts
// that better. Work on
// the cores costs what it does at that load (analysis/model/contention). The interval combines what
// resampling the windows moves the bound by with the error that predictions had: on the seeds of
// the validation bench that are for fitting (tests/validation) and, as they come, on runs of this
// machine that were started with a plan (prediction_summary).
#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "analysis/model/contention.h"
#include "analysis/model/limits/limit.h"
#include "analysis/model/scale.h"

namespace headrace::analysis {

struct Prediction {
  double rate = 0;            // batches per second
  Interval interval;          // 90 %
  std::vector<Limit> limits;  // all rows at those settings
  size_t binding = 0;         // index into limits
  double cpu_cost = 1;        // of work on the cores, against what it costs at present settings
};

// `rate`, predicted, seen from what was observed: `before` (what is predicted of the run as it was)
// becomes `seen`, far from it the rate stays what it is, and between them a better rate is never
// corrected to a lower one.
double CorrectedRate(double rate, double before, double seen);

class Predictor {
 public:
  // `model` must outlive it. Learning from the recording takes long; a copy has it for nothing, and
  // may simulate as much as the first.
  explicit Predictor(const PipelineModel& model);

  const PipelineModel& model() const { return model_; }

  // The pipeline as it might be.
  Prediction Predict(const Variant& variant) const;
  // Predict(variant).rate, at a part of the time: the interval is what takes long.
  double Rate(const Variant& variant) const;
  // 90 % interval of `gain`, the predicted Rate(to) / Rate(from) - 1: narrower than two predictions
  // apart, which err alike.
  Interval Gain(const Variant& from, const Variant& to, double gain) const;

  const Contention& contention() const { return contention_; }
  // What the simulation makes of the present settings, before it is held against the observed rate;
  // none where it would take too long.
  const std::optional<double>& simulated_now() const { return simulated_now_; }

 private:
  // A sample of the demands and of contention, and the load at present settings.
  struct Draw {
    Demands demands;
    Contention contention;
    double load = 0;
  };
  // A variant without the interval of its rate.
  struct Point {
    Demands demands;
    std::vector<Limit> limits;
    double least = 0;  // bound
    double rate = 0;
  };
  Demands At(const Draw& draw, const Variant& variant) const;
  Point PointAt(const Variant& variant) const;
  double Corrected(double simulated, double least) const;
  void ChooseShape();
  std::optional<double> Simulated(const Settings& settings, const Demands& demands,
                                  int64_t steps) const;
  bool IsCurrent(const Variant& variant) const;
  double ErrorAt(const LimitKind* kind, const Settings& settings) const;

  const PipelineModel& model_;
  Contention contention_;
  Draw middle_;
  double slow_ = 0;  // SimulatedOperator::slow
  double correction_ = 1;
  std::optional<double> simulated_now_;
  std::vector<Draw> draws_;
  // Of the present settings: what is predicted of them before that is held against the observed
  // rate, and their least bound.
  double before_ = 0, least_now_ = 0;
  // Deviation of log(predicted / observed), by what limits.
  std::map<const LimitKind*, double> errors_;
  // What simulations may still do. A copy of it is whole again.
  struct Moves {
    Moves() = default;
    Moves(const Moves&) {}
    int64_t left = 300'000'000;
  };
  mutable Moves moves_;
};

}  // namespace headrace::analysis
