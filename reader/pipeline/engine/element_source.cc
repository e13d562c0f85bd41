#include "reader/pipeline/engine/element_source.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "base/mix_bits.h"
#include "probes/account/scope.h"
#include "reader/pipeline/batching.h"
#include "reader/pipeline/cache/batch_cache.h"
#include "reader/pipeline/memory_ledger.h"

namespace headrace::reader {

ElementSource::ElementSource(const OperatorContext& context,
                             std::shared_ptr<const DeliveryLedger> delivered,
                             std::shared_ptr<SplitSource> splits)
    : context_(context),
      spec_(*context.spec),
      splits_(std::move(splits)),
      waits_(splits_ != nullptr) {
  if (!splits_) {
    auto ledger =
        std::make_shared<SplitLedger>(context.table ? context.table->splits : std::vector<Split>(),
                                      spec_.epochs, std::move(delivered));
    ledger->SetSliceRows(SliceRows(spec_));
    splits_ = std::move(ledger);
  }
  if (spec_.synthetic) limit_ = spec_.synthetic->elements * spec_.epochs;
}

bool ElementSource::Take(Element* element, uint32_t waiter, bool* ended) {
  MemoryLedger* const memory = context_.memory;
  if (memory == nullptr) {
    *ended = !Next(element, waiter);
    return !*ended;
  }
  std::unique_lock lock(admission_, std::try_to_lock);
  if (!lock.owns_lock()) {
    account::WaitScope wait(waiter, HR_WAIT_OUT);
    lock.lock();
  }
  *ended = context_.stop->stopped() || !Next(element, waiter);
  if (*ended) return false;
  const bool is_cached =
      context_.cache != nullptr && !element->wanted && context_.cache->Holds(element->origin.split);
  element->memory = memory->Admit(element->rows, context_.stop, waiter,
                                  is_cached ? SplitWork::kCached : SplitWork::kWhole);
  if (element->memory && element->wanted) element->memory->DoesLess();
  return element->memory != nullptr;
}

bool ElementSource::NextSynthetic(Element* element) {
  const uint64_t n = next_.fetch_add(1, std::memory_order_relaxed);
  if (limit_ != 0 && n >= limit_) return false;
  element->sequence = n;
  element->rows = spec_.synthetic->rows;
  element->bytes = spec_.synthetic->bytes;
  element->seed = MixBits(spec_.seed ^ MixBits(n));
  return true;
}

bool ElementSource::Next(Element* element, uint32_t waiter) {
  *element = Element();
  if (spec_.synthetic) return NextSynthetic(element);
  std::optional<account::WaitScope> wait;
  if (waits_) wait.emplace(waiter, HR_WAIT_IN);
  const auto handed = splits_->Next(context_.stop);
  wait.reset();
  if (!handed) return false;
  const Split& split = handed->split;
  if (spec_.cold_reads) ForgetAhead(split.id);
  element->sequence = handed->sequence;
  element->first_slice = handed->first_slice;
  element->rows = split.rows;
  element->seed = MixBits(spec_.seed ^ MixBits(handed->place));
  element->origin = {handed->epoch, split.id, split.first_row, split.rows, split.rows};
  element->wanted = handed->wanted;
  element->payload = handed->split;
  return true;
}

// With cold reads: forgets the stripe that is read half a table later, so that what the kernel
// reads ahead of the stripes at hand stays.
void ElementSource::ForgetAhead(uint64_t split) const {
  constexpr uint64_t kFew = 4;  // splits: half of them is no distance
  const Table& table = *context_.table;
  const uint64_t n = table.splits.size();
  const Split& far = table.splits[n < kFew ? split : (split + n / 2) % n];
  const dwrf::FileReader& file = *table.files[far.file_index];
  const auto& stripe = file.tail().footer.stripes(static_cast<int>(far.stripe));
  file.source().ForgetPages(stripe.offset(),
                            stripe.index_length() + stripe.data_length() + stripe.footer_length());
}

double ElementSource::fraction() const {
  if (spec_.synthetic)
    return limit_ == 0
               ? -1
               : std::min(1.0, static_cast<double>(next_.load()) / static_cast<double>(limit_));
  return splits_->fraction();
}

}  // namespace headrace::reader
