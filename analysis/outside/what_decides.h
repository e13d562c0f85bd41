// What decides a verdict from outside that is not sure, and what cannot be seen at all.
#pragma once
#include <string>

#include "analysis/outside/units.h"
#include "analysis/run/run_view.h"

namespace headrace::analysis {

// In words, for the first page. `lost`: what was lost, where that is too much, `stopped`: which
// processes were stopped; else empty.
std::string WhatDecides(const RunView& run, const Outside& out, const std::string& lost,
                        const std::string& stopped);

// Adds to `out->unknown` what cannot be said from outside: names, and what its knowledge of waits
// leaves out.
void SayUnknown(Outside* out);
// And whether an accelerator computes, where none was seen and one could be used.
void SayUnseenAccelerator(Outside* out);

}  // namespace headrace::analysis
