// What sampled Python stacks say of a limit that threads' times alone mistake: the kernel knows the
// threads of a pool by one name, so that one that waits for a server is lost among idle ones.
#pragma once
#include "analysis/outside/judge.h"
#include "analysis/outside/slices.h"
#include "analysis/outside/units.h"

namespace headrace::analysis {

// Puts what the sampled threads are at before the findings of AddFindings, where it is clear and
// these are about waits that look alike: `findings`, `culprit`, `activity_place`, `is_busy_thread`.
// `whole`: the sums that the verdict is about. Also turns waits of a server in the process tree
// into the network's. Does nothing where no stack was sampled.
void AskActivity(const OutsideJudge& judge, const Totals& whole, double lost_share, Outside* out);

// Whether a Pool's processes wait for tasks, which the consumer's process packs and sends all the
// time: each takes large data along.
bool HandsOverTasks(const Outside& out);

}  // namespace headrace::analysis
