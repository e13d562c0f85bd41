#include "reader/dwrf/feature_stream.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <functional>
#include <optional>

#include "base/block_pool.h"
#include "base/error.h"
#include "reader/batch/tensorize.h"
#include "reader/dwrf/crypto/decrypt.h"
#include "reader/dwrf/slices.h"
#include "tests/reader/feature/handmade_file.h"

namespace headrace::reader::dwrf {
namespace {

using K = StreamKind;
constexpr EncodingKind kDirect = EncodingKind::kDirect, kDictionary = EncodingKind::kDictionary,
                       kFlat = EncodingKind::kMapFlat;

FeatureRequest Key(const std::string& column, int64_t key) {
  return {column, MapKey{false, key, {}}};
}

FlatMapBatch ReadStripe(const FileReader& reader, const Projection& projection) {
  FlatMapBatch batch = Extract(Decode(
      Decompress(Fetch(MakePlan(reader, reader.ReadStripe(0), projection), reader.source()))));
  Validate(batch);
  return batch;
}
FlatMapBatch ReadFile(const HandmadeFile& file, const Projection& projection) {
  return ReadStripe(*OpenFile(file), projection);
}

std::vector<int> RowsOf(const PresenceBits& present, uint64_t rows) {
  std::vector<int> out;
  for (uint64_t row = 0; row < rows; ++row) out.push_back(present.Get(row));
  return out;
}

// Six rows of a map whose rows 1 and 4 are null. Node ids: 1 map, 2 key, 3 value, 4 (5) below it.
HandmadeFile WithMap(const std::string& value_type) {
  HandmadeFile file;
  file.schema = "struct<f:map<int," + value_type + ">>";
  file.rows = 6;
  file.streams = {{1, 0, K::kPresent, Bits({1, 0, 1, 1, 0, 1})}};
  file.encodings = {{1, 0, kFlat, 0, {}}};
  return file;
}

TEST(FeatureStream, DenseFloatsWithNullMapsAndNullValues) {
  for (const CompressionKind compression : {CompressionKind::kNone, CompressionKind::kZstd}) {
    HandmadeFile file = WithMap("float");
    file.compression = compression;
    file.encodings.push_back({3, 7, kDirect, 0, 17});
    file.streams.push_back({3, 7, K::kInMap, Bits({1, 1, 0, 1})});  // rows 0, 2, 5 of the four maps
    file.streams.push_back({3, 7, K::kPresent, Bits({1, 0, 1})});   // row 2's value is null
    file.streams.push_back({3, 7, K::kData, Raw<float>({0.5f, 2})});
    const FlatMapBatch batch = ReadFile(file, {{Key("f", 17), Key("f", 99)}, {}});
    ASSERT_EQ(batch.rows, 6u);
    ASSERT_EQ(batch.dense.size(), 2u);
    EXPECT_EQ(batch.dense[0].name, "f:17");
    EXPECT_EQ(RowsOf(batch.dense[0].present, 6), (std::vector<int>{1, 0, 0, 0, 0, 1}));
    EXPECT_EQ(batch.dense[0].values, (std::vector<float>{0.5f, 0, 0, 0, 0, 2}));
    EXPECT_EQ(batch.dense[1].name, "f:99");
    EXPECT_EQ(batch.dense[1].present.count, 0u);
    EXPECT_EQ(batch.dense[1].values, std::vector<float>(6));
  }
}

TEST(FeatureStream, StreamsThatUnpackToTooMuchAreDamage) {
  HandmadeFile file = WithMap("float");
  file.compression = CompressionKind::kZstd;
  // Sixteen features of 4 MiB of zeros, a few hundred bytes each.
  for (uint32_t key = 1; key <= 16; ++key) {
    file.encodings.push_back({3, key, kDirect, 0, key});
    file.streams.push_back({3, key, K::kInMap, Bits({1, 1, 1, 1})});
    file.streams.push_back({3, key, K::kData, Bytes(4 << 20, 0)});
  }
  const auto reader = OpenFile(file);
  Projection projection;
  for (int64_t key = 1; key <= 16; ++key) projection.features.push_back(Key("f", key));
  const auto fetch = [&] {
    return Fetch(MakePlan(*reader, reader->ReadStripe(0), projection), reader->source());
  };
  EXPECT_GE(Decompress(fetch()).unpacked_bytes, uint64_t{64} << 20);
  const BlockPool::ThreadPeak peak;
  try {
    Decompress(fetch(), 8 << 20);
    FAIL() << "unpacked";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::kBadData);
    EXPECT_NE(std::string(error.what()).find("unpack to more than"), std::string::npos)
        << error.what();
  }
  EXPECT_LT(peak.bytes(), uint64_t{40} << 20);
}

TEST(FeatureStream, DenseFromOtherNumbers) {
  const struct {
    const char* type;
    Bytes data;
  } cases[] = {{"double", Raw<double>({-3, 0, 100})},
               {"bigint", Plain({-3, 0, 100})},
               {"int", Plain({-3, 0, 100})},
               {"smallint", Plain({-3, 0, 100})},
               {"tinyint", "\xfd\xfd" + Bytes("\0\x64", 2)}};
  for (const auto& c : cases) {
    HandmadeFile file = WithMap(c.type);
    file.encodings.push_back({3, 1, kDirect, 0, 1});
    file.streams.push_back({3, 1, K::kInMap, Bits({0, 1, 1, 1})});
    file.streams.push_back({3, 1, K::kData, c.data});
    EXPECT_EQ(ReadFile(file, {{Key("f", 1)}, {}}).dense[0].values,
              (std::vector<float>{0, 0, -3, 0, 0, 100}))
        << c.type;
  }
  HandmadeFile file = WithMap("boolean");
  file.encodings.push_back({3, 1, kDirect, 0, 1});
  file.streams.push_back({3, 1, K::kInMap, Bits({0, 1, 1, 1})});
  file.streams.push_back({3, 1, K::kData, Bits({1, 0, 1})});
  EXPECT_EQ(ReadFile(file, {{Key("f", 1)}, {}}).dense[0].values,
            (std::vector<float>{0, 0, 1, 0, 0, 1}));
}

TEST(FeatureStream, SparseAbsentDiffersFromEmptyAndNullElementsAreLeftOut) {
  HandmadeFile file = WithMap("list<bigint>");
  file.encodings.push_back({3, 2, kDirect, 0, -5});
  file.encodings.push_back({4, 2, kDirect, 0, {}});
  file.streams.push_back({3, 2, K::kInMap, Bits({1, 1, 0, 1})});
  file.streams.push_back({3, 2, K::kLength, Rle({2, 0, 3})});
  file.streams.push_back({4, 2, K::kPresent, Bits({1, 1, 0, 1, 0})});
  file.streams.push_back({4, 2, K::kData, Plain({7, INT64_MIN, INT64_MAX})});
  const FlatMapBatch batch = ReadFile(file, {{Key("f", -5)}, {}});
  ASSERT_EQ(batch.sparse.size(), 1u);
  EXPECT_EQ(batch.sparse[0].name, "f:-5");
  EXPECT_EQ(RowsOf(batch.sparse[0].present, 6), (std::vector<int>{1, 0, 1, 0, 0, 1}));
  EXPECT_EQ(batch.sparse[0].offsets, (std::vector<uint32_t>{0, 2, 2, 2, 2, 2, 3}));
  EXPECT_EQ(batch.sparse[0].values, (std::vector<int64_t>{7, INT64_MIN, INT64_MAX}));
  EXPECT_FALSE(batch.sparse[0].weighted);
}

TEST(FeatureStream, WeightedSparseDropsEntriesWithoutWeight) {
  HandmadeFile file = WithMap("map<bigint,float>");
  file.encodings.push_back({3, 1, kDirect, 0, 4});
  file.streams.push_back({3, 1, K::kInMap, Bits({1, 1, 1, 0})});
  file.streams.push_back({3, 1, K::kLength, Rle({2, 0, 1})});
  file.streams.push_back({4, 1, K::kData, Plain({5, 6, 7})});
  file.streams.push_back({5, 1, K::kPresent, Bits({1, 0, 1})});
  file.streams.push_back({5, 1, K::kData, Raw<float>({0.5f, 0.25f})});
  const FlatMapBatch batch = ReadFile(file, {{Key("f", 4), Key("f", 5)}, {}});
  EXPECT_EQ(batch.sparse[0].offsets, (std::vector<uint32_t>{0, 1, 1, 1, 2, 2, 2}));
  EXPECT_EQ(batch.sparse[0].values, (std::vector<int64_t>{5, 7}));
  EXPECT_EQ(batch.sparse[0].weights, (std::vector<float>{0.5f, 0.25f}));
  EXPECT_TRUE(batch.sparse[1].weighted);
  EXPECT_TRUE(batch.sparse[1].values.empty());
}

TEST(FeatureStream, IntegerDictionariesOwnAndSharedWithInlineValues) {
  HandmadeFile file = WithMap("list<int>");
  for (const uint32_t s : {1u, 2u}) {
    file.encodings.push_back({3, s, kDirect, 0, s});
    file.encodings.push_back({4, s, kDictionary, s == 1 ? 3u : 2u, {}});
    file.streams.push_back({3, s, K::kInMap, Bits({1, 0, 0, 0})});
    file.streams.push_back({3, s, K::kLength, Rle({4})});
  }
  file.streams.push_back(
      {4, 0, K::kDictionaryData, Plain({100, -200, 300})});  // shared: key 1 has none of its own
  file.streams.push_back({4, 2, K::kDictionaryData, Plain({8, 9})});
  file.streams.push_back({4, 1, K::kData, Rle({2, 1, 0, 1})});
  file.streams.push_back({4, 2, K::kData, Rle({1, static_cast<uint64_t>(int64_t{-7}), 0, 70})});
  file.streams.push_back(
      {4, 2, K::kInDictionary, Bits({1, 0, 1, 0})});  // 0: the number is the value
  const FlatMapBatch batch = ReadFile(file, {{Key("f", 1), Key("f", 2)}, {}});
  EXPECT_EQ(batch.sparse[0].values, (std::vector<int64_t>{300, -200, 100, -200}));
  EXPECT_EQ(batch.sparse[1].values, (std::vector<int64_t>{9, -7, 8, 70}));
}

TEST(FeatureStream, FixedWidthIntegers) {
  HandmadeFile file = WithMap("list<int>");
  file.encodings.push_back({3, 1, kDirect, 0, 1});
  file.streams.push_back({3, 1, K::kInMap, Bits({1, 0, 0, 1})});
  file.streams.push_back({3, 1, K::kLength, Bytes("\xfe\x02\0\0\0\x01\0\0\0", 9), false});
  file.streams.push_back({4, 1, K::kData, Raw<int32_t>({-1, 70000, INT32_MIN}), false});
  EXPECT_EQ(ReadFile(file, {{Key("f", 1)}, {}}).sparse[0].values,
            (std::vector<int64_t>{-1, 70000, INT32_MIN}));
}

TEST(FeatureStream, PlainColumnsReadNullsAsZero) {
  HandmadeFile file;
  file.schema = "struct<label:float,id:bigint,flag:boolean,d:double>";
  file.rows = 3;
  file.streams = {{1, 0, K::kPresent, Bits({1, 0, 1})},
                  {1, 0, K::kData, Raw<float>({1, 0.5f})},
                  {2, 0, K::kData, Plain({-1, 2, 3})},
                  {3, 0, K::kData, Bits({0, 1, 1})},
                  {4, 0, K::kData, Raw<double>({1, 2, 3})}};
  file.encodings = {
      {0, 0, kDirect}, {1, 0, kDirect}, {2, 0, kDirect}, {3, 0, kDirect}, {4, 0, kDirect}};
  const FlatMapBatch batch = ReadFile(file, {{}, {"label", "id", "flag", "d"}});
  ASSERT_EQ(batch.scalars.size(), 4u);
  EXPECT_EQ(batch.scalars[0].floats, (std::vector<float>{1, 0, 0.5f}));
  EXPECT_EQ(batch.scalars[1].integers, (std::vector<int64_t>{-1, 2, 3}));
  EXPECT_EQ(batch.scalars[2].integers, (std::vector<int64_t>{0, 1, 1}));
  EXPECT_EQ(batch.scalars[3].floats, (std::vector<float>{1, 2, 3}));
}

// ---- refusals

HandmadeFile GoodSparse() {
  HandmadeFile file = WithMap("list<int>");
  file.encodings.push_back({3, 1, kDirect, 0, 1});
  file.encodings.push_back({4, 1, kDictionary, 2, {}});
  file.streams.push_back({3, 1, K::kInMap, Bits({1, 0, 0, 1})});
  file.streams.push_back({3, 1, K::kLength, Rle({2, 1})});
  file.streams.push_back({4, 1, K::kDictionaryData, Plain({5, 6})});
  file.streams.push_back({4, 1, K::kData, Rle({0, 1, 0})});
  return file;
}

Bytes& StreamOf(HandmadeFile& file, K kind, uint32_t node) {
  for (HandmadeStream& stream : file.streams) {
    if (stream.kind == kind && stream.node == node) return stream.bytes;
  }
  ADD_FAILURE() << "no such stream";
  return file.streams[0].bytes;
}

// Ways to decode: looked up at once, or with dictionaries kept; whole or in slices.
struct Way {
  std::string name;
  std::optional<DictionaryRequest> request;
  bool sliced = false;
};
std::vector<Way> AllWays() {
  std::vector<Way> ways = {{"looked up", {}}};
  for (const bool always : {false, true}) {
    DictionaryRequest request;
    request.always = always;
    request.features["f:1"] = 1;
    for (const bool sliced : {false, true}) {
      ways.push_back({fmt::format("kept{}{}", always ? " always" : "", sliced ? ", sliced" : ""),
                      request, sliced});
    }
  }
  return ways;
}
void ReadBy(const Way& way, const FileReader& file, const std::string& feature) {
  const auto stripe = file.ReadStripe(0);
  StripePlan plan = MakePlan(file, stripe, {{Key("f", 1)}, {}});
  ASSERT_EQ(plan.features.at(0).name, feature);
  UnpackedStripe unpacked = Decompress(Decrypt(Fetch(std::move(plan), file.source())));
  const DictionaryRequest* const request = way.request ? &*way.request : nullptr;
  if (!way.sliced) {
    FlatMapBatch batch = Extract(Decode(std::move(unpacked), nullptr, request));
    Validate(batch);
    return;
  }
  SliceOptions options;
  options.slice_rows = 2;
  options.dictionaries = request;
  DecodedStripe decoded = DecodeSlices(std::move(unpacked), options);
  for (size_t s = 0; s < decoded.slices.size(); ++s) {
    const FlatMapBatch slice = ExtractSlice(&decoded, s);
    if (slice.rows > 0) Validate(slice);
  }
}

TEST(FeatureStream, DamageIsOneLineThatNamesTheStream) {
  const struct {
    const char* name;
    std::function<void(HandmadeFile&)> damage;
    const char* message;
  } cases[] = {
      {"map PRESENT cut", [](HandmadeFile& f) { StreamOf(f, K::kPresent, 1).resize(1); },
       "PRESENT"},
      {"IN_MAP missing", [](HandmadeFile& f) { StreamOf(f, K::kInMap, 3).clear(); }, "IN_MAP"},
      {"LENGTH cut", [](HandmadeFile& f) { StreamOf(f, K::kLength, 3).pop_back(); }, "LENGTH"},
      {"LENGTH missing", [](HandmadeFile& f) { StreamOf(f, K::kLength, 3).clear(); }, "LENGTH"},
      {"LENGTH claims billions",
       [](HandmadeFile& f) {
         StreamOf(f, K::kLength, 3) = Rle({4000000000, 1});
       },
       "DATA"},
      {"LENGTH overflows",
       [](HandmadeFile& f) {
         StreamOf(f, K::kLength, 3) = Rle({uint64_t{1} << 40, 1});
       },
       "LENGTH"},
      {"lengths total 2^32 and more",
       [](HandmadeFile& f) {
         StreamOf(f, K::kLength, 3) = Rle({4000000000, 4000000000});
       },
       "LENGTH"},
      {"DATA cut", [](HandmadeFile& f) { StreamOf(f, K::kData, 4).pop_back(); }, "DATA"},
      {"DATA missing", [](HandmadeFile& f) { StreamOf(f, K::kData, 4).clear(); }, "DATA"},
      {"index past the dictionary",
       [](HandmadeFile& f) {
         StreamOf(f, K::kData, 4) = Rle({0, 2, 0});
       },
       "index 2"},
      {"dictionary cut", [](HandmadeFile& f) { StreamOf(f, K::kDictionaryData, 4).pop_back(); },
       "DICTIONARY_DATA"},
      {"dictionary missing", [](HandmadeFile& f) { StreamOf(f, K::kDictionaryData, 4).clear(); },
       "DICTIONARY_DATA"},
  };
  for (const CompressionKind compression : {CompressionKind::kNone, CompressionKind::kZstd}) {
    for (const auto& c : cases) {
      HandmadeFile file = GoodSparse();
      file.compression = compression;
      c.damage(file);
      for (const Way& way : AllWays()) {
        try {
          ReadBy(way, *OpenFile(file), "f:1");
          ADD_FAILURE() << c.name << ", " << way.name << ": accepted";
        } catch (const Error& error) {
          const std::string line = error.what();
          EXPECT_EQ(error.code(), ExitCode::kBadData) << c.name << ": " << line;
          EXPECT_NE(line.find("handmade.dwrf: stripe 0"), std::string::npos) << line;
          EXPECT_NE(line.find(c.message), std::string::npos) << c.name << ": " << line;
          EXPECT_EQ(line.find('\n'), std::string::npos);
        }
      }
    }
  }
}

// Whatever is kept of a dictionary, no index may lead out of it. Rows of one list of `indices`.
TEST(FeatureStream, IndicesPastTheDictionaryAreDamageHoweverItIsKept) {
  const std::vector<std::vector<uint64_t>> lists = {
      {0, 1, 0, 2},         // one past the end; values for each entry: kept whole
      {uint64_t{1} << 63},  // below 0; fewer values than entries
      {0, 1, 1, ~uint64_t{0}},
      {0, 0, 0, uint64_t{1} << 62}};
  for (const auto& list : lists) {
    for (const bool literals : {false, true}) {
      HandmadeFile file = WithMap("list<bigint>");
      file.encodings.push_back({3, 1, kDirect, 0, 1});
      file.encodings.push_back({4, 1, kDictionary, 2, {}});
      file.streams.push_back({3, 1, K::kInMap, Bits({1, 0, 0, 0})});
      file.streams.push_back({3, 1, K::kLength, Rle({list.size() + literals})});
      file.streams.push_back({4, 1, K::kDictionaryData, Plain({5, 6})});
      std::vector<uint64_t> numbers = list;
      std::vector<int> in(list.size(), 1);
      if (literals) {
        numbers.insert(numbers.begin(), 70);
        in.insert(in.begin(), 0);
        file.streams.push_back({4, 1, K::kInDictionary, Bits(in)});
      }
      file.streams.push_back({4, 1, K::kData, Rle(numbers)});
      for (const Way& way : AllWays()) {
        EXPECT_THROW(ReadBy(way, *OpenFile(file), "f:1"), Error) << way.name << literals;
      }
    }
  }
}

TEST(FeatureStream, KeysThatShareADictionaryAgreeOnItsSize) {
  HandmadeFile file = WithMap("list<int>");
  for (const uint32_t s : {1u, 2u}) {
    file.encodings.push_back({3, s, kDirect, 0, s});
    file.encodings.push_back({4, s, kDictionary, s + 1, {}});
    file.streams.push_back({3, s, K::kInMap, Bits({1, 0, 0, 0})});
    file.streams.push_back({3, s, K::kLength, Rle({2})});
    file.streams.push_back({4, s, K::kData, Rle({1, 0})});
  }
  file.streams.push_back({4, 0, K::kDictionaryData, Plain({100, -200, 300})});
  try {
    ReadFile(file, {{Key("f", 1), Key("f", 2)}, {}});
    ADD_FAILURE() << "accepted";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("a dictionary of 3 entries, of 2 for another key"),
              std::string::npos)
        << error.what();
  }
}

