#include "reader/transforms/lists.h"

#include <bit>

#include "base/cpu.h"
#include "base/error.h"
#include "reader/batch/array.h"
#include "reader/transforms/simd.h"

namespace headrace::reader {
namespace {

void CheckSize(uint64_t values) {
  if (values > UINT32_MAX)
    throw Error(ExitCode::kResources, "a transform makes 2^32 or more ids in one batch", {},
                "use a smaller batch_rows, or shorten the lists before (first_x)");
}

template <typename Combine>
PresenceBits CombinePresence(std::span<const SparseColumn* const> columns, uint64_t rows,
                             Combine combine) {
  PresenceBits present;
  present.words.resize((rows + 63) / 64);
  for (size_t word = 0; word < present.words.size(); ++word) {
    uint64_t bits = columns[0]->present.words[word];
    for (const SparseColumn* column : columns.subspan(1))
      bits = combine(bits, column->present.words[word]);
    present.words[word] = bits;
    present.count += static_cast<uint64_t>(std::popcount(bits));
  }
  return present;
}

#if defined(HR_X86)
HR_AVX2 uint64_t CountUp(uint64_t rows, uint32_t* offsets) {
  __m256i values = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
  uint64_t row = 0;
  for (; row + 8 <= rows; row += 8) {
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(offsets + row), values);
    values = _mm256_add_epi32(values, _mm256_set1_epi32(8));
  }
  return row;
}
#endif

}  // namespace

PresenceBits PresentInAll(std::span<const SparseColumn* const> columns, uint64_t rows) {
  return CombinePresence(columns, rows, [](uint64_t a, uint64_t b) { return a & b; });
}

PresenceBits PresentInAny(std::span<const SparseColumn* const> columns, uint64_t rows) {
  return CombinePresence(columns, rows, [](uint64_t a, uint64_t b) { return a | b; });
}

PresenceBits AllPresent(uint64_t rows) {
  PresenceBits present;
  present.count = rows;
  present.words.assign((rows + 63) / 64, ~uint64_t{0});
  if (rows % 64 != 0) present.words.back() = (uint64_t{1} << (rows % 64)) - 1;
  return present;
}

void ReserveLists(SparseColumn* out, uint64_t rows, uint64_t values) {
  CheckSize(values);
  out->offsets = Array<uint32_t>(rows + 1);
  out->offsets[0] = 0;
  out->values = Array<int64_t>(values);
}

void OneIdPerRow(uint64_t rows, uint32_t* offsets) {
  uint64_t row = 0;
#if defined(HR_X86)
  if (BestInstructionSet() >= InstructionSet::kAvx2) row = CountUp(rows, offsets);
#endif
  for (; row <= rows; ++row) offsets[row] = static_cast<uint32_t>(row);
}

void EndRow(SparseColumn* out) {
  CheckSize(out->values.size());
  out->offsets.push_back(static_cast<uint32_t>(out->values.size()));
}

}  // namespace headrace::reader
