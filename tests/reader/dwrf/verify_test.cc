// Verify: metadata held against rows. Each figure that metadata has is changed alone, with lengths
// and checksums right, and must be found; sound files, ours and others', must pass.
#include "reader/dwrf/verify.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <functional>

#include "reader/dwrf/column_gather.h"
#include "reader/dwrf/file_statistics.h"
#include "tests/reader/dwrf/torn_rows.h"

namespace headrace::reader::dwrf {
namespace {

using fuzz::TornFile;
using ::testing::HasSubstr;

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
  // Statistics of one key of a flattened map.
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

// Files of other writers: all figures that they carry are true.
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
