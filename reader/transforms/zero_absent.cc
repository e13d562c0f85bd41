#include "reader/transforms/zero_absent.h"

#include <algorithm>
#include <cstring>

#include "reader/transforms/simd.h"

namespace headrace::reader {
namespace {

// Without a branch on the bit: presence is as good as random to a branch predictor.
void Scalar(float* values, uint64_t present, size_t rows) {
  for (size_t i = 0; i < rows; ++i) {
    uint32_t bits;
    std::memcpy(&bits, values + i, sizeof bits);
    bits &= 0 - static_cast<uint32_t>(present >> i & 1);
    std::memcpy(values + i, &bits, sizeof bits);
  }
}

#if defined(HR_X86)
HR_AVX512 void Avx512(float* values, uint64_t present, size_t rows) {
  const uint64_t absent = ~present & (rows < 64 ? (uint64_t{1} << rows) - 1 : ~uint64_t{0});
  for (size_t i = 0; i < rows; i += 16)
    _mm512_mask_storeu_ps(values + i, static_cast<__mmask16>(absent >> i), _mm512_setzero_ps());
}
#endif

}  // namespace

void ZeroAbsent(DenseColumn* column, InstructionSet set) {
  const uint64_t rows = column->values.size();
  if (column->present.count == rows) return;
  for (uint64_t first = 0; first < rows; first += 64) {
    const uint64_t present = column->present.words[first / 64];
    if (present == ~uint64_t{0}) continue;
    float* const values = column->values.data() + first;
    const size_t part = std::min<uint64_t>(64, rows - first);
#if defined(HR_X86)
    if (set == InstructionSet::kAvx512) {
      Avx512(values, present, part);
      continue;
    }
#endif
    Scalar(values, present, part);
  }
  (void)set;
}

}  // namespace headrace::reader
