// Shipment: what one member of a job (a worker, a rank) measured of itself in one interval, and its
// wire form. The first says as much as the last: whoever gets one knows the member.
//
//   u32 version | the fields as they stand here, those of samples in the order of columns.def:
//   integers and reals 8 bytes little-endian, an optional one with a byte before it, texts and
//   lists with a u32 count before them
#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "collectors/store/store.h"

namespace headrace::collectors {

constexpr uint32_t kShipmentVersion = 1;

struct Shipment {
  std::string role;  // worker, rank
  std::optional<int64_t> rank;
  RunInfo info;               // of its process, as a run
  IntervalSample interval;    // begins where the one before ended
  MeasurementBatch measured;  // with all definitions since the begin; without stacks
  bool is_last = false;
};

std::string SerializeShipment(const Shipment& shipment);
// Throws Error kBadData for what SerializeShipment did not make, and for figures that nobody can
// have measured. Allocates no more than a small multiple of the bytes.
Shipment ParseShipment(std::span<const uint8_t> bytes);

}  // namespace headrace::collectors
