// The rungs of the optimisation ladder (ladder.h says what each changes), and what was published of
// them.
#pragma once
#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace headrace::experiments {

enum class Tier { kReader, kMemory, kStorage, kBytes, kTrainer };  // ladder.h
const char* TierName(Tier tier);
const char* TierUnit(Tier tier);  // "rows per CPU s"

struct PublishedFactor {
  double low, high;
  const char* source;
  const char* against = nullptr;  // the rung that it is counted from; null: the one before
};

// What a rung changes, and the factors published of it, by tier.
struct Rung {
  const char *name, *words;
  const char* table;  // folder of it, below the ladder's
  bool rowmap = false, coalesce = false, rebatch = false, dedup = false;
  std::map<Tier, PublishedFactor> published = {};
  // Against the first rung, where the study prints it.
  std::optional<double> reader_sum = std::nullopt, storage_sum = std::nullopt;
};

// The first is the base, without any of the changes.
const std::vector<Rung>& Rungs();
// The rung that this one's gain in the tier is counted from: its number.
size_t AgainstOf(size_t rung, Tier tier);

}  // namespace headrace::experiments
