// FileWriter's contract: both ways in, determinism, layout, refusals.
#include "reader/dwrf/file_writer.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <functional>
#include <numeric>
#include <random>

#include "base/error.h"
#include "base/file.h"
#include "reader/dwrf/encode/bit_buffer.h"
#include "tests/reader/encode/plain_decoder.h"

namespace headrace::reader::dwrf {
namespace {

std::string TemporaryPath() {
  return (std::filesystem::temp_directory_path() /
          ("headrace-file-writer-" + std::to_string(getpid()) + ".dwrf"))
      .string();
}

std::string Written(const Schema& schema, const WriterOptions& options,
                    const std::function<void(FileWriter&)>& write) {
  const std::string path = TemporaryPath();
  FileWriter writer(path, schema, options, true);
  write(writer);
  writer.Close();
  std::string bytes = ReadWholeFile(path);
  std::filesystem::remove(path);
  return bytes;
}

// A training table of `rows` rows in both forms.
struct Table {
  Schema schema = Schema::Parse(
      "struct<label:float,session_id:bigint,dense:map<int,float>,sparse:map<int,list<bigint>>,"
      "weighted:map<int,map<bigint,float>>>");
  struct Feature {
    int64_t key;
    std::vector<uint64_t> present;
    std::vector<uint32_t> lengths;
    std::vector<int64_t> integers;
    std::vector<float> floats;
  };
  uint64_t rows;
  std::vector<float> labels;
  std::vector<uint64_t> label_present;
  std::vector<int64_t> sessions;
  std::vector<Feature> features[3];

  Table(uint64_t num_rows, uint64_t num_features, uint64_t seed) : rows(num_rows) {
    std::mt19937_64 random(seed);
    label_present.resize((rows + 63) / 64);
    for (uint64_t row = 0; row < rows; ++row) {
      labels.push_back(static_cast<float>(random() % 2));
      sessions.push_back(static_cast<int64_t>(row / 8 * 1'000'003));
      if (random() % 5 > 0) label_present[row / 64] |= uint64_t{1} << (row % 64);
    }
    for (int map = 0; map < 3; ++map) {
      for (uint64_t f = 0; f < num_features; ++f) {
        Feature feature{static_cast<int64_t>(num_features - f) * 7, {}, {}, {}, {}};
        feature.present.resize((rows + 63) / 64);
        const uint64_t start = f == 1 ? rows / 2 : 0;  // one key appears late
        for (uint64_t row = start; row < rows; ++row) {
          if (f != 2 && random() % 100 >= 45) continue;
          feature.present[row / 64] |= uint64_t{1} << (row % 64);
          const uint64_t items = map == 0 ? 1 : random() % 52;
          if (map > 0) feature.lengths.push_back(static_cast<uint32_t>(items));
          for (uint64_t i = 0; i < items; ++i) {
            if (map > 0)
              feature.integers.push_back(
                  static_cast<int64_t>(random() % (1 << (8 + random() % 16))));
            if (map != 1) feature.floats.push_back(static_cast<float>(random() % 4096) / 4096);
          }
        }
        if (f == 2) feature.present.clear();  // on every row
        features[map].push_back(std::move(feature));
      }
    }
  }

