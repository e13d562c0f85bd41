// Verify: metadata held against rows. Each figure that metadata has is changed alone, with lengths
// and checksums right, and must be found; sound files, ours and others', must pass.
#include "reader/dwrf/verify.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <functional>

#include "base/error.h"
#include "base/file.h"
#include "reader/dwrf/column_gather.h"
#include "reader/dwrf/file_statistics.h"
#include "reader/dwrf/file_writer.h"
#include "tests/fuzz/torn_file.h"
#include "tests/reader/dwrf/test_files.h"

namespace headrace::reader::dwrf {
namespace {

using fuzz::TornFile;
using ::testing::HasSubstr;

const Schema kSchema = Schema::Parse(
    "struct<id:int,name:string,score:double,flag:boolean,blob:binary,at:timestamp,"
    "items:list<bigint>,inner:struct<a:float,b:smallint>,sparse:map<int,list<bigint>>>");
// Nodes in pre-order: 0 row, 1 id, 2 name, 3 score, 4 flag, 5 blob, 6 at, 7 items, 8 element, 9
// inner, 10 a, 11 b, 12 sparse, 13 key, 14 value, 15 element.
constexpr uint64_t kRows = 2500, kStride = 500, kStripeRows = 1200;

void SetRows(Column* column, uint64_t rows) {
  column->rows = rows;
  for (Column& child : column->children)
    if (column->kind == TypeKind::kStruct) SetRows(&child, rows);
}

// Values that differ in every stride, nulls in some.
Column Rows() {
  const auto of = [](TypeKind kind) {
    Column column;
    column.kind = kind;
    return column;
  };
  Column id = of(TypeKind::kInt), name = of(TypeKind::kString), score = of(TypeKind::kDouble);
  Column flag = of(TypeKind::kBoolean), blob = of(TypeKind::kBinary), at = of(TypeKind::kTimestamp);
  Column items = of(TypeKind::kList), element = of(TypeKind::kLong), inner = of(TypeKind::kStruct);
  Column a = of(TypeKind::kFloat), b = of(TypeKind::kShort), sparse = of(TypeKind::kMap);
  Column key = of(TypeKind::kInt), value = of(TypeKind::kList), inside = of(TypeKind::kLong);
  for (Column* column : {&name, &blob, &items, &sparse, &value}) column->offsets = {0};
  for (uint64_t row = 0; row < kRows; ++row) {
    const auto n = static_cast<int64_t>(row);
    id.integers.push_back(n * 7 % 1000 - 300);
    name.present.push_back(row % 11 != 0);
    if (row % 11 != 0) name.bytes += "name " + std::to_string(row * 13 % 700);
    name.offsets.push_back(name.bytes.size());
    score.doubles.push_back(static_cast<double>(n) * 0.37 - 200);
    flag.integers.push_back(row % 3 == 0);
    blob.bytes += std::string(row % 5, 'x');
    blob.offsets.push_back(blob.bytes.size());
    at.integers.push_back(1'500'000'000 + n);
    at.nanos.push_back(static_cast<int32_t>(row));
    for (uint64_t i = 0; i < row % 4; ++i)
      element.integers.push_back(n * 10 + static_cast<int64_t>(i));
    items.offsets.push_back(element.integers.size());
    inner.present.push_back(row % 7 != 0);
    a.floats.push_back(row % 7 != 0 ? static_cast<float>(row) : 0);
    b.integers.push_back(row % 7 != 0 ? n % 100 : 0);
    for (const int64_t k : {3, 17}) {
      if (n % k == 1) continue;
      key.integers.push_back(k);
      for (int64_t i = 0; i < n % 3; ++i) inside.integers.push_back(n * k + i);
      value.offsets.push_back(inside.integers.size());
    }
    sparse.offsets.push_back(key.integers.size());
  }
  element.rows = element.integers.size();
  inside.rows = inside.integers.size();
  key.rows = value.rows = key.integers.size();
  a.present = b.present = inner.present;
  items.children = {element};
  value.children = {inside};
  sparse.children = {key, value};
  inner.children = {a, b};
  Column rows = of(TypeKind::kStruct);
  rows.children = {id, name, score, flag, blob, at, items, inner, sparse};
  SetRows(&rows, kRows);
  return rows;
}

std::string WrittenAs(const Schema& schema, const WriterOptions& options, const Column& rows) {
  const std::string path = (std::filesystem::temp_directory_path() /
                            ("headrace-verify-" + std::to_string(getpid()) + ".dwrf"))
                               .string();
  FileWriter writer(path, schema, options, true);
  writer.Write(rows);
  writer.Close();
  std::string bytes = ReadWholeFile(path);
  std::filesystem::remove(path);
  return bytes;
}

std::string Written(const WriterOptions& options) { return WrittenAs(kSchema, options, Rows()); }

WriterOptions Options() {
  WriterOptions options;
  options.stripe_rows = kStripeRows;
  options.row_index_stride = kStride;
  options.flat_maps = {"sparse"};
  return options;
}

Verification VerifyBytes(std::string bytes) {
  return Verify(FileReader::Open(MemorySource("t.dwrf", std::move(bytes))));
}

// The complaint about the file; "" where there is none.
std::string Complaint(const std::string& bytes) {
  try {
    VerifyBytes(bytes);
    return "";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::kBadData) << error.what();
    return error.what();
  }
}

std::string Rebuilt(TornFile file) {
  std::string said;
  return file.Bytes(&said);
}

TEST(Verify, OurOwnFilesPassWithEveryFigure) {
  for (const CompressionKind compression :
       {CompressionKind::kNone, CompressionKind::kZstd, CompressionKind::kZlib}) {
    for (const bool flat : {true, false}) {
      WriterOptions options = Options();
      options.compression = compression;
      if (!flat) options.flat_maps.clear();
      const Verification v = VerifyBytes(Written(options));
      EXPECT_EQ(v.rows, kRows);
      EXPECT_EQ(v.stripes, 3u);
      EXPECT_EQ(v.checksums, 3u);
      EXPECT_EQ(v.footer_nodes, 16u);
      EXPECT_EQ(v.seeks, 4u);  // strides of 500, 500, 200; 500, 500, 200; 100
      EXPECT_GT(v.index_entries, 90u);
      EXPECT_EQ(v.figures, (std::set<std::string>{"bytes", "count", "hasNull", "maximum", "minimum",
                                                  "sum", "trues"}));
      EXPECT_TRUE(v.not_checked.empty());
    }
  }
}

// Put together again without a change, the file is sound: what is found below is the change.
TEST(Verify, AFilePutTogetherAgainPasses) {
  EXPECT_EQ(Complaint(Rebuilt(TornFile(Written(Options())))), "");
}

TEST(Verify, EveryStatisticOfTheFooterIsHeldAgainstTheRows) {
  const std::string bytes = Written(Options());
  struct Case {
    const char* name;
    int node;
    std::function<void(proto::ColumnStatistics*)> change;
    const char* said;
  };
  const Case cases[] = {
      {"row count", 0, [](auto* s) { s->set_number_of_values(s->number_of_values() + 1); },
       "the row itself: the statistics say count 2501, the rows have 2500"},
      {"count", 1, [](auto* s) { s->set_number_of_values(7); },
       "column id (node 1 sequence 0): the statistics say count 7, the rows have 2500"},
      {"integer minimum", 1, [](auto* s) { s->mutable_int_statistics()->set_minimum(-301); },
       "minimum -301, the rows have -300"},
      {"integer maximum", 1, [](auto* s) { s->mutable_int_statistics()->set_maximum(698); },
       "maximum 698, the rows have 699"},
      {"integer sum", 8, [](auto* s) { s->mutable_int_statistics()->set_sum(0); },
       "column items.element (node 8 sequence 0): the statistics say sum 0"},
      {"nulls", 2, [](auto* s) { s->set_has_null(false); }, "hasNull false, the rows have true"},
      {"no nulls", 3, [](auto* s) { s->set_has_null(true); }, "hasNull true, the rows have false"},
      {"text minimum", 2, [](auto* s) { s->mutable_string_statistics()->set_minimum("a"); },
       "column name (node 2 sequence 0): the statistics say minimum 'a', the rows have 'name 0'"},
      {"text maximum", 2, [](auto* s) { s->mutable_string_statistics()->set_maximum("z"); },
       "maximum 'z'"},
      {"text bytes", 2, [](auto* s) { s->mutable_string_statistics()->set_sum(1); }, "bytes 1, "},
      {"double minimum", 3, [](auto* s) { s->mutable_double_statistics()->set_minimum(-201); },
       "minimum -201, the rows have -200"},
      {"double sum", 3,
       [](auto* s) {
         s->mutable_double_statistics()->set_sum(s->double_statistics().sum() * (1 + 1e-7));
       },
       "column score (node 3 sequence 0): the statistics say sum"},
      {"trues", 4, [](auto* s) { s->mutable_bucket_statistics()->set_count(0, 3); },
       "trues 3, the rows have 834"},
      {"binary bytes", 5, [](auto* s) { s->mutable_binary_statistics()->set_sum(3); }, "bytes 3"},
      {"below a struct", 10, [](auto* s) { s->mutable_double_statistics()->set_maximum(9999); },
       "column inner.a (node 10 sequence 0): the statistics say maximum 9999"},
      {"keys of a flattened map", 13, [](auto* s) { s->set_number_of_values(1); },
       "column sparse.key (node 13 sequence 0): the statistics say count 1"},
      {"values of a flattened map", 15,
       [](auto* s) { s->mutable_int_statistics()->set_maximum(1); },
       "column sparse.value.element (node 15 sequence 0): the statistics say maximum 1"},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(c.name);
    TornFile file(bytes);
    c.change(file.footer()->mutable_statistics(c.node));
    const std::string complaint = Complaint(Rebuilt(std::move(file)));
    EXPECT_THAT(complaint, HasSubstr("t.dwrf: footer, "));
    EXPECT_THAT(complaint, HasSubstr(c.said));
  }
}

TEST(Verify, RowCountsAreHeldAgainstTheRows) {
  TornFile file(Written(Options()));
  auto* last = file.footer()->mutable_stripes(2);
  last->set_number_of_rows(last->number_of_rows() - 1);
  file.footer()->set_number_of_rows(kRows - 1);
  EXPECT_THAT(Complaint(Rebuilt(std::move(file))), HasSubstr("stripe 2, rows 2400 to 2498"));
}

// The entry of one stride of one row index, changed.
std::string WithIndex(const std::string& bytes, uint32_t node, uint32_t sequence, int entry,
                      const std::function<void(proto::RowIndexEntry*)>& change) {
  TornFile file(bytes);
  file.EditStream(1, StreamKind::kRowIndex, node, sequence, [&](const std::string& plain) {
    proto::RowIndex index;
    EXPECT_TRUE(index.ParseFromString(plain));
    change(index.mutable_entry(entry));
    return index.SerializeAsString();
  });
  return Rebuilt(std::move(file));
}

TEST(Verify, StatisticsOfTheRowIndexAreHeldAgainstTheRows) {
  const std::string bytes = Written(Options());
  EXPECT_THAT(
      Complaint(WithIndex(bytes, 1, 0, 1,
                          [](auto* entry) {
                            entry->mutable_statistics()->mutable_int_statistics()->set_maximum(5);
                          })),
      HasSubstr("t.dwrf: stripe 1, rows 1700 to 2199, column id (node 1 sequence 0): the row "
                "index says maximum 5, the rows have 699"));
  // Of one key of a flattened map.
  EXPECT_THAT(
      Complaint(
          WithIndex(bytes, 14, 2, 2,
                    [](auto* entry) { entry->mutable_statistics()->set_number_of_values(1); })),
      HasSubstr(
          "stripe 1, rows 2200 to 2399, column sparse.value (node 14 sequence 2): the row index "
          "says count 1, "));
  EXPECT_THAT(
      Complaint(WithIndex(
          bytes, 15, 1, 0,
          [](auto* entry) { entry->mutable_statistics()->mutable_int_statistics()->set_sum(1); })),
      HasSubstr("column sparse.value.element (node 15 sequence 1): the row index says sum 1"));
}

TEST(Verify, PositionsOfTheRowIndexAreHeldAgainstTheRows) {
  WriterOptions options = Options();
  options.compression = CompressionKind::kNone;
  const std::string bytes = Written(options);
  // One byte further: another value begins there, or none.
  for (const uint32_t node : {1U, 3U, 4U, 8U, 10U}) {
    SCOPED_TRACE(node);
    const std::string complaint = Complaint(WithIndex(bytes, node, 0, 1, [](auto* entry) {
      const int last = entry->positions_size() - 1;
      entry->set_positions(last, entry->positions(last) ^ 1);
    }));
    EXPECT_THAT(complaint, HasSubstr("t.dwrf: stripe 1, rows 1700 to 2199"));
  }
  const std::string complaint = Complaint(WithIndex(
      bytes, 3, 0, 1, [](auto* entry) { entry->set_positions(0, entry->positions(0) + 8); }));
  EXPECT_THAT(complaint,
              HasSubstr("column score (node 3 sequence 0): other rows are at the positions "
                        "of the row index than in order"));
}

TEST(Verify, AnIndexOfOtherLengthIsFound) {
  TornFile file(Written(Options()));
  file.EditStream(0, StreamKind::kRowIndex, 1, 0, [](const std::string& plain) {
    proto::RowIndex index;
    EXPECT_TRUE(index.ParseFromString(plain));
    index.mutable_entry()->RemoveLast();
    return index.SerializeAsString();
  });
  EXPECT_THAT(
      Complaint(Rebuilt(std::move(file))),
      HasSubstr("stripe 0, column id (node 1 sequence 0): the row index has 2 entries, 1200 "
                "rows in strides of 500 have 3"));
}

// An index of `strides` entries, the first of which has `numbers` positions.
std::string LongIndex(int strides, int numbers) {
  proto::RowIndex index;
  for (int i = 0; i < strides; ++i) index.add_entry();
  index.mutable_entry(0)->mutable_positions()->Resize(numbers, 0);
  return index.SerializeAsString();
}

// Row indexes of sequences that no key has.
void AddIndexes(TornFile* file, uint32_t count) {
  file->EditStripeFooter(0, [&](proto::StripeFooter* footer) {
    for (uint32_t i = 0; i < count; ++i) {
      proto::Stream* stream = footer->add_streams();
      stream->set_kind(static_cast<uint32_t>(StreamKind::kRowIndex));
      stream->set_node(15);
      stream->set_sequence(1000 + i);
      stream->set_length(0);
    }
  });
}

// A few hundred stored bytes, which any number of columns share, would be gigabytes of numbers.
TEST(Verify, RowIndexesThatShareTheirBytesAreRefusedBeforeTheyFillTheMemory) {
  TornFile file(Written(Options()));
  AddIndexes(&file, 400);
  file.ShareIndex(0, LongIndex(3, 1 << 20));
  EXPECT_THAT(
      Complaint(Rebuilt(std::move(file))),
      HasSubstr("t.dwrf: stripe 0: its row indexes and the statistics of its keys need more "
                "than 268435456 bytes of memory"));
}

TEST(Verify, EntriesOfARowIndexAreCountedBeforeTheyAreTakenApart) {
  TornFile file(Written(Options()));
  std::string entries;
  for (int i = 0; i < 1 << 19; ++i) entries += std::string("\x0a\0", 2);
  file.ShareIndex(0, entries);
  EXPECT_THAT(Complaint(Rebuilt(std::move(file))),
              HasSubstr("the row index has 524288 entries, 1200 rows in strides of 500 have 3"));
}

TEST(Verify, ARowIndexThatIsNoMessageIsFound) {
  for (const std::string& bytes : {std::string("\x0a\x05\0", 3), std::string("\x0a"),
                                   std::string("\0", 1), std::string("\x0a\x02\x0a\x05", 4)}) {
    SCOPED_TRACE(Printable(bytes));
    TornFile file(Written(Options()));
    file.ShareIndex(0, bytes);
    EXPECT_THAT(Complaint(Rebuilt(std::move(file))), HasSubstr("t.dwrf: stripe 0, "));
  }
}

// A wide type below many keys of a few bytes each: two million nodes.
std::string ManyKeysOfAWideType() {
  std::string inner;
  for (int i = 0; i < 2000; ++i) inner += fmt::format("{}f{}:int", i == 0 ? "" : ",", i);
  const Schema schema = Schema::Parse("struct<m:map<int,struct<" + inner + ">>>");
  Column rows = EmptyColumn(schema, 0);
  rows.rows = rows.children[0].rows = 1;
  rows.children[0].offsets = {0, 0};
  WriterOptions options = Options();
  options.flat_maps = {"m"};
  TornFile file(WrittenAs(schema, options, rows));
  file.EditStripeFooter(0, [&](proto::StripeFooter* footer) {
    for (uint32_t key = 1; key <= 1000; ++key) {
      proto::ColumnEncoding* encoding = footer->add_encoding();
      encoding->set_kind(0);
      encoding->set_node(3);
      encoding->set_sequence(key);
      encoding->mutable_key()->set_int_key(key);
      proto::Stream* in_map = footer->add_streams();
      in_map->set_kind(static_cast<uint32_t>(StreamKind::kInMap));
      in_map->set_node(3);
      in_map->set_sequence(key);
      in_map->set_length(0);
    }
  });
  return Rebuilt(std::move(file));
}

// Every key has statistics of its own.
TEST(Verify, KeysTimesNodesAreRefusedBeforeTheyFillTheMemory) {
  EXPECT_THAT(
      Complaint(ManyKeysOfAWideType()),
      HasSubstr("t.dwrf: stripe 0: its row indexes and the statistics of its keys need more "
                "than 268435456 bytes of memory"));
}

TEST(RowReader, KeysTimesNodesAreRefusedBeforeTheyFillTheMemory) {
  RowReader rows(FileReader::Open(MemorySource("t.dwrf", ManyKeysOfAWideType())));
  Column batch;
  try {
    rows.NextBatch(1, 1 << 20, &batch);
    FAIL() << "two million readers";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::kResources) << error.what();
    EXPECT_THAT(error.what(), HasSubstr("t.dwrf: stripe 0, column m (node 1 sequence 0), "));
    EXPECT_THAT(error.what(), HasSubstr("keys of 2001 nodes each need more than 1073741824 bytes"));
  }
}

TEST(Verify, MoreStridesThanTheBytesCanMeanAreRefused) {
  TornFile file(Written(Options()));
  AddIndexes(&file, 2000);
  file.ShareIndex(0, LongIndex(static_cast<int>(kStripeRows), 0));
  file.footer()->set_row_index_stride(1);
  EXPECT_THAT(Complaint(Rebuilt(std::move(file))),
              HasSubstr("t.dwrf: stripe 0: 1200 strides of 1 rows, each of "));
}

// A seek unpacks a chunk from its beginning: a long chunk of equal values in many strides.
TEST(Verify, SeekingEndsWhereMoreIsUnpackedThanTheBytesCanMean) {
  WriterOptions options = Options();
  options.row_index_stride = 10;
  options.block_size = (8 << 20) - 1;
  TornFile file(Written(options));
  for (const uint32_t node : {3U, 10U})  // 120 seeks of 16 MB
    file.EditStream(
        0, StreamKind::kData, node, 0,
        [](std::string plain) { return plain + std::string(7 << 20, '\0'); }, true);
  const Verification v = VerifyBytes(Rebuilt(std::move(file)));
  EXPECT_EQ(v.rows, kRows);
  EXPECT_GT(v.seeks, 130u + 60u);  // the other stripes have 119 and 9
  EXPECT_LT(v.seeks, 247u);
  EXPECT_THAT(v.not_checked,
              testing::ElementsAre(testing::AllOf(
                  HasSubstr("positions from stripe 0, rows "),
                  HasSubstr("to read the strides again means to unpack more than"))));
}

// Found by reading: "internal error: map::at" while the statistics of such keys were counted.
TEST(StripeFooter, AMapBelowAFlattenedMapHasNoKeysOfItsOwn) {
  const Schema schema = Schema::Parse("struct<m:map<int,map<int,float>>>");
  Column rows = EmptyColumn(schema, 0);
  Column& outer = rows.children[0];
  Column& inner = outer.children[1];
  outer.offsets = {0, 1};
  outer.children[0].integers = {7};
  inner.offsets = {0, 1};
  inner.children[0].integers = {5};
  inner.children[1].floats = {0.5F};
  rows.rows = outer.rows = outer.children[0].rows = inner.rows = 1;
  inner.children[0].rows = inner.children[1].rows = 1;
  WriterOptions options = Options();
  options.flat_maps = {"m"};
  const std::string bytes = WrittenAs(schema, options, rows);
  EXPECT_EQ(Complaint(bytes), "");
  TornFile file(bytes);
  EXPECT_EQ(file.FlattenInner(0), 3u);
  EXPECT_THAT(Complaint(Rebuilt(std::move(file))),
              HasSubstr("map m.value is flattened below the flattened map m"));
}

// A file of claimed lengths, of which the end alone is there: the rest is a hole.
class SparseSource final : public Source {
 public:
  SparseSource(uint64_t size, std::string end) : size_(size), end_(std::move(end)) {}
  const std::string& name() const override { return name_; }
  uint64_t size() const override { return size_; }
  void ReadAt(uint64_t offset, std::span<uint8_t> out) const override {
    ASSERT_LT(out.size(), uint64_t{1} << 30) << "read at " << offset;
    std::fill(out.begin(), out.end(), uint8_t{0});
    const uint64_t begin = size_ - end_.size();
    for (uint64_t i = 0; i < out.size(); ++i)
      if (offset + i >= begin) out[i] = static_cast<uint8_t>(end_[offset + i - begin]);
  }

