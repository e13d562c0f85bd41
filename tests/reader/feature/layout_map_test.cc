// LayoutMap: the text people read, and figures equal to those of the reads really made.
#include "reader/dwrf/layout_map.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/file.h"
#include "reader/dwrf/feature_stream.h"
#include "reader/dwrf/file_writer.h"
#include "tests/dashboards/golden.h"

namespace headrace::reader::dwrf {
namespace {

constexpr uint64_t kMapRows = 600, kStripeRows = 400;

// label, dense:{3,9}, sparse:{17,20,21}; sparse:21 is in the second stripe alone.
std::shared_ptr<const FileReader> ExampleFile() {
  const auto path = std::filesystem::temp_directory_path() /
                    ("headrace-layout-" + std::to_string(getpid()) + ".dwrf");
  WriterOptions options;
  options.compression = CompressionKind::kNone;
  options.flat_maps = {"dense", "sparse"};
  options.stripe_rows = kStripeRows;
  options.metadata = {{"headrace.version", "0"}};
  FileWriter writer(
      path.string(),
      Schema::Parse("struct<label:float,dense:map<int,float>,sparse:map<int,list<bigint>>>"),
      options, true);
  std::vector<float> floats(kMapRows, 0.5F);
  std::vector<uint32_t> ones(kMapRows, 1), many(kMapRows, 20);
  std::vector<int64_t> ids(kMapRows * 20);
  for (size_t i = 0; i < ids.size(); ++i) ids[i] = static_cast<int64_t>(i) * 977;
  std::vector<uint64_t> late((kMapRows + 63) / 64);
  for (uint64_t row = 500; row < kMapRows; ++row) late[row / 64] |= uint64_t{1} << (row % 64);
  FlatBatch batch;
  batch.rows = kMapRows;
  batch.columns.resize(3);
  batch.columns[0].name = "label";
  batch.columns[0].floats = floats;
  batch.columns[1].name = "dense";
  batch.columns[1].features = {{MapKey::Of(int64_t{3}), {}, {}, {}, floats},
                               {MapKey::Of(int64_t{9}), {}, {}, {}, floats}};
  batch.columns[2].name = "sparse";
  const std::span<const int64_t> all(ids);
  batch.columns[2].features = {
      {MapKey::Of(int64_t{17}), {}, ones, all.first(kMapRows), {}},
      {MapKey::Of(int64_t{20}), {}, many, all, {}},
      {MapKey::Of(int64_t{21}), late, std::span(ones).first(100), all.first(100), {}}};
  writer.WriteFlat(batch);
  writer.Close();
  const std::string bytes = ReadWholeFile(path.string());
  std::filesystem::remove(path);
  return FileReader::Open(MemorySource("example.dwrf", bytes));
}

Projection ExampleProjection() {
  return {{{"dense", MapKey::Of(int64_t{3})},
           {"sparse", MapKey::Of(int64_t{17})},
           {"sparse", MapKey::Of(int64_t{21})},
           {"sparse", MapKey::Of(int64_t{999})}},
          {"label"}};
}

TEST(LayoutMap, TextWithoutAndWithAProjection) {
  const auto file = ExampleFile();
  ExpectGolden("layout.txt", LayoutText(MapLayout({file}, {}), true));
  const Projection projection = ExampleProjection();
  LayoutOptions options;
  options.projection = &projection;
  options.projection_name = "pipeline.toml";
  options.max_gap_bytes = 4096;
  ExpectGolden("layout_projection.txt", LayoutText(MapLayout({file}, options), true));
}

TEST(LayoutMap, FiguresAreThoseOfTheReadsMade) {
  const auto file = ExampleFile();
  const Projection projection = ExampleProjection();
  for (const uint64_t gap : {uint64_t{0}, uint64_t{1000}, uint64_t{1} << 20}) {
    for (const uint64_t most : {uint64_t{1}, uint64_t{3000}, uint64_t{8} << 20}) {
      SCOPED_TRACE(testing::Message() << "gap " << gap << " max " << most);
      LayoutOptions options;
      options.projection = &projection;
      options.max_gap_bytes = gap;
      options.max_read_bytes = most;
      const LayoutMap map = MapLayout({file}, options);
      uint64_t reads = 0, read_bytes = 0, wanted_bytes = 0;
      for (size_t s = 0; s < file->num_stripes(); ++s) {
        FetchOptions fetching;
        fetching.max_gap_bytes = gap;
        fetching.max_read_bytes = most;
        const FetchedStripe fetched =
            Fetch(MakePlan(*file, file->ReadStripe(s), projection), file->source(), fetching);
        reads += fetched.figures.requests;
        read_bytes += fetched.read_bytes;
        wanted_bytes += fetched.wanted_bytes;
      }
      EXPECT_EQ(map.reads, reads);
      EXPECT_EQ(map.read_bytes, read_bytes);
      EXPECT_EQ(map.wanted_bytes, wanted_bytes);
      EXPECT_EQ(map.absent_features, 1u);
      uint64_t wanted_by_kind = 0, over_read_by_kind = 0, stored_by_kind = 0;
      for (const auto& [kind, sum] : map.kinds) {
        wanted_by_kind += sum.wanted_bytes;
        over_read_by_kind += sum.over_read_bytes;
        stored_by_kind += sum.stored_bytes;
      }
      EXPECT_EQ(wanted_by_kind, wanted_bytes);
      EXPECT_EQ(over_read_by_kind, read_bytes - wanted_bytes);
      EXPECT_EQ(stored_by_kind + map.unnamed_bytes, map.stripe_bytes());
    }
  }
}

TEST(LayoutMap, EveryByteOfTheFileHasAPlace) {
  const LayoutMap map = MapLayout({ExampleFile()}, {});
  const FileLayout& f = map.files[0];
  EXPECT_EQ(f.data_bytes + f.index_bytes + f.stripe_footer_bytes + f.cache_bytes + f.tail_bytes +
                f.other_bytes,
            f.file_bytes);
  EXPECT_EQ(f.other_bytes, 3u);  // "ORC"
  const auto json = nlohmann::json::parse(LayoutJson(map));
  EXPECT_EQ(json["schema"], "headrace.layout/1");
  EXPECT_EQ(json["keys"].size(), 5u);
  EXPECT_FALSE(json.contains("projection"));
}

TEST(LayoutMap, RefusesAColumnThatIsNot) {
  const Projection projection = {{}, {"lable"}};
  LayoutOptions options;
  options.projection = &projection;
  EXPECT_THROW(MapLayout({ExampleFile()}, options), Error);
}

}  // namespace
}  // namespace headrace::reader::dwrf
