// Groups are chosen from rows, wherever in the table they are.
#include "reader/pipeline/dedup_plan.h"

#include <gtest/gtest.h>

#include "reader/pipeline/split.h"
#include "tests/reader/feature/handmade_file.h"

namespace headrace::reader {
namespace {

using dwrf::HandmadeFile;

TEST(PlanDedup, SplitsWithoutRowsAreNoSample) {
  HandmadeFile file;
  file.schema = "struct<f:map<int,list<int>>>";
  file.encodings = {{1, 0, dwrf::EncodingKind::kMapFlat}};
  Table table;
  const auto add = [&] {
    table.files.push_back(dwrf::OpenFile(file));
    const auto index = static_cast<uint32_t>(table.splits.size());
    table.splits.push_back({index, index, 0, table.rows, file.rows});
    table.rows += file.rows;
  };
  for (int i = 0; i < 3; ++i) add();
  file.rows = 4;
  file.encodings.push_back({3, 1, dwrf::EncodingKind::kDirect, 0, 1});
  file.encodings.push_back({4, 1, dwrf::EncodingKind::kDirect});
  file.streams = {{3, 1, dwrf::StreamKind::kInMap, dwrf::Bits({1, 1, 1, 1})},
                  {3, 1, dwrf::StreamKind::kLength, dwrf::Rle({1, 1, 1, 1})},
                  {4, 1, dwrf::StreamKind::kData, dwrf::Plain({7, 7, 8, 8})}};
  add();
  const dwrf::Projection projection{{{"f", dwrf::MapKey{false, 1, {}}}}, {}};
  DedupOptions options;
  options.mode = DedupMode::kOn;
  const DedupPlan plan = PlanDedup(table, projection, options, 4);
  ASSERT_EQ(plan.groups.size(), 1u);
  EXPECT_EQ(plan.groups[0].now, 2);
}

}  // namespace
}  // namespace headrace::reader