 private:
  std::string name_ = "sparse.dwrf";
  uint64_t size_;
  std::string end_;
};

std::string SparseComplaint(uint64_t size, const std::string& end) {
  try {
    FileReader::Open(std::make_shared<SparseSource>(size, end))->ReadStripe(0);
    return "";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::kBadData) << error.what();
    return error.what();
  }
}

std::string PostScriptOf(uint64_t footer_length) {
  proto::PostScript ps;
  ps.set_footer_length(footer_length);
  ps.set_compression(0);
  const std::string bytes = ps.SerializeAsString();
  return bytes + static_cast<char>(bytes.size());
}

TEST(Tail, AFooterIsNoLongerThanAnyFooterIs) {
  for (const uint64_t length : {uint64_t{3} << 30, uint64_t{1} << 40}) {
    EXPECT_THAT(SparseComplaint(uint64_t{1} << 41, PostScriptOf(length)),
                HasSubstr(fmt::format("{} bytes where at most 268435456 are supported", length)));
  }
}

TEST(StripeFooter, IsNoLongerThanAnyStripeFooterIs) {
  proto::Footer footer;
  footer.add_types()->set_kind(static_cast<uint32_t>(TypeKind::kStruct));
  footer.set_row_index_stride(0);
  proto::StripeInformation* stripe = footer.add_stripes();
  stripe->set_offset(3);
  stripe->set_index_length(0);
  stripe->set_data_length(0);
  stripe->set_footer_length(uint64_t{3} << 30);
  stripe->set_number_of_rows(1);
  const std::string bytes = footer.SerializeAsString();
  EXPECT_THAT(SparseComplaint(uint64_t{1} << 41, bytes + PostScriptOf(bytes.size())),
              HasSubstr("sparse.dwrf: stripe 0, footer at byte 3: 3221225472 bytes where at most "
                        "268435456 are supported"));
}

