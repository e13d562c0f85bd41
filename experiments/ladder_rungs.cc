#include "experiments/ladder_rungs.h"

#include "base/check.h"

namespace headrace::experiments {
namespace {

constexpr const char* kIsca = "ISCA'22, table 12 (secondary source)";
constexpr const char* kBlog = "Meta's blog, 2022";
constexpr const char* kRecd = "RecD, MLSys'23 (the most of three models)";

size_t RungOf(const std::string& name) {
  for (size_t i = 0; i < Rungs().size(); ++i)
    if (Rungs()[i].name == name) return i;
  HR_CHECK(false, "no such rung");
  return 0;
}

}  // namespace

const char* TierName(Tier tier) {
  return tier == Tier::kReader    ? "reader"
         : tier == Tier::kMemory  ? "memory"
         : tier == Tier::kStorage ? "storage"
         : tier == Tier::kBytes   ? "bytes"
                                  : "trainer";
}
const char* TierUnit(Tier tier) {
  return tier == Tier::kReader    ? "rows per CPU s"
         : tier == Tier::kMemory  ? "rows/s"
         : tier == Tier::kStorage ? "rows per disk s"
         : tier == Tier::kBytes   ? "bytes read a row"
                                  : "rows per CPU s";
}

const std::vector<Rung>& Rungs() {
  static const std::vector<Rung> rungs = {
      {.name = "base",
       .words = "whole maps, a map per row",
       .table = "map",
       .reader_sum = 1.0,
       .storage_sum = 1.0},
      {.name = "FF",
       .words = "flattened maps",
       .table = "flat",
       .rowmap = true,
       .published = {{Tier::kReader, {2.0, 2.0, kIsca}}, {Tier::kStorage, {0.03, 0.03, kIsca}}},
       .reader_sum = 2.0,
       .storage_sum = 0.03},
      {.name = "FM",
       .words = "columnar batches",
       .table = "flat",
       .published = {{Tier::kReader, {1.15, 1.15, kIsca}}, {Tier::kStorage, {1.0, 1.0, kIsca}}},
       .reader_sum = 2.3,
       .storage_sum = 0.03},
      {.name = "CR",
       .words = "coalesced reads",
       .table = "flat",
       .coalesce = true,
       .published = {{Tier::kReader, {1.0, 1.0, kIsca}},
                     {Tier::kStorage, {0.99 / 0.03, 0.99 / 0.03, kIsca}}},
       .storage_sum = 0.99},
      {.name = "FR",
       .words = "features by popularity",
       .table = "popular",
       .coalesce = true,
       .published = {{Tier::kReader, {1.0, 1.0, kIsca}},
                     {Tier::kStorage, {1.84 / 0.99, 1.84 / 0.99, kIsca}}},
       .storage_sum = 1.84},
      {.name = "LS",
       .words = "large stripes",
       .table = "large",
       .coalesce = true,
       .published = {{Tier::kReader, {1.0, 1.0, kIsca}},
                     {Tier::kStorage, {2.41 / 1.84, 2.41 / 1.84, kIsca}}},
       .storage_sum = 2.41},
      {.name = "RB",
       .words = "rebatching at the client",
       .table = "large",
       .coalesce = true,
       .rebatch = true,
       .published = {{Tier::kMemory, {1.2, 1.4, kBlog}}}},
      {.name = "CL",
       .words = "rows clustered by session",
       .table = "clustered",
       .coalesce = true,
       .rebatch = true,
       .published = {{Tier::kBytes, {1 / 3.71, 1 / 3.71, kRecd}}}},
      {.name = "DD",
       .words = "deduplication",
       .table = "clustered",
       .coalesce = true,
       .rebatch = true,
       .dedup = true,
       .published = {{Tier::kReader, {1.79, 1.79, kRecd, "RB"}},
                     {Tier::kTrainer, {2.48, 2.48, kRecd, "RB"}}}}};
  return rungs;
}

size_t AgainstOf(size_t rung, Tier tier) {
  const auto found = Rungs()[rung].published.find(tier);
  if (found == Rungs()[rung].published.end() || found->second.against == nullptr) return rung - 1;
  return RungOf(found->second.against);
}

}  // namespace headrace::experiments
