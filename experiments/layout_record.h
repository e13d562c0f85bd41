// Where everything is in the table that a run read, and what its projection reads of it, kept with
// the run (views layout_summary, layout_stripe, layout_stream, layout_read): what a page draws
// later, when the table may be gone. `headrace layout` prints the same of a table.
#pragma once
#include <cstdint>
#include <functional>
#include <optional>

#include "collectors/store/store.h"
#include "reader/pipeline/spec.h"

namespace headrace::experiments {

struct LayoutLimits {
  int64_t longest_ns = 500'000'000;  // opening files and reading directories of stripes
  size_t most_stripes = 10'000;
  size_t most_pieces = 4'000;     // streams and reads; the first stripe has room for all of its own
  size_t most_of_first = 20'000;  // pieces of a stripe; of more, neighbours of one fate are one
};

// Reads the table's metadata alone. `spec` is that of the run, its gap chosen. The stripes are the
// first ones that the limits allow. `stripes`: how many the table has, where the caller knows; else
// every file is opened to count them, which no limit ends. Never throws: what goes wrong is the
// reason.
collectors::LayoutRows ReadLayout(const reader::PipelineSpec& spec,
                                  const std::function<bool()>& stop,
                                  const LayoutLimits& limits = {},
                                  std::optional<size_t> stripes = std::nullopt);

}  // namespace headrace::experiments