  // Rows [begin, end); begin is a multiple of 64.
  FlatBatch Flat(uint64_t begin, uint64_t end) const {
    static const char* kNames[] = {"dense", "sparse", "weighted"};
    FlatBatch batch;
    batch.rows = end - begin;
    batch.columns.push_back({"label",
                             {},
                             std::span(label_present).subspan(begin / 64),
                             {},
                             std::span(labels).subspan(begin, end - begin)});
    batch.columns.push_back(
        {"session_id", {}, {}, std::span(sessions).subspan(begin, end - begin), {}});
    for (int map = 0; map < 3; ++map) {
      FlatColumn column{kNames[map], {}, {}, {}, {}};
      for (const Feature& f : features[map]) {
        const auto count = [&](uint64_t from, uint64_t to) {
          return f.present.empty() ? to - from : CountBits(f.present, from, to - from);
        };
        const uint64_t first = count(0, begin), n = count(begin, end);
        FlatFeature out{{false, f.key, ""}, {}, {}, {}, {}};
        if (!f.present.empty()) out.present = std::span(f.present).subspan(begin / 64);
        uint64_t item = first, items = n;
        if (map > 0) {
          item = std::accumulate(f.lengths.begin(), f.lengths.begin() + static_cast<int64_t>(first),
                                 uint64_t{0});
          out.lengths = std::span(f.lengths).subspan(first, n);
          items = std::accumulate(out.lengths.begin(), out.lengths.end(), uint64_t{0});
          out.integers = std::span(f.integers).subspan(item, items);
        }
        if (map != 1) out.floats = std::span(f.floats).subspan(item, items);
        column.features.push_back(out);
      }
      batch.columns.push_back(std::move(column));
    }
    return batch;
  }

