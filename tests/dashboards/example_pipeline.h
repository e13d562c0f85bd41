// The pipeline that most tests of pages are about.
#pragma once
#include "analysis/model/simulate.h"

namespace headrace::dashboards {

// fetch, decode and batch with decode on one thread, which limits it.
inline analysis::SimulatedPipeline DecodeLimits() {
  analysis::SimulatedPipeline pipeline;
  pipeline.cores = 2;
  pipeline.stages = {
      {"fetch", 2, 4, {{"fetch", 0.0002, 0.003, 0, 0, 0.2, -1}}},
      {"decode",
       1,
       4,
       {{"decompress", 0.002, 0.002, 0, 0, 0.1, -1}, {"decode", 0.001, 0.003, 0, 0, 0.1, -1}}},
      {"batch", 1, 4, {{"batch", 0.0005, 0, 0, 0, 0.1, -1}}}};
  pipeline.consumer_s = 0.005;
  return pipeline;
}

}  // namespace headrace::dashboards
