// What other runs in a database say of one: how fast and at what cost the same work went with other
// threads, the same pipeline from memory and from the device, and what ran at the same time.
#pragma once
#include <cstdint>

#include "analysis/run/run_database.h"
#include "analysis/run/run_view.h"

namespace headrace::analysis {

// Fills loads, stage_rates, siblings, added_work and same_pipeline_runs of `view`, whose row of the
// run is read already. Throws as RunDatabase.
void ReadOtherRuns(RunDatabase& database, int64_t run_id, RunView* view);

// Bytes that devices delivered to the run's processes, by the kernel (/proc/PID/io), and bytes that
// its reader asked of files, by its accounts; empty where not counted. Throws as RunDatabase.
void ReadDeviceBytes(RunDatabase& database, int64_t run_id, Count* device, Count* fetched);

}  // namespace headrace::analysis
