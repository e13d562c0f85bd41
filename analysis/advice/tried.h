// What came of a plan that was tried before: a later page does not forget it.
#pragma once
#include <cstdint>
#include <optional>
#include <string>

#include "analysis/program/allocation.h"
#include "analysis/run/run_view.h"

namespace headrace::analysis {

struct Tried {
  int64_t run_id = 0;
  double gain = 0;          // of that run's rate over this one's, both from start to end
  bool fell_short = false;  // below the interval that the plan predicts
};

// The latest run of the same work in the database that had just the settings of the plan; empty:
// none, or the plan needs more than threads and queues.
std::optional<Tried> TriedBefore(const RunView& run, const Allocation& plan);

// "Run 7 had these settings and brought -3 %."
std::string ToText(const Tried& tried);
// The same of a run that fell short of the plan; empty where none did.
std::string FellShort(const RunView& run, const Allocation& plan);

}  // namespace headrace::analysis
