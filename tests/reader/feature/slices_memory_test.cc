// What DecodeSlices keeps for rows that are scattered is counted in BlockPool, by which memory
// budgets go.
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <string>
#include <vector>

#include "base/block_pool.h"
#include "reader/dwrf/file_reader.h"
#include "reader/dwrf/file_writer.h"
#include "reader/dwrf/slices.h"

namespace headrace::reader::dwrf {
namespace {

TEST(SlicesMemory, PortionsOfScatteredRowsAreCounted) {
  constexpr uint64_t kRows = 8192, kFeatures = 40;
  const std::filesystem::path path = std::filesystem::path(testing::TempDir()) /
                                     ("slices_memory." + std::to_string(::getpid()) + ".dwrf");
  WriterOptions options;
  options.flat_maps = {"sparse"};
  options.stripe_rows = kRows;
  const std::vector<int64_t> ids(kRows, 7);
  const std::vector<uint32_t> lengths(kRows, 1);
  FlatBatch batch;
  batch.rows = kRows;
  FlatColumn& column = batch.columns.emplace_back();
  column.name = "sparse";
  Projection projection;
  for (uint64_t f = 0; f < kFeatures; ++f) {
    FlatFeature& feature = column.features.emplace_back();
    feature.key = MapKey::Of(static_cast<int64_t>(f));
    feature.lengths = lengths;
    feature.integers = ids;
    projection.features.push_back({"sparse", feature.key});
  }
  FileWriter writer(path.string(), Schema::Parse("struct<sparse:map<int,list<bigint>>>"), options,
                    true);
  writer.WriteFlat(batch);
  writer.Close();
  const auto file = FileReader::Open(OpenFileSource(path.string()));
  const auto peak = [&](const std::vector<uint8_t>& wanted) {
    UnpackedStripe unpacked =
        Decompress(Fetch(MakePlan(*file, file->ReadStripe(0), projection), file->source()));
    SliceOptions slices;
    slices.slice_rows = 512;
    slices.wanted = wanted;
    const BlockPool::ThreadPeak measured;
    const DecodedStripe decoded = DecodeSlices(std::move(unpacked), slices);
    EXPECT_EQ(decoded.kept_rows, kRows / 2);
    return measured.bytes();
  };
  std::vector<uint8_t> together(kRows), scattered(kRows);
  for (uint64_t row = 0; row < kRows; ++row) {
    together[row] = row < kRows / 2;
    scattered[row] = row % 2;
  }
  // For each feature and each second row: how many ids to pass over and to take, for which slice.
  EXPECT_GT(peak(scattered), peak(together) + kFeatures * kRows / 2 * 24);
  std::filesystem::remove(path);
}

}  // namespace
}  // namespace headrace::reader::dwrf
