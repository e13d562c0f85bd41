// Expands integers, lengths, presence bits and floats; with layout "direct" straight into slabs.
#include <atomic>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "probes/account/account.h"
#include "reader/dwrf/feature_stream.h"
#include "reader/dwrf/slices.h"
#include "reader/pipeline/batching.h"
#include "reader/pipeline/operator.h"

namespace headrace::reader {
namespace {

// An account for each group, for as many as a report can show; the others share one.
std::vector<uint32_t> DedupAccounts(const DedupPlan& plan, uint32_t stage) {
  constexpr size_t kOwn = 48;
  std::vector<uint32_t> accounts;
  for (size_t g = 0; g < plan.groups.size(); ++g) {
    const std::string name = g < kOwn || plan.groups.size() == kOwn + 1
                                 ? "dedup." + plan.groups[g].name
                                 : "dedup.others";
    accounts.push_back(hr_operator(name.c_str(), "dedup", stage));
  }
  return accounts;
}

class DecodeOperator final : public Operator {
 public:
  DecodeOperator(const OperatorPlan&, const OperatorContext& context) : context_(context) {
    if (!context.dedup) return;
    groups_.emplace();
    groups_->scope = context.dedup->scope;
    for (size_t g = 0; g < context.dedup->groups.size(); ++g) {
      const DedupFactor& group = context.dedup->groups[g];
      groups_->groups.push_back({group.name, group.keys, context.dedup_accounts[g]});
    }
  }
  void Process(Element&& element, const Emit& emit) override {
    dwrf::UnpackedStripe unpacked = Take<dwrf::UnpackedStripe>(&element);
    const bool wants_slices = SliceRows(*context_.spec) > 0;
    const bool is_ordinary = !unpacked.plan.maps.empty();
    if (wants_slices && is_ordinary)
      context_.counts->ordinary_stripes.fetch_add(1, std::memory_order_relaxed);
    if (context_.dictionaries) {
      if (const uint64_t features = context_.dictionaries->CountLookedUp(unpacked.plan))
        context_.counts->looked_up_dictionaries.fetch_add(features, std::memory_order_relaxed);
    }
    dwrf::DecodedStripe decoded =
        wants_slices && !is_ordinary
            ? Slices(element, std::move(unpacked))
            : dwrf::Decode(std::move(unpacked), groups_ ? &*groups_ : nullptr, Dictionaries());
    element.bytes = decoded.decoded_bytes;
    element.payload = std::move(decoded);
    emit(std::move(element));
  }

 private:
  dwrf::DecodedStripe Slices(const Element& element, dwrf::UnpackedStripe&& unpacked) const {
    const std::vector<uint8_t> wanted =
        WantedRows(element, unpacked.plan.first_row, unpacked.plan.rows);
    dwrf::SliceOptions options;
    options.slice_rows = SliceRows(*context_.spec);
    options.spare = Spare(0);
    std::vector<double> group_spare;
    if (groups_) {
      options.groups = &*groups_;
      for (size_t g = 0; g < groups_->groups.size(); ++g) group_spare.push_back(Spare(1 + g));
      options.group_spare = group_spare;
    }
    options.wanted = wanted;
    options.filters = context_.spec->filters;
    options.dictionaries = Dictionaries();
    return dwrf::DecodeSlices(std::move(unpacked), options);
  }
  const dwrf::DictionaryRequest* Dictionaries() const {
    return context_.dictionaries ? &context_.dictionaries->request : nullptr;
  }
  double Spare(size_t slab) const {
    return context_.slab_spare[slab].load(std::memory_order_relaxed) / 1000.0;
  }

  const OperatorContext& context_;
  std::optional<dwrf::GroupRequests> groups_;
};

HR_OPERATOR("decode", DecodeOperator,
            {.order = 40,
             .takes = ElementForm::kPlain,
             .makes = ElementForm::kDecoded,
             .add_accounts = [](OperatorContext* context, OperatorPlan* plan) {
               if (context->dedup)
                 context->dedup_accounts = DedupAccounts(*context->dedup, plan->stage);
             }});

}  // namespace
}  // namespace headrace::reader
