// Prediction: the rate that a recorded pipeline would have at other settings, with an interval.
//
// The rate is the simulated one (what finite queues, variance and shared cores cost below the
// bound), scaled by how far the simulation of the present settings is from what was observed, and
// never more than the least bound; where a simulation would take too long it is that bound. Work on
// the cores costs what it does at that load (analysis/contention). The interval combines what
// resampling the windows moves the bound by with the error that predictions had: on the seeds of
// the validation bench that are for fitting (tests/validation) and, as they come, on runs of this
// machine that were started with a plan (prediction_summary).
#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "analysis/bottleneck.h"
#include "analysis/contention.h"
#include "analysis/scale.h"

namespace headrace::analysis {

struct Prediction {
  double rate = 0;            // batches per second
  Interval interval;          // 90 %
  std::vector<Limit> limits;  // all rows at those settings
  size_t binding = 0;         // index into limits
  double cpu_cost = 1;        // of work on the cores, against what it costs at present settings
};

class Predictor {
 public:
  // `model` must outlive it.
  explicit Predictor(const PipelineModel& model);

  // Of the pipeline with these settings, where `scales` say what is cheaper or dearer than it was.
  double Rate(const Settings& settings, const std::vector<Scale>& scales = {}) const;
  // At the present settings the rate is the observed one: nothing predicts it better.
  Prediction Predict(const Settings& settings, const std::vector<Scale>& scales = {}) const;
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
  Demands At(const Draw& draw, const Variant& variant) const;
  void ChooseShape();
  std::optional<double> Simulated(const Settings& settings, const Demands& demands,
                                  int64_t steps) const;
  bool IsCurrent(const Settings& settings) const;
  double ErrorAt(LimitKind kind, const Settings& settings) const;

  const PipelineModel& model_;
  Contention contention_;
  Draw middle_;
  double slow_ = 0;  // SimulatedOperator::slow
  double correction_ = 1;
  std::optional<double> simulated_now_;
  std::vector<Draw> draws_;
  std::map<LimitKind, double> errors_;   // deviation of log(predicted / observed), by what limits
  mutable int64_t moves_ = 300'000'000;  // that simulations may still make
};

}  // namespace headrace::analysis
