// Encryption: ciphers against published vectors, rings of keys, and whole files: equal rows with
// the key, refusals without it, detection of changes, no initial vector twice.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <random>
#include <set>

#include "base/error.h"
#include "base/file.h"
#include "reader/batch/tensorize.h"
#include "reader/dwrf/crypto/decrypt.h"
#include "reader/dwrf/feature_stream.h"
#include "reader/dwrf/file_writer.h"
#include "reader/dwrf/inspect.h"
#include "reader/dwrf/row_reader.h"
#include "reader/dwrf/slices.h"
#include "reader/dwrf/text.h"
#include "tests/seed.h"

namespace headrace::reader::dwrf {
namespace {

using testing::HasSubstr;

constexpr const char* kKeys =
    "# test keys\n"
    "k1 000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f\n"
    "\n"
    "k2  ffeeddccbbaa99887766554433221100\n";
constexpr Cipher kCiphers[] = {Cipher::kAes128Gcm, Cipher::kAes256Gcm, Cipher::kAes128Ctr,
                               Cipher::kAes256Ctr};

std::string Hex(std::span<const uint8_t> bytes) {
  std::string text;
  for (const uint8_t byte : bytes) {
    char two[3];
    std::snprintf(two, sizeof two, "%02x", byte);
    text += two;
  }
  return text;
}
std::vector<uint8_t> FromHex(const std::string& text) {
  std::vector<uint8_t> bytes;
  for (size_t i = 0; i + 1 < text.size(); i += 2)
    bytes.push_back(static_cast<uint8_t>(std::stoul(text.substr(i, 2), nullptr, 16)));
  return bytes;
}

ExitCode CodeOf(const std::function<void()>& run, std::string* text = nullptr) {
  try {
    run();
  } catch (const Error& error) {
    if (text != nullptr) *text = error.what();
    return error.code();
  }
  return ExitCode::kOk;
}

TEST(Cipher, GivesThePublishedBytes) {
  // Key and initial vector 0: the block cipher of 0, 1 and 2 (McGrew and Viega, test cases 1 and 2;
  // GCM begins with block 2).
  const SecretKey zero(std::vector<uint8_t>(16, 0));
  const std::vector<uint8_t> plain(48, 0);
  std::vector<uint8_t> out(64);
  ChunkCipher ctr(Cipher::kAes128Ctr, zero);
  ctr.Encrypt({}, plain, out.data());
  EXPECT_EQ(Hex(std::span(out).first(48)),
            "66e94bd4ef8a2c3b884cfa59ca342b2e58e2fccefa7e3061367f1d57a4e7455a"
            "0388dace60b6a392f328c2b971b2fe78");
  ChunkCipher gcm(Cipher::kAes128Gcm, zero);
  gcm.Encrypt({}, std::span(plain).first(16), out.data());
  EXPECT_EQ(Hex(std::span(out).first(16)), "0388dace60b6a392f328c2b971b2fe78");
}

TEST(Cipher, EveryPartOfThePlaceIsAuthenticated) {
  for (const Cipher cipher : {Cipher::kAes128Gcm, Cipher::kAes256Gcm}) {
    const SecretKey key = SecretKey::Random(KeyBytes(cipher));
    ChunkCipher chunks(cipher, key);
    const ChunkPlace place{3, 5, 700, 9, 2, 1, false};
    const std::vector<uint8_t> plain = {1, 2, 3, 4, 5};
    std::vector<uint8_t> stored(plain.size() + 16), out(plain.size() + 16);
    chunks.Encrypt(place, plain, stored.data());
    ASSERT_TRUE(chunks.Decrypt(place, stored, out.data()));
    EXPECT_TRUE(std::equal(plain.begin(), plain.end(), out.begin()));
    std::vector<ChunkPlace> others(7, place);
    ++others[0].stripe, ++others[1].ordinal, ++others[2].position, ++others[3].node;
    ++others[4].sequence, ++others[5].kind, others[6].original = true;
    for (const ChunkPlace& other : others) EXPECT_FALSE(chunks.Decrypt(other, stored, out.data()));
    for (size_t i = 0; i < stored.size(); ++i) {
      stored[i] ^= 0x20;
      EXPECT_FALSE(chunks.Decrypt(place, stored, out.data())) << "byte " << i;
      stored[i] ^= 0x20;
    }
    EXPECT_FALSE(chunks.Decrypt(place, std::span(stored).first(15), out.data()));
    // In place, as the writer does it.
    std::vector<uint8_t> same = plain;
    same.resize(plain.size() + 16);
    chunks.Encrypt(place, std::span(same).first(plain.size()), same.data());
    EXPECT_EQ(same, stored);
  }
}

TEST(Cipher, WrapsKeysAsRfc3394) {
  const SecretKey wrapping(FromHex("000102030405060708090a0b0c0d0e0f"));
  const SecretKey key(FromHex("00112233445566778899aabbccddeeff"));
  const std::string wrapped = WrapKey(wrapping, key);
  const std::span<const uint8_t> bytes(reinterpret_cast<const uint8_t*>(wrapped.data()),
                                       wrapped.size());
  EXPECT_EQ(Hex(bytes), "1fa68b0a8112b447aef34bd8fb5a7b829d3e862371d2cfe5");
  EXPECT_EQ(Hex(UnwrapKey(wrapping, bytes).bytes()), Hex(key.bytes()));
  EXPECT_TRUE(UnwrapKey(key, bytes).empty());
  EXPECT_TRUE(UnwrapKey(wrapping, bytes.first(16)).empty());
}

TEST(KeyRing, ReadsLinesAndNeverRepeatsThem) {
  const auto ring = KeyRing::Parse(kKeys, "keys");
  ASSERT_NE(ring->Find("k1"), nullptr);
  EXPECT_EQ(ring->Find("k1")->bytes().size(), 32u);
  EXPECT_EQ(Hex(ring->Find("k2")->bytes()), "ffeeddccbbaa99887766554433221100");
  EXPECT_EQ(ring->Find("k3"), nullptr);
  const std::pair<const char*, const char*> cases[] = {
      {"", "holds no key"},
      {"# nothing\n", "holds no key"},
      {"k1\n", "keys:1: what follows the id is not one key"},
      {"\nk1 00112233\n", "keys:2"},
      {"k1 zz112233445566778899aabbccddeeff\n", "keys:1"},
      {"k1 00112233445566778899aabbccddeeff more\n", "keys:1"},
      {"k/1 00112233445566778899aabbccddeeff\n", "the id is not"},
      {"a 00112233445566778899aabbccddeeff\na 00112233445566778899aabbccddeeff\n", "keys:2"}};
  for (const auto& [text, expected] : cases) {
    std::string message;
    EXPECT_EQ(CodeOf([&, t = text] { KeyRing::Parse(t, "keys"); }, &message), ExitCode::kBadData);
    EXPECT_THAT(message, HasSubstr(expected));
    EXPECT_THAT(message, testing::Not(HasSubstr("112233"))) << "a key in a message";
  }
}

TEST(KeyRing, ComesFromAFileOfOnesOwnOrTheEnvironment) {
  const std::string path =
      (std::filesystem::temp_directory_path() / ("headrace-keys-" + std::to_string(getpid())))
          .string();
  std::ofstream(path) << kKeys;
  ::chmod(path.c_str(), 0644);
  EXPECT_EQ(CodeOf([&] { KeyRing::Load(path); }), ExitCode::kPrivilege);
  ::chmod(path.c_str(), 0600);
  EXPECT_NE(KeyRing::Load(path)->Find("k1"), nullptr);
  std::filesystem::remove(path);
  EXPECT_EQ(CodeOf([&] { KeyRing::Load(path); }), ExitCode::kBadData);
  ::setenv("HEADRACE_TEST_KEYS", kKeys, 1);
  EXPECT_NE(KeyRing::Load("env:HEADRACE_TEST_KEYS")->Find("k2"), nullptr);
  ::unsetenv("HEADRACE_TEST_KEYS");
  EXPECT_EQ(CodeOf([&] { KeyRing::Load("env:HEADRACE_TEST_KEYS"); }), ExitCode::kPrivilege);
}

TEST(EncryptionGroupSpec, ParsesOrSaysHow) {
  const EncryptionGroupSpec group = EncryptionGroupSpec::Parse("pii=a,b:key-1:aes128-ctr");
  EXPECT_EQ(group.name, "pii");
  EXPECT_THAT(group.columns, testing::ElementsAre("a", "b"));
  EXPECT_EQ(group.key_id, "key-1");
  EXPECT_EQ(group.cipher, Cipher::kAes128Ctr);
  EXPECT_EQ(EncryptionGroupSpec::Parse("g=a:k").cipher, Cipher::kAes256Gcm);
  for (const char* text : {"", "g", "=a:k", "g=a", "g=a:", "g=:k", "g=a:k:des", "g=a:k:x:y"})
    EXPECT_EQ(CodeOf([&] { EncryptionGroupSpec::Parse(text); }), ExitCode::kUsage) << text;
}

// A table of random values: label, id, three flattened maps of different kinds, a plain list and a
// string.
constexpr const char* kSchema =
    "struct<label:float,id:bigint,dense:map<int,float>,sparse:map<int,list<bigint>>,"
    "weighted:map<int,map<bigint,float>>>";
constexpr uint64_t kRows = 1500;

struct Feature {
  int64_t key;
  std::vector<uint64_t> present;
  std::vector<uint32_t> lengths;
  std::vector<int64_t> integers;
  std::vector<float> floats;
};

std::string MakeFile(WriterOptions options) {
  options.flat_maps = {"dense", "sparse", "weighted"};
  options.stripe_rows = 600;
  options.row_index_stride = 128;
  options.block_size = 1024;  // streams of many chunks
  const std::string path = (std::filesystem::temp_directory_path() /
                            ("headrace-encryption-" + std::to_string(getpid()) + ".dwrf"))
                               .string();
  FileWriter writer(path, Schema::Parse(kSchema), std::move(options), true);
  std::mt19937_64 random(7);
  std::vector<float> labels(kRows);
  std::vector<int64_t> ids(kRows);
  for (uint64_t row = 0; row < kRows; ++row) {
    labels[row] = static_cast<float>(random() % 2);
    ids[row] = static_cast<int64_t>(random() % 1000);
  }
  FlatBatch batch;
  batch.rows = kRows;
  batch.columns.push_back({"label", {}, {}, {}, labels});
  batch.columns.push_back({"id", {}, {}, ids, {}});
  std::vector<Feature> features;
  features.reserve(12);
  const char* names[] = {"dense", "sparse", "weighted"};
  for (int map = 0; map < 3; ++map) {
    FlatColumn& column = batch.columns.emplace_back();
    column.name = names[map];
    for (int64_t key = 1; key <= 4; ++key) {
      Feature& feature = features.emplace_back(Feature{key * 11, {}, {}, {}, {}});
      feature.present.resize((kRows + 63) / 64);
      for (uint64_t row = 0; row < kRows; ++row) {
        if (random() % 3 == 0) continue;
        feature.present[row / 64] |= uint64_t{1} << (row % 64);
        const uint64_t items = map == 0 ? 1 : random() % 9;
        if (map > 0) feature.lengths.push_back(static_cast<uint32_t>(items));
        for (uint64_t i = 0; i < items; ++i) {
          if (map > 0) feature.integers.push_back(static_cast<int64_t>(random() % 5000 * 8 + i));
          if (map != 1) feature.floats.push_back(static_cast<float>(random() % 100) / 8);
        }
      }
      column.features.push_back({MapKey::Of(feature.key), feature.present, feature.lengths,
                                 feature.integers, feature.floats});
    }
  }
  writer.WriteFlat(batch);
  writer.Close();
  std::string bytes = ReadWholeFile(path);
  std::filesystem::remove(path);
  return bytes;
}

WriterOptions Encrypted(CompressionKind codec, Cipher first, Cipher second) {
  WriterOptions options;
  options.compression = codec;
  options.level = 1;
  options.encryption = {{"pii", {"id", "sparse"}, "k1", first},
                        {"ads", {"weighted"}, "k2", second}};
  options.keys = KeyRing::Parse(kKeys, "keys");
  return options;
}

std::shared_ptr<const FileReader> Open(const std::string& bytes, const char* keys = kKeys) {
  OpenOptions options;
  if (keys != nullptr) options.keys = KeyRing::Parse(keys, "keys");
  return FileReader::Open(MemorySource("secret.dwrf", bytes), options);
}

std::string Rows(const std::shared_ptr<const FileReader>& file,
                 const std::vector<std::string>& columns = {}, uint64_t from = 0) {
  RowReaderOptions options;
  options.verify_checksums = false;  // so that only decryption can notice changes
  for (const std::string& name : columns) options.columns.push_back({name, true, {}});
  RowReader reader(file, std::move(options));
  if (from > 0) reader.SeekToRow(from);
  std::string text;
  RowPrinter printer(reader.schema(), TextFormat::kCanonical,
                     [&](std::string_view part) { text += part; });
  Column batch;
  while (reader.NextBatch(200, 1 << 20, &batch)) printer.Print(batch, 0, batch.rows);
  printer.Flush();
  return text;
}

std::vector<FlatMapBatch> Batches(const std::shared_ptr<const FileReader>& file,
                                  bool locked_as_null = false, bool sliced = false) {
  Projection projection;
  projection.locked_as_null = locked_as_null;
  for (const char* map : {"dense", "sparse", "weighted"})
    for (int64_t key = 1; key <= 4; ++key)
      projection.features.push_back({map, MapKey::Of(key * 11)});
  projection.columns = {"label", "id"};
  std::vector<FlatMapBatch> batches;
  for (size_t s = 0; s < file->num_stripes(); ++s) {
    UnpackedStripe unpacked = Decompress(
        Decrypt(Fetch(MakePlan(*file, file->ReadStripe(s), projection), file->source())));
    if (!sliced) {
      batches.push_back(Extract(Decode(std::move(unpacked))));
      continue;
    }
    DecodedStripe decoded = DecodeSlices(std::move(unpacked), {});
    batches.push_back(ExtractSlice(&decoded, 0));
  }
  return batches;
}

void ExpectEqual(const std::vector<FlatMapBatch>& a, const std::vector<FlatMapBatch>& b) {
  ASSERT_EQ(a.size(), b.size());
  for (size_t i = 0; i < a.size(); ++i) {
    Validate(a[i]);
    ASSERT_EQ(a[i].rows, b[i].rows);
    for (size_t c = 0; c < a[i].dense.size(); ++c) {
      EXPECT_EQ(a[i].dense[c].values, b[i].dense[c].values);
      EXPECT_EQ(a[i].dense[c].present.words, b[i].dense[c].present.words);
    }
    for (size_t c = 0; c < a[i].sparse.size(); ++c) {
      EXPECT_EQ(a[i].sparse[c].offsets, b[i].sparse[c].offsets);
      EXPECT_EQ(a[i].sparse[c].values, b[i].sparse[c].values);
      EXPECT_EQ(a[i].sparse[c].weights, b[i].sparse[c].weights);
    }
    for (size_t c = 0; c < a[i].scalars.size(); ++c) {
      EXPECT_EQ(a[i].scalars[c].integers, b[i].scalars[c].integers);
      EXPECT_EQ(a[i].scalars[c].floats, b[i].scalars[c].floats);
    }
  }
}

TEST(Encryption, EveryCipherAndCodecGivesTheSameRows) {
  for (const CompressionKind codec :
       {CompressionKind::kNone, CompressionKind::kZstd, CompressionKind::kLz4,
        CompressionKind::kSnappy, CompressionKind::kZlib}) {
    WriterOptions plain_options;
    plain_options.compression = codec;
    plain_options.level = 1;
    const auto plain = Open(MakeFile(plain_options), nullptr);
    const std::string rows = Rows(plain), tail = Rows(plain, {}, 1333);
    for (const Cipher first : kCiphers) {
      const Cipher second = first == Cipher::kAes128Gcm ? Cipher::kAes256Ctr : Cipher::kAes128Gcm;
      SCOPED_TRACE(testing::Message() << CompressionKindName(codec) << " " << CipherName(first));
      const auto file = Open(MakeFile(Encrypted(codec, first, second)));
      for (size_t s = 0; s < file->num_stripes(); ++s) EXPECT_TRUE(file->VerifyChecksum(s));
      EXPECT_EQ(Rows(file), rows);
      EXPECT_EQ(Rows(file, {}, 1333), tail) << "through the row index";
      ExpectEqual(Batches(file), Batches(plain));
    }
  }
}

TEST(Encryption, WithoutTheRightKeyPlainColumnsAreReadAndOthersRefused) {
  const std::string bytes =
      MakeFile(Encrypted(CompressionKind::kZstd, Cipher::kAes256Gcm, Cipher::kAes128Ctr));
  const std::string plain = Rows(Open(bytes), {"label", "dense"});
  const std::pair<const char*, const char*> cases[] = {
      {nullptr, "no keys were given"},
      {"k2 ffeeddccbbaa99887766554433221100", "key 'k1' is not in keys"},
      {"k1 0000000000000000000000000000000000000000000000000000000000000000\n"
       "k2 ffeeddccbbaa99887766554433221100",
       "key 'k1' of keys is not the one it was written with"}};
  for (const auto& [keys, why] : cases) {
    SCOPED_TRACE(why);
    const auto file = Open(bytes, keys);
    EXPECT_EQ(Rows(file, {"label", "dense"}), plain);
    std::string message;
    EXPECT_EQ(CodeOf([&] { Rows(file, {"id"}); }, &message), ExitCode::kPrivilege);
    EXPECT_THAT(message, HasSubstr(why));
    EXPECT_THAT(message, HasSubstr("column 'id' is encrypted (group pii, key k1, aes256-gcm)"));
    EXPECT_EQ(CodeOf([&] { Batches(file); }, &message), ExitCode::kPrivilege);
    EXPECT_THAT(InspectText(*file, {}), HasSubstr("locked, " + std::string(why)));
    // The group whose key is there can be read.
    if (keys != nullptr) {
      EXPECT_NE(Rows(file, {"weighted"}), "");
    }
  }
  // Nobody can decompress what is still encrypted.
  const auto file = Open(bytes);
  FetchedStripe fetched = Fetch(MakePlan(*file, file->ReadStripe(0), {{}, {"id"}}), file->source());
  EXPECT_EQ(CodeOf([&] { Decompress(std::move(fetched)); }), ExitCode::kUsage);
}

TEST(Encryption, LockedColumnsCanBeNull) {
  const std::string bytes =
      MakeFile(Encrypted(CompressionKind::kZstd, Cipher::kAes256Gcm, Cipher::kAes128Ctr));
  const std::vector<FlatMapBatch> whole = Batches(Open(bytes));
  ExpectEqual(Batches(Open(bytes), true), whole);  // nothing is locked
  for (const bool has_k2 : {false, true}) {
    const auto file = Open(bytes, has_k2 ? "k2 ffeeddccbbaa99887766554433221100" : nullptr);
    for (const bool sliced : {false, true}) {
      SCOPED_TRACE(testing::Message() << has_k2 << sliced);
      const std::vector<FlatMapBatch> batches = Batches(file, true, sliced);
      ASSERT_EQ(batches.size(), whole.size());
      for (size_t s = 0; s < batches.size(); ++s) {
        const FlatMapBatch& batch = batches[s];
        Validate(batch);
        ASSERT_EQ(batch.rows, whole[s].rows);
        ASSERT_EQ(batch.dense.size(), 4u);
        for (size_t i = 0; i < 4; ++i) EXPECT_EQ(batch.dense[i].values, whole[s].dense[i].values);
        ASSERT_EQ(batch.sparse.size(), 8u);
        for (size_t i = 0; i < 8; ++i) {
          const SparseColumn& column = batch.sparse[i];
          EXPECT_EQ(column.name, whole[s].sparse[i].name);
          EXPECT_EQ(column.weighted, i >= 4);
          if (i >= 4 && has_k2) {
            EXPECT_EQ(column.values, whole[s].sparse[i].values);
            EXPECT_EQ(column.present.words, whole[s].sparse[i].present.words);
          } else {
            EXPECT_EQ(column.present.count, 0u);
            EXPECT_TRUE(column.values.empty());
          }
        }
        ASSERT_EQ(batch.scalars.size(), 2u);
        EXPECT_EQ(batch.scalars[0].floats, whole[s].scalars[0].floats);
        EXPECT_EQ(batch.scalars[1].integers, std::vector<int64_t>(batch.rows, 0));
      }
    }
    Projection projection{{{"sparse", MapKey::Of(11)}, {"weighted", MapKey::Of(22)}}, {"id"}, true};
    const StripePlan plan = MakePlan(*file, file->ReadStripe(0), projection);
    EXPECT_EQ(plan.num_locked, has_k2 ? 2u : 3u);
    EXPECT_EQ(plan.streams.empty(), !has_k2);
  }
}

TEST(Encryption, TheFileHoldsNeitherKeysNorValuesInTheOpen) {
  const std::string bytes =
      MakeFile(Encrypted(CompressionKind::kNone, Cipher::kAes128Gcm, Cipher::kAes128Gcm));
  const auto raw = FromHex("000102030405060708090a0b0c0d0e0f");
  EXPECT_EQ(bytes.find(std::string(raw.begin(), raw.end())), std::string::npos);
  EXPECT_EQ(bytes.find("000102030405"), std::string::npos);
  // The statistics of an encrypted column tell counts without the key, values with it.
  const auto locked = Open(bytes, nullptr);
  const proto::ColumnStatistics& id = locked->tail().footer.statistics(2);
  EXPECT_EQ(id.number_of_values(), kRows);
  EXPECT_GT(id.size(), 0u);
  EXPECT_FALSE(id.has_int_statistics());
  const auto statistics = Open(bytes)->ReadGroupStatistics(0);
  ASSERT_EQ(statistics.size(), 2u);  // id, sparse
  EXPECT_LE(statistics[0].statistics(0).int_statistics().maximum(), 999);
  EXPECT_EQ(statistics[1].statistics_size(), 4);
}

TEST(Encryption, UnderGcmNoChangeGoesUnnoticed) {
  const std::string bytes =
      MakeFile(Encrypted(CompressionKind::kZstd, Cipher::kAes128Gcm, Cipher::kAes256Gcm));
  const auto file = Open(bytes);
  std::mt19937_64 random(11);
  for (size_t s = 0; s < file->num_stripes(); ++s) {
    const auto stripe = file->ReadStripe(s);
    for (const StreamInfo& stream : stripe->streams) {
      if (stream.group == 0 || IsIndexStream(stream.kind)) continue;
      // A byte of a payload; headers are found out as well, but not always by the tag.
      std::string changed = bytes;
      const uint64_t at = stream.offset + kChunkHeaderBytes + random() % 16;
      changed[at] = static_cast<char>(changed[at] ^ (1 << random() % 8));
      SCOPED_TRACE(testing::Message()
                   << StreamKindName(stream.kind) << " of node " << stream.node << " byte " << at);
      std::string message;
      EXPECT_EQ(CodeOf([&] { Rows(Open(changed)); }, &message), ExitCode::kBadData);
      EXPECT_THAT(message, HasSubstr("an encrypted chunk is not as it was written"));
      EXPECT_EQ(CodeOf([&] { Batches(Open(changed)); }, &message), ExitCode::kBadData);
      EXPECT_THAT(message, HasSubstr("not as it was written"));
      EXPECT_THAT(message, HasSubstr("stripe " + std::to_string(s)));
    }
  }
}

// Under CTR changed bytes reach the parsers of the group's footer, row index and streams.
TEST(Encryption, DamageIsAnErrorOrOtherValues) {
  const uint64_t seed = TestSeed(17);
  std::mt19937_64 random(seed);
  for (const CompressionKind codec : {CompressionKind::kNone, CompressionKind::kZstd}) {
    const std::string bytes = MakeFile(Encrypted(codec, Cipher::kAes128Ctr, Cipher::kAes256Gcm));
    uint64_t refused = 0;
    for (int i = 0; i < 300; ++i) {
      std::string changed = bytes;
      // Half of the changes near the end, where the footers are.
      const uint64_t range = i % 2 == 0 ? bytes.size() : std::min<uint64_t>(bytes.size(), 8192);
      for (uint64_t n = 1 + random() % 3; n > 0; --n) {
        const uint64_t at = bytes.size() - 1 - random() % range;
        changed[at] = static_cast<char>(random());
      }
      std::shared_ptr<const FileReader> file;
      const ExitCode opened = CodeOf([&] { file = Open(changed); });
      if (opened == ExitCode::kOk) {
        CodeOf([&] { InspectJson(*file); });
        refused += CodeOf([&] { Batches(file); }) != ExitCode::kOk;
        CodeOf([&] { Batches(Open(changed, nullptr), true, i % 4 == 0); });
        CodeOf([&] { Rows(file, {}, file->num_rows() / 2); });
      } else {
        EXPECT_EQ(opened, ExitCode::kBadData);
        ++refused;
      }
    }
    EXPECT_GT(refused, 20u);
  }
}

TEST(Encryption, NoInitialVectorIsUsedTwice) {
  for (const CompressionKind codec : {CompressionKind::kNone, CompressionKind::kZstd}) {
    const std::string bytes = MakeFile(Encrypted(codec, Cipher::kAes128Ctr, Cipher::kAes128Gcm));
    const auto file = Open(bytes);
    std::set<std::tuple<uint32_t, uint32_t, uint32_t, uint64_t>> used;  // group, then the vector
    for (size_t s = 0; s < file->num_stripes(); ++s) {
      const auto stripe = file->ReadStripe(s);
      for (const StreamInfo& stream : stripe->streams) {
        if (stream.group == 0) continue;
        EXPECT_NE(stream.ordinal, kFooterOrdinal);
        uint64_t at = 0;
        while (at < stream.length) {
          const auto header =
              ParseChunkHeader(reinterpret_cast<const uint8_t*>(bytes.data()) + stream.offset + at);
          EXPECT_TRUE(used.emplace(stream.group, stripe->index, stream.ordinal, at).second);
          at += kChunkHeaderBytes + header.length;
        }
      }
    }
    EXPECT_GT(used.size(), 100u);
  }
  // Another file has other data keys: equal rows under equal vectors give other bytes.
  const WriterOptions options =
      Encrypted(CompressionKind::kNone, Cipher::kAes128Ctr, Cipher::kAes128Ctr);
  EXPECT_NE(MakeFile(options), MakeFile(options));
}

TEST(Encryption, RefusesWhatCannotBeWritten) {
  const auto code = [](const std::function<void(WriterOptions*)>& change) {
    WriterOptions options =
        Encrypted(CompressionKind::kZstd, Cipher::kAes128Gcm, Cipher::kAes128Gcm);
    change(&options);
    return CodeOf([&] { LayoutPolicy(Schema::Parse(kSchema), options); });
  };
  EXPECT_EQ(code([](WriterOptions*) {}), ExitCode::kOk);
  EXPECT_EQ(code([](WriterOptions* o) { o->keys.reset(); }), ExitCode::kPrivilege);
  EXPECT_EQ(code([](WriterOptions* o) { o->encryption[0].key_id = "k3"; }), ExitCode::kPrivilege);
  EXPECT_EQ(code([](WriterOptions* o) { o->encryption[0].columns = {"x"}; }), ExitCode::kUsage);
  EXPECT_EQ(code([](WriterOptions* o) { o->encryption[1].columns = {"id"}; }), ExitCode::kUsage);
}

}  // namespace
}  // namespace headrace::reader::dwrf
