// Files of other writers: rows by hash, metadata against what an independent decoder found, damage,
// seeking.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <cstring>
#include <map>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/file.h"
#include "reader/dwrf/inspect.h"
#include "tests/reader/dwrf/test_files.h"

namespace headrace::reader::dwrf {
namespace {

using Json = nlohmann::json;
using ::testing::HasSubstr;

Json Expected(const std::string& name) {
  return Json::parse(ReadWholeFile((SharedFolder() / (name + ".expected.json")).string()));
}

TEST(SharedFiles, RowsHaveThePublishedHash) {
  HR_NEEDS_SHARED_FILES();
  int files = 0;
  for (const std::string& name : SharedNames()) {
    const Json expected = Expected(name);
    if (!expected.contains("canonicalSha256")) continue;
    SCOPED_TRACE(name);
    ++files;
    const auto file = OpenShared(name);
    for (const Reading& reading :
         {Reading{1000, 8 << 20}, Reading{7, 8 << 20}, Reading{100000, 10000}}) {
      Sha256 hash;
      hash.Add(ReadAll(file, {}, reading));
      EXPECT_EQ(hash.Hex(), expected["canonicalSha256"]) << "batches of " << reading.batch_rows;
    }
    for (const auto& [column, published] : expected["columnCanonicalSha256"].items()) {
      RowReaderOptions options;
      options.columns.push_back({column, true, {}});
      options.verify_checksums = false;
      RowReader rows(file, options);
      Sha256 hash;
      RowPrinter printer(rows.schema(), TextFormat::kCanonical,
                         [&](std::string_view piece) { hash.Add(piece); });
      Column batch;
      while (rows.NextBatch(1000, 8 << 20, &batch)) printer.PrintColumn(batch, 0, 0, batch.rows);
      printer.Flush();
      EXPECT_EQ(hash.Hex(), published) << column;
    }
  }
  EXPECT_GE(files, 25);
}

// Names of the expected files -> ours.
void ExpectFields(const Json& theirs, const Json& ours,
                  const std::map<std::string, std::string>& names) {
  for (const auto& [their_name, our_name] : names) {
    if (!theirs.contains(their_name) || theirs[their_name].is_null()) continue;
    ASSERT_TRUE(ours.contains(our_name)) << our_name;
    Json value = theirs[their_name];
    const Json& mine = ours[our_name];
    // Enums appear as numbers there, as names here.
    if (value.is_number() && mine.is_string()) {
      static const std::map<int, std::string> kCache = {
          {0, "NA"}, {1, "INDEX"}, {2, "FOOTER"}, {3, "BOTH"}};
      static const std::map<int, std::string> kChecksum = {
          {0, "NULL"}, {1, "CRC32"}, {4, "XXHASH"}};
      value =
          our_name == "cache_mode" ? kCache.at(value.get<int>()) : kChecksum.at(value.get<int>());
    }
    EXPECT_EQ(mine, value) << our_name;
  }
}

void ExpectTypes(const Json& expected, const Json& inspected) {
  ASSERT_EQ(expected.size(), inspected.size());
  static const std::map<std::string, std::string> kKinds = {
      {"BYTE", "tinyint"}, {"SHORT", "smallint"}, {"LONG", "bigint"}};
  for (size_t i = 0; i < expected.size(); ++i) {
    std::string kind = expected[i]["kind"];
    const auto renamed = kKinds.find(kind);
    std::transform(kind.begin(), kind.end(), kind.begin(),
                   [](unsigned char c) { return std::tolower(c); });
    EXPECT_EQ(inspected[i]["kind"], renamed != kKinds.end() ? renamed->second : kind);
    if (!expected[i]["subtypes"].empty()) {
      EXPECT_EQ(inspected[i]["children"], expected[i]["subtypes"]);
    }
    if (!expected[i]["fieldNames"].empty()) {
      EXPECT_EQ(inspected[i]["field_names"], expected[i]["fieldNames"]);
    }
  }
}

void ExpectStatistics(const Json& expected, const Json& types) {
  for (const Json& theirs : expected) {
    const Json& ours = types[theirs["node"].get<size_t>()]["statistics"];
    SCOPED_TRACE("node " + theirs["node"].dump());
    ExpectFields(theirs, ours,
                 {{"numberOfValues", "values_count"},
                  {"rawSize", "raw_bytes"},
                  {"size", "stored_bytes"},
                  {"bucket", "bucket_counts"}});
    if (theirs.contains("hasNull")) {
      EXPECT_EQ(ours["has_null"].get<bool>() ? 1 : 0, theirs["hasNull"].get<int>());
    }
    if (theirs.contains("int"))
      ExpectFields(theirs["int"], ours["integer"],
                   {{"min", "minimum"}, {"max", "maximum"}, {"sum", "sum"}});
    if (theirs.contains("double"))
      ExpectFields(theirs["double"], ours["floating"],
                   {{"min", "minimum"}, {"max", "maximum"}, {"sum", "sum"}});
    if (theirs.contains("string"))
      ExpectFields(theirs["string"], ours["string"],
                   {{"min", "minimum"}, {"max", "maximum"}, {"sum", "sum_bytes"}});
    if (theirs.contains("binary"))
      ExpectFields(theirs["binary"], ours["binary"], {{"sum", "sum_bytes"}});
  }
}

void ExpectEncodings(const Json& expected, const Json& stripe) {
  for (const Json& theirs : expected) {
    int count = 0;
    for (const Json& ours : stripe["encodings"]) {
      if (ours["node"] != theirs["node"] || ours["kind"] != theirs["kind"]) continue;
      if (theirs.contains("which"))
        count += (ours["sequence"] == 0) == (theirs["which"] == "sequence 0") ? 1 : 0;
      else
        count += ours["sequence"] == theirs["sequence"] ? 1 : 0;
    }
    EXPECT_EQ(count, theirs.value("count", 1)) << theirs.dump();
  }
}

void ExpectStripe(const Json& expected, const Json& stripe) {
  ExpectFields(expected, stripe,
               {{"offset", "offset_bytes"},
                {"indexLength", "index_length_bytes"},
                {"dataLength", "data_length_bytes"},
                {"footerLength", "footer_length_bytes"},
                {"rows", "rows_count"},
                {"rawDataSize", "raw_data_bytes"},
                {"checkSum", "checksum"}});
  if (expected.contains("encodings")) ExpectEncodings(expected["encodings"], stripe);
  if (expected.contains("streamCount")) {
    EXPECT_EQ(stripe["streams"].size(), expected["streamCount"]);
  }
  if (expected.contains("streamKinds")) {
    std::map<std::string, int> kinds;
    for (const Json& stream : stripe["streams"]) ++kinds[stream["kind"]];
    EXPECT_EQ(Json(kinds), expected["streamKinds"]);
  }
  if (expected.contains("streams")) {
    ASSERT_EQ(stripe["streams"].size(), expected["streams"].size());
    for (size_t i = 0; i < expected["streams"].size(); ++i) {
      ExpectFields(expected["streams"][i], stripe["streams"][i],
                   {{"kind", "kind"},
                    {"node", "node"},
                    {"sequence", "sequence"},
                    {"offset", "offset_in_stripe_bytes"},
                    {"length", "length_bytes"},
                    {"useVInts", "use_vints"}});
    }
  }
  const auto keys = expected.find("flatMapKeys_node_to_[sequence,key]");
  if (keys == expected.end()) return;
  for (const auto& [node, list] : keys->items()) {
    Json ours = Json::array();
    for (const Json& map : stripe["flattened_maps"]) {
      if (map["node"] != std::stoi(node)) continue;
      for (const Json& key : map["keys"]) ours.push_back({key["sequence"], key["key"]});
    }
    EXPECT_EQ(ours, list) << "map " << node;
  }
}

TEST(SharedFiles, InspectAgreesWithAnotherDecoder) {
  HR_NEEDS_SHARED_FILES();
  for (const std::string& name : SharedNames()) {
    const Json expected = Expected(name);
    if (expected["format"] != "DWRF") continue;
    SCOPED_TRACE(name);
    const auto file = OpenShared(name);
    const Json json = Json::parse(InspectJson(*file));
    EXPECT_EQ(json["schema"], "headrace.inspect/1");
    EXPECT_EQ(json["file_size_bytes"], expected["bytes"]);
    EXPECT_EQ(json["type"], expected["schema"]);
    ExpectFields(expected["postscript"], json["postscript"],
                 {{"footerLength", "footer_length_bytes"},
                  {"compression", "compression"},
                  {"compressionBlockSize", "compression_block_size_bytes"},
                  {"writerVersion", "writer_version"},
                  {"cacheMode", "cache_mode"},
                  {"cacheSize", "cache_size_bytes"}});
    EXPECT_EQ(json["postscript"]["length_bytes"], expected["postscriptLength"]);
    ExpectFields(expected["footer"], json["footer"],
                 {{"headerLength", "header_length_bytes"},
                  {"contentLength", "content_length_bytes"},
                  {"numberOfRows", "rows_count"},
                  {"rowIndexStride", "row_index_stride_rows"},
                  {"rawDataSize", "raw_data_bytes"},
                  {"checksumAlgorithm", "checksum_algorithm"}});
    const Json metadata = expected["footer"].value("userMetadata", Json::object());
    for (const auto& [key, value] : metadata.items()) {
      EXPECT_THAT(json["user_metadata"],
                  ::testing::Contains(Json({{"name", key}, {"value", value}})));
    }
    if (expected["footer"].contains("stripeCacheOffsetsCount")) {
      EXPECT_EQ(json["cache"]["section_offsets_bytes"].size(),
                expected["footer"]["stripeCacheOffsetsCount"]);
    }
    if (expected["footer"].contains("stripeCacheOffsets")) {
      EXPECT_EQ(json["cache"]["section_offsets_bytes"], expected["footer"]["stripeCacheOffsets"]);
    }
    if (expected.contains("typeTable")) ExpectTypes(expected["typeTable"], json["types"]);
    ExpectStatistics(expected.value("fileStatisticsInFooter", Json::array()), json["types"]);
    const Json stripes = expected.value("stripes", Json::array());
    ASSERT_EQ(json["stripes"].size(), stripes.size());
    for (size_t i = 0; i < stripes.size(); ++i) ExpectStripe(stripes[i], json["stripes"][i]);
    EXPECT_THAT(InspectText(*file), HasSubstr(name));
  }
}

TEST(SharedFiles, SeekingEqualsReadingFromTheStart) {
  HR_NEEDS_SHARED_FILES();
  for (const std::string& name : SharedNames()) {
    if (!Expected(name).contains("canonicalSha256")) continue;
    SCOPED_TRACE(name);
    for (const bool use_cache : {true, false}) {
      const auto file = OpenShared(name, {use_cache, nullptr});
      const std::vector<std::string> all = Lines(ReadAll(file));
      RowReaderOptions options;
      options.verify_checksums = false;
      RowReader rows(file, options);
      const uint64_t count = all.size(), stride = file->tail().footer.row_index_stride();
      for (const uint64_t row : {uint64_t{0}, count / 3, stride - 1, stride, stride + 1,
                                 2 * stride + 17, 6 * stride, count - 1, count}) {
        if (row > count) continue;
        rows.SeekToRow(row);
        EXPECT_EQ(rows.row(), row);
        Column batch;
        const bool any = rows.NextBatch(5, 1 << 20, &batch);
        ASSERT_EQ(any, row < count);
        const std::vector<std::string> lines =
            Lines(ToText(rows.schema(), batch, TextFormat::kCanonical));
        for (size_t i = 0; i < lines.size(); ++i)
          ASSERT_EQ(lines[i], all[row + i]) << "row " << row + i;
      }
    }
  }
}

TEST(SharedFiles, DamageIsRefusedWithThePlace) {
  HR_NEEDS_SHARED_FILES();
  const struct {
    const char* name;
    const char* text;
  } cases[] = {
      {"derived-truncated-middle.dwrf", "byte 2229: postscript length 0"},
      {"derived-truncated-tail.dwrf", "byte 4447: "},
      {"derived-footer-length.dwrf", "byte 4443: postscript says footer 16383"},
      {"derived-bitflip-data.dwrf", "expected 2322032570804391388, actual -4443449993662162772"},
      {"derived-chunk-overrun.dwrf", "does not match its checksum"},
      {"TestOrcFile.test1.orc", "this is Apache ORC, not DWRF"},
      {"rlev2.orc", "this is Apache ORC, not DWRF"},
  };
  for (const auto& c : cases) {
    SCOPED_TRACE(c.name);
    try {
      ReadAll(OpenShared(c.name));
      FAIL() << "was read";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ExitCode::kBadData);
      EXPECT_THAT(error.what(), HasSubstr(c.text));
      EXPECT_THAT(error.what(), HasSubstr("byte"));
    }
  }
}

// Its cipher is another service's: types, counts and statistics can be read, the column cannot,
// with whatever keys.
TEST(SharedFiles, ForeignCipherIsNamedAndTheRestIsRead) {
  HR_NEEDS_SHARED_FILES();
  OpenOptions options;
  options.keys = KeyRing::Parse("key 000102030405060708090a0b0c0d0e0f", "keys");
  const auto file = OpenShared("encrypted_2splits.dwrf", options);
  EXPECT_EQ(file->num_rows(), 2u);
  EXPECT_EQ(file->num_stripes(), 2u);
  EXPECT_EQ(file->schema().ToString(), "struct<i:int>");
  EXPECT_EQ(file->tail().footer.statistics(1).number_of_values(), 2u);
  for (size_t s = 0; s < 2; ++s) EXPECT_TRUE(file->VerifyChecksum(s));
  EXPECT_TRUE(file->ReadStripe(0)->streams.empty());
  try {
    ReadAll(file);
    FAIL() << "was read";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::kPrivilege);
    EXPECT_THAT(error.what(),
                HasSubstr("column 'i' is encrypted and cannot be read: its key belongs "
                          "to another key service"));
  }
}

