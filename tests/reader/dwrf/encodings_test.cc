// Every column layout from streams spelled out by hand, for what no example file holds: inline
// integers, fixed widths, timestamps, unions, stride dictionaries, shared dictionaries; and files
// that claim more than they hold.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/clock.h"
#include "base/error.h"
#include "tests/reader/dwrf/test_files.h"
#include "tests/reader/feature/handmade_file.h"

namespace headrace::reader::dwrf {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr auto kDirect = EncodingKind::kDirect;
constexpr auto kDictionary = EncodingKind::kDictionary;
constexpr auto kMapFlat = EncodingKind::kMapFlat;

struct Case {
  const char* name;
  HandmadeFile file;
  std::vector<std::string> rows;  // canonical
};

Bytes Hex(const std::string& hex) {
  Bytes bytes;
  for (size_t i = 0; i < hex.size(); i += 3)
    bytes.push_back(static_cast<char>(std::stoi(hex.substr(i, 2), nullptr, 16)));
  return bytes;
}

Bytes RowIndexBytes(const std::vector<std::vector<uint64_t>>& entries) {
  pb::RowIndex index;
  for (const auto& positions : entries) {
    pb::RowIndexEntry* entry = index.add_entry();
    for (const uint64_t p : positions) entry->add_positions(p);
  }
  return index.SerializeAsString();
}

std::vector<Case> Cases() {
  std::vector<Case> cases;
  cases.push_back({"direct integers with nulls",
                   {"struct<a:bigint>",
                    4,
                    {{1, 0, StreamKind::kPresent, Bits({1, 0, 1, 1})},
                     {1, 0, StreamKind::kData, Hex("09 d8 04 ff ff ff ff ff ff ff ff ff 01")}},
                    {{1, 0, kDirect}}},
                   {"(-5)", "(~)", "(300)", "(-9223372036854775808)"}});
  cases.push_back(
      {"fixed-width direct integers",
       {"struct<a:smallint,b:int,c:bigint>",
        2,
        {{1, 0, StreamKind::kData, Hex("ff ff 05 00"), false},
         {2, 0, StreamKind::kData, Hex("fe ff ff ff 07 00 00 00"), false},
         {3, 0, StreamKind::kData, Hex("01 00 00 00 00 00 00 80 02 00 00 00 00 00 00 00"), false}},
        {}},
       {"(-1,-2,-9223372036854775807)", "(5,7,2)"}});
  cases.push_back({"integer dictionary with inline values",
                   {"struct<a:int>",
                    4,
                    {{1, 0, StreamKind::kDictionaryData, Plain({100, -7})},
                     {1, 0, StreamKind::kInDictionary, Bits({1, 0, 1, 0})},
                     {1, 0, StreamKind::kData, Hex("fc 01 fd ff ff ff ff ff ff ff ff 01 00 2a")}},
                    {{1, 0, kDictionary, 2}}},
                   {"(-7)", "(-3)", "(100)", "(42)"}});
  cases.push_back(
      {"bytes are signed, booleans are bits",
       {"struct<a:tinyint,b:boolean>",
        3,
        {{1, 0, StreamKind::kData, Hex("fd ff 80 7f")}, {2, 0, StreamKind::kData, Hex("ff a0")}},
        {}},
       {"(-1,T)", "(-128,F)", "(127,T)"}});
  cases.push_back({"floats and doubles",
                   {"struct<a:float,b:double>",
                    2,
                    {{1, 0, StreamKind::kData, Raw<float>({1.0f, -0.0f})},
                     {2, 0, StreamKind::kData, Raw<double>({1.0, 0.5})}},
                    {}},
                   {"(f3f800000,d3ff0000000000000)", "(f80000000,d3fe0000000000000)"}});
  cases.push_back({"direct strings and binaries",
                   {"struct<a:string,b:binary>",
                    3,
                    {{1, 0, StreamKind::kLength, Rle({3, 0, 1})},
                     {1, 0, StreamKind::kData, "abcd"},
                     {2, 0, StreamKind::kPresent, Bits({0, 1, 1})},
                     {2, 0, StreamKind::kLength, Rle({1, 1})},
                     {2, 0, StreamKind::kData, Hex("00 ff")}},
                    {}},
                   {"(s3:616263,~)", "(s0:,s1:00)", "(s1:64,s1:ff)"}});
  cases.push_back({"string dictionary",
                   {"struct<a:string>",
                    4,
                    {{1, 0, StreamKind::kLength, Rle({1, 2})},
                     {1, 0, StreamKind::kDictionaryData, "abb"},
                     {1, 0, StreamKind::kPresent, Bits({1, 1, 0, 1})},
                     {1, 0, StreamKind::kData, Rle({1, 0, 1})}},
                    {{1, 0, kDictionary, 2}}},
                   {"(s2:6262)", "(s1:61)", "(~)", "(s2:6262)"}});
  HandmadeFile strides{"struct<a:string>",
                       5,
                       {{1, 0, StreamKind::kRowIndex,
                         RowIndexBytes({{0, 0, 0, 2, 0, 0, 0, 0, 0},
                                        {2, 0, 2, 1, 0, 2, 0, 0, 2},
                                        {3, 0, 3, 0, 0, 4, 0, 0, 4}})},
                        {1, 0, StreamKind::kLength, Rle({1})},
                        {1, 0, StreamKind::kDictionaryData, "S"},
                        {1, 0, StreamKind::kStrideDictionary, "xyz"},
                        {1, 0, StreamKind::kStrideDictionaryLength, Rle({1, 1, 1})},
                        {1, 0, StreamKind::kInDictionary, Bits({0, 0, 1, 0, 1})},
                        {1, 0, StreamKind::kData, Rle({1, 0, 0, 0, 0})}},
                       {{1, 0, kDictionary, 1}}};
  strides.row_index_stride = 2;
  cases.push_back(
      {"stride dictionaries", strides, {"(s1:79)", "(s1:78)", "(s1:53)", "(s1:7a)", "(s1:53)"}});
  cases.push_back({"timestamps",
                   {"struct<a:timestamp>",
                    3,
                    // 2016-01-01T00:00:00.5Z (FORMAT 20); 1969-12-31T23:59:58.5Z, stored one second
                    // late; 1970-01-01.
                    {{1, 0, StreamKind::kData, Hex("fd 80 8c 86 1e 81 fa a7 ca 0a ff f9 a7 ca 0a")},
                     {1, 0, StreamKind::kNanoData, Hex("fd 2f 2f 00")}},
                    {}},
                   {"(t1451606400.500000000)", "(t-2.500000000)", "(t0.000000000)"}});
  cases.push_back({"lists of structs with nulls at each level",
                   {"struct<a:list<struct<x:int,y:string>>>",
                    4,
                    {{1, 0, StreamKind::kPresent, Bits({1, 0, 1, 1})},
                     {1, 0, StreamKind::kLength, Rle({2, 0, 1})},
                     {2, 0, StreamKind::kPresent, Bits({0, 1, 1})},
                     {3, 0, StreamKind::kPresent, Bits({1, 0})},
                     {3, 0, StreamKind::kData, Plain({5})},
                     {4, 0, StreamKind::kLength, Rle({1, 0})},
                     {4, 0, StreamKind::kData, "q"}},
                    {}},
                   {"([~,(5,s1:71)])", "(~)", "([])", "([(~,s0:)])"}});
  cases.push_back({"a map with repeated and unsorted keys",
                   {"struct<a:map<int,int>>",
                    2,
                    {{1, 0, StreamKind::kLength, Rle({3, 0})},
                     {2, 0, StreamKind::kData, Plain({9, -1, 9})},
                     {3, 0, StreamKind::kData, Plain({1, 2, 3})}},
                    {}},
                   {"({-1=2,9=1,9=3})", "({})"}});
  cases.push_back({"a union",
                   {"struct<a:union<int,string>>",
                    4,
                    {{1, 0, StreamKind::kPresent, Bits({1, 1, 0, 1})},
                     {1, 0, StreamKind::kData, Hex("fd 01 00 01")},
                     {2, 0, StreamKind::kData, Plain({8})},
                     {3, 0, StreamKind::kLength, Rle({1, 2})},
                     {3, 0, StreamKind::kData, "abc"}},
                    {}},
                   {"(<1:s1:61>)", "(<0:8>)", "(~)", "(<1:s2:6263>)"}});
  cases.push_back({"a flattened map: null map, absent key, null value, sequences with holes",
                   {"struct<m:map<int,int>>",
                    5,
                    {{1, 0, StreamKind::kPresent, Bits({1, 0, 1, 1, 1})},
                     {3, 7, StreamKind::kInMap, Bits({1, 0, 1, 0})},
                     {3, 7, StreamKind::kData, Plain({70, 71})},
                     {3, 2, StreamKind::kInMap, Bits({1, 1, 0, 0})},
                     {3, 2, StreamKind::kPresent, Bits({0, 1})},
                     {3, 2, StreamKind::kData, Plain({20})}},
                    {{1, 0, kMapFlat}, {3, 7, kDirect, 0, -4}, {3, 2, kDirect, 0, 11}}},
                   {"({-4=70,11=~})", "(~)", "({11=20})", "({-4=71})", "({})"}});
  cases.push_back({"a flattened map whose keys share a dictionary",
                   {"struct<m:map<int,list<bigint>>>",
                    2,
                    {{4, 0, StreamKind::kDictionaryData, Plain({1000, 2000})},
                     {3, 1, StreamKind::kInMap, Bits({1, 1})},
                     {3, 1, StreamKind::kLength, Rle({2, 0})},
                     {4, 1, StreamKind::kData, Rle({1, 0})},
                     {3, 2, StreamKind::kInMap, Bits({0, 1})},
                     {3, 2, StreamKind::kLength, Rle({1})},
                     {4, 2, StreamKind::kDictionaryData, Plain({5, 6})},
                     {4, 2, StreamKind::kData, Rle({1})}},
                    {{1, 0, kMapFlat},
                     {3, 1, kDirect, 0, 1},
                     {4, 1, kDictionary, 2},
                     {3, 2, kDirect, 0, 2},
                     {4, 2, kDictionary, 2}}},
                   {"({1=[2000,1000]})", "({1=[],2=[6]})"}});
  cases.push_back({"all null with an empty stream, and one absent",
                   {"struct<a:int,b:string>",
                    2,
                    {{1, 0, StreamKind::kPresent, Bits({0, 0})},
                     {1, 0, StreamKind::kData, ""},
                     {2, 0, StreamKind::kPresent, Bits({0, 0})}},
                    {}},
                   {"(~,~)", "(~,~)"}});
  return cases;
}

TEST(Encodings, EveryLayoutReadsWholeInPiecesAndAfterSkips) {
  for (Case& c : Cases()) {
    for (const CompressionKind compression : {CompressionKind::kNone, CompressionKind::kZstd}) {
      SCOPED_TRACE(c.name);
      c.file.compression = compression;
      c.file.block_size =
          compression == CompressionKind::kNone ? 1024 : 5;  // values straddle chunks
      if (compression == CompressionKind::kZstd && c.file.row_index_stride != 0)
        continue;  // its positions are raw ones
      if (compression == CompressionKind::kZstd) c.file.block_size = 200;
      const auto file = OpenFile(c.file);
      EXPECT_EQ(Lines(ReadAll(file)), c.rows);
      EXPECT_EQ(Lines(ReadAll(file, {}, {1, 1})), c.rows);
      for (uint64_t row = 0; row < c.rows.size(); ++row) {
        RowReader rows(file);
        rows.SeekToRow(row);
        EXPECT_EQ(
            Lines(ReadAll(rows)),
            std::vector<std::string>(c.rows.begin() + static_cast<int64_t>(row), c.rows.end()));
      }
    }
  }
}

TEST(Encodings, KeysOfPlainMapsCanBeChosenToo) {
  for (const Case& c : Cases()) {
    if (std::string(c.name) != "a map with repeated and unsorted keys") continue;
    const auto file = OpenFile(c.file);
    RowReaderOptions options;
    options.columns = {ColumnSelection::Parse("a[9]", file->schema())};
    EXPECT_THAT(Lines(ReadAll(file, options)), ElementsAre("({9=1,9=3})", "({})"));
  }
}

std::string Refusal(const std::function<void()>& action) {
  const int64_t start = ThreadCpuNs();
  std::string text = "no error";
  try {
    action();
  } catch (const Error& error) {
    EXPECT_TRUE(error.code() == ExitCode::kBadData || error.code() == ExitCode::kResources);
    text = error.what();
  }
  EXPECT_LT(ThreadCpuNs() - start, 5'000'000'000) << text;
  return text;
}

TEST(Encodings, ContradictionsAreRefused) {
  const struct {
    const char* name;
    HandmadeFile file;
    const char* text;
  } cases[] = {
      {"too few values",
       {"struct<a:int>", 3, {{1, 0, StreamKind::kData, Plain({1, 2})}}, {}},
       "ends before its last value"},
      {"no data at all", {"struct<a:int>", 3, {}, {}}, "ends before its last value"},
      {"index past the dictionary",
       {"struct<a:int>",
        1,
        {{1, 0, StreamKind::kDictionaryData, Plain({1})}, {1, 0, StreamKind::kData, Rle({1})}},
        {{1, 0, kDictionary, 1}}},
       "index 1 into a dictionary of 1"},
      {"dictionary larger than its stream",
       {"struct<a:int>",
        1,
        {{1, 0, StreamKind::kDictionaryData, Plain({1})}, {1, 0, StreamKind::kData, Rle({0})}},
        {{1, 0, kDictionary, 4000000000}}},
       "dictionary of 4000000000 entries"},
      {"string dictionary larger than its stream",
       {"struct<a:string>",
        1,
        {{1, 0, StreamKind::kLength, Rle({1})},
         {1, 0, StreamKind::kDictionaryData, "a"},
         {1, 0, StreamKind::kData, Rle({0})}},
        {{1, 0, kDictionary, 4000000000}}},
       "dictionary of 4000000000 entries"},
      {"string longer than its stream",
       {"struct<a:string>",
        1,
        {{1, 0, StreamKind::kLength, Rle({uint64_t{1} << 47})}, {1, 0, StreamKind::kData, "a"}},
        {}},
       "the stream can hold 1"},
      {"length beyond reason",
       {"struct<a:list<int>>", 1, {{1, 0, StreamKind::kLength, Rle({uint64_t{1} << 62})}}, {}},
       "length 4611686018427387904"},
      {"a list of 2^47 elements",
       {"struct<a:list<struct<>>>", 1, {{1, 0, StreamKind::kLength, Rle({uint64_t{1} << 47})}}, {}},
       "takes more than"},
      {"2^60 rows",
       {"struct<a:int>", uint64_t{1} << 60, {{1, 0, StreamKind::kData, Plain({1})}}, {}},
       "claims 1152921504606846976 rows"},
      {"value outside its type",
       {"struct<a:smallint>", 1, {{1, 0, StreamKind::kData, Plain({40000})}}, {}},
       "40000 is not a smallint"},
      {"union tag",
       {"struct<a:union<int>>", 1, {{1, 0, StreamKind::kData, Hex("ff 05")}}, {}},
       "tag 5 of a union of 1"},
      {"nanoseconds",
       {"struct<a:timestamp>",
        1,
        {{1, 0, StreamKind::kData, Rle({1})},
         {1, 0, StreamKind::kNanoData, Rle({uint64_t{1} << 40})}},
        {}},
       "nanoseconds"},
      {"dictionary on a float",
       {"struct<a:float>", 1, {}, {{1, 0, kDictionary, 1}}},
       "encoding DICTIONARY on a float"},
      {"flattened list",
       {"struct<a:list<int>>", 1, {}, {{1, 0, kMapFlat}}},
       "encoding MAP_FLAT on a list"},
      {"key without IN_MAP",
       {"struct<m:map<int,int>>",
        1,
        {{3, 1, StreamKind::kData, Plain({1})}},
        {{1, 0, kMapFlat}, {3, 1, kDirect, 0, 5}}},
       "IN_MAP"},
      {"IN_MAP without key",
       {"struct<m:map<int,int>>",
        1,
        {{3, 1, StreamKind::kInMap, Bits({1})}, {3, 1, StreamKind::kData, Plain({1})}},
        {{1, 0, kMapFlat}}},
       "has streams but no key"},
      {"stride dictionaries without index",
       {"struct<a:string>",
        1,
        {{1, 0, StreamKind::kInDictionary, Bits({0})}, {1, 0, StreamKind::kData, Rle({0})}},
        {{1, 0, kDictionary, 0}}},
       "without a row index"},
      {"one stream twice",
       {"struct<a:int>",
        1,
        {{1, 0, StreamKind::kData, Plain({1})}, {1, 0, StreamKind::kData, Plain({1})}},
        {}},
       "two DATA streams"},
      {"stream of no type",
       {"struct<a:int>", 1, {{9, 0, StreamKind::kData, Plain({1})}}, {}},
       "is of no type"},
  };
  for (const auto& c : cases) {
    SCOPED_TRACE(c.name);
    EXPECT_THAT(Refusal([&] { ReadAll(OpenFile(c.file)); }), HasSubstr(c.text));
  }
}

TEST(Encodings, BillionsOfNullRowsStreamInBatches) {
  // 2^31 nulls in a present stream that zstd packs to almost nothing.
  HandmadeFile file{"struct<a:int>", uint64_t{1} << 31, {{1, 0, StreamKind::kPresent, {}}}, {}};
  for (uint64_t bits = 0; bits < file.rows; bits += 130 * 8)
    file.streams[0].bytes += std::string("\x7f\x00", 2);
  file.compression = CompressionKind::kZstd;
  file.block_size = 256 << 10;
  const auto reader = OpenFile(file);
  RowReader rows(reader);
  rows.SeekToRow((uint64_t{1} << 31) - 10);
  Column batch;
  ASSERT_TRUE(rows.NextBatch(uint64_t{1} << 40, 1 << 20, &batch));
  EXPECT_EQ(batch.rows, 10u);
  rows.SeekToRow(5);
  for (int i = 0; i < 30; ++i) {
    ASSERT_TRUE(rows.NextBatch(uint64_t{1} << 40, 1 << 20, &batch));
    EXPECT_LE(batch.rows, uint64_t{1} << 20);
  }
}

}  // namespace
}  // namespace headrace::reader::dwrf
