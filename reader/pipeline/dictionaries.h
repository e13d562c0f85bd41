// Which ids of a pipeline stay in their dictionary (reader/batch/id_dictionary.h) from `decode` to
// the end of `transform`, and why others do not although they could.
#pragma once
#include <atomic>
#include <cstdint>
#include <memory>
#include <set>
#include <string>

#include "reader/dwrf/feature_stream.h"
#include "reader/pipeline/spec.h"

namespace headrace::reader {

struct DictionaryPlan {
  dwrf::DictionaryRequest request;
  // Features whose transforms could use a dictionary, but whose ids are needed before that.
  std::set<std::string, std::less<>> looked_up;
  std::string reason;  // why those are needed

  // Number of features in one stripe that have a dictionary which the transforms could use, but do
  // not get.
  uint64_t CountLookedUp(const dwrf::StripePlan& stripe) const;
};

// Null where no transform could work on a dictionary, or spec.dictionary is off. `dedup` may be
// null.
std::shared_ptr<const DictionaryPlan> PlanDictionaries(const PipelineSpec& spec,
                                                       const TransformPlan& transforms,
                                                       const DedupPlan* dedup);

// What `headrace run` says at its end of `features` counted by CountLookedUp; empty for none.
std::string DictionaryNote(const DictionaryPlan& plan, uint64_t features);

}  // namespace headrace::reader
