// IdListTransform's kernels against its reference, on lists around the sizes of their blocks and on
// ids that agree in one half alone.
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <string>
#include <vector>

#include "reader/transforms/lists.h"
#include "reader/transforms/transform.h"
#include "tests/seed.h"

namespace headrace::reader {
namespace {

struct IdKind {
  const char* name;
  uint64_t different;
  int64_t step;   // between neighbours: 2^32 makes ids that differ in the upper half alone
  int64_t first;  // below 0: the upper half is not 0
};
constexpr IdKind kIdKinds[] = {{"few narrow", 6, 1, 0},
                               {"narrow", 200, 7, 0},
                               {"widest narrow", 40, 1, 0xffffffff - 39},
                               {"negative", 60, 1, -30},
                               {"few upper halves", 6, int64_t{1} << 32, 5},
                               {"upper halves", 100, int64_t{1} << 32, 5},
                               {"both halves", 300, 0x100000001, 0}};

constexpr uint64_t kListLengths[] = {0,  1,  2,  7,  8,  9,  15,  16,  17,  31,  32,
                                     33, 48, 63, 64, 65, 96, 127, 129, 255, 257, 600};

SparseColumn ListsOf(const IdKind& ids, uint64_t rows, std::mt19937_64* random) {
  SparseColumn column;
  column.present = AllPresent(rows);
  column.offsets.push_back(0);
  for (uint64_t row = 0; row < rows; ++row) {
    for (uint64_t left = kListLengths[(*random)() % std::size(kListLengths)]; left > 0; --left)
      column.values.push_back(ids.first +
                              ids.step * static_cast<int64_t>((*random)() % ids.different));
    column.offsets.push_back(static_cast<uint32_t>(column.values.size()));
  }
  return column;
}

TEST(IdListTransform, KernelsGiveWhatTheReferenceGives) {
  constexpr uint64_t kRows = 300;
  std::mt19937_64 random(TestSeed());
  for (const IdKind& ids : kIdKinds) {
    for (const IdKind& others : {ids, kIdKinds[1]}) {
      const SparseColumn a = ListsOf(ids, kRows, &random), b = ListsOf(others, kRows, &random);
      const TransformInputs in{.rows = kRows, .dense = {}, .sparse = {&a, &b}, .scalars = {}};
      for (const std::string mode : {"intersection", "union"}) {
        for (const bool multiset : {false, true}) {
          const auto made =
              MakeTransform(Params("id_list_transform", {{"mode", mode}, {"multiset", multiset}}));
          const auto& transform = dynamic_cast<const ListTransform&>(*made);
          SparseColumn expected;
          transform.Reference(in, &expected);
          for (int set = 0; set <= static_cast<int>(BestInstructionSet()); ++set) {
            SparseColumn out;
            transform.Apply(in, &out, static_cast<InstructionSet>(set));
            const std::string what = std::string(ids.name) + " with " + others.name + ", " + mode +
                                     (multiset ? " of multisets, " : ", ") +
                                     InstructionSetName(static_cast<InstructionSet>(set));
            ASSERT_EQ(out.offsets, expected.offsets) << what;
            ASSERT_EQ(out.values, expected.values) << what;
          }
        }
      }
    }
  }
}

}  // namespace
}  // namespace headrace::reader