// Bounds longer than what is kept of values are compared as far as that goes.
TEST(Statistics, LongTextBoundsAreComparedAsFarAsTheyAreKept) {
  StatisticsBuilder decoded;
  decoded.num_values = 1;
  decoded.AddString(std::string(100, 'a'), 1);
  const auto differs = [&](const std::string& bound) {
    proto::ColumnStatistics stored;
    stored.mutable_string_statistics()->set_minimum(bound);
    std::set<std::string> compared;
    return !Compare(stored, decoded, TypeKind::kString, true, &compared).empty();
  };
  EXPECT_FALSE(differs(std::string(100, 'a')));
  EXPECT_FALSE(differs(std::string(65, 'a') + "b"));
  EXPECT_TRUE(differs(std::string(64, 'a') + "b"));
  EXPECT_TRUE(differs(std::string(64, 'a')));
}

// Of other writers: the figures each file carries, all of them true.
TEST(Verify, FilesOfOtherWritersPass) {
  HR_NEEDS_SHARED_FILES();
  size_t passed = 0;
  for (const std::string& name : SharedNames()) {
    if (name.starts_with("derived-") || name == "long_string.dwrf")
      continue;  // damaged; 5 GB of rows
    SCOPED_TRACE(name);
    std::shared_ptr<const FileReader> file;
    try {
      file = OpenShared(name);
    } catch (const Error&) {
      continue;  // Apache ORC
    }
    const Verification v = Verify(file);
    EXPECT_EQ(v.rows, file->keys().groups().empty() ? file->num_rows() : v.rows);
    std::string figures;
    for (const std::string& figure : v.figures) figures += " " + figure;
    std::printf("%-44s %3zu nodes, %5zu entries, %3zu seeks:%s\n", name.c_str(),
                static_cast<size_t>(v.footer_nodes), static_cast<size_t>(v.index_entries),
                static_cast<size_t>(v.seeks), figures.c_str());
    ++passed;
  }
  EXPECT_GE(passed, 20u);
}

