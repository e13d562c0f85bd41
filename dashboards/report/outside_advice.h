// What to do about the limit of a run that was seen from outside, what that gains at most, and what
// would limit then. Every `seen` must have a verdict.
#pragma once
#include <optional>
#include <string>

#include "analysis/outside/outside.h"
#include "analysis/run/run_view.h"

namespace headrace::dashboards {

// Whether one thread does everything: that is certain, whatever it waits for.
bool IsOneThread(const analysis::Outside& seen);

// Of the consumer's time the share in which it waits for batches by its functions; none where that
// is not most of it, or where somebody was seen to make them.
std::optional<double> WaitsForUnseen(const analysis::Outside& seen);

// What the one thread of a program that has no other ones to feed it waits for ("it sleeps 80 % of
// its time"); empty where it mostly computes, or where others feed it.
std::string WaitsAlone(const analysis::Outside& seen);

// "the CPU quota of 0.50 cores". There must be one.
std::string QuotaWord(const analysis::Outside& seen);

// What to change; empty where nothing is known that helps.
std::string Advice(const analysis::RunView& run, const analysis::Outside& seen);

// The rate could be so many times as high if the trainer never waited; nothing where its wait says
// too little about that.
std::optional<double> MostGain(const analysis::Outside& seen);

// What limits once the advice is followed: where the cores are used up before the consumer is, they
// do. `gain`: MostGain.
std::string NextLine(const analysis::Outside& seen, double gain);

}  // namespace headrace::dashboards
