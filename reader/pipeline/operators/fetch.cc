// Reads the stored bytes of the projected streams of one stripe.
#include <algorithm>
#include <memory>
#include <span>
#include <string>
#include <utility>

#include "base/error.h"
#include "probes/account/scope.h"
#include "reader/dwrf/file_reader.h"
#include "reader/pipeline/cache/batch_cache.h"
#include "reader/pipeline/operator.h"
#include "reader/source/open.h"

namespace headrace::reader {
namespace {

// The accounts of `fetch` beside its own.
enum FetchAccount : size_t {
  kIo,        // requests to the storage
  kFooter,    // reads of the stripes' directories
  kStored,    // what the stripes hold, wanted or not
  kLocked,    // what is null for want of a key
  kChecksum,  // with source.checksum: reading it all once more
  kTierHit,
  kTierMiss,
  kRetry  // requests that repeat a failed one: remote storage only
};

void AddFetchAccounts(OperatorContext* context, OperatorPlan* plan) {
  const PipelineSpec& spec = *context->spec;
  const std::string& name = plan->spec.name;
  plan->AddAccount(name + ".io", "io");
  plan->AddAccount(name + ".footer", "io");
  plan->AddAccount(name + ".stored", "stored");
  plan->AddAccount(name + ".locked", "locked", context->has_locked);
  plan->AddAccount(name + ".checksum", "io", spec.verify_checksums);
  plan->AddAccount("tier.hit", "cache", context->tier != nullptr);
  plan->AddAccount("tier.miss", "cache", context->tier != nullptr);
  if (context->tier != nullptr && spec.tier.on_disk())
    context->tier->SetAccounts(hr_operator("tier.io", "tier", plan->stage),
                               hr_operator("tier.fill", "tier", plan->stage));
  if (context->cache != nullptr) {
    const uint32_t hits = hr_operator("cache.hit", "cache", plan->stage);
    context->cache->SetAccounts(hits, hr_operator("cache.miss", "cache", plan->stage));
  }
  plan->AddAccount(name + ".retry", "io", IsRemote(spec.table));
}

class FetchOperator final : public Operator {
 public:
  FetchOperator(const OperatorPlan& plan, const OperatorContext& context)
      : plan_(plan), context_(context) {}
  void Process(Element&& element, const Emit& emit) override {
    const Split split = Take<Split>(&element);
    const auto& file = context_.table->files[split.file_index];
    const ByteRange all = file->StripeBytes(split.stripe);
    const bool verifies = context_.spec->verify_checksums;
    const bool in_one_read =
        verifies && all.length <= kMostInOneRead && file->HasChecksum(split.stripe);
    if (verifies && !in_one_read) Verify(*file, split.stripe, {});
    dwrf::StripePlan plan;
    try {
      plan = Plan(*file, split.stripe);
    } catch (const Error&) {
      if (in_one_read) Verify(*file, split.stripe, {});  // perhaps because it is damaged
      throw;
    }
    if (plan_.Account(kLocked) != UINT32_MAX && plan.num_locked > 0)
      hr_done(plan_.Account(kLocked), plan.num_locked, split.rows, 0, 0);
    plan.first_row = split.first_row;  // of the table, where the plan knows the file only
    FetchedStripe fetched =
        ReadStreams(std::move(plan), file->source(), in_one_read ? all : ByteRange());
    if (in_one_read) {
      Verify(*file, split.stripe, fetched.whole);
      account::OperatorScope scope(plan_.Account(kIo));
      OfferTo(context_.tier, file->source(), &fetched);
    }
    element.received_bytes = fetched.read_bytes;
    element.bytes = fetched.wanted_bytes;
    element.payload = std::move(fetched);
    emit(std::move(element));
  }

 private:
  // Longer stripes are summed in a pass of their own, for the memory.
  static constexpr uint64_t kMostInOneRead = uint64_t{256} << 20;

  dwrf::StripePlan Plan(const dwrf::FileReader& file, uint32_t index) const {
    std::shared_ptr<const dwrf::Stripe> stripe;
    {
      Counted counted(plan_.Account(kFooter), UINT32_MAX);
      stripe = file.ReadStripe(index, &counted.figures);
    }
    hr_done(plan_.Account(kStored), 1, 0, 0, stripe->data_length);
    return dwrf::MakePlan(file, stripe, context_.spec->projection);
  }

  // Verifies the stripe's checksum over `bytes`; if these are empty, it reads the stripe for that.
  void Verify(const dwrf::FileReader& file, uint32_t stripe, std::span<const uint8_t> bytes) const {
    account::OperatorScope scope(plan_.Account(kChecksum));
    Counted counted(plan_.Account(kChecksum), UINT32_MAX);
    try {
      const bool has_checksum = bytes.empty() ? file.VerifyChecksum(stripe, &counted.figures)
                                              : file.VerifyChecksum(stripe, bytes);
      if (!has_checksum) context_.counts->unchecked_stripes.fetch_add(1, std::memory_order_relaxed);
    } catch (const Error& error) {
      if (error.code() != ExitCode::kBadData) throw;
      throw Error(error.code(), error.fact(), error.where(),
                  "the file is damaged; source.on_corrupt = \"skip\" leaves such stripes out");
    }
  }

  FetchedStripe ReadStreams(dwrf::StripePlan plan, const Source& source,
                            const ByteRange& whole) const {
    account::OperatorScope scope(plan_.Account(kIo));
    Counted counted(plan_.Account(kIo), plan_.Account(kRetry));
    FetchOptions options = context_.spec->fetch;
    options.whole = whole;
    FetchedStripe fetched =
        Fetch(std::move(plan), source, options, context_.tier, &counted.figures);
    if (whole.length > 0) {
      // No gap made these reads longer: what is not wanted was read to be summed.
      const uint64_t others = fetched.read_bytes - fetched.wanted_bytes;
      fetched.read_bytes -= others;
      counted.figures.bytes -= std::min(others, counted.figures.bytes);
      hr_done(plan_.Account(kChecksum), 0, 0, 0, others);
    }
    if (context_.tier != nullptr) {
      const TierFigures& tier = fetched.tier;
      hr_done(plan_.Account(kTierHit), tier.hits, 0, 0, tier.hit_bytes);
      hr_done(plan_.Account(kTierMiss), tier.misses, 0, 0, tier.miss_bytes);
    }
    return fetched;
  }

  // Adds what was asked of the storage to accounts, also where an error ends it.
  struct Counted {
    Counted(uint32_t reads, uint32_t repeated) : reads(reads), repeated(repeated) {}
    ~Counted() {
      hr_done(reads, figures.requests, 0, 0, figures.bytes);
      if (repeated != UINT32_MAX) hr_done(repeated, figures.retries, 0, figures.discarded_bytes, 0);
    }
    Counted(const Counted&) = delete;
    uint32_t reads, repeated;
    ReadFigures figures;
  };

  const OperatorPlan& plan_;
  const OperatorContext& context_;
};

HR_OPERATOR("fetch", FetchOperator,
            {.order = 10,
             .takes = ElementForm::kSplit,
             .makes = ElementForm::kStored,
             .add_accounts = AddFetchAccounts});

}  // namespace
}  // namespace headrace::reader
