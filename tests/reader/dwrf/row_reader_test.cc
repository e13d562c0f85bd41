// RowReader over files of our own writer: round trips of random tables, seeks, projections, how
// much is read, damage.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <random>

#include "base/error.h"
#include "base/file.h"
#include "reader/dwrf/column_gather.h"
#include "reader/dwrf/file_writer.h"
#include "reader/dwrf/inspect.h"
#include "tests/reader/dwrf/test_files.h"
#include "tests/seed.h"

namespace headrace::reader::dwrf {
namespace {

using ::testing::HasSubstr;
using Random = std::mt19937_64;

constexpr const char* kType =
    "struct<b:boolean,t:tinyint,s:smallint,i:int,l:bigint,f:float,d:double,str:string,bin:binary,"
    "ts:timestamp,"
    "li:list<int>,ls:list<string>,m:map<string,list<bigint>>,st:struct<x:int,y:struct<z:string>>,"
    "dense:map<int,float>,sparse:map<int,list<bigint>>,words:map<string,string>,deep:map<int,"
    "struct<p:list<string>,q:timestamp>>>";

// Appends one random value of node `id`. `unique` gives keys of maps that are flattened.
void AppendValue(const Schema& schema, uint32_t id, Random& random, Column* column,
                 bool may_be_null) {
  const bool is_null = may_be_null && random() % 7 == 0;
  const uint64_t row = column->rows;
  if (is_null && column->present.empty()) column->present.assign(row, 1);
  if (is_null || !column->present.empty()) column->present.push_back(is_null ? 0 : 1);
  ++column->rows;
  const SchemaNode& node = schema.node(id);
  const auto integer = [&](int bits) {
    const uint64_t value = random() % 3 == 0 ? random() : random() % 20;
    return is_null ? 0 : static_cast<int64_t>(value << (64 - bits)) >> (64 - bits);
  };
  switch (node.kind) {
    case TypeKind::kBoolean:
      return column->integers.push_back(is_null ? 0 : static_cast<int64_t>(random() % 2));
    case TypeKind::kByte:
      return column->integers.push_back(integer(8));
    case TypeKind::kShort:
      return column->integers.push_back(integer(16));
    case TypeKind::kInt:
      return column->integers.push_back(integer(32));
    case TypeKind::kLong:
      return column->integers.push_back(integer(64));
    case TypeKind::kFloat:
      return column->floats.push_back(is_null ? 0 : static_cast<float>(random() % 1000) / 7);
    case TypeKind::kDouble:
      return column->doubles.push_back(is_null ? 0 : static_cast<double>(random()) / 7);
    case TypeKind::kTimestamp:
      column->nanos.push_back(is_null ? 0 : static_cast<int32_t>(random() % 1000) * 1000000);
      return column->integers.push_back(is_null ? 0 : static_cast<int64_t>(random() % 4000000000));
    case TypeKind::kString:
    case TypeKind::kBinary:
      if (!is_null)
        column->bytes += random() % 4 == 0 ? std::string(random() % 60, static_cast<char>(random()))
                                           : "w" + std::to_string(random() % 12);
      return column->offsets.push_back(column->bytes.size());
    case TypeKind::kStruct:
      for (size_t c = 0; c < node.children.size(); ++c)
        AppendValue(schema, node.children[c], random, &column->children[c], true);
      return;
    default:
      break;
  }
  const uint64_t length = is_null ? 0 : random() % 5;
  const bool is_map = node.kind == TypeKind::kMap;
  uint64_t key = random() % 3;
  for (uint64_t e = 0; e < length; ++e) {
    if (is_map) {
      Column& keys = column->children[0];
      ++keys.rows;
      if (keys.kind == TypeKind::kString) {
        keys.bytes += "key" + std::to_string(key);
        keys.offsets.push_back(keys.bytes.size());
      } else {
        keys.integers.push_back(static_cast<int64_t>(key));
      }
      key += 1 + random() % 3;
    }
    AppendValue(schema, node.children.back(), random, &column->children.back(), true);
  }
  column->offsets.push_back(column->offsets.back() + length);
}

Column RandomRows(const Schema& schema, uint64_t rows, Random& random) {
  Column batch = EmptyColumn(schema, 0);
  for (uint64_t r = 0; r < rows; ++r) AppendValue(schema, 0, random, &batch, false);
  return batch;
}

WriterOptions RandomOptions(Random& random) {
  WriterOptions options;
  constexpr CompressionKind kKinds[] = {CompressionKind::kNone, CompressionKind::kZlib,
                                        CompressionKind::kZstd, CompressionKind::kLz4,
                                        CompressionKind::kSnappy};
  options.compression = kKinds[random() % 5];
  options.min_ratio = random() % 2 == 0 ? 1.15 : 1.0;
  options.min_compress_bytes = random() % 2 == 0 ? 128 : 1;
  options.block_size = random() % 2 == 0 ? 1024 : 256 << 10;
  options.stripe_rows = random() % 3 == 0 ? 0 : 100 + random() % 500;
  options.row_index_stride = random() % 4 == 0 ? 0 : 1 + static_cast<uint32_t>(random() % 150);
  options.use_vints = random() % 4 != 0;
  options.stripe_cache = random() % 2 == 0;
  options.checksum = random() % 4 != 0;
  options.goal = static_cast<LayoutGoal>(random() % 4);
  options.choose_codec = random() % 2 == 0;
  if (random() % 3 != 0) options.flat_maps = {"dense", "sparse", "words", "deep"};
  for (const char* column :
       {"i", "l", "str", "ls.element", "sparse.value.element", "words.value"}) {
    options.columns[column].dictionary = static_cast<DictionaryUse>(random() % 3);
  }
  return options;
}

// Writes and opens again, in memory.
std::shared_ptr<const FileReader> Written(const Schema& schema, const WriterOptions& options,
                                          const Column& batch) {
  const std::string path = (std::filesystem::temp_directory_path() /
                            ("headrace-rows-" + std::to_string(getpid()) + ".dwrf"))
                               .string();
  FileWriter writer(path, schema, options, true);
  writer.Write(batch);
  writer.Close();
  const std::string bytes = ReadWholeFile(path);
  std::filesystem::remove(path);
  return FileReader::Open(MemorySource("written.dwrf", bytes));
}

TEST(RowReader, ReadsBackWhatWasWritten) {
  const uint64_t seed = TestSeed(20240711);
  const Schema schema = Schema::Parse(kType);
  for (uint64_t round = 0; round < 30; ++round) {
    SCOPED_TRACE("HEADRACE_SEED=" + std::to_string(seed) + ", round " + std::to_string(round));
    Random random(seed + round);
    const Column batch = RandomRows(schema, 1 + random() % 900, random);
    const WriterOptions options = RandomOptions(random);
    const auto file = Written(schema, options, batch);
    const std::vector<std::string> expected = Lines(ToText(schema, batch, TextFormat::kCanonical));
    ASSERT_EQ(Lines(ReadAll(file)), expected);
    ASSERT_EQ(Lines(ReadAll(file, {}, {1 + random() % 300, 1000 + random() % 100000})), expected);
    RowReader rows(file);
    for (int seek = 0; seek < 10; ++seek) {
      const uint64_t row = random() % expected.size();
      rows.SeekToRow(row);
      Column some;
      ASSERT_TRUE(rows.NextBatch(1 + random() % 20, 1 << 20, &some));
      const std::vector<std::string> lines =
          Lines(ToText(rows.schema(), some, TextFormat::kCanonical));
      for (size_t i = 0; i < lines.size(); ++i)
        ASSERT_EQ(lines[i], expected[row + i]) << "row " << row + i;
    }
  }
}

// Counts what is read of a source.
class CountingSource final : public Source {
 public:
  explicit CountingSource(std::shared_ptr<const Source> inner) : inner_(std::move(inner)) {}
  const std::string& name() const override { return inner_->name(); }
  uint64_t size() const override { return inner_->size(); }
  void ReadAt(uint64_t offset, std::span<uint8_t> out) const override {
    bytes += out.size();
    inner_->ReadAt(offset, out);
  }
  mutable uint64_t bytes = 0;

