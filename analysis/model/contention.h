// Contention: work on the cores gets dearer the more of them are busy (shared caches, memory
// bandwidth, clock rate, sibling threads). One batch then costs c(u) = c(1) (1 + a max(0, u - 1))
// of CPU time on u busy cores; `a` is fitted to the costs of a pipeline's runs at different loads;
// if all ran at the same load, it is a small prior value. The linear form is the first term of
// Gunther's Universal Scalability Law (Guerrilla Capacity Planning, 2007, chapter 4).
#pragma once
#include <cstddef>
#include <string>
#include <vector>

#include "analysis/model/pipeline_model.h"

namespace headrace::analysis {

struct Contention {
  double each = 0;       // `a`: relative cost that each busy core beyond the first adds
  double deviation = 0;  // standard deviation of `each`
  size_t runs = 0;       // runs that it was fitted to; 0: the prior
  double least_busy = 0, most_busy = 0;  // cores, over those runs
  // More busy cores than this add no further cost, because no run had so many.
  double most = 1e9;

  bool fitted() const { return runs > 0; }
  // c(u) / c(1).
  double CostAt(double busy_cores) const;
  // A bootstrap draw: `each` moved by `normal` standard deviations, but never below 0.
  Contention Drawn(double normal) const;
};

// From this run and the others of its pipeline (RunView::loads), on `host_cores` cores. Runs whose
// cost differs fourfold did other work and are left out.
Contention FitContention(const RunView& run, double host_cores);

// "work on the cores then costs 12 % more a batch, as more cores are busy (fitted to 3 runs at 1.1
// to 3.9 busy cores)"; empty where the cost changes by less than half a per cent. `cost`: cost then
// / cost now.
std::string Words(const Contention& contention, double cost);

// Busy cores that the model expects at these settings if costs do not depend on load.
double ExpectedLoad(const PipelineModel& model, const Demands& demands, const Settings& settings);

// `demands` with the reads' time changed to what it is with the number of reads in flight that
// `settings` makes.
Demands AtDepth(const PipelineModel& model, Demands demands, const Settings& settings);

// `demands`, measured at `load` busy cores, as they would be at `settings`: the fixed point of load
// and cost. Unchanged where CPU time is not known apart from blocked time.
Demands AtLoad(const PipelineModel& model, Demands demands, const Settings& settings, double load,
               const Contention& contention);

}  // namespace headrace::analysis
