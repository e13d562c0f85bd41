// What decides a verdict from outside that is not sure.
#pragma once
#include <string>

#include "analysis/outside/units.h"
#include "analysis/run/run_view.h"

namespace headrace::analysis {

// In words, for the first page. `lost`: what was lost, where that is too much, `stopped`: which
// processes were stopped; else empty.
std::string WhatDecides(const RunView& run, const Outside& out, const std::string& lost,
                        const std::string& stopped);

}  // namespace headrace::analysis