TEST(FeatureStream, WhatIsNoFeatureIsRefusedWithItsType) {
  const struct {
    const char* schema;
    Projection projection;
    const char* message;
  } cases[] = {
      {"struct<f:map<int,string>>", {{Key("f", 1)}, {}}, "map<int,string>"},
      {"struct<f:map<int,list<float>>>", {{Key("f", 1)}, {}}, "feature f:1"},
      {"struct<f:bigint>", {{Key("f", 1)}, {}}, "bigint"},
      {"struct<f:map<string,float>>", {{Key("f", 1)}, {}}, "keys"},
      {"struct<f:map<int,float>>", {{Key("g", 1)}, {}}, "no column g"},
      {"struct<f:map<int,float>>", {{}, {"f"}}, "map<int,float>"},
      {"struct<f:string>", {{}, {"f"}}, "string"},
  };
  for (const auto& c : cases) {
    try {
      CheckProjection(Schema::Parse(c.schema), "x.dwrf", c.projection);
      ADD_FAILURE() << c.schema << ": accepted";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ExitCode::kUsage);
      EXPECT_NE(std::string(error.what()).find(c.message), std::string::npos) << error.what();
    }
  }
}

TEST(FeatureStream, RowsThatAreOnlyClaimedFailFast) {
  HandmadeFile file = WithMap("float");
  file.rows = uint64_t{1} << 60;
  try {
    ReadFile(file, {{Key("f", 1)}, {}});
    ADD_FAILURE() << "accepted";
  } catch (const Error& error) {
    EXPECT_TRUE(error.code() == ExitCode::kResources || error.code() == ExitCode::kBadData)
        << error.what();
  }
}

