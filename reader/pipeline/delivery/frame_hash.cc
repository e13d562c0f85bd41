#include "reader/pipeline/delivery/frame_hash.h"

#include <xxhash.h>

#include <memory>

namespace headrace::reader {

#if defined(__x86_64__)
uint64_t HashPartsAvx2(std::span<const std::span<const uint8_t>> parts, uint64_t seed);
#endif

uint64_t HashParts(std::span<const std::span<const uint8_t>> parts, uint64_t seed,
                   InstructionSet set) {
#if defined(__x86_64__)
  if (set != InstructionSet::kScalar) return HashPartsAvx2(parts, seed);
#endif
  (void)set;
  if (parts.size() == 1) return XXH3_64bits_withSeed(parts[0].data(), parts[0].size(), seed);
  const std::unique_ptr<XXH3_state_t, XXH_errorcode (*)(XXH3_state_t*)> state(XXH3_createState(),
                                                                              XXH3_freeState);
  XXH3_64bits_reset_withSeed(state.get(), seed);
  for (const std::span<const uint8_t>& part : parts)
    XXH3_64bits_update(state.get(), part.data(), part.size());
  return XXH3_64bits_digest(state.get());
}

}  // namespace headrace::reader
