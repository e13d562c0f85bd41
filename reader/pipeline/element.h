// Element: what moves between operators. Its payload is whatever the last operator made; synthetic
// elements have none.
#pragma once
#include <cstdint>
#include <variant>

#include "reader/batch/flat_map_batch.h"
#include "reader/batch/tensor_batch.h"
#include "reader/dwrf/feature_stream.h"
#include "reader/pipeline/split.h"

namespace headrace::reader {

struct SyntheticElement {};

struct Element {
  uint64_t sequence = 0;  // dense numbers in file order at the source; renumbered by `batch`
  uint64_t rows = 0;
  uint64_t bytes = 0;  // payload size, for accounts and queue memory
  // Bytes that the operator which made it got from outside the pipeline: storage. The account adds
  // them to the operator's input.
  uint64_t received_bytes = 0;
  uint64_t seed = 0;  // of random costs: depends on the element alone, never on the thread
  std::variant<SyntheticElement, Split, FetchedStripe, dwrf::UnpackedStripe, dwrf::DecodedStripe,
               FlatMapBatch, TensorBatch>
      payload;
};

}  // namespace headrace::reader
