// The flattened-map files of other writers, row by row against the rule their authors state: row i
// has the keys k = (3i + j) mod 32 for j = 0, 1, 2, each with a value made of k.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>

#include "reader/batch/tensorize.h"
#include "reader/dwrf/feature_stream.h"
#include "reader/dwrf/file_reader.h"
#include "tests/reader/feature/slices_check.h"

namespace headrace::reader::dwrf {
namespace {

struct SharedFile {
  const char* name;
  bool value_nulls = false;  // entry j = 0 is null when i mod 5 = 0
  bool map_nulls = false;    // the map is null when i mod 5 = 0
  bool empty = false;        // no map has a key
  bool odd_missing = false;  // odd k are absent
  bool is_boolean = false;   // value: k is even, else k itself
  bool lists = false;        // value: 3k, 3k+1, 3k+2
};

std::filesystem::path Folder() {
  const char* set = std::getenv("HEADRACE_DWRF_FILES");
  return set != nullptr
             ? set
             : std::filesystem::path(HEADRACE_SOURCE_DIR) / ".." / "shared" / "dwrf" / "files";
}

bool HasKey(const SharedFile& file, uint64_t row, int64_t key) {
  if (file.empty || (file.map_nulls && row % 5 == 0) || (file.odd_missing && key % 2 != 0))
    return false;
  for (uint64_t j = 0; j < 3; ++j) {
    if (static_cast<int64_t>((3 * row + j) % 32) == key)
      return !(file.value_nulls && row % 5 == 0 && j == 0);
  }
  return false;
}

void ExpectKey(const SharedFile& file, const FlatMapBatch& batch, int64_t key) {
  const auto k = static_cast<size_t>(key);
  for (uint64_t row = 0; row < batch.rows; ++row) {
    const bool has = HasKey(file, batch.first_row + row, key);
    if (!file.lists) {
      ASSERT_EQ(batch.dense[k].present.Get(row), has)
          << file.name << " key " << key << " row " << row;
      const float expected = !has              ? 0.0f
                             : file.is_boolean ? static_cast<float>(key % 2 == 0)
                                               : static_cast<float>(key);
      ASSERT_EQ(batch.dense[k].values[row], expected)
          << file.name << " key " << key << " row " << row;
      continue;
    }
    const SparseColumn& column = batch.sparse[k];
    ASSERT_EQ(column.present.Get(row), has) << file.name << " key " << key << " row " << row;
    ASSERT_EQ(column.offsets[row + 1] - column.offsets[row], has ? 3u : 0u)
        << file.name << " key " << key << " row " << row;
    for (int64_t i = 0; has && i < 3; ++i)
      ASSERT_EQ(column.values[column.offsets[row] + static_cast<uint64_t>(i)], 3 * key + i);
  }
}

TEST(SharedFiles, FlattenedMapsFollowTheirRule) {
  const std::filesystem::path folder = Folder();
  if (!std::filesystem::exists(folder))
    GTEST_SKIP() << "no " << folder << ": set HEADRACE_DWRF_FILES to the folder of test files";
  const SharedFile files[] = {
      {.name = "flat_map_int.dwrf"},
      {.name = "flat_map_int_with_null.dwrf", .value_nulls = true},
      {.name = "flat_map_int_missing_sequences.dwrf", .odd_missing = true},
      {.name = "flat_map_int_missing_sequence_0.dwrf"},
      {.name = "flat_map_all_empty_maps_no_encoding.dwrf", .empty = true},
      {.name = "flat_map_some_null_maps.dwrf", .map_nulls = true},
      {.name = "flat_map_boolean_with_null.dwrf", .value_nulls = true, .is_boolean = true},
      {.name = "flat_map_double.dwrf"},
      {.name = "flat_map_list_with_null.dwrf", .value_nulls = true, .lists = true},
      {.name = "flat_map_dict_share_simple.dwrf"},
  };
  for (const SharedFile& file : files) {
    const auto reader = FileReader::Open(OpenFileSource((folder / file.name).string()));
    Projection projection;
    for (int64_t key = 0; key < 32; ++key)
      projection.features.push_back({"test", MapKey{false, key, {}}});
    projection.columns = {"test2"};
    for (size_t i = 0; i < reader->num_stripes(); ++i) {
      const FlatMapBatch batch = Extract(Decode(Decompress(
          Fetch(MakePlan(*reader, reader->ReadStripe(i), projection), reader->source()))));
      Validate(batch);
      std::mt19937_64 random(i);
      CheckSlices(
          [&] {
            return Decompress(
                Fetch(MakePlan(*reader, reader->ReadStripe(i), projection), reader->source()));
          },
          &random);
      if (testing::Test::HasFatalFailure()) return;
      for (int64_t key = 0; key < 32; ++key) {
        ExpectKey(file, batch, key);
        if (HasFatalFailure()) return;
      }
      // The same by groups of unique rows.
      for (const DedupScope scope : {DedupScope::kNeighbours, DedupScope::kBatch}) {
        GroupRequests requests;
        requests.scope = scope;
        for (size_t k = 0; k + 3 < batch.sparse.size(); k += 3)
          requests.groups.push_back(
              {std::to_string(k), {batch.sparse[k].name, batch.sparse[k + 2].name}});
        FlatMapBatch unique =
            Extract(Decode(Decompress(Fetch(MakePlan(*reader, reader->ReadStripe(i), projection),
                                            reader->source())),
                           &requests));
        Validate(unique);
        EXPECT_EQ(unique.groups.size(), requests.groups.size());
        ExpandAll(&unique);
        for (int64_t key = 0; key < 32; ++key) {
          ExpectKey(file, unique, key);
          if (HasFatalFailure()) return;
        }
      }
    }
  }
}

}  // namespace
}  // namespace headrace::reader::dwrf