// Nothing but groups is read, whose streams come last.
TEST(FeatureStream, RowsThatAreOnlyClaimedMakeNoSlices) {
  HandmadeFile file = GoodSparse();
  file.streams.erase(file.streams.begin());  // every row has the map
  file.rows = uint64_t{1} << 29;
  const auto reader = OpenFile(file);
  const StripePlan plan = MakePlan(*reader, reader->ReadStripe(0), {{Key("f", 1)}, {}});
  GroupRequests groups;
  groups.groups.push_back({"g", {plan.features[0].name}});
  SliceOptions options;
  options.slice_rows = 1;
  options.groups = &groups;
  try {
    DecodeSlices(Decompress(Fetch(plan, reader->source())), options);
    ADD_FAILURE() << "accepted";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::kBadData);
    EXPECT_NE(std::string(error.what()).find("do not hold the 536870912 values"), std::string::npos)
        << error.what();
  }
}

// Any single byte changed anywhere in the stripe gives an Error or a batch that keeps its promises.
TEST(FeatureStream, EveryByteFlippedIsRefusedOrHarmless) {
  for (const CompressionKind compression : {CompressionKind::kNone, CompressionKind::kZstd}) {
    HandmadeFile file = GoodSparse();
    file.compression = compression;
    const Bytes good = BuildFile(file);
    for (size_t at = 0; at < good.size(); ++at) {
      for (const int flip : {0x01, 0x80, 0xff}) {
        Bytes bad = good;
        bad[at] = static_cast<char>(bad[at] ^ flip);
        try {
          const auto reader = FileReader::Open(MemorySource("flipped.dwrf", bad));
          if (reader->num_stripes() == 0) continue;
          for (const Way& way : AllWays()) {
            try {
              ReadBy(way, *reader, "f:1");
            } catch (const Error&) {
            }
          }
        } catch (const Error&) {
        }
      }
    }
  }
}

}  // namespace
}  // namespace headrace::reader::dwrf