// Found by scripts/damaged_files.sh: cat printed such a key, and rewrite could not write it.
TEST(StripeFooter, KeysOfAFlattenedMapFitTheirType) {
  TornFile file(Written(Options()));
  file.EditStripeFooter(0, [](proto::StripeFooter* footer) {
    for (auto& encoding : *footer->mutable_encoding())
      if (encoding.node() == 14 && encoding.sequence() == 1)
        encoding.mutable_key()->set_int_key(int64_t{1} << 32);
  });
  EXPECT_THAT(Complaint(Rebuilt(std::move(file))),
              HasSubstr("key 4294967296 of map sparse is no int"));
}

TEST(StripeFooter, KeysOfAFlattenedMapAreThereOnce) {
  TornFile file(Written(Options()));
  file.EditStripeFooter(0, [](proto::StripeFooter* footer) {
    for (auto& encoding : *footer->mutable_encoding())
      if (encoding.node() == 14 && encoding.sequence() == 1)
        encoding.mutable_key()->set_int_key(17);
  });
  EXPECT_THAT(Complaint(Rebuilt(std::move(file))),
              HasSubstr("key 17 of map sparse has two sequences"));
}

TEST(Verify, SaysWhatItCouldNotCheck) {
  WriterOptions options = Options();
  options.keys = KeyRing::Parse("k 000102030405060708090a0b0c0d0e0f", "keys");
  options.encryption.push_back(EncryptionGroupSpec::Parse("g=sparse:k"));
  const std::string bytes = Written(options);
  const Verification locked = VerifyBytes(bytes);
  EXPECT_THAT(locked.not_checked, testing::ElementsAre(HasSubstr("column sparse: encrypted")));
  OpenOptions opening;
  opening.keys = options.keys;
  const Verification open = Verify(FileReader::Open(MemorySource("t.dwrf", bytes), opening));
  EXPECT_TRUE(open.not_checked.empty());
  EXPECT_EQ(open.footer_nodes, 16u);
}

TEST(Verify, NamesOtherFormats) {
  const struct {
    std::string begin, end;
    const char* format;
  } cases[] = {{"PAR1", "\x20\x01PAR1", "Parquet"},
               {std::string("ARROW1\0\0", 8), "ARROW1", "Arrow IPC (Feather)"},
               {"FEA1", "FEA1", "Feather version 1"},
               {"", "\xfa\xa1", "Nimble"},
               {"\x1f\x8b\x08", "", "a gzip file"},
               {"\x28\xb5\x2f\xfd", "", "a zstd file"},
               {"SQLite format 3", "", "an SQLite database"}};
  for (const auto& c : cases) {
    for (const size_t middle : {size_t{0}, size_t{40}, size_t{1000}}) {
      SCOPED_TRACE(std::string(c.format) + " " + std::to_string(middle));
      const std::string complaint = Complaint(c.begin + std::string(middle, 'q') + c.end);
      EXPECT_THAT(complaint, HasSubstr(std::string("this is ") + c.format + ", not DWRF"));
    }
  }
}

}  // namespace
}  // namespace headrace::reader::dwrf
