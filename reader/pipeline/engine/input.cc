#include "reader/pipeline/engine/input.h"

#include <algorithm>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/block_pool.h"
#include "base/clock.h"
#include "base/error.h"
#include "reader/dwrf/file_reader.h"
#include "reader/fetch/disk_tier.h"
#include "reader/fetch/memory_tier.h"
#include "reader/fetch/popularity.h"
#include "reader/pipeline/cache/cache_operators.h"
#include "reader/pipeline/gap.h"
#include "reader/source/page_cache.h"
#include "reader/source/throttle.h"

namespace headrace::reader {
namespace {

// With a co-read log, the tier is for its most popular features that fit; how large a feature is,
// the first stripe that can be read tells for all.
std::unique_ptr<StreamTier> MakeTier(const PipelineSpec& spec, const Table& table) {
  std::vector<const Source*> sources;
  for (const auto& file : table.files) sources.push_back(&file->source());
  const auto make = [&](std::optional<std::set<std::string>> features) {
    std::unique_ptr<StreamTier> tier;
    if (spec.tier.on_disk()) {
      tier = std::make_unique<DiskTier>(spec.tier, std::move(features), sources);
    } else {
      tier = std::make_unique<MemoryTier>(spec.tier, std::move(features));
    }
    return tier;
  };
  if (spec.tier.popularity.empty()) return make(std::nullopt);
  const std::vector<std::string> popular = PopularFeatures(spec.tier.popularity);
  for (const Split& split : table.splits) {
    if (split.rows == 0) continue;
    std::set<std::string> fit;
    try {
      const auto& file = table.files[split.file_index];
      const dwrf::StripePlan plan =
          dwrf::MakePlan(*file, file->ReadStripe(split.stripe), spec.projection);
      const double stripes =
          static_cast<double>(table.rows) / static_cast<double>(std::max<uint64_t>(1, plan.rows));
      fit = FeaturesThatFit(popular, plan, stripes, spec.tier.budget_bytes);
    } catch (const Error& error) {
      if (!spec.skip_corrupt || error.code() != ExitCode::kBadData) throw;
      continue;
    }
    return make(std::move(fit));
  }
  return make(std::nullopt);
}

void OpenSource(PipelineSpec* spec, StopSignal* stop, std::function<bool()> interrupted,
                Input* input) {
  SourceContext& sources = input->sources;
  dwrf::OpenOptions opening;
  // Registered buffers are never given back, whatever else needs the room.
  if (spec->memory_bytes > 0) spec->io.registered = false;
  if (!spec->keys.empty()) opening.keys = dwrf::KeyRing::Load(spec->keys);
  ChooseGap(spec);
  sources.stopped = [stop, interrupted = std::move(interrupted)] {
    return stop->stopped() || (interrupted && interrupted());
  };
  if (spec->throttle.enabled()) {
    Throttle::Clock clock;
    clock.sleep_until = [stop](int64_t deadline) { stop->SleepFor(deadline - MonotonicNs()); };
    sources.throttle = std::make_shared<Throttle>(spec->throttle, std::move(clock));
  }
  if (spec->cold_reads) {
    if (IsRemote(spec->table))
      throw Error(ExitCode::kUsage, "source.cold: remote storage has no page cache here",
                  spec->path, "leave it out");
    DropFromPageCache(ListTable(spec->table, spec->io, sources));
  }
  input->table = std::make_shared<Table>(OpenTable(spec->table, spec->io, sources, opening));
  const dwrf::FileReader& first = *input->table->files[0];
  dwrf::CheckProjection(first.schema(), first.source().name(), spec->projection);
  input->locked = CheckEncryption(*input->table, *spec);
  CheckFilters(first.schema(), *spec);
}

// Transforms, groups of [dedup] and dictionaries: what is decided once for all batches.
void MakePlans(const PipelineSpec& spec, const Table* table, OperatorContext* context) {
  if (!spec.transforms.empty()) {
    auto plan = std::make_shared<TransformPlan>(PlanTransforms(spec));
    plan->ValidateAgainst(ProjectedColumns(table->files[0]->schema(), spec.projection));
    context->transforms = std::move(plan);
  }
  if (table == nullptr) return;
  if (spec.dedup.mode != DedupMode::kOff) {
    DedupPlan plan =
        PlanDedup(*table, spec.projection, spec.dedup, spec.batch_rows, spec.skip_corrupt);
    if (!plan.groups.empty()) context->dedup = std::make_shared<DedupPlan>(std::move(plan));
  }
  if (context->transforms)
    context->dictionaries = PlanDictionaries(spec, *context->transforms, context->dedup.get());
}

std::unique_ptr<MemoryLedger> OpenMemory(const PipelineSpec& spec) {
  if (spec.memory_bytes == 0) return nullptr;
  // Names, presence bits and arrays' own fields of a column, as a batch and as tensors.
  constexpr uint64_t kColumnBytes = 600;
  const bool in_memory = spec.cache.enabled() && spec.cache.tier == CacheTier::kMemory;
  uint64_t holders = 0;
  for (const StageSpec& stage : spec.stages) {
    for (const OperatorSpec& op : stage.operators) {
      if (EntryOf(op).joins_rows) holders += stage.parallelism;
    }
  }
  return std::make_unique<MemoryLedger>(MemoryOptions{
      spec.memory_bytes,
      (spec.tier.on_disk() ? 0 : spec.tier.budget_bytes) +
          (in_memory ? spec.cache.budget_bytes : 0),
      spec.batch_rows, kColumnBytes * (spec.projection.features.size() + spec.transforms.size()),
      holders, std::max(spec.batch_rows, spec.shuffle_rows)});
}

}  // namespace

std::unique_ptr<Input> OpenInput(PipelineSpec* spec, StopSignal* stop,
                                 std::function<bool()> interrupted) {
  auto input = std::make_unique<Input>();
  OperatorContext& context = input->context;
  if (!spec->synthetic) OpenSource(spec, stop, std::move(interrupted), input.get());
  const Table* const table = input->table.get();
  MakePlans(*spec, table, &context);
  const size_t groups = context.dedup ? context.dedup->groups.size() : 0;
  input->slab_spare = std::make_unique<std::atomic<uint32_t>[]>(1 + groups);  // zeros
  BlockPool::Get().SetHugePages(spec->huge_pages);
  if (table != nullptr && spec->tier.enabled()) input->tier = MakeTier(*spec, *table);
  if (table != nullptr)
    input->cache = OpenCache(*spec, *table, context.transforms.get(), context.dedup.get());
  input->memory = OpenMemory(*spec);
  if (table != nullptr) CheckSlices(*table, *spec);
  context.stop = stop;
  context.spec = spec;
  context.resources = &input->resources;
  context.counts = &input->counts;
  context.memory = input->memory.get();
  context.table = input->table;
  context.has_locked = !input->locked.names.empty();
  context.tier = input->tier.get();
  context.cache = input->cache.get();
  context.slab_spare = input->slab_spare.get();
  return input;
}

}  // namespace headrace::reader