TEST(SharedFiles, AmbiguousOrcFileDoesNotCrash) {
  HR_NEEDS_SHARED_FILES();
  try {
    ReadAll(OpenShared("orc_no_format.orc"));
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::kBadData);
  }
}

TEST(SharedFiles, SkipBadKeepsWhatIsWhole) {
  HR_NEEDS_SHARED_FILES();
  const std::vector<std::string> whole =
      Lines(ReadAll(OpenShared("flat_map_dict_share_simple.dwrf")));
  const auto damaged = OpenShared("derived-chunk-overrun.dwrf");
  std::vector<std::string> skipped;
  RowReaderOptions options;
  options.skip_bad = true;
  options.on_skip = [&](const std::string& what) { skipped.push_back(what); };
  EXPECT_EQ(ReadAll(damaged, options), "")
      << "the checksum says that the stripe is damaged somewhere";
  EXPECT_THAT(skipped, ::testing::ElementsAre(HasSubstr("left out stripe 0, rows 0 to 2047")));

  skipped.clear();
  options.verify_checksums = false;
  const std::vector<std::string> rest = Lines(ReadAll(damaged, options));
  EXPECT_THAT(skipped, ::testing::ElementsAre(HasSubstr("left out key 8 of column 'test'")));
  ASSERT_EQ(rest.size(), whole.size());
  for (size_t i = 0; i < whole.size(); ++i) {
    std::string expected = whole[i];  // without the entry 8=...
    if (const size_t at = expected.find("8=8");
        at != std::string::npos && (expected[at - 1] == '{' || expected[at - 1] == ',')) {
      const bool last = expected[at + 3] == '}';
      expected.erase(at - (last && expected[at - 1] == ',' ? 1 : 0),
                     last && expected[at - 1] == '{' ? 3 : 4);
    }
    ASSERT_EQ(rest[i], expected) << "row " << i;
  }
  // The other keys can be asked for; the damaged one is an error.
  options.skip_bad = false;
  options.columns = {ColumnSelection::Parse("test[5]", damaged->schema())};
  EXPECT_EQ(Lines(ReadAll(damaged, options)).size(), whole.size());
  options.columns = {ColumnSelection::Parse("test[8]", damaged->schema())};
  EXPECT_THROW(ReadAll(damaged, options), Error);
}

