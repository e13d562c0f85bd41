#include "reader/transforms/zero_absent.h"

#include <gtest/gtest.h>

#include <limits>
#include <random>

namespace headrace::reader {
namespace {

TEST(ZeroAbsent, ClearsAbsentRowsAndNoOther) {
  for (const InstructionSet set :
       {InstructionSet::kScalar, InstructionSet::kAvx2, InstructionSet::kAvx512}) {
    if (set > BestInstructionSet()) continue;
    for (uint64_t rows = 0; rows < 300; ++rows) {
      std::mt19937_64 random(rows);
      DenseColumn column;
      column.present.words.resize((rows + 63) / 64);
      for (uint64_t row = 0; row < rows; ++row) {
        const bool has = rows % 7 != 0 && random() % 3 != 0;
        column.present.words[row / 64] |= uint64_t{has} << (row % 64);
        column.present.count += has;
      }
      column.values.assign(rows, std::numeric_limits<float>::quiet_NaN());
      for (uint64_t row = 0; row < rows; row += 2) column.values[row] = static_cast<float>(row + 1);
      ZeroAbsent(&column, set);
      for (uint64_t row = 0; row < rows; ++row) {
        if (!column.present.Get(row)) {
          ASSERT_EQ(column.values[row], 0) << rows << " rows, row " << row;
        } else if (row % 2 == 0) {
          ASSERT_EQ(column.values[row], static_cast<float>(row + 1));
        } else {
          ASSERT_TRUE(column.values[row] != column.values[row]);
        }
      }
    }
  }
}

}  // namespace
}  // namespace headrace::reader
