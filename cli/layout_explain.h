// What --optimize chose for a written table, and what that gains.
#pragma once
#include <string>

#include "reader/dwrf/layout_cost.h"
#include "reader/schema.h"

namespace headrace::cli {

// The option's words. Throws Error kUsage for others.
reader::dwrf::LayoutGoal ParseGoal(const std::string& name);

// A page of text: the codecs tried, then a line per column that has streams.
std::string ExplainLayout(const reader::Schema& schema, const reader::dwrf::LayoutChoice& choice);

// A line where the codec that was asked for compressed nothing, as the goal found nothing worth its
// time; empty otherwise.
std::string UnusedCodecLine(const reader::dwrf::LayoutChoice& choice);

}  // namespace headrace::cli
