// DeliveryOptions: the section [delivery] of a pipeline file, as far as other processes are meant.
#pragma once
#include <cstdint>

#include "reader/pipeline/delivery/address.h"

namespace headrace::reader {

struct DeliveryOptions {
  DeliveryAddress to;
  uint64_t ring_bytes = uint64_t{16} << 20;  // of shared memory; more when a batch needs it
  // Batches sent and not acknowledged; 0: a step is over when its batch is acknowledged.
  uint64_t window = 8;
};

}  // namespace headrace::reader
