// The course of a run as windows (RunView::windows), read from the interval views.
//
// A window is one stored interval. Where they are many, neighbours are added up into one window
// while they are read, as the store's rollup does with old ones: what statements take from a day
// does not need its quarters of a second, and all windows times all operators would not fit into
// memory. Of what an operator did in such a window, c and q are told apart by its own sums.
#pragma once
#include <cstdint>

#include "analysis/run/run_database.h"
#include "analysis/run/run_slice.h"
#include "analysis/run/run_view.h"

namespace headrace::analysis {

// Fills view->windows of run `id`; the view's entities are known. What overlaps `detail` is read as
// if it were the run: no window holds intervals of both sides, and those within are the stored ones
// unless they alone are many. Throws as RunDatabase.
void ReadWindows(RunDatabase& database, int64_t id, const RunTimes& detail, RunView* view);

}  // namespace headrace::analysis