 private:
  std::shared_ptr<const Source> inner_;
};

TEST(RowReader, ReadsTheStreamsOfTheProjectionOnly) {
  const Schema schema = Schema::Parse("struct<id:bigint,sparse:map<int,list<bigint>>>");
  Random random(TestSeed(20240711));
  Column batch = EmptyColumn(schema, 0);
  for (int r = 0; r < 20000; ++r) AppendValue(schema, 0, random, &batch, false);
  WriterOptions options;
  options.flat_maps = {"sparse"};
  options.compression = CompressionKind::kNone;
  const auto written = Written(schema, options, batch);
  auto counting =
      std::make_shared<CountingSource>(std::shared_ptr<const Source>(written, &written->source()));
  const auto file = FileReader::Open(counting);
  const uint64_t tail = counting->bytes;
  RowReaderOptions reading;
  reading.verify_checksums = false;
  reading.columns = {ColumnSelection::Parse("sparse[4]", schema)};
  uint64_t wanted = 0;
  for (size_t i = 0; i < file->num_stripes(); ++i) {
    const auto stripe = file->ReadStripe(i);
    for (const FlatKey& key : stripe->FlatKeys(2)) {
      if (key.key != MapKey::Of(4)) continue;
      for (const StreamInfo& stream : stripe->streams) {
        if (stream.kind == StreamKind::kRowIndex) continue;
        if (stream.sequence == key.sequence || (stream.node == 2 && stream.sequence == 0))
          wanted += stream.length;
      }
    }
  }
  counting->bytes = 0;
  ReadAll(file, reading);
  EXPECT_GT(wanted, 1000u);
  EXPECT_GE(counting->bytes, wanted);
  EXPECT_LE(counting->bytes, wanted + tail);
}

TEST(RowReader, SelectionErrorsNameTheNearest) {
  const Schema schema = Schema::Parse("struct<label:float,sparse:map<int,list<bigint>>>");
  Random random(TestSeed(20240711));
  const auto file = Written(schema, {}, RandomRows(schema, 3, random));
  const auto message = [&](const std::string& column) {
    try {
      RowReaderOptions options;
      options.columns = {ColumnSelection::Parse(column, schema)};
      RowReader rows(file, options);
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ExitCode::kUsage);
      return std::string(error.what());
    }
    return std::string("no error");
  };
  EXPECT_THAT(message("lable"), HasSubstr("did you mean 'label'?"));
  EXPECT_THAT(message("spars[3]"), HasSubstr("did you mean 'sparse'?"));
  EXPECT_THAT(message("label[3]"), HasSubstr("only maps have keys"));
  EXPECT_THAT(message("sparse[x]"), HasSubstr("key 'x' of column 'sparse' is not an integer"));
  EXPECT_EQ(message("LABEL"), "no error") << "names match in any case when nothing else does";
}

TEST(RowReader, DamageAnywhereIsRefusedOrHarmless) {
  const uint64_t seed = TestSeed(20240711);
  Random random(seed);
  SCOPED_TRACE("HEADRACE_SEED=" + std::to_string(seed));
  const Schema schema = Schema::Parse(kType);
  WriterOptions options;
  options.flat_maps = {"dense", "sparse", "words", "deep"};
  options.stripe_rows = 40;
  options.row_index_stride = 16;
  for (const CompressionKind kind :
       {CompressionKind::kNone, CompressionKind::kZstd, CompressionKind::kZlib}) {
    options.compression = kind;
    const auto file = Written(schema, options, RandomRows(schema, 120, random));
    std::string bytes(file->source().size(), '\0');
    file->source().ReadAt(0, {reinterpret_cast<uint8_t*>(bytes.data()), bytes.size()});
    const std::string whole = ReadAll(file);
    for (int round = 0; round < 150; ++round) {
      std::string damaged = bytes;
      if (round % 10 == 0) {
        damaged.resize(random() % damaged.size());
      } else {
        for (uint64_t flips = 1 + random() % 3; flips > 0; --flips)
          damaged[random() % damaged.size()] ^= static_cast<char>(1 << random() % 8);
      }
      for (const bool verify : {true, false}) {
        try {
          const auto opened = FileReader::Open(MemorySource("damaged.dwrf", damaged));
          RowReaderOptions reading;
          reading.verify_checksums = verify;
          reading.max_row_bytes = 64 << 20;
          Column batch;
          RowReader rows(opened, reading);
          for (uint64_t left = 20; left > 0 && rows.NextBatch(50, 1 << 20, &batch); --left) {
          }
          InspectJson(*opened);
          reading.skip_bad = true;
          if (opened->num_rows() < 10000) ReadAll(opened, reading);
        } catch (const Error& error) {
          EXPECT_TRUE(error.code() == ExitCode::kBadData || error.code() == ExitCode::kResources)
              << error.what();
        }
      }
    }
  }
}

TEST(Checksums, MismatchSkipsTheStripeAndSaysSo) {
  const Schema schema = Schema::Parse("struct<a:bigint>");
  Random random(1);
  WriterOptions options;
  options.stripe_rows = 100;
  const auto file = Written(schema, options, RandomRows(schema, 300, random));
  std::string bytes(file->source().size(), '\0');
  file->source().ReadAt(0, {reinterpret_cast<uint8_t*>(bytes.data()), bytes.size()});
  const std::vector<std::string> whole = Lines(ReadAll(file));
  bytes[file->ReadStripe(1)->offset + 60] ^= 1;
  const auto damaged = FileReader::Open(MemorySource("damaged.dwrf", bytes));
  EXPECT_THROW(ReadAll(damaged), Error);
  std::vector<std::string> skipped, expected(whole.begin(), whole.begin() + 100);
  expected.insert(expected.end(), whole.begin() + 200, whole.end());
  RowReaderOptions reading;
  reading.skip_bad = true;
  reading.on_skip = [&](const std::string& what) { skipped.push_back(what); };
  EXPECT_EQ(Lines(ReadAll(damaged, reading)), expected);
  EXPECT_THAT(skipped, ::testing::ElementsAre(HasSubstr("left out stripe 1, rows 100 to 199")));
}

TEST(Text, JsonIsValidForEveryValue) {
  const Schema schema = Schema::Parse(
      "struct<f:float,d:double,s:string,b:binary,t:timestamp,m:map<string,int>,l:list<boolean>>");
  Column batch = EmptyColumn(schema, 0);
  batch.rows = 2;
  const auto strings = [](Column* column, std::vector<std::string> values) {
    column->rows = values.size();
    for (const std::string& value : values) {
      column->bytes += value;
      column->offsets.push_back(column->bytes.size());
    }
  };
  batch.children[0].rows = batch.children[1].rows = batch.children[4].rows =
      batch.children[5].rows = batch.children[6].rows = 2;
  batch.children[0].floats = {std::numeric_limits<float>::quiet_NaN(), 0.1f};
  batch.children[1].doubles = {-std::numeric_limits<double>::infinity(), 1e300};
  strings(&batch.children[2], {"a\"\\\n\x01\xc3\xa9", "\xff"});
  strings(&batch.children[3], {"", "ab"});
  batch.children[4].integers = {1451606400, -1};
  batch.children[4].nanos = {500000000, 0};
  batch.children[5].offsets = {0, 2, 2};
  strings(&batch.children[5].children[0], {"z", "a"});
  batch.children[5].children[1].rows = 2;
  batch.children[5].children[1].integers = {1, 2};
  batch.children[6].offsets = {0, 0, 1};
  batch.children[6].children[0].rows = 1;
  batch.children[6].children[0].present = {0};
  batch.children[6].children[0].integers = {0};
  EXPECT_EQ(ToText(schema, batch, TextFormat::kNdjson),
            "{\"f\":\"NaN\",\"d\":\"-Infinity\",\"s\":\"a\\\"\\\\\\n\\u0001\xc3\xa9\",\"b\":{"
            "\"hex\":\"\"},\"t\":\"2016-01-01T00:00:00.500000000Z\","
            "\"m\":[[\"a\",2],[\"z\",1]],\"l\":[]}\n"
            "{\"f\":0.1,\"d\":1e+300,\"s\":{\"hex\":\"ff\"},\"b\":{\"hex\":\"6162\"},\"t\":\"1969-"
            "12-31T23:59:59.000000000Z\",\"m\":[],\"l\":[null]}\n");
}

TEST(SchemaText, ParsesWhatItPrintsAndNamesMistakes) {
  const Schema schema = Schema::Parse(kType);
  EXPECT_EQ(schema.ToString(), kType);
  EXPECT_EQ(Schema::Parse(schema.ToString()), schema);
  EXPECT_EQ(schema.Path(schema.size() - 1), "deep.value.q");
  const struct {
    const char* text;
    const char* message;
  } cases[] = {{"struct<a:itn>", "did you mean 'int'?"},
               {"struct<a:int", "column 13: expected '>'"},
               {"struct<a:int>x", "expected the end"},
               {"struct<a:list<>>", "list with 0 children"}};
  for (const auto& c : cases) {
    try {
      Schema::Parse(c.text);
      ADD_FAILURE() << c.text;
    } catch (const Error& error) {
      EXPECT_THAT(error.what(), HasSubstr(c.message)) << c.text;
    }
  }
}

}  // namespace
}  // namespace headrace::reader::dwrf