  Column Rows() const {
    Column table;
    table.rows = rows;
    table.children.resize(5);
    table.children[0] = {TypeKind::kFloat, rows, {}, {}, {}, labels, {}, {}, {}, {}};
    for (uint64_t row = 0; row < rows; ++row)
      table.children[0].present.push_back(label_present[row / 64] >> (row % 64) & 1);
    table.children[1] = {TypeKind::kLong, rows, {}, sessions, {}, {}, {}, {}, {}, {}};
    for (int map = 0; map < 3; ++map) {
      Column& column = table.children[2 + static_cast<size_t>(map)];
      column.kind = TypeKind::kMap;
      column.rows = rows;
      column.offsets = {0};
      Column keys, values, items, weights;
      keys.kind = TypeKind::kInt;
      values.kind = map == 0 ? TypeKind::kFloat : map == 1 ? TypeKind::kList : TypeKind::kMap;
      items.kind = TypeKind::kLong;
      weights.kind = TypeKind::kFloat;
      if (map > 0) values.offsets = {0};
      std::vector<uint64_t> value(features[map].size()), item(features[map].size());
      for (uint64_t row = 0; row < rows; ++row) {
        for (size_t i = 0; i < features[map].size(); ++i) {
          const Feature& f = features[map][i];
          if (!f.present.empty() && !(f.present[row / 64] >> (row % 64) & 1)) continue;
          keys.integers.push_back(f.key);
          if (map == 0) {
            values.floats.push_back(f.floats[value[i]++]);
            continue;
          }
          const uint32_t n = f.lengths[value[i]++];
          for (uint32_t k = 0; k < n; ++k, ++item[i]) {
            items.integers.push_back(f.integers[item[i]]);
            if (map == 2) weights.floats.push_back(f.floats[item[i]]);
          }
          values.offsets.push_back(items.integers.size());
        }
        column.offsets.push_back(keys.integers.size());
      }
      keys.rows = values.rows = keys.integers.size();
      items.rows = weights.rows = items.integers.size();
      if (map > 0) values.children.push_back(items);
      if (map == 2) values.children.push_back(weights);
      column.children = {keys, values};
    }
    return table;
  }
};

WriterOptions FlatOptions() {
  WriterOptions options;
  options.flat_maps = {"dense", "sparse", "weighted"};
  options.row_index_stride = 100;
  options.stripe_bytes = 200'000;
  return options;
}

TEST(FileWriter, SameRowsGiveSameBytesEitherWayAndInAnyBatches) {
  const Table table(1500, 6, 1);
  for (const LayoutGoal goal :
       {LayoutGoal::kFixed, LayoutGoal::kBalanced, LayoutGoal::kRead, LayoutGoal::kSize}) {
    WriterOptions options = FlatOptions();
    options.stripe_rows = goal == LayoutGoal::kRead ? 333 : 0;
    options.goal = goal;
    options.choose_codec = true;
    const auto flat = [&](uint64_t step) {
      return Written(table.schema, options, [&](FileWriter& writer) {
        for (uint64_t row = 0; row < table.rows; row += step)
          writer.WriteFlat(table.Flat(row, std::min(row + step, table.rows)));
      });
    };
    const std::string whole = flat(table.rows);
    EXPECT_EQ(flat(table.rows), whole);
    EXPECT_EQ(flat(64), whole);
    EXPECT_EQ(flat(448), whole);
    EXPECT_EQ(Written(table.schema, options, [&](FileWriter& w) { w.Write(table.Rows()); }), whole);
    plain::PlainDecoder file(whole);
    EXPECT_GT(file.footer.stripes_size(), 2);
    for (int i = 0; i < file.footer.stripes_size(); ++i) file.Stripe(i);
  }
}

TEST(FileWriter, PutsFeaturesInTheOrderAskedForThenByKey) {
  const Table table(300, 6, 2);
  WriterOptions options = FlatOptions();
  options.feature_order["sparse"] = {{false, 21, ""}, {false, 999, ""}, {false, 42, ""}};
  plain::PlainDecoder file(
      Written(table.schema, options, [&](FileWriter& w) { w.WriteFlat(table.Flat(0, 300)); }));
  file.Stripe(0);
  std::vector<int64_t> keys;
  const uint32_t value = table.schema.node(*table.schema.FindColumn("sparse")).children[1];
  for (const auto& e : file.stripe_footer.encoding())
    if (e.node() == value) keys.push_back(e.key().int_key());
  EXPECT_EQ(keys, (std::vector<int64_t>{21, 42, 7, 14, 28, 35}));
  // All streams of a key are neighbours.
  std::vector<uint32_t> sequences;
  for (const auto& s : file.stripe_footer.streams())
    if (s.kind() != 6 && (s.node() == value || s.node() == value + 1))
      sequences.push_back(s.sequence());
  EXPECT_TRUE(std::is_sorted(sequences.begin(), sequences.end()));
}

TEST(FileWriter, SaysInTheFileWhatItChose) {
  const Table table(10, 3, 3);
  WriterOptions options = FlatOptions();
  options.metadata = {{"owner", "me"}};
  options.feature_order["dense"] = {{false, 14, ""}, {false, 7, ""}};
  plain::PlainDecoder file(
      Written(table.schema, options, [&](FileWriter& w) { w.WriteFlat(table.Flat(0, 10)); }));
  std::map<std::string, std::string> items;
  for (const auto& item : file.footer.metadata()) items[item.name()] = item.value();
  EXPECT_EQ(items["orc.writer.name"], "headrace");
  EXPECT_EQ(items["headrace.codec"], "zstd");
  EXPECT_EQ(items["headrace.min_ratio"], "1.15");
  EXPECT_EQ(items["headrace.flat_maps"], "dense,sparse,weighted");
  EXPECT_EQ(items["headrace.feature_order.dense"], "14,7");
  EXPECT_EQ(items["owner"], "me");
  EXPECT_EQ(file.postscript.writer_version(), 4u);
}

TEST(FileWriter, UsesDictionariesWhereTheyPay) {
  const Schema schema = Schema::Parse("struct<few:bigint,many:bigint,word:string,id:string>");
  Column batch;
  batch.rows = 2000;
  batch.children.resize(4);
  for (int c = 0; c < 4; ++c) {
    Column& column = batch.children[static_cast<size_t>(c)];
    column.kind = c < 2 ? TypeKind::kLong : TypeKind::kString;
    column.rows = batch.rows;
    if (c >= 2) column.offsets = {0};
    for (int64_t i = 0; i < 2000; ++i) {
      if (c < 2) {
        column.integers.push_back(c == 0 ? i % 7 * 1'000'000'007 : i * 77'777);
        continue;
      }
      column.bytes += c == 2 ? (i % 50 == 0 ? "once " + std::to_string(i) : "a word said often")
                             : "id" + std::to_string(i);
      column.offsets.push_back(column.bytes.size());
    }
  }
  plain::PlainDecoder file(Written(schema, {}, [&](FileWriter& w) { w.Write(batch); }));
  file.Stripe(0);
  std::map<uint32_t, std::pair<uint32_t, uint32_t>> encodings;
  for (const auto& e : file.stripe_footer.encoding())
    encodings[e.node()] = {e.kind(), e.dictionary_size()};
  EXPECT_EQ(encodings[1], std::pair(1u, 7u));
  EXPECT_EQ(encodings[2], std::pair(0u, 0u));
  EXPECT_EQ(encodings[3], std::pair(1u, 1u));
  EXPECT_EQ(encodings[4], std::pair(0u, 0u));
  EXPECT_EQ(file.streams.count({3, 0, static_cast<uint32_t>(StreamKind::kStrideDictionary)}), 1u);
}

TEST(FileWriter, AFlattenedMapWithoutEntriesHasData) {
  const Schema schema = Schema::Parse("struct<m:map<int,float>>");
  WriterOptions options;
  options.flat_maps = {"m"};
  FlatBatch batch;
  batch.rows = 5;
  batch.columns.push_back({"m", {}, {}, {}, {}});
  plain::PlainDecoder file(Written(schema, options, [&](FileWriter& w) { w.WriteFlat(batch); }));
  EXPECT_GT(file.footer.stripes(0).data_length(), 0u);
  EXPECT_EQ(file.Stripe(0).children[0].offsets, (std::vector<uint64_t>{0, 0, 0, 0, 0, 0}));
}

TEST(FileWriter, LeavesNoFileUnlessClosed) {
  const std::string path = TemporaryPath();
  {
    FileWriter writer(path, Schema::Parse("struct<a:int>"), {}, true);
    EXPECT_FALSE(std::filesystem::exists(path));
  }
  EXPECT_FALSE(std::filesystem::exists(path));
}

Column OneMap(std::vector<int64_t> keys) {
  Column batch;
  batch.rows = 1;
  Column map;
  map.kind = TypeKind::kMap;
  map.rows = 1;
  map.offsets = {0, keys.size()};
  map.children.resize(2);
  map.children[0] = {TypeKind::kInt, keys.size(), {}, keys, {}, {}, {}, {}, {}, {}};
  map.children[1] = {
      TypeKind::kFloat, keys.size(), {}, {}, {}, std::vector<float>(keys.size()), {}, {}, {}, {}};
  batch.children = {map};
  return batch;
}

TEST(FileWriter, RefusesWhatDoesNotFit) {
  const Schema schema = Schema::Parse("struct<m:map<int,float>>");
  WriterOptions flat;
  flat.flat_maps = {"m"};
  ExitCode code = ExitCode::kBadData;
  const auto fails = [&](const char* name, const WriterOptions& options, const Column& batch) {
    try {
      Written(schema, options, [&](FileWriter& writer) { writer.Write(batch); });
      ADD_FAILURE() << name;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), code) << name << ": " << error.what();
    }
  };
  fails("key twice", flat, OneMap({3, 3}));
  Column null_key = OneMap({3});
  null_key.children[0].children[0].present = {0};
  fails("null key", flat, null_key);
  fails("key out of range", flat, OneMap({int64_t{1} << 40}));
  Column null_row = OneMap({3});
  null_row.present = {0};
  fails("null row", flat, null_row);
  code = ExitCode::kUsage;
  Column short_child = OneMap({3});
  short_child.children[0].offsets = {0, 2};
  fails("offsets beyond the child", flat, short_child);
  WriterOptions options;
  options.flat_maps = {"x"};
  fails("unknown map", options, OneMap({1}));
  options = flat;
  options.columns["m.value.element"] = {};
  fails("unknown path", options, OneMap({1}));
  options = flat;
  options.block_size = 10;
  fails("block size", options, OneMap({1}));
  options = flat;
  options.columns["m.value"].dictionary = DictionaryUse::kShared;
  fails("shared dictionary of floats", options, OneMap({1}));
}

}  // namespace
}  // namespace headrace::reader::dwrf