TEST(SharedFiles, KeysCanBeProjected) {
  HR_NEEDS_SHARED_FILES();
  const auto file = OpenShared("fm_small.orc");
  RowReaderOptions options;
  for (const char* name : {"map2[key-1]", "id", "map1[3]", "map1[5]"})
    options.columns.push_back(ColumnSelection::Parse(name, file->schema()));
  RowReader rows(file, options);
  EXPECT_EQ(rows.schema().ToString(),
            "struct<map2:map<string,map<smallint,bigint>>,id:int,map1:map<int,list<float>>>");
  Column batch;
  uint64_t entries = 0;
  while (rows.NextBatch(100, 1 << 20, &batch)) {
    for (const int64_t key : batch.children[2].children[0].integers)
      EXPECT_TRUE(key == 3 || key == 5) << key;
    entries += batch.children[2].children[0].rows;
  }
  EXPECT_GT(entries, 100u);
}

TEST(SharedFiles, HugeStringsAreSkippedAndReadInBoundedMemory) {
  HR_NEEDS_SHARED_FILES();
  const auto file = OpenShared("long_string.dwrf");
  RowReaderOptions options;
  options.verify_checksums = false;
  RowReader rows(file, options);
  rows.SeekToRow(24);
  Column batch;
  ASSERT_TRUE(rows.NextBatch(100, 16 << 20, &batch));
  ASSERT_EQ(batch.rows, 1u);
  EXPECT_EQ(batch.children[1].integers[0], 1);
  ASSERT_EQ(batch.children[0].bytes.size(), 200'000'000u);
  EXPECT_EQ(batch.children[0].bytes.find_first_not_of('y'), std::string::npos);
  EXPECT_FALSE(rows.NextBatch(100, 16 << 20, &batch));

  rows.SeekToRow(0);
  uint64_t row = 0;
  for (; rows.NextBatch(100, 16 << 20, &batch); ++row) {
    ASSERT_EQ(batch.rows, 1u) << "two such strings exceed the limit";
    const std::string& text = batch.children[0].bytes;
    ASSERT_EQ(text.size(), 200'000'000u);
    ASSERT_EQ(text[0], static_cast<char>('a' + row));
    ASSERT_EQ(std::memcmp(text.data(), text.data() + 1, text.size() - 1), 0) << "row " << row;
    ASSERT_EQ(batch.children[1].integers[0], row == 24 ? 1 : 0);
  }
  EXPECT_EQ(row, 25u);
#ifndef __SANITIZE_ADDRESS__
  rusage usage;
  getrusage(RUSAGE_SELF, &usage);
  EXPECT_LT(usage.ru_maxrss, 1 << 20) << "KiB";
#endif
}

}  // namespace
}  // namespace headrace::reader::dwrf
