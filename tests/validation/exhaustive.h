// The best settings of a World by trying all of a grid: threads of {1, 2, 3, 4, 6, 8, 12, 16} for
// each station that may have them, queues as they are and four times as deep, as far as the memory
// goes. For Worlds of few stations.
#pragma once
#include <cstdint>
#include <string>

#include "tests/validation/strategy.h"
#include "tests/validation/world.h"

namespace headrace::validation {

inline constexpr int64_t kTruthBatches = 3000;
// Added, so that no draw of a recorded run comes again.
inline constexpr uint64_t kTruthSeed = 900001;

World With(const World& world, const Choice& choice);
Choice SettingsOf(const World& world);
std::string TextOf(const Choice& choice);  // "2,3,1/4,4,16": threads, queues; then a changed window
bool Fits(const World& world);             // its memory
// Batches per second, of several plays, as one of a heavy-tailed World says little.
double LongRate(const World& world, uint64_t seed);

struct Best {
  double rate = 0;  // by LongRate
  Choice choice;
};
Best FindBest(const World& world, uint64_t seed);

}  // namespace headrace::validation
