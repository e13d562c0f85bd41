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
// gives. The model's total may differ from the measured change. A difference no larger than the
// usual prediction error is spread over the parts in proportion to their size; the rest is a row of
// its own, so that all rows sum to the measured change exactly.
//
// A part that changed no more than runs of one side differ among themselves is left out: it would
// only soak up noise. Any effect that it had is in the unexplained row.
#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "analysis/comparison/attribution_rows.h"
#include "analysis/run/run_view.h"

namespace headrace::analysis {

// Never throws for runs that only lack something: see `unavailable`. If both sides have the same
// number of runs, run i of A and run i of B are a pair.
Attribution Attribute(std::span<const RunView> a, std::span<const RunView> b,
                      const AttributionOptions& options = {});

}  // namespace headrace::analysis
