// Random pipelines for the validation bench, each from a seed: chains and trees of stations with
// random demands, variances, visit ratios, threads, locks, devices, queues and consumers. One row
// (the `kind`) is drawn to bind by 2 to 60 per cent; whether it does is found out by experiment
// (truth.h), never taken from here.
#pragma once
#include <cstdint>
#include <string>

#include "tests/validation/world.h"

namespace headrace::validation {

struct Planted {
  World world;
  std::string kind;  // "blocked", "cpu", "cores", "lock", "device", "consumer", "balanced", "order"
  int level = 3;     // of the accounts its run is recorded with
};

// `small`: at most three stations may be widened, for benches that try every configuration.
Planted Generate(uint64_t seed, bool small = false);

}  // namespace headrace::validation
