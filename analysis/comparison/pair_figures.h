// Costs and capacities of one side of a PipelinePair, per unit: a row, or a batch where rows were
// not counted.
#pragma once
#include <vector>

namespace headrace::analysis {

constexpr double kLeastFigure = 1e-12;  // what is nothing, where its logarithm is taken

// Figures of one side: means over its runs, or the figures of one run, or of some of its windows.
struct PairFigures {
  struct Operator {
    double cpu_s = 0;      // scaled to a core speed half-way between the two sides'
    double blocked_s = 0;  // without the time that it is assumed to hold devices; may be below 0
    double bytes = 0;
  };
  struct Resource {
    double hold_s = 0;  // a lock: held per unit; a device: time per unit of work
    // Time per unit of work in a rate limiter, which books that time as waiting.
    double limiter_s = 0;
    double work = 0;  // asked of a device per unit: bytes, or requests
  };
  std::vector<Operator> operators;  // by PipelinePair::operators()
  std::vector<Resource> resources;  // by PipelinePair::resources()
  // CPU time that no operator accounts for, without the consumer's
  double unattributed_s = 0;
  double consumer_s = 0;  // computing
  double consumer_cpu_s = 0, consumer_operators_s = 0;
  double cores = 1;
  double slowness = 0;  // ln(actual CPU time / CPU time at the speed of cpu_s above)
  double rate = 0;      // units a second
};

PairFigures MeanOf(const std::vector<const PairFigures*>& figures);
PairFigures MeanOf(const std::vector<PairFigures>& figures);

}  // namespace headrace::analysis
