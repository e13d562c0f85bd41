#include "reader/pipeline/dictionaries.h"

#include <fmt/format.h>

#include <algorithm>

namespace headrace::reader {
uint64_t DictionaryPlan::CountLookedUp(const dwrf::StripePlan& stripe) const {
  uint64_t count = 0;
  for (const dwrf::FeaturePlan& feature : stripe.features) {
    const bool is_flat = feature.map == dwrf::NodePlan::kNone;
    const dwrf::NodePlan& item = is_flat ? feature.item : stripe.maps[feature.map].item;
    if (item.encoding != dwrf::EncodingKind::kDictionary) continue;
    count +=
        looked_up.count(feature.name) > 0 || (!is_flat && request.Find(feature.name) != nullptr);
  }
  return count;
}

std::shared_ptr<const DictionaryPlan> PlanDictionaries(const PipelineSpec& spec,
                                                       const TransformPlan& transforms,
                                                       const DedupPlan* dedup) {
  if (spec.dictionary == DictionaryMode::kOff || !HasOperator(spec, "transform")) return nullptr;
  auto plan = std::make_shared<DictionaryPlan>();
  plan->request.always = spec.dictionary == DictionaryMode::kAlways;
  plan->request.features = transforms.DictionaryInputs();
  if (plan->request.features.empty()) return nullptr;
  if (HasOperator(spec, "rowmap")) {
    plan->reason = "the operator rowmap hands their ids on";
  } else if (spec.cache.enabled() && spec.cache.after != "transform") {
    plan->reason = "[[cache]] keeps their ids before they are transformed";
  }
  if (!plan->reason.empty()) {
    for (const auto& [name, values] : plan->request.features) plan->looked_up.insert(name);
    plan->request.features.clear();
    return plan;
  }
  if (dedup == nullptr) return plan;
  // The transforms of a group would work on unique rows alone.
  for (const DedupFactor& group : dedup->groups) {
    for (const std::string& key : group.keys) {
      const auto feature = plan->request.features.find(key);
      if (feature != plan->request.features.end())
        feature->second *= std::max(1.0, group.bytes_now);
    }
  }
  return plan;
}

std::string DictionaryNote(const DictionaryPlan& plan, uint64_t features) {
  if (features == 0) return {};
  return fmt::format(
      "pipeline.dictionary: {} times a stripe's dictionary of a feature was looked up before the "
      "transforms: {}",
      features,
      plan.reason.empty() ? "their maps are not flattened"
                          : plan.reason + ", or their maps are not flattened");
}

}  // namespace headrace::reader
