// Contention: work on the cores gets dearer the more of them are busy (shared caches, memory
// bandwidth, clock rate, sibling threads). One batch then costs c(u) = c(1) (1 + a max(0, u - 1))
// of CPU time on u busy cores; `a` is fitted to what the runs of a pipeline cost at different
// loads, and a small prior where all ran at the same. The linear form is the first term of
// Gunther's Universal Scalability Law (Guerrilla Capacity Planning, 2007, chapter 4).
#pragma once
#include <cstddef>
#include <string>
#include <vector>

#include "analysis/model/pipeline_model.h"

namespace headrace::analysis {

struct Contention {
  double each = 0;       // `a`: relative cost that each busy core beyond the first adds
  double deviation = 0;  // of that, as it is known
  size_t runs = 0;       // that it was fitted to; 0: the prior
  double least_busy = 0, most_busy = 0;  // cores, over those runs
  // Busy cores from which on nothing more is added, as nobody saw so many.
  double most = 1e9;

  bool fitted() const { return runs > 0; }
  // c(u) / c(1).
  double CostAt(double busy_cores) const;
  // One that might as well be true: `normal` deviations from the middle, never negative.
  Contention Drawn(double normal) const;
};

// From this run and the others of its pipeline (RunView::loads), on `host_cores` cores. Runs that
// differ fourfold in cost are of other work, and are left out.
Contention FitContention(const RunView& run, double host_cores);

// "work on the cores then costs 12 % more a batch, as more cores are busy (fitted to 3 runs at 1.1
// to 3.9 busy cores)"; empty where the cost is as it was, to half a per cent. `cost`: then, against
// now.
std::string Words(const Contention& contention, double cost);

// Busy cores that the model expects at these settings if cost does not depend on load.
double ExpectedLoad(const PipelineModel& model, const Demands& demands, const Settings& settings);

// `demands` with reads that take as long as they do with as many in flight as those settings have.
Demands AtDepth(const PipelineModel& model, Demands demands, const Settings& settings);

// `demands` as they would be at those settings, if they were taken at `load` busy cores: the fixed
// point of load and cost. The same where CPU time is not known apart from blocking.
Demands AtLoad(const PipelineModel& model, Demands demands, const Settings& settings, double load,
               const Contention& contention);

}  // namespace headrace::analysis
