// Attribution: which operators, settings and resources carry the difference between two sides of a
// comparison, A and B, each of one or several runs.
//
// Cost (CPU, blocked time and bytes a row) is a sum over operators, so its change is one too. As
// the change of a logarithm each operator's part is its difference over the logarithmic mean of
// both totals; the parts sum to ln(total B / total A) (logarithmic mean Divisia index: Ang, Energy
// Policy 33, 2005).
//
// Throughput is no sum: an operator that got cheaper makes nothing faster while another one limits.
// ln(X_B / X_A) is divided by the Shapley value (analysis/statistics/shapley) over the pipelines
// between the two sides (analysis/comparison/pipeline_pair), whose rates the model of the pipeline
// gives. Where the model differs from what was measured by no more than its predictions err by,
// that is put to the parts, by their size; what it does not explain beyond that is a row of its
// own, so that all rows sum to the measured change exactly.
//
// A part whose change is within what runs of one side differ by takes no part: it would soak up
// noise. What it may have done is in the row that is not explained.
#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "analysis/comparison/attribution_rows.h"
#include "analysis/run/run_view.h"

namespace headrace::analysis {

// Never throws for runs that only lack something: see `unavailable`. Runs are pairs by index where
// both sides have as many.
Attribution Attribute(std::span<const RunView> a, std::span<const RunView> b,
                      const AttributionOptions& options = {});

}  // namespace headrace::analysis
