// Another process of the program that those which need it ask over the network: a server.
#pragma once
#include "analysis/outside/units.h"
#include "analysis/run/run_view.h"

namespace headrace::analysis {

// Whether the unit that limits is one: the ends of its connections are in other processes of the
// program, which made them, and most of the waits that it ends are theirs, for a socket.
bool IsAskedOverNetwork(const RunView& run, const Outside& outside);

// Whether the process that limits by its sleep may only be beside what feeds the consumer, as
// nobody is known to ask it: services of Ray pass on what others make, so that nobody sees whom the
// consumer waits for. `is_asked_over_network` is known by then.
bool MayBeBesideServices(const Outside& outside);

}  // namespace headrace::analysis
