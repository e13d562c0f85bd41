// Stages that wait for a store whose most nobody has measured: a server, a network file system, a
// disk that was not calibrated. One run cannot tell latency from bandwidth: more requests at once
// may get proportionally more, or nothing.
#pragma once
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "analysis/model/pipeline_model.h"

namespace headrace::analysis {

// The name of a store that two runs have shown to be full begins so; the stage that reads from it
// follows.
inline constexpr std::string_view kStoreOf = "the store of ";
inline std::string StoreNameOf(const std::string& stage) { return std::string(kStoreOf) + stage; }

// Their indices, ascending, with those whose threads may run in turn (MayShareInterpreter). A store
// is known where the run has an account of the device, where the pipeline file models one, or where
// the table's folder was calibrated. Operators of other programs count where most of their blocked
// time was seen to be for storage, the network or a poll.
std::vector<size_t> StagesOnUnknownStores(const PipelineModel& model);

// Such a stage, and up to how many threads its store was seen to give as much more to more: by
// another run of the same work, or by a probe of this one. At least the present number.
struct UnknownStore {
  size_t stage = 0;
  int threads = 1;
};
std::vector<UnknownStore> UnknownStoresOf(const PipelineModel& model);

}  // namespace headrace::analysis
