// Limits: every row that bounds the rate of a pipeline, and which of them binds.
//
// A row is something of which each batch takes a part: the rate is at most capacity / demand. The
// report's verdict, plan, what-if, tune, the resource ladder and compare have their rows from
// Bounds (bounds.h). A kind of row is one file of this folder that ends in HR_LIMIT (limit_kind.h).
#pragma once
#include <cstddef>
#include <limits>
#include <numeric>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "analysis/model/pipeline_model.h"

namespace headrace::analysis {

class LimitKind;

// Kinds of rows that the code refers to by name; other kinds may exist.
inline constexpr std::string_view kConsumerLimit = "consumer", kCoresLimit = "cores",
                                  kStageLimit = "stage", kOrderLimit = "order",
                                  kThreadLimit = "thread", kLockLimit = "lock",
                                  kDeviceLimit = "device",
                                  kMemoryBandwidthLimit = "memory bandwidth",
                                  kNetworkLimit = "network", kMemoryBudgetLimit = "memory budget",
                                  kAcceleratorLimit = "accelerator", kHeldStepLimit = "held step";

// One row and the rate it allows.
struct Limit {
  const LimitKind* kind = nullptr;  // never null in a row that Bounds made
  size_t index = 0;  // of the stage or resource; order: of the stage that loses most by order
  std::string name;  // "decode", "table", "cores", "consumer", "order", "thread"
  double bound = 0;  // batches per second; infinite: it limits nothing

  // This and the next are in limit_kind.cc, which knows the kinds.
  bool Is(std::string_view kind_name) const;
  // "cores", "stage", ...; empty where there is no row.
  const std::string& kind_name() const;
};

// Whether two rows, for the same or for different settings, are about the same thing.
bool SameRow(const Limit& a, const Limit& b);

// The time that a batch takes of something that all stages share: total and by stage.
struct SharedLoad {
  std::string name;
  double servers = 1;
  std::vector<double> stage_s;  // by stage of the model
  double other_s = 0;           // outside the stages

  double seconds() const { return std::accumulate(stage_s.begin(), stage_s.end(), other_s); }
};

// "the consumer", "the number of cores", "stage decode", "device disk", "the thread that loads and
// computes in turn"; safe to print.
std::string Describe(const Limit& limit);

}  // namespace headrace::analysis
