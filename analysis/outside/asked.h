// Another process of the program that those which need it ask over the network: a server.
#pragma once
#include "analysis/outside/units.h"
#include "analysis/run/run_view.h"

namespace headrace::analysis {

// Whether the unit that limits is one: the ends of its connections are in other processes of the
// program, which made them, and most of the waits that it ends are theirs, for a socket.
bool IsAskedOverNetwork(const RunView& run, const Outside& outside);

}  // namespace headrace::analysis
