// DeliveryOptions: the section [delivery] of a pipeline file, for delivery to other processes.
#pragma once
#include <cstdint>

#include "reader/pipeline/delivery/address.h"
#include "reader/pipeline/delivery/wire_codec.h"

namespace headrace::reader {

struct DeliveryOptions {
  DeliveryAddress to;
  uint64_t ring_bytes = uint64_t{16} << 20;  // of shared memory; more when a batch needs it
  // The most batches that are sent and not yet acknowledged; 0: a step ends when its batch is
  // acknowledged.
  uint64_t window = 8;
  WireSetting wire = {};  // over a network
};

}  // namespace headrace::reader
