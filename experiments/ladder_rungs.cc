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
      {"base", "whole maps, a map per row", "map", false, false, false, false, {}, 1.0, 1.0},
      {"FF",
       "flattened maps",
       "flat",
       true,
       false,
       false,
       false,
       {{Tier::kReader, {2.0, 2.0, kIsca, nullptr}},
        {Tier::kStorage, {0.03, 0.03, kIsca, nullptr}}},
       2.0,
       0.03},
      {"FM",
       "columnar batches",
       "flat",
       false,
       false,
       false,
       false,
       {{Tier::kReader, {1.15, 1.15, kIsca, nullptr}},
        {Tier::kStorage, {1.0, 1.0, kIsca, nullptr}}},
       2.3,
       0.03},
      {"CR",
       "coalesced reads",
       "flat",
       false,
       true,
       false,
       false,
       {{Tier::kReader, {1.0, 1.0, kIsca, nullptr}},
        {Tier::kStorage, {0.99 / 0.03, 0.99 / 0.03, kIsca, nullptr}}},
       std::nullopt,
       0.99},
      {"FR",
       "features by popularity",
       "popular",
       false,
       true,
       false,
       false,
       {{Tier::kReader, {1.0, 1.0, kIsca, nullptr}},
        {Tier::kStorage, {1.84 / 0.99, 1.84 / 0.99, kIsca, nullptr}}},
       std::nullopt,
       1.84},
      {"LS",
       "large stripes",
       "large",
       false,
       true,
       false,
       false,
       {{Tier::kReader, {1.0, 1.0, kIsca, nullptr}},
        {Tier::kStorage, {2.41 / 1.84, 2.41 / 1.84, kIsca, nullptr}}},
       std::nullopt,
       2.41},
      {"RB",
       "rebatching at the client",
       "large",
       false,
       true,
       true,
       false,
       {{Tier::kMemory, {1.2, 1.4, kBlog, nullptr}}},
       std::nullopt,
       std::nullopt},
      {"CL",
       "rows clustered by session",
       "clustered",
       false,
       true,
       true,
       false,
       {{Tier::kBytes, {1 / 3.71, 1 / 3.71, kRecd, nullptr}}},
       std::nullopt,
       std::nullopt},
      {"DD",
       "deduplication",
       "clustered",
       false,
       true,
       true,
       true,
       {{Tier::kReader, {1.79, 1.79, kRecd, "RB"}}, {Tier::kTrainer, {2.48, 2.48, kRecd, "RB"}}},
       std::nullopt,
       std::nullopt}};
  return rungs;
}

size_t AgainstOf(size_t rung, Tier tier) {
  const auto found = Rungs()[rung].published.find(tier);
  if (found == Rungs()[rung].published.end() || found->second.against == nullptr) return rung - 1;
  return RungOf(found->second.against);
}

}  // namespace headrace::experiments
